"""Rows of one binary problem by cell of the grid, and the bins that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics.calibration_curves import FineCells
from kdcal_core.diagnostics.smooth_error import DIRECTION_BINS, LatticeCells
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.cluster_blocks import (
    BlockCells,
    EffectOf,
    coarse_ends,
    coarse_of_cells,
)
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells, upper_ends
from kdcal_core.diagnostics.targets import (
    SLICES,
    BinTable,
    Kind,
    Strategy,
    check_choice,
    check_level,
    gap_variance,
    labels_asked,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import BinDependence

_TELLING = 0.1  # share of the variance that must show between the bins of blocks


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
    clusters : BlockCells or None
        The same rows by block of clusters, where rows of one depend on one another.
    """

    label: int | None
    place: IntArray
    count: FloatArray
    hits: FloatArray
    score: FloatArray
    clusters: BlockCells | None = None

    @classmethod
    def of_confidence(cls, summary: ClassSummary, label: int | None = None) -> ScoreCells:
        """The confidence of all rows, or of those predicted to be one class."""
        cells = summary.cells[0].sum(axis=0) if label is None else summary.cells[0, label]
        return cls.of_counts(cells, label, summary.block_cells(0, label))

    @classmethod
    def of_class(cls, summary: ClassSummary, label: int) -> ScoreCells:
        """The probability of one class, of all rows."""
        return cls.of_counts(summary.cells[1, label], label, summary.block_cells(1, label))

    @classmethod
    def of_counts(
        cls, cells: IntArray, label: int | None = None, clusters: BlockCells | None = None
    ) -> ScoreCells:
        """Counts and sums of all cells (C, 4), as those of :class:`ClassSummary`."""
        place = np.flatnonzero(cells[:, 0])
        some = cells[place]
        count = some[:, 0].astype(np.float64)
        ends = upper_ends()
        # a mean may leave its cell by a rounding error
        low = np.where(place > 0, ends[place - 1], 0.0)
        score = np.clip(ClassSummary.score_sums(some) / count, low, ends[place])
        return cls(label, place, count, some[:, 1].astype(np.float64), score, clusters)

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

    def effect(self, hit: FloatArray, miss: FloatArray, *, of: EffectOf = "mean") -> float:
        """By how much clusters multiply the variance of a mean; 1 of independent rows.

        Parameters
        ----------
        hit, miss : (c,) arrays
            The value of a row of each cell if it is true, and if not.
        of : {"mean", "share", "sum"}
            As :meth:`~kdcal_core.diagnostics.summaries.cluster_blocks.BlockSums.effect`.

        Notes
        -----
        The rows of a bin of the blocks have the mean of its values. Where that is hardly any of
        what varies, the rows of a cluster are taken as equal.
        """
        if self.clusters is None:
            return 1.0
        mean = float(self.hits @ hit + self.misses @ miss) / self.n
        own, coarse, totals = 0.0, 0.0, np.zeros(len(self.clusters.mass))
        blocks = self.clusters.hits, self.clusters.count - self.clusters.hits
        bins, size = coarse_of_cells()[self.place], len(coarse_ends())
        for rows, of_blocks, values in zip(
            (self.hits, self.misses), blocks, (hit - mean, miss - mean), strict=True
        ):
            mass = bin_sums(bins, size, rows)
            total = bin_sums(bins, size, rows * values)
            middle = np.divide(total, mass, out=np.zeros(size), where=mass > 0.0)
            own += float(rows @ np.square(values))
            coarse += float(mass @ np.square(middle))
            totals += of_blocks @ middle
        return self.clusters.effect(totals, coarse if coarse > _TELLING * own else 0.0, of)

    def gap_effect(self) -> float:
        """By how much clusters multiply the variance of the mean gap, about ten bins' gaps.

        As :func:`kdcal_core.diagnostics.targets.overall_effect`.
        """
        if self.clusters is None:
            return 1.0
        table = self.table(10, "quantile")
        own = bin_index(self.ends, table.edges)
        away = self.score + np.nan_to_num(table.rate - table.score)[own]
        return self.effect(1.0 - away, -away, of="share")

    def shared_out(
        self, rows: FloatArray, of_bins: FloatArray, index: IntArray, n_bins: int
    ) -> FloatArray:
        """Rows of the blocks' bins (U,) in bins of the cells (n_bins,), as ``rows`` (c,) lie."""
        return np.asarray(of_bins @ self.parts(rows, index, n_bins))

    def parts(self, rows: FloatArray, index: IntArray, n_bins: int) -> FloatArray:
        """Share of the rows (c,) of each bin of the blocks in each of ``n_bins``, (U, n_bins)."""
        bins, size = coarse_of_cells()[self.place], len(coarse_ends())
        table = bin_sums(bins * n_bins + index, size * n_bins, rows).reshape(size, n_bins)
        whole = table.sum(axis=1, keepdims=True)
        found: FloatArray = np.divide(table, whole, out=np.zeros_like(table), where=whole > 0.0)
        return found

    def fewer(self, effect: float) -> ScoreCells:
        """The cells of as many independent rows as these count for."""
        if effect == 1.0:
            return self
        parts = self.count / effect, self.hits / effect
        return ScoreCells(self.label, self.place, *parts, self.score)

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
        together = None
        if self.clusters is not None:
            together = self.table(DIRECTION_BINS, "quantile").together
        return LatticeCells(size, place, score, rows / self.n, rows, own, together)

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
        own = bin_sums(index, n_bins, squares)
        variance = gap_variance(own, count, count, mean)
        together = None
        if self.clusters is not None:
            together = self._together(index, n_bins, own, np.nan_to_num(rate - mean))
            variance = variance * together.effect
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
            together=together,
        )

    def _together(
        self, index: IntArray, n_bins: int, own: FloatArray, gap: FloatArray
    ) -> BinDependence:
        """How clusters make bins vary, as :func:`kdcal_core.statistics.bin_dependence`.

        The blocks count rows in bins of their own. Where a bin of the table ends inside one, its
        rows are shared out by their numbers, and the correlation is that of fifteen equal bins.
        """
        blocks = self.clusters
        assert blocks is not None
        part = self.parts(self.count, index, n_bins)
        together, itself = blocks.count @ part, blocks.count.sum(axis=0) @ np.square(part)

        def pairs(more: FloatArray) -> tuple[float, float]:
            if not (np.maximum(part, 1.0 - part) == 1.0).all():
                return self._pairs_of_equal_bins()
            moved = (blocks.hits - blocks.score) @ part - together * gap
            return float(np.square(blocks.together(moved)).sum() - own.sum()), float(own @ more)

        return blocks.bins(together, itself, pairs)

    def _pairs_of_equal_bins(self) -> tuple[float, float]:
        index = bins_of_cells(15)[self.place]
        count, total, hits = (
            bin_sums(index, 15, one) for one in (self.count, self.count * self.score, self.hits)
        )
        gap = np.divide(hits - total, count, out=np.zeros(15), where=count > 0.0)
        away = self.score + gap[index]
        squares = self.hits * np.square(1.0 - away) + self.misses * np.square(away)
        own = bin_sums(index, 15, squares)
        blocks = self.clusters
        assert blocks is not None
        to = np.zeros((len(coarse_ends()), 15))
        to[coarse_of_cells(), bins_of_cells(15)] = 1.0
        together = blocks.count @ to
        moved = (blocks.hits - blocks.score) @ to - together * gap
        beyond = np.maximum(np.diag(blocks.products(together)) - count, 0.0)
        grown = np.divide(beyond, count, out=np.zeros(15), where=count > 0.0)
        return float(np.square(blocks.together(moved)).sum() - own.sum()), float(own @ grown)


def require_rows(summary: ClassSummary, level: float) -> None:
    """Refuse a summary without rows, and a level that is none."""
    check_level(level)
    if summary.n < 1:
        raise InputError("The summary has no rows", fix="Add at least one row.")


def class_cells(summary: ClassSummary, label: int, noun: str = "label") -> ScoreCells:
    """The probability of a class; an error that says so where there is no such class."""
    if not 0 <= label < len(summary.classes):
        raise InputError(
            f"{noun} is {label}, but there are {len(summary.classes)} classes",
            fix=f"Choose a class index from 0 to {len(summary.classes) - 1}.",
        )
    return ScoreCells.of_class(summary, label)


def cells_asked(summary: ClassSummary, event: int | None) -> ScoreCells:
    """The confidence of all rows, or the probability of a class."""
    return ScoreCells.of_confidence(summary) if event is None else class_cells(summary, event)


def cells_of_kind(
    summary: ClassSummary, kind: Kind, label: int | None = None
) -> tuple[ScoreCells, ...]:
    """The binary problems of ``kind``, as :func:`kdcal_core.diagnostics.targets.targets`."""
    check_choice("kind", kind, ("confidence", "top-label", "class"))
    labels = labels_asked(label, kind, len(summary.classes))
    if kind == "confidence":
        return (ScoreCells.of_confidence(summary),)
    if kind == "top-label":
        return tuple(ScoreCells.of_confidence(summary, one) for one in labels)
    return tuple(ScoreCells.of_class(summary, one) for one in labels)
