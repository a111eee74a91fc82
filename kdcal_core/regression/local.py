"""Local recalibration from the PIT values of neighbours (Torres et al., Algorithm 1).

Also nearest neighbour regression, with which Torres et al. compare: the neighbours' outcomes.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.distributions import PredictiveDistribution, Weighted
from kdcal_core.errors import InputError, quiet, warn
from kdcal_core.progress import Progress
from kdcal_core.regression.neighbour_recalibration import (
    FEWEST_TRIED,
    NEIGHBOUR_SETTINGS,
    TRIED_ROWS,
    NeighbourRecalibration,
    Smoothing,
    smoothed,
)
from kdcal_core.regression.neighbour_search import (
    Kernel,
    Neighbours,
    ScaledSearch,
    SearchKind,
    kernel_weights,
    sorting_keys,
)
from kdcal_core.regression.recalibrated import Recalibrated
from kdcal_core.regression.recalibrators import (
    PIT_EDGE,
    RecalibratorSpec,
    check_outcomes,
    check_space,
    given_weight,
)
from kdcal_core.store import storable

FEWEST = 50
"""Fewest neighbours of a row, used if a radius holds fewer."""
RECALL_ROWS = 200
MOST_FLOATS = 2**28
"""Maximum number of neighbours of all rows together with a radius: 2 GB of PIT values."""


@storable
class LocalRecalibration(NeighbourRecalibration):
    """Local recalibration (Torres et al., Algorithm 1 and Eq. 3).

    The fit stores the PIT values p_i = F^_i(y_i) of the calibration set. A new row j uses those of
    its neighbours in ``space``, weighted by the kernel of their distances. Its recalibrated
    distribution is that of the weighted samples F^_j^-1(p_i).

    Parameters
    ----------
    k : int or "auto", default="auto"
        Number of neighbours, at most the number of calibration rows. "auto" is 2 sqrt(n), at least
        50. Torres et al. use 1,000 of 10,000. Over 100 runs on real tables, their choice lost 8% of
        CRPS against the best k in hindsight (at worst 37%), "auto" 2% (8%), and the choice by
        :func:`select_neighbours` 0.4% (2%).
    radius : float, optional
        Uses all rows within this distance as neighbours instead; it is also the kernel's scale u
        (section 4.2). Rows with fewer than 50 within it use their 50 nearest. It is in units of the
        standardised space, unless ``standardise`` is False.
    kernel : {"epanechnikov", "uniform"}
        With k neighbours, u is 0.1% more than the distance of the k-th.
    search : {"exact", "approximate"}
    epsilon : float, default=0.0
        Approximate search may return an i-th neighbour that is (1 + epsilon) times as far as the
        true one.
    standardise : bool, default=True
        Scale every column of the space to mean 0 and standard deviation 1 of the calibration
        rows; a constant column has no effect.
    smoothing : {"auto", "kernel", "none"}
        "none" is the paper's weighted sample, :class:`Recalibrated`, which ends at its most extreme
        neighbour. "kernel" smooths it with Silverman's bandwidth and continues it with the base's
        tails (:class:`SmoothedRecalibrated`), which merges two peaks of the outcomes into one.
        "auto" compares that bandwidth, a half, a quarter and an eighth of it, and none, by CRPS.
        For this, up to 400 calibration rows are recalibrated by their neighbours without
        themselves, and the widest bandwidth within a standard error of the best is used.
    seed : int, default=0
        Of the randomised PIT values, where the base's distribution function has jumps.

    Attributes
    ----------
    pit_ : (n,) array
        PIT values of the calibration rows, under the widened distributions.
    widening_ : float
        Factor of the spread of normal distributions. It is 1 unless an outcome lies so far out that
        its PIT value would be 0 or 1; see `kdcal_core.regression.recalibrators`.
    n_outside_ : int
        Calibration rows whose outcome lies outside their distribution: PIT within 1e-16 of 0 or 1.
    bandwidth_ : float
        Bandwidth of the smoothing, in multiples of Silverman's; 0 for none.
    k_ : int
        Neighbours of a row: ``k``, or the number of calibration rows if that is smaller.
    n_fallback_ : int
        Number of rows in the last ``predict`` with fewer than 50 rows within the radius.
    recall_ : float or None
        Share of the true nearest rows that approximate search found in the last ``predict``, on 200
        evenly spaced rows. None for exact search.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> x = np.linspace(-1, 1, 2001)
    >>> y = np.abs(x) + np.random.default_rng(0).normal(0, 0.1, 2001)
    >>> base = Normal(np.full(2001, 0.5), 0.3)  # too high in the middle, too low at the edges
    >>> local = LocalRecalibration(k=100).fit(base, y, x)
    >>> recalibrated = local.predict(Normal([0.5, 0.5], 0.3), [0.0, 0.9])
    >>> recalibrated.mean().round(1).tolist(), recalibrated.std().round(1).tolist()
    ([0.0, 0.9], [0.1, 0.1])
    """

    of_last_predict: ClassVar[tuple[str, ...]] = ("n_fallback_", "recall_")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NEIGHBOUR_SETTINGS,
        "radius": [None, Interval(Real, 0, None, closed="neither")],
        "search": [StrOptions({"exact", "approximate"})],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "standardise": ["boolean"],
    }

    def __init__(
        self,
        k: int | Literal["auto"] = "auto",
        radius: float | None = None,
        kernel: Kernel = "epanechnikov",
        search: SearchKind = "exact",
        epsilon: float = 0.0,
        standardise: bool = True,
        smoothing: Smoothing = "auto",
        seed: int = 0,
    ) -> None:
        self.k = k
        self.radius = radius
        self.kernel = kernel
        self.search = search
        self.epsilon = epsilon
        self.standardise = standardise
        self.smoothing = smoothing
        self.seed = seed

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: Any = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Store the PIT values and the space of the calibration set.

        Parameters
        ----------
        distribution : PredictiveDistribution of n rows
        y : (n,) array
            Outcomes.
        space : (n, d) or (n,) array
            Space in which neighbours are searched: inputs, or a hidden layer of the model.
        sample_weight : (n,) array or RowDesign, optional
            Positive row weights, by which the kernel's are multiplied. The number of neighbours
            counts rows, whatever their weights, and so do the space's standard deviations and the
            bandwidth of the smoothing. A row of weight 2 therefore counts as two equal rows exactly
            with a radius in the space as it is and no smoothing, and else about.

        Raises
        ------
        InputError
            If outcomes or space do not match the rows or are not finite; row and column are named.
        """
        y, space = self._checked(distribution, y, space)
        self._keep_weight(given_weight(sample_weight, len(y)))
        _, self.pit_ = self._pit_of_fit(distribution, y)
        self.search_ = ScaledSearch.of(
            space, standardise=self.standardise, kind=self.search, epsilon=float(self.epsilon)
        )
        asked = self._wanted(len(y))
        self.k_ = min(asked, len(y))
        if self.radius is None and self.k != "auto" and self.k_ < asked:
            warn(
                f"There are {self.k_:,} calibration rows and k is {asked:,}: all rows are "
                "neighbours of every row.",
                stacklevel=2,
            )
        self.bandwidth_ = self._chosen_bandwidth(distribution, y, space)
        return self

    def predict(
        self,
        distribution: PredictiveDistribution,
        space: Any = None,
        progress: Progress | None = None,
    ) -> PredictiveDistribution:
        """The recalibrated distributions of m new rows.

        Parameters
        ----------
        distribution : PredictiveDistribution of m rows
        space : (m, d) or (m,) array
        progress : callable, optional
            Called with the share done and a sentence; may raise to cancel.

        Raises
        ------
        InputError
            If the space is missing or differs from the fit in its number of columns, a value is not
            finite, or a radius holds too many rows for memory.
        """
        check_is_fitted(self, "pit_")
        points = check_space(space, len(distribution), self.search_.n_columns)
        found, weights = self._neighbours(points, progress)
        self.recall_ = (
            self.search_.recall(points, found.index, RECALL_ROWS)
            if self.search == "approximate"
            else None
        )
        sampled = self._sampled(self._base(distribution), found.index, weights)
        return smoothed(sampled, self.bandwidth_)

    def _chosen_bandwidth(
        self, distribution: PredictiveDistribution, y: FloatArray, space: FloatArray
    ) -> float:
        """The widest bandwidth within a standard error of the smallest leave-one-out CRPS."""
        if self.smoothing != "auto":
            return self._bandwidth()
        rows = np.random.default_rng([self.seed, 3]).permutation(len(y))[:TRIED_ROWS]
        with quiet():
            found, weights = self._neighbours(space[rows], None)
        others = np.where(found.index == rows[:, np.newaxis], 0.0, weights)
        some = others.max(axis=1) > 0
        rows, weight = rows[some], self._row_weight
        if len(rows) < FEWEST_TRIED:
            return self._bandwidth()
        base = self._base(distribution[rows])
        sampled = self._sampled(base, found.index[some], others[some])
        return self._bandwidth(
            len(rows),
            lambda one: smoothed(sampled, one).crps(y[rows]),
            weight=None if weight is None else weight[rows],
        )

    def _sampled(
        self, base: PredictiveDistribution, index: IntArray, weights: FloatArray
    ) -> Recalibrated:
        """The base at the PIT values of neighbours (n, k)."""
        keys = sorting_keys(np.clip(self.pit_, PIT_EDGE, 1 - PIT_EDGE))
        order = np.argsort(keys[index], axis=1, kind="stable")
        index = np.take_along_axis(index, order, axis=1)
        weights = np.take_along_axis(weights, order, axis=1)
        return Recalibrated(base, self.pit_[index], weights)

    def _neighbours(
        self, points: FloatArray, progress: Progress | None
    ) -> tuple[Neighbours, FloatArray]:
        if self.radius is None:
            self.n_fallback_ = 0
            found = self.search_.query(points, self.k_, progress)
            weights = kernel_weights(found.distance, self.kernel)
            return found, self._times_weight(weights, found.index)
        inside = self.search_.count_within(points, self.radius)
        fewest = min(FEWEST, len(self.pit_))
        most = max(int(inside.max()), fewest)
        if most * len(points) > MOST_FLOATS:
            raise InputError(
                f"A radius of {self.radius:g} holds up to {most:,} calibration rows, too many for "
                f"{len(points):,} new rows at once",
                fix="Choose a smaller radius, a number of neighbours k, or fewer rows at a time.",
            )
        found = self.search_.query(points, most, progress)
        weights = kernel_weights(found.distance, self.kernel, self.radius)
        # rows exactly at the radius have weight 0 with the Epanechnikov kernel
        lonely = (weights > 0).sum(axis=1) < fewest
        self.n_fallback_ = n_lonely = int(lonely.sum())
        if n_lonely:
            nearest = kernel_weights(found.distance[lonely, :fewest], self.kernel)
            weights[lonely] = np.pad(nearest, ((0, 0), (0, most - fewest)))
            warn(
                f"{n_lonely:,} of {len(points):,} rows have fewer than {fewest} "
                f"calibration rows within the radius {self.radius:g}: they use their {fewest} "
                "nearest.",
                stacklevel=3,
            )
        return found, self._times_weight(weights, found.index)


class NeighbourRegression(BaseEstimator):
    """The outcomes of the k nearest rows, weighted by distance (Torres et al., section 4.3).

    It predicts from the calibration set alone, as local recalibration without the model's
    predictions. ``distribution`` is accepted, as in every recalibrator, and ignored.

    Parameters
    ----------
    k : int, default=1000
        Number of neighbours, at most the number of fit rows.
    kernel : {"epanechnikov", "uniform"}, default="epanechnikov"

    Attributes
    ----------
    k_ : int
        Neighbours used.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10.0)
    >>> fitted = NeighbourRegression(k=3, kernel="uniform").fit(None, 2 * x, x)
    >>> fitted.predict(None, np.array([[4.0]])).samples.tolist()
    [[6.0, 8.0, 10.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "k": [Interval(Integral, 1, None, closed="left")],
        "kernel": NEIGHBOUR_SETTINGS["kernel"],
    }

    def __init__(self, k: int = 1000, kernel: Kernel = "epanechnikov") -> None:
        self.k = k
        self.kernel = kernel

    def fit(
        self,
        distribution: PredictiveDistribution | None,
        y: Any,
        space: NDArray[Any] | None = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Store the outcomes (n,) and the space (n, d); the distribution is not used.

        ``sample_weight`` (n,) multiplies the kernel's weights.

        Raises
        ------
        InputError
            If outcomes or space are not n rows of finite numbers.
        """
        self._validate_params()
        self._y = check_outcomes(y, len(np.asarray(y)))
        checked = check_space(space, len(self._y))
        self._weight = given_weight(sample_weight, len(self._y))
        self._search = ScaledSearch.of(checked)
        self.k_ = min(self.k, len(self._y))
        return self

    def predict(
        self, distribution: PredictiveDistribution | None, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """Weighted outcomes of the neighbours of m new rows; the distribution is not used."""
        check_is_fitted(self, "k_")
        if space is None:
            raise InputError(
                "The space in which neighbours are searched is missing",
                fix="Give the inputs or a hidden layer of the model, one row for each row.",
            )
        new = check_space(space, len(np.asarray(space)), self._search.n_columns)
        found = self._search.query(new, self.k_)
        weights = kernel_weights(found.distance, self.kernel)
        if self._weight is not None:
            weights *= self._weight[found.index]
        return Weighted(self._y[found.index], weights)


RecalibratorSpec(
    "local",
    "Local recalibration",
    "Every row is corrected by where the outcomes of its nearest calibration rows fell in "
    "their own predictions.",
    LocalRecalibration,
    family="local",
    needs_space=True,
    reference="Torres et al., Algorithm 1",
    settings=("k", "radius", "kernel", "smoothing", "search", "epsilon", "standardise", "seed"),
).offer()

RecalibratorSpec(
    "neighbours",
    "Nearest neighbour regression",
    "The outcomes of the nearest calibration rows are the prediction; the model's own is not used.",
    NeighbourRegression,
    family="comparison",
    needs_space=True,
    reference="Torres et al., section 4.3",
    settings=("k", "kernel"),
).offer()
