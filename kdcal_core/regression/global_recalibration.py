"""One correction for all rows: global recalibration and the isotonic map of Kuleshov et al.

Global recalibration uses all PIT values for every new row (Torres et al., section 3). The other
fits one nondecreasing map of probabilities.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtr, ndtri
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.distributions import Mapped, PredictiveDistribution
from kdcal_core.distributions.wrapped import check_map
from kdcal_core.regression.recalibrated import Recalibrated
from kdcal_core.regression.recalibrators import (
    PitRecalibrator,
    RecalibratorSpec,
    check_outcomes,
    given_weight,
)
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand


@storable
class GlobalRecalibration(PitRecalibrator):
    """Algorithm 1 of Torres et al. with k = n neighbours of equal weight.

    Parameters
    ----------
    seed : int, default=0
        Seed of the randomised PIT values, if the base's distribution function has jumps.

    Attributes
    ----------
    pit_ : (n,) array
        PIT values of the calibration rows with the widened distributions.
    widening_ : float
        As in :class:`LocalRecalibration`.
    n_outside_ : int
        Number of calibration rows with the outcome outside their distribution: PIT within 1e-16 of
        0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> y = np.random.default_rng(0).normal(1, 2, 5000)
    >>> fitted = GlobalRecalibration().fit(Normal(np.zeros(5000), 1.0), y)
    >>> recalibrated = fitted.predict(Normal([0.0], 1.0))
    >>> recalibrated.mean().round(1).tolist(), recalibrated.std().round(1).tolist()
    ([1.0], [2.0])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: Any = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Store the PIT values of the calibration set; ``space`` is ignored.

        ``sample_weight``, (n,) or a RowDesign, are positive row weights: a row of weight 2 counts
        as two equal rows.

        Raises
        ------
        InputError
            If the outcomes do not match the rows or are not finite.
        """
        self._validate_params()
        y = check_outcomes(y, len(distribution))
        weight = given_weight(sample_weight, len(y))
        _, pit = self._pit_of_fit(distribution, y)
        order = np.argsort(pit, kind="stable")
        self.pit_ = pit[order]
        self._keep_weight(None if weight is None else weight[order])
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: Any = None
    ) -> PredictiveDistribution:
        """The recalibrated distributions of m new rows."""
        check_is_fitted(self, "pit_")
        base = self._base(distribution)
        weight = self._row_weight
        shares = np.ones(len(self.pit_)) if weight is None else weight
        return Recalibrated(base, self.pit_[None, :], shares[None, :])

    def check_state(self) -> None:
        super().check_state()
        demand(len(check_array(self, "pit_", (None,), low=0.0, high=1.0)) > 0, "pit_")
        self._check_weight(len(self.pit_))


BETWEEN = 8
"""Number of linear pieces of the smooth map between adjacent kept corners."""


@storable
class IsotonicRecalibration(PitRecalibrator):
    """``F~ = R o F^`` with R an isotonic regression on (p, ECDF(p)) (Torres et al., section 2).

    p are the PIT values of the calibration set. Their ECDF (denominator n) is already
    nondecreasing, so isotonic regression returns it unchanged. With linear interpolation, as in
    Kuleshov et al. (2018) and scikit-learn, its n corners give a jagged density, whose log score is
    0.4 nats worse than the model's own. So by default R keeps about 2 n^(1/3) of the corners, more
    densely towards both ends, with a monotone cubic (on the normal scores of both axes) between
    them. At these corners the share of outcomes below does not change.

    Parameters
    ----------
    ends : {"open", "printed"}, default="open"
        As printed in the paper, R reaches 1 at the largest PIT, so outcomes above the corresponding
        quantile get probability 0, even with few rows. "open" uses n + 1 instead of n: the i-th
        smallest PIT maps to i / (n + 1), which is the exact probability that a new row of the same
        kind falls below it, and both tails beyond the data keep the model's shape.
    smoothing : {"auto", "none"}, default="auto"
        "none" keeps all corners with linear interpolation, as printed.
    seed : int, default=0
        Seed of the randomised PIT values of distributions with jumps.

    Attributes
    ----------
    knots_, values_ : (g,) arrays
        Points on R, from (0, 0) to (1, 1).
    n_outside_ : int
        Number of outcomes outside their predictive support: PIT within 1e-16 of 0 or 1. Their mass
        is spread between the end and the next PIT value.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> rng = np.random.default_rng(0)
    >>> model = Normal(np.zeros(1000), np.full(1000, 0.5))  # the truth is twice as wide
    >>> recalibrated = IsotonicRecalibration().fit(model, rng.normal(size=1000)).predict(model[:1])
    >>> bool(abs(recalibrated.cdf(1.0)[0] - 0.841) < 0.03)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ends": [StrOptions({"open", "printed"})],
        "smoothing": [StrOptions({"auto", "none"})],
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        ends: Literal["open", "printed"] = "open",
        smoothing: Literal["auto", "none"] = "auto",
        seed: int = 0,
    ) -> None:
        self.ends = ends
        self.smoothing = smoothing
        self.seed = seed

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: NDArray[Any] | None = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Fit R to n rows and their outcomes (n,); ``space`` is not used.

        ``sample_weight``, (n,) or a RowDesign, are positive row weights: a row of weight 2 counts
        as two equal rows.

        Raises
        ------
        InputError
            If the outcomes are not n finite numbers.
        """
        self._validate_params()
        y = check_outcomes(y, len(distribution))
        _, pit = self._pit_of_fit(distribution, y)
        weight = given_weight(sample_weight, len(y))
        weight = np.ones(len(y)) if weight is None else weight
        self.knots_, self.values_ = _corners(pit, weight, float(self.ends == "open"))
        if self.smoothing == "auto":
            self.knots_, self.values_ = _smooth(self.knots_, self.values_)
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """``R o F^`` for m new rows; ``space`` is not used."""
        check_is_fitted(self, "knots_")
        return Mapped(self._base(distribution), self.knots_, self.values_)

    def check_state(self) -> None:
        super().check_state()
        check_map(check_array(self, "knots_", (None,)), check_array(self, "values_", (None,)))


def _corners(pit: FloatArray, weight: FloatArray, more: float) -> tuple[FloatArray, FloatArray]:
    """Corners of the ECDF inside (0, 1), with (0, 0) and (1, 1) added.

    ``more`` is what the denominator has beside the sum of all weights.
    """
    knots, place = np.unique(pit, return_inverse=True)
    below = np.cumsum(np.bincount(place, weights=weight))
    values = below / (below[-1] + more)
    inside = (knots > 0.0) & (knots < 1.0)
    return (
        np.concatenate([[0.0], knots[inside], [1.0]]),
        np.concatenate([[0.0], values[inside], [1.0]]),
    )


def _smooth(knots: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The map through some of the corners, a monotone cubic from the first to the last of them."""
    inner = knots[1:-1], values[1:-1]
    # a corner may lack a normal score: many outcomes with one value, or the largest as printed
    inside = inner[1] < 1.0
    x, z = ndtri(inner[0][inside]), ndtri(inner[1][inside])
    kept = _kept_corners(len(x))
    if len(kept) < 3:
        return knots, values
    curve = PchipInterpolator(x[kept], z[kept])
    parts = np.linspace(0.0, 1.0, BETWEEN, endpoint=False)
    at = (x[kept[:-1], np.newaxis] + np.diff(x[kept])[:, np.newaxis] * parts).ravel()
    at = np.unique(np.append(at, x[kept[-1]]))
    level, image = ndtr(at), np.maximum.accumulate(ndtr(curve(at)))
    # ndtr of ndtri is not exactly the identity, so the ends are set exactly
    rest = knots > knots[1:-1][inside][-1]
    first, last = inner[0][inside][0], inner[0][inside][-1]
    open_ = (level > first) & (level < last)
    ends = (first, inner[1][inside][0]), (last, inner[1][inside][-1])
    smooth_x = np.concatenate([[0.0, ends[0][0]], level[open_], [ends[1][0]], knots[rest]])
    smooth_y = np.concatenate([[0.0, ends[0][1]], image[open_], [ends[1][1]], values[rest]])
    rising = np.concatenate([[True], np.diff(smooth_x) > 0])
    return smooth_x[rising], np.maximum.accumulate(smooth_y[rising])


def _kept_corners(n: int) -> IntArray:
    """Positions among n corners: about evenly spaced, and closer towards both ends."""
    step = max(1, round(n ** (2 / 3) / 2))
    ladder = 2 ** np.arange(int(np.log2(step)) + 1) - 1
    even = np.arange(step // 2, n, step)
    places = np.concatenate([ladder, even, n - 1 - ladder])
    found: IntArray = np.unique(places[(places >= 0) & (places < n)])
    return found


def _isotonic(
    ends: Literal["open", "printed"] = "open",
    smoothing: Literal["auto", "kernel", "none"] = "auto",
    seed: int = 0,
) -> IsotonicRecalibration:
    """Isotonic recalibration; of the local smoothing settings only "none" matters."""
    return IsotonicRecalibration(ends, "none" if smoothing == "none" else "auto", seed)


RecalibratorSpec(
    "global",
    "Global recalibration",
    "Every row gets the same correction, from where the outcomes of all calibration rows fell "
    "in their own predictions.",
    GlobalRecalibration,
    family="global",
    needs_space=False,
    reference="Torres et al., section 3",
    settings=("seed",),
).offer()

RecalibratorSpec(
    "isotonic",
    "Isotonic recalibration",
    "One increasing map of probabilities for all rows makes the stated quantiles right on average.",
    _isotonic,
    family="global",
    needs_space=False,
    reference="Kuleshov et al. 2018; Torres et al., section 2",
    settings=("ends", "smoothing", "seed"),
).offer()
