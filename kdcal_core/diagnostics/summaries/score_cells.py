"""Rows of one binary problem by cell of the grid, and the bins that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics.reliability import FineCells
from kdcal_core.diagnostics.smooth_error import DIRECTION_BINS, LatticeCells
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells, upper_ends
from kdcal_core.diagnostics.targets import SLICES, BinTable, Strategy, gap_variance


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """The cells that hold rows, in increasing order: all arrays (c,).

    Attributes
    ----------
    label : int or None
        The class; None for the top label of all rows.
    place : int array
        Cell of the grid.
    count, hits : float arrays
        Rows, and rows of which it is true.
    score : float array
        Mean score.
    """

    label: int | None
    place: IntArray
    count: FloatArray
    hits: FloatArray
    score: FloatArray

    @classmethod
    def of_confidence(cls, summary: ClassSummary, label: int | None = None) -> ScoreCells:
        """The confidence of all rows, or of those predicted to be one class."""
        cells = summary.cells[0].sum(axis=0) if label is None else summary.cells[0, label]
        return cls.of_counts(cells, label)

    @classmethod
    def of_class(cls, summary: ClassSummary, label: int) -> ScoreCells:
        """The probability of one class, of all rows."""
        return cls.of_counts(summary.cells[1, label], label)

    @classmethod
    def of_counts(cls, cells: IntArray, label: int | None = None) -> ScoreCells:
        """Counts and sums of all cells (C, 4), as those of :class:`ClassSummary`."""
        place = np.flatnonzero(cells[:, 0])
        some = cells[place]
        count = some[:, 0].astype(np.float64)
        ends = upper_ends()
        # a mean may leave its cell by a rounding error
        low = np.where(place > 0, ends[place - 1], 0.0)
        score = np.clip(ClassSummary.score_sums(some) / count, low, ends[place])
        return cls(label, place, count, some[:, 1].astype(np.float64), score)

    @cached_property
    def n(self) -> float:
        """Rows."""
        return float(self.count.sum())

    @property
    def misses(self) -> FloatArray:
        """Rows of which it is not true, (c,)."""
        return self.count - self.hits

    @property
    def ends(self) -> FloatArray:
        """Upper end of each cell, (c,)."""
        return upper_ends()[self.place]

    @property
    def starts(self) -> FloatArray:
        """End of the cell before each, (c,); its own for the scores 0 and 1."""
        return self.ends - self.widths

    @property
    def widths(self) -> FloatArray:
        """Width of each cell, (c,); 0 for the scores 0 and 1."""
        ends = upper_ends()
        width = np.diff(ends, prepend=0.0)
        width[-1] = 0.0
        return np.asarray(width[self.place])

    def fine(self) -> FineCells:
        """The cells as the curves and the isotonic fit take them."""
        return FineCells(self.score, self.count, self.count, self.hits)

    def table(self, n_bins: int, strategy: Strategy = "uniform") -> BinTable:
        """Bins of equal width, exactly those of the rows, or of equal mass with edges at cells."""
        if strategy == "uniform":
            return self._table(uniform_edges(n_bins), bins_of_cells(n_bins)[self.place])
        edges = self._equal_mass(n_bins)
        return self._table(edges, bin_index(self.ends, edges))

    def lattice_gaps(self, size: int) -> FloatArray:
        """Outcome minus score on a lattice of [0, 1], in shares of the rows, (size,)."""
        gaps = (self.hits - self.count * self.score) / self.n
        return bin_sums(self._lattice(size), size, gaps)

    def lattice(self, size: int) -> LatticeCells:
        """Rows on a lattice of [0, 1]."""
        index = self._lattice(size)
        count = bin_sums(index, size, self.count)
        place = np.flatnonzero(count)
        total = bin_sums(index, size, self.count * self.score)[place]
        rows = count[place]
        score = np.clip(total / rows, 0.0, 1.0)
        own = bin_index(score, self._equal_mass(DIRECTION_BINS))
        return LatticeCells(size, place, score, rows / self.n, rows, own, None)

    def _lattice(self, size: int) -> IntArray:
        return np.minimum((self.score * size).astype(np.int64), size - 1)

    def _equal_mass(self, n_bins: int) -> FloatArray:
        """As :func:`kdcal_core.data.binning.quantile_edges`, with edges at ends of cells."""
        if not len(self.place):
            return uniform_edges(1)
        rank = np.ceil(np.arange(1, n_bins) / n_bins * self.n - 1e-9)
        cell = np.searchsorted(np.cumsum(self.count), np.maximum(rank, 1.0))
        ends = self.ends
        inner = np.unique(ends[np.minimum(cell, len(ends) - 1)])
        inner = inner[(inner > 0.0) & (inner < ends[-1])]
        return np.concatenate(([0.0], inner, [1.0]))

    def _table(self, edges: FloatArray, index: IntArray) -> BinTable:
        n_bins = len(edges) - 1
        inside = (self.score - edges[index]) / np.diff(edges)[index]
        piece = index * SLICES + np.clip(inside * SLICES, 0, SLICES - 1).astype(np.int64)
        mass = self.count * self.score
        slice_count = bin_sums(piece, n_bins * SLICES, self.count)
        slice_mass = bin_sums(piece, n_bins * SLICES, mass)
        count, total, hits = (
            bin_sums(index, n_bins, values) for values in (self.count, mass, self.hits)
        )
        some = count > 0
        mean, rate = (
            np.divide(top, count, out=np.full(n_bins, np.nan), where=some) for top in (total, hits)
        )
        away = self.score + (rate - mean)[index]
        squares = self.hits * np.square(1.0 - away) + self.misses * np.square(away)
        variance = gap_variance(bin_sums(index, n_bins, squares), count, count, mean)
        slice_score = np.divide(
            slice_mass, slice_count, out=np.zeros_like(slice_mass), where=slice_count > 0
        )
        return BinTable(
            edges=edges,
            count=count,
            weight=count,
            weight_sq=count,
            score=mean,
            rate=rate,
            variance=variance,
            slice_n=slice_count,
            slice_weight=slice_count,
            slice_weight_sq=slice_count,
            slice_score=np.clip(slice_score, 0.0, 1.0),
        )
