"""What local and pooled recalibration share: settings, the fit's rows, and the choice of smoothing.

Both keep the PIT values of the calibration rows and their places in a space, and smooth the
weighted samples of neighbours by a bandwidth that may be chosen by CRPS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.data.schema import FloatArray
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.regression.neighbour_search import Kernel, ScaledSearch
from kdcal_core.regression.recalibrated import Recalibrated, SmoothedRecalibrated
from kdcal_core.regression.recalibrators import (
    PitRecalibrator,
    check_count,
    check_number,
    check_outcomes,
    check_space,
)
from kdcal_core.store.estimators import check_array, demand

Smoothing = Literal["auto", "kernel", "none"]

BANDWIDTHS = (1.0, 0.5, 0.25, 0.125, 0.0)
TRIED_ROWS, FEWEST_TRIED = 400, 20

NEIGHBOUR_SETTINGS: dict[str, list[Any]] = {
    "k": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "kernel": [StrOptions({"epanechnikov", "uniform"})],
    "smoothing": [StrOptions({"auto", "kernel", "none"})],
    "seed": [Interval(Integral, 0, None, closed="left")],
}
"""Allowed values of the settings that all methods with neighbours have."""


def neighbours_of(n: int) -> int:
    """Default number of neighbours among n rows: 2 sqrt(n), at least 50.

    Examples
    --------
    >>> neighbours_of(100), neighbours_of(10_000)
    (50, 200)
    """
    return max(50, round(2 * math.sqrt(n)))


def smoothed(sampled: Recalibrated, bandwidth: float) -> PredictiveDistribution:
    """The weighted sample, smoothed unless the bandwidth is 0."""
    return SmoothedRecalibrated.of(sampled, bandwidth) if bandwidth else sampled


def first_close(crps: FloatArray, weight: FloatArray | None = None) -> int:
    """The first of m candidates whose mean CRPS is within a standard error of the smallest.

    Parameters
    ----------
    crps : (m, n) array
        CRPS of every row by each candidate.
    weight : (n,) array, optional
        Row weights.

    Examples
    --------
    >>> first_close(np.array([[2.0, 1.0], [1.0, 1.9], [1.0, 1.8]]))
    0
    """
    if weight is None:
        worse = crps - crps[np.argmin(crps.mean(axis=1))]
        close = worse.mean(axis=1) <= worse.std(axis=1) / math.sqrt(crps.shape[1])
        return int(np.argmax(close))
    share = weight / weight.sum()
    worse = crps - crps[np.argmin(crps @ share)]
    mean = worse @ share
    error = np.sqrt(np.square((worse - mean[:, np.newaxis]) * share).sum(axis=1))
    return int(np.argmax(mean <= error))


class NeighbourRecalibration(PitRecalibrator):
    """Base class of recalibration by neighbours.

    Attributes
    ----------
    pit_ : (n,) array
        PIT values of the calibration rows, under the widened distributions.
    search_ : ScaledSearch
        Their places in the space.
    k_ : int
        Number of neighbours: ``k``, or the number of calibration rows if that is smaller.
    bandwidth_ : float
        Bandwidth of the smoothing, in multiples of Silverman's; 0 for none.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = NEIGHBOUR_SETTINGS
    k: int | Literal["auto"]
    kernel: Kernel
    smoothing: Smoothing
    search_: ScaledSearch
    pit_: FloatArray

    @property
    def needs_space(self) -> bool:
        return True

    def _checked(
        self, distribution: PredictiveDistribution, y: Any, space: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Outcomes (n,) and space (n, d) after checks of these and of the settings."""
        self._validate_params()
        space = check_space(space, len(distribution))
        return check_outcomes(y, len(distribution)), space

    def _wanted(self, n: int) -> int:
        """The number of neighbours among n rows, which may be larger than n."""
        return neighbours_of(n) if self.k == "auto" else int(self.k)

    def _bandwidth(
        self,
        rows: int = 0,
        crps: Callable[[float], FloatArray] | None = None,
        *,
        of_few: float = BANDWIDTHS[0],
        weight: FloatArray | None = None,
    ) -> float:
        """The widest bandwidth within a standard error of the smallest CRPS.

        Parameters
        ----------
        rows : int
            Number of rows on which bandwidths can be compared.
        crps : callable, optional
            The CRPS of each of these rows with a bandwidth.
        of_few : float
            The bandwidth where there are too few rows to choose it.
        weight : (n,) array, optional
            Weights of these rows.
        """
        if self.smoothing != "auto":
            return {"kernel": 1.0, "none": 0.0}[self.smoothing]
        if crps is None or rows < FEWEST_TRIED:
            return of_few
        return BANDWIDTHS[first_close(np.stack([crps(one) for one in BANDWIDTHS]), weight)]

    def check_state(self) -> None:
        super().check_state()
        demand(isinstance(self.search_, ScaledSearch), "search_")
        self.search_.check_state("search_")
        check_array(self, "pit_", (len(self.search_),), low=0.0, high=1.0)
        self._check_weight(len(self.search_))
        check_count(self, "k_", 1, len(self.search_))
        check_number(self, "bandwidth_", 0.0, 100.0)
