"""Recalibrated distributions: the base's quantiles at the PIT values of neighbours.

They are used as a step function or smoothed.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, ndtr, ndtri

from kdcal_core.data.schema import FloatArray
from kdcal_core.distributions import PredictiveDistribution, Weighted
from kdcal_core.distributions.distribution import Rows
from kdcal_core.distributions.parametric import LOG_ROOT_TWO_PI
from kdcal_core.distributions.piecewise import count_up_to, pick
from kdcal_core.distributions.sampled import SMALLEST
from kdcal_core.distributions.wrapped import ThroughMap
from kdcal_core.regression.recalibrators import PIT_EDGE

STRIP = 2.0**-8
"""Width on the probit scale within which many shared PIT values are merged."""
MANY = 2**13


class Recalibrated(Weighted):
    """Weighted samples y~_i = F^_j^-1(p_i), one for each neighbour's PIT value p_i.

    Torres et al., Algorithm 1 and Eq. 3. The samples are computed only when used: distribution
    function and quantiles need only the weighted PIT values, because F~_j(y) = sum of the weights
    of p_i <= F^_j(y).

    Parameters
    ----------
    base : PredictiveDistribution
        Distributions F^_j of n rows.
    pits : (n, k) array, or (1, k) where all rows share them
        PIT values in [0, 1], clipped at 1e-16 from both ends, so that samples are finite.
    weights : array of the same shape
        Zero or positive, with at least one positive weight in every row.

    Attributes
    ----------
    base : PredictiveDistribution
    pits, weights : (n, k) or (1, k)
        Sorted by ascending PIT values.

    Notes
    -----
    ``arrays()`` returns those of :class:`Weighted`, the samples and their weights.

    If all rows share more than 8,192 PIT values and the base has no jumps, mean, standard deviation
    and CRPS are those of about 2,000 samples: PIT values within 1/256 of each other on the probit
    scale are merged. Measured with 100,000 shared PIT values on normal, log-normal, gamma and
    Student t bases, means are off by less than 1e-6 standard deviations, and standard deviations
    and CRPS by a relative error of less than 1e-5. On bases of 99 quantiles, whose quantile
    functions have kinks, the errors are less than 2e-5.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> recalibrated = Recalibrated(Normal([0.0, 10.0], 1.0), [[0.5, 0.8413447]], [[1.0, 1.0]])
    >>> recalibrated.mean().round(3).tolist(), recalibrated.ppf(0.9).round(3).tolist()
    ([0.5, 10.5], [1.0, 11.0])
    """

    base: PredictiveDistribution
    pits: FloatArray

    def __init__(self, base: PredictiveDistribution, pits: object, weights: object) -> None:
        inside = np.clip(np.asarray(pits, dtype=np.float64), PIT_EDGE, 1 - PIT_EDGE)
        checked = Weighted(inside, np.asarray(weights, dtype=np.float64))
        self.base, self.pits, self.weights = base, checked.samples, checked.weights

    @property
    def samples(self) -> FloatArray:  # type: ignore[override]  # computed, not stored
        """y~_i of every row, (n, k), ascending."""
        return self._sampled().samples

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.base = self.base[rows]
        chosen.pits = self.pits if len(self.pits) == 1 else self.pits[rows]
        if len(self.weights) == 1:
            # computed once, not for every block of rows
            chosen.weights, chosen.__dict__["_summed"] = self.weights, self._summed
        else:
            chosen.weights = self.weights[rows]
        return chosen

    def cumulative(self) -> FloatArray:
        """R at the PIT values, (n, k) or (1, k); see :meth:`Weighted.cumulative`."""
        return self._summed if len(self.weights) == 1 else super().cumulative()

    @cached_property
    def _summed(self) -> FloatArray:
        return super().cumulative()

    @property
    def _width(self) -> int:
        return int(self.pits.shape[1]) + self.base._width

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._up_to(count_up_to(self.pits, self.base._cdf(y), "right"))

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        # y~_i < y: if F^ jumps at y, its inverse is y for all levels within the jump
        side: Literal["left", "right"] = "left" if self.base.continuous else "right"
        return self._up_to(count_up_to(self.pits, self.base._cdf_left(y), side))

    def _ppf(self, p: FloatArray) -> FloatArray:
        place = count_up_to(self.cumulative(), np.maximum(p, SMALLEST), "left")
        return self.base._ppf(pick(self.pits, place))

    def mean(self) -> FloatArray:
        return super(Recalibrated, self._condensed()).mean()

    def std(self) -> FloatArray:
        return super(Recalibrated, self._condensed()).std()

    def crps(self, y: ArrayLike) -> FloatArray:
        return super(Recalibrated, self._condensed()).crps(y)

    def _mean(self) -> FloatArray:
        return self._sampled()._mean()

    def _std(self) -> FloatArray:
        return self._sampled()._std()

    def _crps(self, y: FloatArray) -> FloatArray:
        return self._sampled()._crps(y)

    def _log_density(self, y: FloatArray) -> FloatArray:
        return self._sampled()._log_density(y)

    def _sampled(self) -> Weighted:
        drawn = object.__new__(Weighted)
        shape = (len(self), self.pits.shape[1])
        drawn.samples = np.broadcast_to(self.base._ppf(self.pits), shape)
        drawn.weights = self.weights
        return drawn

    def _condensed(self) -> Recalibrated:
        """A distribution with nearly the same moments but few samples, if all rows share many."""
        if len(self.pits) > 1 or self.pits.shape[1] <= MANY or not self.base.continuous:
            return self
        probit = ndtri(self.pits[0])
        _, strip = np.unique(np.floor(probit / STRIP), return_inverse=True)
        weights = np.bincount(strip, self.weights[0]).astype(np.float64)
        centre = np.bincount(strip, self.weights[0] * probit) / np.where(weights > 0, weights, 1.0)
        few, kept = object.__new__(Recalibrated), weights > 0
        few.base, few.pits, few.weights = self.base, ndtr(centre[kept])[None], weights[kept][None]
        return few


KNOTS = 160
REACH = 4.0
"""Distance in bandwidths from the outermost neighbours at which kernels have no mass."""
END = float(ndtri(1 - PIT_EDGE))
NARROWEST = 1e-3
LINEAR = 10.0
"""Distance in spreads from the median up to which the scale is linear, then logarithmic."""
NODES = 256
MOST_NODES = 2**22
"""Quantiles of all rows together that are kept for mean, standard deviation and CRPS."""


class SmoothedRecalibrated(ThroughMap):
    """F~_j = R_j(F^_j), where R_j is a smooth distribution of the neighbours' PIT values.

    The weighted sample of Torres et al. ends at the most extreme of its k neighbours, so intervals
    of high levels from few neighbours are too narrow. Going beyond that paper, R_j is a Gaussian
    kernel estimate on the probit scale of the PIT values, mixed with a normal distribution of the
    same mean and variance. The weight of the latter, 1 / (m + 1) with Kish's effective number m of
    neighbours, is the probability of an outcome beyond all of them. There the base's tails
    continue, shifted and scaled like the neighbours.

    Parameters
    ----------
    base : PredictiveDistribution
        Distributions F^_j of n rows.
    knots, values : (n, g) arrays
        Points on the probit scale, and R_j there. :meth:`of` computes them from a weighted sample.

    Notes
    -----
    The bandwidth is Silverman's 0.9 min(std, IQR / 1.349) m^(-1/5), which assumes one peak;
    :class:`LocalRecalibration` may choose a smaller one. The kernels' centres are shrunk towards
    their mean, so that R_j has the variance of the sample. Neighbours farther than about ten
    spreads from the median are placed on a logarithmic scale, so that one outlier among very narrow
    PIT values does not coarsen or stretch the bulk. R_j is stored at 160 points of the probit scale
    and linear between them. Mean, standard deviation and CRPS are those of 256 weighted quantiles.

    It was compared with the weighted sample on the line and the Rosenbrock surface of Torres et al.
    and on diamonds, with 10,000 calibration rows. With 50 neighbours CRPS falls by 0.6 to 0.7%, and
    coverage of 99% intervals rises from 96 to 98%. With 200 CRPS falls by 0.1 to 0.2%, and with
    1,000 the two agree within 0.1%.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> rough = Recalibrated(Normal([0.0], 1.0), [[0.3, 0.5, 0.7]], [[1.0, 1.0, 1.0]])
    >>> smooth = SmoothedRecalibrated.of(rough)
    >>> smooth.cdf([[-3.0, 0.0, 3.0]]).round(4).tolist()
    [[0.0, 0.5, 1.0]]
    """

    family: ClassVar[str] = "smoothed"

    def __init__(self, base: PredictiveDistribution, knots: FloatArray, values: FloatArray) -> None:
        self.base, self.knots, self.values = base, knots, values
        self._kept: Weighted | None = None

    @classmethod
    def of(cls, sampled: Recalibrated, bandwidth: float = 1.0) -> Self:
        """The smoothed version of a weighted sample; ``bandwidth`` is in units of Silverman's."""
        shape = (len(sampled.pits), KNOTS + 2)
        knots, values = np.empty(shape), np.empty(shape)
        step = max(1, 2**20 // max(sampled.pits.shape[1], 8 * KNOTS))
        shared = len(sampled.weights) == 1
        for start in range(0, shape[0], step):
            rows = slice(start, start + step)
            weights = sampled.weights if shared else sampled.weights[rows]
            knots[rows], values[rows] = _smooth(sampled.pits[rows], weights, bandwidth)
        return cls(sampled.base, knots, values)

    def __getitem__(self, rows: Rows) -> Self:
        if len(self.knots) == 1:
            chosen = type(self)(self.base[rows], self.knots, self.values)
        else:
            chosen = type(self)(self.base[rows], self.knots[rows], self.values[rows])
        if self._kept is not None:
            chosen._kept = self._kept[rows]
        return chosen

    @property
    def _width(self) -> int:
        return self.base._width + KNOTS + NODES

    def _map(self, probability: FloatArray) -> FloatArray:
        probit = _probit(probability)
        _, value, slope, from_knot = self._piece(probit, self.knots)
        inner = np.where(probability >= 1, 1.0, value + slope * from_knot)
        return np.where(probability <= 0, 0.0, inner)

    def _ppf(self, p: FloatArray) -> FloatArray:
        knot, _, slope, from_value = self._piece(p, self.values)
        rise = np.divide(from_value, slope, out=np.zeros_like(from_value * slope), where=slope > 0)
        level = np.clip(ndtr(knot + rise), PIT_EDGE, 1 - PIT_EDGE)
        inner: FloatArray = np.where(p == 0, 0.0, np.where(p == 1, 1.0, level))
        return self.base._ppf(inner)

    def _log_density(self, y: FloatArray) -> FloatArray:
        probit = _probit(self.base._cdf(y))
        _, _, slope, _ = self._piece(probit, self.knots)
        log_ratio: FloatArray = np.log(slope) + 0.5 * probit**2 + LOG_ROOT_TWO_PI
        return log_ratio + self.base._log_density(y)

    def _piece(
        self, at: FloatArray, table: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Knot and value at the start of the piece around ``at``, its slope, and the distance."""
        after = np.clip(count_up_to(table, at, "right"), 1, table.shape[1] - 1)
        knot, value = pick(self.knots, after - 1), pick(self.values, after - 1)
        run = pick(self.knots, after) - knot
        slope = (pick(self.values, after) - value) / run
        return knot, value, slope, at - pick(table, after - 1)

    def mean(self) -> FloatArray:
        self._keep_nodes()
        return super().mean()

    def std(self) -> FloatArray:
        self._keep_nodes()
        return super().std()

    def crps(self, y: ArrayLike) -> FloatArray:
        self._keep_nodes()
        return super().crps(y)

    def _std(self) -> FloatArray:
        return self._nodes()._std()

    def _keep_nodes(self) -> None:
        """Compute the quantiles behind mean, standard deviation and CRPS once for all three."""
        if self._kept is None and len(self) * NODES <= MOST_NODES:
            levels, weights = _levels()
            self._kept = Weighted(self.ppf(levels), weights)

    def _nodes(self) -> Weighted:
        if self._kept is not None:
            return self._kept
        levels, weights = _levels()
        return Weighted(np.broadcast_to(self._ppf(levels), (len(self), NODES)), weights)


@lru_cache(maxsize=1)
def _levels() -> tuple[FloatArray, FloatArray]:
    """Levels of the quantiles (1, NODES) that stand for a distribution, and their weights."""
    # levels are dense near 0 and 1, where quantiles diverge
    edges = betainc(3.0, 3.0, np.linspace(0, 1, NODES + 1))
    return (edges[:-1] + edges[1:])[np.newaxis] / 2, np.diff(edges)


def _probit(level: FloatArray) -> FloatArray:
    probit: FloatArray = ndtri(np.clip(level, PIT_EDGE, 1 - PIT_EDGE))
    return probit


def _smooth(
    pits: FloatArray, weights: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray]:
    """Knots on the probit scale and R at them, both (n, KNOTS + 2); R is 0 and 1 at the ends."""
    n = len(pits)
    share = np.broadcast_to(weights / weights.sum(axis=1, keepdims=True), pits.shape)
    many = 1 / (share**2).sum(axis=1, keepdims=True)
    probit = _probit(pits)
    mean = (share * probit).sum(axis=1, keepdims=True)
    std = np.sqrt((share * (probit - mean) ** 2).sum(axis=1, keepdims=True))
    quartiles = Weighted(probit, share)._ppf(np.array([[0.25, 0.5, 0.75]]))
    robust = (quartiles[:, 2:] - quartiles[:, :1]) / 1.349
    spread = np.where(robust > 0, np.minimum(std, robust), std)
    # outlying values are moved closer, so that an even grid over all values resolves the bulk
    centre, unit = quartiles[:, 1:2], LINEAR * np.maximum(spread, NARROWEST)
    near = unit * np.arcsinh((probit - centre) / unit)
    middle = (share * near).sum(axis=1, keepdims=True)
    near_std = np.sqrt((share * (near - middle) ** 2).sum(axis=1, keepdims=True))
    width = np.maximum(0.9 * bandwidth * np.minimum(spread, near_std) * many**-0.2, NARROWEST)
    near = middle + (near - middle) * near_std / np.hypot(near_std, width)
    low, high = near[:, :1], near[:, -1:]
    margin = np.maximum(REACH * width, 2 * (high - low) / KNOTS)
    low, high = low - margin, high + margin
    # mass on an even grid, with each sample split between two points, then smoothed by FFT
    place = (near - low) / (high - low) * (KNOTS - 1)
    left = np.clip(place.astype(np.int64), 0, KNOTS - 2)
    cell = left + KNOTS * np.arange(n)[:, np.newaxis]
    right_share = (place - left) * share
    mass = np.bincount(cell.ravel(), (share - right_share).ravel(), n * KNOTS)
    mass += np.bincount((cell + 1).ravel(), right_share.ravel(), n * KNOTS)
    steps = np.arange(1 - KNOTS, KNOTS)[np.newaxis]
    kernel = ndtr(steps * (high - low) / (KNOTS - 1) / width)
    size = 4 * KNOTS
    transformed = np.fft.rfft(mass.reshape(n, KNOTS), size) * np.fft.rfft(kernel, size)
    values = np.fft.irfft(transformed, size)[:, KNOTS - 1 : 2 * KNOTS - 1]
    values = np.clip(np.maximum.accumulate(values, axis=1), 0.0, 1.0)
    knots = centre + unit * np.sinh((low + (high - low) * np.linspace(0, 1, KNOTS)) / unit)
    own = 1 / (many + 1)
    values = (1 - own) * values + own * ndtr((knots - mean) / np.maximum(std, NARROWEST))
    start, end = np.minimum(-END, knots[:, :1] - 1), np.maximum(END, knots[:, -1:] + 1)
    zero = np.zeros((n, 1))
    return np.hstack([start, knots, end]), np.hstack([zero, values, zero + 1])
