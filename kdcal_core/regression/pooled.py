"""Local recalibration with tails: three neighbourhoods of each row are pooled."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.data.splits import at_most
from kdcal_core.distributions import PredictiveDistribution, moments
from kdcal_core.regression.neighbour_recalibration import (
    FEWEST_TRIED,
    NEIGHBOUR_SETTINGS,
    TRIED_ROWS,
    NeighbourRecalibration,
    Smoothing,
    first_close,
    smoothed,
)
from kdcal_core.regression.neighbour_search import Kernel, ScaledSearch, kernel_weights
from kdcal_core.regression.recalibrated import Recalibrated
from kdcal_core.regression.recalibrators import (
    PIT_EDGE,
    RecalibratorSpec,
    check_number,
    check_space,
    given_weight,
)
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand

SHARES = (0.0, 0.15, 0.3, 0.5, 0.75)
FARTHER, MOST = 5, 500
"""The wider neighbourhood has five times as many rows, 500 or k at most."""
FEWEST_SIMILAR, SIMILAR_SHARE = 50, 8
_OF_FEW = 0.25  # bandwidth with too few rows to choose it
_LEAST_SPREAD = 1e-3  # on the probit scale


@storable
class PooledRecalibration(NeighbourRecalibration):
    """Local recalibration whose few neighbours are joined by many rows that know the tails.

    The k nearest rows follow local faults, but few of them lie in the tails, so the intervals of
    :class:`LocalRecalibration` are too narrow. Here a new row's distribution pools the PIT values
    of three groups of calibration rows, each weighted by the kernel of the distances:

    * the k nearest rows in the space, as in Torres et al., Algorithm 1;
    * five times as many. On the probit scale they are moved and stretched to the mean and spread of
      the k nearest, after standardising each by the mean and spread of its own k neighbours without
      itself. These residuals include the error of a mean and spread from k rows, as studentised
      residuals do;
    * rows with a similar prediction (mean and standard deviation), as in Mondrian conformal
      prediction: an eighth of the calibration rows, at least 50 and at most 500.

    The third group has a share of the weight, and the other two half of the rest each. This method
    is not in the papers (tests/benchmarks/RESULTS_recalibration_tables.md).

    Parameters
    ----------
    k : int or "auto", default="auto"
    kernel : {"epanechnikov", "uniform"}
    smoothing : {"auto", "kernel", "none"}
        As in :class:`LocalRecalibration`.
    similar : float or "auto", default="auto"
        Share of the weight of the rows with a similar prediction. "auto" compares 0, 0.15, 0.3, 0.5
        and 0.75 by the CRPS of up to 400 calibration rows without themselves, and takes the
        largest within a standard error of the best.
    seed : int, default=0

    Attributes
    ----------
    k_ : int
        Neighbours of a row.
    similar_ : float
    bandwidth_ : float
        In multiples of Silverman's; 0 for none.
    pit_ : (n,) array
        PIT values of the calibration rows.
    widening_, n_outside_
        As in :class:`LocalRecalibration`.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 1000))
    >>> pooled = PooledRecalibration(k=25).fit(Normal(x, 1.0), x + 3 * noise, x)
    >>> pooled.predict(Normal([0.0], 1.0), [0.0]).std().round().tolist()
    [3.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NEIGHBOUR_SETTINGS,
        "k": [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"})],
        "similar": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        k: int | Literal["auto"] = "auto",
        kernel: Kernel = "epanechnikov",
        smoothing: Smoothing = "auto",
        similar: float | Literal["auto"] = "auto",
        seed: int = 0,
    ) -> None:
        self.k = k
        self.kernel = kernel
        self.smoothing = smoothing
        self.similar = similar
        self.seed = seed

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: Any = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Store PIT values, space and predictions of n rows; choose share and bandwidth.

        Parameters
        ----------
        distribution : PredictiveDistribution of n rows
        y : (n,) array
            Outcomes.
        space : (n, d) or (n,) array
            Space in which neighbours are searched.
        sample_weight : (n,) array or RowDesign, optional
            Positive row weights, by which the kernel's are multiplied. The number of neighbours
            counts rows, whatever their weights.

        Raises
        ------
        InputError
            If outcomes or space do not match the rows or are not finite.
        """
        y, space = self._checked(distribution, y, space)
        self._keep_weight(given_weight(sample_weight, len(y)))
        base, pit = self._pit_of_fit(distribution, y)
        self.pit_ = np.clip(pit, PIT_EDGE, 1 - PIT_EDGE)
        self.search_ = ScaledSearch.of(space)
        self.alike_ = ScaledSearch.of(moments(distribution))
        n = len(y)
        self.k_ = min(self._wanted(n), n)
        own = np.arange(n)
        index, weights = self._nearest(self.search_, space, min(self.k_, n - 1), own)
        mean, spread = self._local(index, weights)
        self.residuals_ = (ndtri(self.pit_) - mean) / spread
        rows = at_most(n, TRIED_ROWS, [self.seed, 3])
        groups = self._groups(distribution[rows], space[rows], rows)
        weight = self._row_weight
        of_rows = None if weight is None else weight[rows]

        def crps(similar: float, bandwidth: float) -> FloatArray:
            return _pooled(base[rows], groups, similar, bandwidth).crps(y[rows])

        self.similar_ = 0.3 if self.similar == "auto" else float(self.similar)
        if self.similar == "auto" and len(rows) >= FEWEST_TRIED:
            first = self._bandwidth(of_few=_OF_FEW)
            shares = SHARES[::-1]
            tried = np.stack([crps(one, first) for one in shares])
            self.similar_ = shares[first_close(tried, of_rows)]
        self.bandwidth_ = self._bandwidth(
            len(rows), lambda one: crps(self.similar_, one), of_few=_OF_FEW, weight=of_rows
        )
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: Any = None
    ) -> PredictiveDistribution:
        """The recalibrated distributions of m new rows; ``space`` is (m, d) or (m,).

        Raises
        ------
        InputError
            If the space is missing, differs in its number of columns, or is not finite.
        """
        check_is_fitted(self, "similar_")
        points = check_space(space, len(distribution), self.search_.n_columns)
        groups = self._groups(distribution, points)
        return _pooled(self._base(distribution), groups, self.similar_, self.bandwidth_)

    def check_state(self) -> None:
        super().check_state()
        n = len(self.search_)
        demand(isinstance(self.alike_, ScaledSearch) and len(self.alike_) == n, "alike_")
        self.alike_.check_state("alike_")
        demand(self.alike_.n_columns == 2, "alike_")
        check_array(self, "residuals_", (n,))
        check_array(self, "pit_", (n,), low=PIT_EDGE, high=1 - PIT_EDGE)
        check_number(self, "similar_", 0.0, 1.0)

    def _groups(
        self, distribution: PredictiveDistribution, space: FloatArray, own: IntArray | None = None
    ) -> list[tuple[FloatArray, FloatArray]]:
        """PIT values and weights, summing to 1, of each row's three groups, without its own."""
        n = len(self.pit_) - (own is not None)
        wide = min(max(self.k_, min(FARTHER * self.k_, MOST)), n)
        index, weights = self._nearest(self.search_, space, min(self.k_, n), own)
        far, far_weights = self._nearest(self.search_, space, wide, own)
        count = min(max(FEWEST_SIMILAR, n // SIMILAR_SHARE), MOST, n)
        alike, alike_weights = self._nearest(self.alike_, moments(distribution), count, own)
        mean, spread = self._local(index, weights)
        moved = ndtr(mean[:, np.newaxis] + spread[:, np.newaxis] * self.residuals_[far])
        return [
            (self.pit_[index], weights),
            (moved, far_weights),
            (self.pit_[alike], alike_weights),
        ]

    def _local(self, index: IntArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weighted mean and spread of each row's neighbours on the probit scale, (n,) each."""
        near = ndtri(self.pit_)[index]
        mean = (weights * near).sum(axis=1)
        spread = np.sqrt((weights * (near - mean[:, np.newaxis]) ** 2).sum(axis=1))
        return mean, np.maximum(spread, _LEAST_SPREAD)

    def _nearest(
        self, search: ScaledSearch, points: FloatArray, k: int, own: IntArray | None
    ) -> tuple[IntArray, FloatArray]:
        """The k nearest rows (m, k), without the points' own, and weights that sum to 1."""
        found = search.query(points, k) if own is None else search.others(points, k, own)
        weights = self._times_weight(kernel_weights(found.distance, self.kernel), found.index)
        return found.index, weights / weights.sum(axis=1, keepdims=True)


def _pooled(
    base: PredictiveDistribution,
    groups: list[tuple[FloatArray, FloatArray]],
    similar: float,
    bandwidth: float,
) -> PredictiveDistribution:
    shares = ((1 - similar) / 2, (1 - similar) / 2, similar)
    weights = [share * one for share, (_, one) in zip(shares, groups, strict=True)]
    sampled = Recalibrated(base, np.hstack([pit for pit, _ in groups]), np.hstack(weights))
    return smoothed(sampled, bandwidth)


RecalibratorSpec(
    "pooled",
    "Pooled local recalibration",
    "Every row is corrected by its nearest calibration rows together with many more, which know "
    "the tails: a wider neighbourhood, and the rows whose prediction is similar.",
    PooledRecalibration,
    family="local",
    needs_space=True,
    reference="Torres et al., Algorithm 1 with wider neighbourhoods, beyond the paper",
    settings=("k", "kernel", "smoothing", "seed"),
).offer()
