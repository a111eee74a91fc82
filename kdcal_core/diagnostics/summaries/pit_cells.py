"""PIT values counted by cell of the grid, and what follows from them.

At ends of cells the distribution function is exact: multiples of 0.05, of 0.01 and the edges of
every histogram are among them. Within a cell, which is 0.0001 wide at most, the rows are taken to
lie evenly, so that an area or the largest gap is off by less than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.regression.fault import PitSample, smooth_test
from kdcal_core.diagnostics.regression.uniformity import (
    CLIP,
    FINE,
    UniformityTest,
    anderson_darling_of,
    cramer_von_mises_of,
    frosini_of,
    kolmogorov_smirnov_of,
)
from kdcal_core.diagnostics.summaries.score_grid import upper_ends
from kdcal_core.statistics import bounded_mean_of_counts

_DRAWS = 10_000


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
