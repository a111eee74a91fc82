"""PIT values counted by cell of the grid, and what follows from them.

At ends of cells the distribution function is exact: multiples of 0.05, of 0.01 and the edges of
every histogram are among them. Within a cell, which is 0.0001 wide at most, the rows are taken to
lie evenly, so that an area or the largest gap is off by less than that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.regression.dependent_pit import band_rows, gap_draws, wider
from kdcal_core.diagnostics.regression.fault import (
    PitSample,
    smooth_of_effects,
    smooth_of_units,
    smooth_parts,
    smooth_test,
)
from kdcal_core.diagnostics.regression.pit_curves import LEVELS
from kdcal_core.diagnostics.regression.uniformity import (
    CLIP,
    DRAWS,
    FINE,
    DrawnGaps,
    UniformityTest,
    anderson_darling_of,
    cramer_von_mises_of,
    frosini_of,
    kolmogorov_smirnov_of,
    tests_of_draws,
)
from kdcal_core.diagnostics.summaries.cluster_blocks import BlockSums, EffectOf, pit_ends
from kdcal_core.diagnostics.summaries.score_grid import upper_ends
from kdcal_core.statistics import Dependence, bounded_mean_of_counts

_DRAWS = 10_000
_LEVELS: FloatArray = np.asarray(LEVELS)


@dataclass(frozen=True, eq=False)
class PitCells(PitSample):
    """Rows by cell of the grid that holds their PIT value, (C,) int64.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries.score_grid import cell_index
    >>> places = cell_index(np.array([0.1, 0.2, 0.3, 0.6]))
    >>> cells = PitCells(np.bincount(places, minlength=len(upper_ends())))
    >>> cells.shares(np.array([0.25, 0.5])).tolist()
    [0.5, 0.75]
    >>> round(cells.area, 3)
    0.21
    """

    count: IntArray

    @cached_property
    def n(self) -> int:
        """Rows."""
        return round(float(self.count.sum()))

    @cached_property
    def pit(self) -> FloatArray:  # type: ignore[override]
        """The middle of each cell that holds rows."""
        ends = upper_ends()
        middle = (ends + np.concatenate([[0.0], ends[:-1]])) / 2.0
        middle[-1] = 1.0  # holds no other value
        return np.asarray(middle[self._some])

    @cached_property
    def weight(self) -> FloatArray:  # type: ignore[override]
        """Shares of the rows in each cell that holds any."""
        return np.asarray(self.count[self._some] / self.n)

    @cached_property
    def _some(self) -> IntArray:
        return np.flatnonzero(self.count)

    @cached_property
    def _reached(self) -> FloatArray:
        """Rows up to the end of each cell, (C,)."""
        return np.cumsum(self.count).astype(np.float64)

    @cached_property
    def _gaps(self) -> tuple[FloatArray, FloatArray]:
        """Distribution function minus the level, where each cell begins and where it ends."""
        away = self._reached / self.n - upper_ends()
        return np.concatenate([[0.0], away[:-1]]), away

    @cached_property
    def _sizes(self) -> FloatArray:
        """Mean of the absolute gap in each cell, (C,)."""
        a, b = self._gaps
        apart = np.where(a == b, 1.0, np.abs(a - b))
        return np.where(a * b >= 0.0, np.abs(a + b) / 2.0, (a**2 + b**2) / (2.0 * apart))

    @cached_property
    def _widths(self) -> FloatArray:
        return np.diff(upper_ends(), prepend=0.0)

    def shares(self, at: FloatArray) -> FloatArray:
        """Share of the rows at or below each level (g,) in (0, 1), increasing."""
        return np.asarray(np.interp(at, upper_ends(), self._reached) / self.n)

    @property
    def fine(self) -> FloatArray:
        """Shares at or below the levels `FINE`."""
        return self.shares(FINE)

    @cached_property
    def area(self) -> float:
        """Wasserstein's distance from the uniform distribution."""
        return float(self._widths @ self._sizes)

    def tests(self, seed: int = 0) -> tuple[UniformityTest, ...]:
        """As :func:`kdcal_core.diagnostics.uniformity_tests` of the rows."""
        a, b = self._gaps
        square = float(self._widths @ (a * a + a * b + b * b)) / 3.0
        return (
            self._largest_gap(),
            cramer_von_mises_of(self.n * square, self.n),
            self.anderson_darling(),
            frosini_of(self._frosini() / self.n**0.5, self.n, self.n, _DRAWS, seed),
        )

    def _frosini(self) -> float:
        """Sum of the rows' absolute gaps, each midway up its step."""
        (a, b), count = self._gaps, self.count
        step = b - a
        crossing = -a / np.where(step == 0.0, 1.0, step)
        before = np.clip(np.floor(count * crossing + 0.5), 0.0, count)
        whole = np.maximum(count, 1)
        first = before * a + step * before**2 / (2.0 * whole)
        return float((np.abs(first) + np.abs(count * (a + b) / 2.0 - first)).sum())

    def _largest_gap(self) -> UniformityTest:
        return kolmogorov_smirnov_of(float(np.abs(self._gaps[1]).max()), self.n, self.n)

    def anderson_darling(self) -> UniformityTest:
        """n times the integral of the squared gap over u (1 - u), three nodes a cell."""
        ends = upper_ends()
        inner = ends[(ends > CLIP) & (ends < 1.0 - CLIP)]
        nodes = np.concatenate([[CLIP], inner, [1.0 - CLIP]])
        gap = self.shares(nodes) - nodes
        at, mass = np.polynomial.legendre.leggauss(3)
        way = (at[:, np.newaxis] + 1.0) / 2.0
        width = np.diff(nodes)
        u = nodes[:-1] + way * width
        away = gap[:-1] + way * np.diff(gap)
        weighed = np.square(away) / (u * (1.0 - u))
        statistic = self.n * float((mass / 2.0) @ weighed @ width)
        beyond = self.count[ends < CLIP].sum() + self.count[1:][ends[:-1] >= 1.0 - CLIP].sum()
        return anderson_darling_of(statistic, int(beyond), self.n)

    # as a sample, of which a fault is named

    def smooth(self, bias: float, square: float) -> tuple[float, FloatArray]:
        return smooth_test(bias, square, self.n)

    def kolmogorov(self) -> float:
        return self._largest_gap().p_value

    def share_rows(self, hit: Any, rate: float) -> float:
        return float(self.n)

    def bounded_mean(
        self, values: FloatArray, least: float, most: float, level: float
    ) -> tuple[float, float, float]:
        counts = self.count[self._some].astype(np.float64)
        return bounded_mean_of_counts(values, counts, least, most, level)


@dataclass(frozen=True, eq=False)
class ClusteredPit(PitCells):
    """PIT values of rows in clusters or of near times, which vary together as blocks of these do.

    Attributes
    ----------
    blocks : (B, V) array
        Rows by block of clusters or times and bin of ``bin_ends``, as floating-point numbers.
    bin_ends : (V,) array
        By default :func:`~kdcal_core.diagnostics.summaries.cluster_blocks.pit_ends`.
    n_times : int
        As of :class:`~kdcal_core.diagnostics.summaries.cluster_blocks.BlockSums`.
    """

    blocks: FloatArray
    bin_ends: FloatArray = field(default_factory=pit_ends)
    n_times: int = field(default=0, kw_only=True)

    @cached_property
    def levels(self) -> FloatArray:
        """Levels at which distribution functions are compared."""
        return _LEVELS if len(self.bin_ends) > len(_LEVELS) else np.arange(1, 20) / 20.0

    @cached_property
    def together(self) -> tuple[FloatArray, FloatArray, Dependence]:
        """Rows that stand for those of each block and bin: PIT value, share, and block."""
        block, bin_ = np.nonzero(self.blocks)
        ends = self.bin_ends
        middle = (ends + np.concatenate([[0.0], ends[:-1]])) / 2.0
        found = Dependence.of("cluster", block)
        if self.sums.times is not None:
            found = replace(self.sums.times, unit=block)
        return middle[bin_], self.blocks[block, bin_] / float(self.blocks.sum()), found

    @cached_property
    def sums(self) -> BlockSums:
        """The rows of each block."""
        return BlockSums(self.blocks.sum(axis=1), n_times=self.n_times)

    def drawn(self, level: float, seed: int) -> DrawnGaps:
        """Draws of the gap at the levels of 0.01 to 0.99, around what is seen."""
        pit, share, together = self.together
        seen = self.shares(self.levels)
        gaps = gap_draws(pit, share, self.levels, together, draws=DRAWS, seed=seed, centre=seen)
        return DrawnGaps(gaps, wider(together, level), self._units)

    @property
    def _units(self) -> str:
        return "neighbouring times" if self.n_times else "clusters"

    def level_effects(self, at: FloatArray) -> FloatArray:
        """By how much clusters multiply the variance of the share below each level, (g,)."""
        shares = self.shares(at)
        last = np.searchsorted(self.bin_ends, at - 1e-12)
        reached = np.cumsum(self.blocks, axis=1)[:, last]
        away = reached - self.sums.mass[:, np.newaxis] * shares
        own = (self.n * shares * (1.0 - shares)).tolist()
        return np.array(
            [self.sums.effect(one, its, "share") for one, its in zip(away.T, own, strict=True)]
        )

    def band_rows(self, at: FloatArray, level: float, *, bins: bool = False) -> float:
        """As how many independent rows they count for a simultaneous band."""
        ends = np.isclose(at[:, np.newaxis], self.bin_ends).any(axis=1)
        at = at if ends.all() else np.arange(1, 20) / 20.0
        pit, share, together = self.together
        return band_rows(pit, share, at, together, level, bins=bins, rows=float(self.n))

    def tests(self, seed: int = 0) -> tuple[UniformityTest, ...]:
        return self._by_draws(self._plain.tests(seed), seed)

    def anderson_darling(self) -> UniformityTest:
        return self._by_draws((self._plain.anderson_darling(),))[0]

    @property
    def _plain(self) -> PitCells:
        return PitCells(self.count)

    def _by_draws(
        self, found: tuple[UniformityTest, ...], seed: int = 0
    ) -> tuple[UniformityTest, ...]:
        """The tests with p values from draws of whole clusters or times."""
        at = self.levels
        pit, share, together = self.together
        drawn = gap_draws(pit, share, at, together, draws=_DRAWS, seed=seed)
        return tests_of_draws(found, self.shares(at) - at, drawn, at, self._units, seed)

    def smooth(self, bias: float, square: float) -> tuple[float, FloatArray]:
        sums = np.array([12.0**0.5 * bias, 5.0**0.5 * (6.0 * square - 0.5)])
        if self.n_times:
            away = smooth_parts(self.pit) - sums[:, np.newaxis]
            effects = np.array([self.effect(one, "share") for one in away])
            return smooth_of_effects(sums, np.square(away) @ self.weight, effects / self.n)
        pit, share, together = self.together
        return smooth_of_units(share * smooth_parts(pit), together, sums)

    def kolmogorov(self) -> float:
        return self._by_draws((self._plain._largest_gap(),))[0].p_value

    def share_rows(self, hit: Any, rate: float) -> float:
        away = np.asarray(hit, np.float64) - rate
        return self.n / self.effect(away, "share")

    @cached_property
    def _bins(self) -> IntArray:
        return np.searchsorted(self.bin_ends, upper_ends()[self._some])

    def effect(self, away: FloatArray, of: EffectOf = "mean") -> float:
        """By how much clusters multiply the variance of the mean of values with mean 0, (c,)."""
        count, bins = self.count[self._some].astype(np.float64), self._bins
        size = len(self.bin_ends)
        mass, total = (np.bincount(bins, one, size) for one in (count, count * away))
        middle = np.divide(total, mass, out=np.zeros(size), where=mass > 0.0)
        own = float(mass @ np.square(middle))
        return self.sums.effect(np.asarray(self.blocks @ middle), own, of)

    def bounded_mean(
        self, values: FloatArray, least: float, most: float, level: float
    ) -> tuple[float, float, float]:
        counts = self.count[self._some].astype(np.float64)
        effect = self.effect(values - float(counts @ values / counts.sum()))
        return bounded_mean_of_counts(values, counts, least, most, level, effect)
