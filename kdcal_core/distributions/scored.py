"""Rows with their predictive distributions and outcomes: all that regression diagnostics need."""

from __future__ import annotations

from dataclasses import dataclass

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions.base import PredictiveDistribution


@dataclass(frozen=True, eq=False)
class RegressionSet:
    """The regression counterpart of :class:`kdcal_core.data.ScoredSet`.

    Attributes
    ----------
    distribution : PredictiveDistribution
        Of the n rows.
    y : (n,) float64
        Outcomes.
    digest : str
        SHA-256 of the arrays: the key of every cached result.
    name : str
        "calibration" or "evaluation".
    weight : (n,) float64 or None
        Positive row weights.
    true_mean : (n,) float64 or None
        The true conditional mean, where a simulation knows it.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> RegressionSet(Normal([0.0, 1.0], 1.0), np.array([0.3, 0.8]), "", "calibration").n_rows
    2
    """

    distribution: PredictiveDistribution
    y: FloatArray
    digest: str
    name: str
    weight: FloatArray | None = None
    true_mean: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        return int(self.y.shape[0])
