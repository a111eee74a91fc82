"""Equally likely samples as predictive distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdcal_core.distributions import _rowwise
from kdcal_core.distributions._shapes import checked_table
from kdcal_core.distributions.weighted import Weighted


class Empirical(Weighted):
    """m equally likely samples a row: Monte Carlo dropout, ensembles (paper 003 section 4.2).

    Parameters
    ----------
    samples : (n, m) array

    Attributes
    ----------
    samples : (n, m)
        Ascending in every row.

    Raises
    ------
    InputError
        Where a sample is not finite: named with its row.

    Examples
    --------
    >>> ensemble = Empirical([[3.0, 1.0, 2.0, 2.0]])
    >>> ensemble.cdf([[0.0, 2.0, 3.0]]).tolist(), ensemble.ppf(0.25).tolist()
    ([[0.0, 0.75, 1.0]], [1.0])
    """

    family: ClassVar[str] = "samples"

    def __init__(self, samples: ArrayLike) -> None:
        values = checked_table(samples, "sample")
        self.samples = values if _rowwise.ascending(values) else np.sort(values, axis=1)
        self.weights = np.ones((1, values.shape[1]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"samples": self.samples}
