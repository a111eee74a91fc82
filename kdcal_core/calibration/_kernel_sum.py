"""Sums of Gaussian kernels over scores, in the log domain: exact where it matters, never zero.

A sum of n kernels is needed at thousands of places for a hundred bandwidths. So scores are
gathered into cells that are narrow relative to the scale on which the kernel changes, and a cell
is represented by its weight, mean, second and third central moment (a Hermite expansion). At
distance d from the nearest score the kernel changes on the scale ``b * min(1, b / d)``, so the
cells shrink with the distance: far from all data the nearest scores still decide, as in an exact
log-sum-exp. The confidence differs from that of the exact sum by less than 1e-6; up to ``SMALL``
distinct scores are not gathered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data.schema import FloatArray

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
        """The same mass in cells of the regular lattice of this width."""
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

    Examples
    --------
    >>> import numpy as np
    >>> kernels = KernelSum(np.array([0.2, 0.4]), np.ones(2))
    >>> log_sum, slope = kernels(np.array([0.3, 1.0]), bandwidth=0.001)
    >>> log_sum.round(3).tolist()  # plain doubles would have given log(0)
    [-4999.307, -180000.0]
    """

    def __init__(self, score: FloatArray, weight: FloatArray) -> None:
        distinct, index = np.unique(score, return_inverse=True)
        count = np.bincount(index).astype(np.float64)
        total: FloatArray = np.bincount(index, weights=weight).astype(np.float64)
        nothing = np.zeros_like(distinct)
        self.score = distinct
        self.total = float(weight.sum())
        self._exact = Cells(distinct, count, total, nothing, nothing)
        self._levels: dict[int, Cells] = {}

    def __call__(self, at: FloatArray, bandwidth: float) -> tuple[FloatArray, FloatArray]:
        """Logarithm of the sum, and its derivative by S, each (m,)."""
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
        """The scores; many scores are gathered into cells much narrower than the bandwidth."""
        if len(self.score) <= SMALL:
            return self._exact
        return self._cells(int(np.ceil(np.log2(CELLS_PER_SCALE / bandwidth))))

    def without_own(self, places: Cells, bandwidth: float) -> FloatArray:
        """Log sum at each of the :meth:`places` with one row there (of mean weight) left out.

        Where a row is nearly alone, the others are summed separately, because subtraction would
        lose their sum to rounding. The result is -inf where there are no others.
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
    from kdcal_core.calibration._kernel_sum_kernels import sum_kernels

    radius = np.sqrt(nearest**2 + NEGLIGIBLE * bandwidth**2) + width
    low = np.searchsorted(cells.centre, at - radius, side="left")
    high = np.searchsorted(cells.centre, at + radius, side="right")
    value, slope = np.empty_like(at), np.empty_like(at)
    sums = (value, slope)
    moments = (cells.weight, cells.second, cells.third)
    sum_kernels(cells.centre, *moments, at, nearest, low, high, bandwidth, without_self, *sums)
    return value, slope
