"""Sums of Gaussian kernels over scores, their bandwidths, and curves through them.

The sums are in the log domain and never zero. A sum of n kernels is needed at thousands of places
for a hundred bandwidths. So scores are gathered into cells that are narrow relative to the scale on
which the kernel changes. A cell is represented by its weight, mean, and second and third central
moments (a Hermite expansion). At distance d from the nearest score the kernel changes on the scale
``b * min(1, b / d)``, so the cells shrink with the distance. Far from all data the nearest scores
therefore decide, as in an exact log-sum-exp. The confidence differs from that of the exact sum by
less than 1e-6; up to ``SMALL`` distinct scores are not gathered at all.

A bandwidth is chosen for few changes of slope, or by the leave-one-out likelihood. A curve is a
piecewise cubic, as exact as the sums and fast for millions of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import expit

from kdcal_core.data.schema import FloatArray
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable

SMALL = 256
CELLS_PER_SCALE = 8
# Kernels below exp(-37), 1e-16 of the nearest one, do not change a double.
NEGLIGIBLE = 2 * 37.0
_ALONE = 1 - 1e-6
_NARROWEST = 0.01


@dataclass(frozen=True, eq=False)
class Cells:
    """Sorted cells with rows, weight, mean (``centre``) and weighted central moments."""

    centre: FloatArray
    count: FloatArray
    weight: FloatArray
    second: FloatArray
    third: FloatArray

    def gathered(self, width: float) -> Cells:
        """The same mass in cells of a regular lattice of this width."""
        lattice = np.floor(self.centre / width)
        start = np.flatnonzero(np.diff(lattice, prepend=-np.inf))
        if len(start) == len(lattice):
            return self
        sizes = np.diff(start, append=len(lattice))
        weight = np.add.reduceat(self.weight, start)
        centre = np.add.reduceat(self.weight * self.centre, start) / weight
        off = self.centre - np.repeat(centre, sizes)
        second = np.add.reduceat(self.second + self.weight * off**2, start)
        third = np.add.reduceat(self.third + 3 * self.second * off + self.weight * off**3, start)
        return Cells(centre, np.add.reduceat(self.count, start), weight, second, third)


class KernelSum:
    """The sum of w_i exp(-(S - s_i)^2 / 2 b^2) over weighted scores, for any S and b.

    Parameters
    ----------
    score : (n,) array in [0, 1], n >= 1
    weight : (n,) array of positive weights
    count : (n,) array, optional
        Rows that each stands for, of which the weight is the sum; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> kernels = KernelSum(np.array([0.2, 0.4]), np.ones(2))
    >>> log_sum, slope = kernels(np.array([0.3, 1.0]), bandwidth=0.001)
    >>> log_sum.round(3).tolist()  # plain doubles would have given log(0)
    [-4999.307, -180000.0]
    """

    def __init__(
        self, score: FloatArray, weight: FloatArray, count: FloatArray | None = None
    ) -> None:
        distinct, index = np.unique(score, return_inverse=True)
        rows: FloatArray = np.bincount(index, weights=count).astype(np.float64)
        total: FloatArray = np.bincount(index, weights=weight).astype(np.float64)
        nothing = np.zeros_like(distinct)
        self.score = distinct
        self.total = float(weight.sum())
        self._exact = Cells(distinct, rows, total, nothing, nothing)
        self._levels: dict[int, Cells] = {}

    def __call__(
        self, at: FloatArray, bandwidth: float, nearest: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Logarithm of the sum, and its derivative by S, each (m,).

        ``nearest`` is the :meth:`distance` of these places, if it is known.
        """
        if nearest is None:
            nearest = self.distance(at)
        if len(self.score) <= SMALL:
            return _windowed(self._exact, at, nearest, bandwidth, 0.0)
        scale = bandwidth * np.minimum(1.0, bandwidth / np.maximum(nearest, bandwidth))
        level = np.ceil(np.log2(CELLS_PER_SCALE / scale)).astype(np.int64)
        value, slope = np.empty_like(at), np.empty_like(at)
        for one in np.unique(level):
            here = level == one
            value[here], slope[here] = _windowed(
                self._cells(int(one)), at[here], nearest[here], bandwidth, 0.5**one
            )
        return value, slope

    def silverman(self) -> float:
        """Silverman's bandwidth, 1.06 standard deviations over n to 1/5; at least 0.01."""
        weight = self._exact.weight / self.total
        mean = float(weight @ self.score)
        spread = float(np.sqrt(weight @ (self.score - mean) ** 2))
        found = 1.06 * spread * float(self._exact.count.sum() ** -0.2)
        return max(found, _NARROWEST)

    def distance(self, at: FloatArray) -> FloatArray:
        """Distance from each S to the nearest score."""
        right = np.searchsorted(self.score, at).clip(0, len(self.score) - 1)
        left = np.maximum(right - 1, 0)
        nearest: FloatArray = np.minimum(
            np.abs(at - self.score[left]), np.abs(at - self.score[right])
        )
        return nearest

    def places(self, bandwidth: float) -> Cells:
        """The scores; many are gathered into cells much narrower than the bandwidth."""
        if len(self.score) <= SMALL:
            return self._exact
        return self._cells(int(np.ceil(np.log2(CELLS_PER_SCALE / bandwidth))))

    def without_own(self, places: Cells, bandwidth: float) -> FloatArray:
        """Log sum at each of the :meth:`places`, with one row there (of mean weight) left out.

        Where a row is nearly alone, the others are summed separately, because subtraction would
        lose their sum by rounding. The result is -inf if there are no others.
        """
        own = places.weight / places.count
        log_sum, _ = self(places.centre, bandwidth)
        share = own * np.exp(-log_sum)
        value = log_sum + np.log1p(-np.minimum(share, _ALONE))
        alone = np.flatnonzero((share > _ALONE) & (places.count == 1))
        if len(alone):
            value[alone] = self._others(places.centre[alone], bandwidth)
        return value

    def _others(self, at: FloatArray, bandwidth: float) -> FloatArray:
        which = np.searchsorted(self.score, at)
        gap = np.diff(self.score, prepend=-np.inf, append=np.inf)
        nearest = np.minimum(gap[which], gap[which + 1])
        value = np.full(len(at), -np.inf)
        some = np.isfinite(nearest)
        value[some], _ = _windowed(
            self._exact, at[some], nearest[some], bandwidth, 0.0, without_self=True
        )
        return value

    def _cells(self, level: int) -> Cells:
        if level not in self._levels:
            finer = [known for known in self._levels if known > level]
            source = self._levels[min(finer)] if finer else self._exact
            self._levels[level] = source.gathered(0.5**level)
        return self._levels[level]


def _windowed(
    cells: Cells,
    at: FloatArray,
    nearest: FloatArray,
    bandwidth: float,
    width: float,
    without_self: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Sum over the cells whose kernel is not negligible relative to the nearest one.

    ``without_self`` leaves out the cell at distance zero.
    """
    from kdcal_core.calibration._score_kernels import sum_kernels

    value, slope = np.empty_like(at), np.empty_like(at)
    moments = (cells.weight, cells.second, cells.third)
    near = (bandwidth, NEGLIGIBLE * bandwidth**2, width)
    sum_kernels(cells.centre, *moments, at, nearest, *near, without_self, value, slope)
    return value, slope


STEP = 1.05
FLAT = 1e-9
SMALLEST = 1e-3  # of the range
LARGEST = 20.0  # of the range
SIGN_CHANGES = {"mon4": 4, "mon2": 2, "mon": 0}


def bandwidth_grid(span: float) -> FloatArray:
    """Bandwidths from span / 1000 upwards, each 1.05 times the one before."""
    steps = int(np.ceil(np.log(LARGEST / SMALLEST) / np.log(STEP)))
    grid: FloatArray = span * SMALLEST * STEP ** np.arange(steps + 1, dtype=np.float64)
    return grid


def sign_changes(confidence: FloatArray, flat: float = FLAT) -> int:
    """Number of sign changes of a sampled curve's slope; steps below ``flat`` are ignored.

    Examples
    --------
    >>> sign_changes(np.array([0.1, 0.5, 0.5, 0.4, 0.4 + 1e-12, 0.9]))
    2
    """
    step = np.diff(confidence)
    sign = np.sign(step[np.abs(step) >= flat])
    return int(np.count_nonzero(sign[1:] != sign[:-1]))


def log_odds(right: KernelSum, wrong: KernelSum, at: FloatArray, bandwidth: float) -> FloatArray:
    """Logarithm of Conf / (1 - Conf), with Conf of Salamon et al., Eq. 9."""
    return right(at, bandwidth)[0] - wrong(at, bandwidth)[0]


def smooth_bandwidths(
    right: KernelSum, wrong: KernelSum, grid: FloatArray
) -> dict[str, tuple[float, bool]]:
    """Smallest bandwidths whose curve on ``grid`` has at most 4, 2 and 0 sign changes.

    See Salamon et al., Eqs. 19 and 20. Each comes with True if it was found; otherwise it is the
    largest bandwidth tried.

    A coarse grid is tried first: if the curve has too many changes on every m-th point of the grid,
    each larger than m times ``FLAT``, it has at least as many on the full grid.
    """
    found: dict[str, tuple[float, bool]] = {}
    wanted = list(SIGN_CHANGES)
    bandwidths = bandwidth_grid(grid[-1] - grid[0])
    whole = (grid, right.distance(grid), wrong.distance(grid))
    # contiguous, because the loop would be compiled again for strided arrays
    grids = [(m, [np.ascontiguousarray(one[::m]) for one in whole]) for m in (16, 4, 1)]
    for bandwidth in bandwidths:
        allowed = SIGN_CHANGES[wanted[0]]
        for stride, (at, to_right, to_wrong) in grids:
            odds = right(at, bandwidth, to_right)[0] - wrong(at, bandwidth, to_wrong)[0]
            confidence = expit(odds)
            changes = sign_changes(confidence, FLAT * stride)
            if changes > allowed:
                break
        while wanted and changes <= SIGN_CHANGES[wanted[0]]:
            found[wanted.pop(0)] = float(bandwidth), True
        if not wanted:
            break
    for rule in wanted:
        found[rule] = float(bandwidths[-1]), False
    return found


def leave_one_out_bandwidth(right: KernelSum, wrong: KernelSum, span: float) -> float:
    """The bandwidth of the grid with the smallest leave-one-out loss (Eq. 14).

    A row's confidence is computed without its own kernel. Above 256 distinct scores, rows closer
    than an eighth of the bandwidth are placed at their common mean.
    """
    bandwidths = bandwidth_grid(span)
    loss = [_leave_one_out_loss(right, wrong, float(b)) for b in bandwidths]
    return float(bandwidths[int(np.argmin(loss))])


def _leave_one_out_loss(right: KernelSum, wrong: KernelSum, bandwidth: float) -> float:
    loss = 0.0
    for own, other in ((right, wrong), (wrong, right)):
        places = own.places(bandwidth)
        odds = own.without_own(places, bandwidth) - other(places.centre, bandwidth)[0]
        loss -= float(places.weight @ np.log(np.clip(expit(odds), CLIP, 1.0)))
    return loss


TOLERANCE = 1e-7
_SMALLEST_INTERVAL = 1e-14
# Kernels of rows farther away than this many bandwidths are negligible.
_REACH = 7.0
# A function's values and slopes, each (m,), at m places.
Sampled = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@storable
@dataclass(frozen=True, eq=False)
class Curve:
    """A piecewise cubic: its nodes and its values and slopes there, (g,) each, g >= 2."""

    at: FloatArray
    value: FloatArray
    slope: FloatArray

    def __call__(self, score: FloatArray) -> FloatArray:
        """The curve at scores between the first node and the last."""
        found: FloatArray = CubicHermiteSpline(self.at, self.value, self.slope)(score)
        return found

    def pieces(self) -> FloatArray:
        """Coefficients of each piece in the distance from its first node, (4, g - 1)."""
        found: FloatArray = CubicHermiteSpline(self.at, self.value, self.slope).c
        return found


def fit_curve(
    right: KernelSum, wrong: KernelSum, bandwidth: float, lower: float, upper: float
) -> Curve:
    """Piecewise cubic through Conf_KDE(S) (Salamon et al., Eq. 9) on [lower, upper].

    It starts with nodes a quarter of the bandwidth apart and in the middle of every wide gap
    between scores, where alone the curve bends far from all data. It then halves each interval
    whose middle is off by more than 1e-7.
    """
    middles = [_gap_middles(kernels.score, bandwidth) for kernels in (right, wrong)]
    return _through(
        lambda at: _confidence(right, wrong, at, bandwidth), bandwidth, lower, upper, middles
    )


def fit_rows_curve(everyone: KernelSum, bandwidth: float) -> Curve:
    """Piecewise cubic through the logarithm of the kernel-weighted number of rows at a score.

    It spans all scores and seven more bandwidths on either side, where a row counts as 2e-11. Far
    from all data it is less exact.
    """
    lower = max(0.0, everyone.score[0] - _REACH * bandwidth)
    upper = min(1.0, everyone.score[-1] + _REACH * bandwidth)
    negligible = -0.5 * _REACH**2

    def rows(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, slope = everyone(at, bandwidth)
        return np.maximum(value, negligible), np.where(value > negligible, slope, 0.0)

    return _through(rows, bandwidth, lower, upper, [_gap_middles(everyone.score, bandwidth)], 1e-6)


def _through(
    sampled: Sampled,
    bandwidth: float,
    lower: float,
    upper: float,
    middles: list[FloatArray],
    smallest: float = _SMALLEST_INTERVAL,
) -> Curve:
    start = np.linspace(lower, upper, int(np.ceil(4 * (upper - lower) / bandwidth)) + 2)
    x = np.unique(np.concatenate([start, *middles]))
    x = x[(x >= lower) & (x <= upper)]
    y, slope = sampled(x)
    nodes = [(x, y, slope)]
    left, end = [x[:-1], y[:-1], slope[:-1]], [x[1:], y[1:], slope[1:]]
    while len(left[0]):
        width = end[0] - left[0]
        middle = 0.5 * (left[0] + end[0])
        value, change = sampled(middle)
        guess = 0.5 * (left[1] + end[1]) + width * (left[2] - end[2]) / 8
        nodes.append((middle, value, change))
        split = (np.abs(guess - value) > TOLERANCE) & (width > smallest)
        halves = [middle[split], value[split], change[split]]
        left = _both([part[split] for part in left], halves)
        end = _both(halves, [part[split] for part in end])
    x, y, slope = (np.concatenate(part) for part in zip(*nodes, strict=True))
    x, first = np.unique(x, return_index=True)
    return Curve(x, y[first], slope[first])


def _confidence(
    right: KernelSum, wrong: KernelSum, at: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray]:
    log_right, slope_right = right(at, bandwidth)
    log_wrong, slope_wrong = wrong(at, bandwidth)
    odds = log_right - log_wrong
    value = expit(odds)
    return value, value * expit(-odds) * (slope_right - slope_wrong)


def _both(first: list[FloatArray], second: list[FloatArray]) -> list[FloatArray]:
    return [np.concatenate(pair) for pair in zip(first, second, strict=True)]


def _gap_middles(score: FloatArray, bandwidth: float) -> FloatArray:
    wide = np.flatnonzero(np.diff(score) > 3 * bandwidth)
    middles: FloatArray = 0.5 * (score[wide] + score[wide + 1])
    return middles
