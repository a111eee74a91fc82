"""The regions of a tree, judged on counts of the rows in each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from kdcal_core.data import IntArray
from kdcal_core.diagnostics.regions import RegionSearch
from kdcal_core.diagnostics.regions.judging import (
    pit_regions_of_samples,
    regions_in_tree,
    regions_of_cells,
)
from kdcal_core.diagnostics.regression.fault import Fault, named_fault, parts_of_sample
from kdcal_core.diagnostics.regression.pit_curves import PitHistogram, histogram_of_counts
from kdcal_core.diagnostics.reliability import ReliabilityCurve
from kdcal_core.diagnostics.summaries.class_estimates import curve_of_cells
from kdcal_core.diagnostics.summaries.group_estimates import GroupPit, counts_by_group
from kdcal_core.diagnostics.summaries.group_summary import GroupSummary
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells
from kdcal_core.partition.tree import ALL_ROWS, PartitionTree

_EVERY = -1


@dataclass(frozen=True, eq=False)
class RegionCells(ABC):
    """Scores, or PIT values, counted by region of a tree: (n_leaves, C, 4) int64."""

    counts: IntArray

    @classmethod
    def of_groups(cls, groups: GroupSummary, target: int | None, n_leaves: int) -> Self:
        """The counts of a single column that holds the number of each row's region as text.

        Rows without a region are left out. ``target`` is as of
        :func:`kdcal_core.diagnostics.summaries.class_groups`.
        """
        (column,) = groups.columns
        numbers = np.array([*map(int, column.words), _EVERY], dtype=np.int64)
        names = [str(leaf) for leaf in range(n_leaves)]
        label = numbers[groups.values[:, 0]]
        return cls(np.stack(list(counts_by_group(groups, target, label, names))))

    @cached_property
    def rows(self) -> IntArray:
        """Rows of each region, (n_leaves,)."""
        return np.asarray(self.counts[:, :, 0].sum(axis=1))

    @property
    def some(self) -> list[int]:
        """The regions that have rows."""
        return [int(leaf) for leaf in np.flatnonzero(self.rows)]

    def of(self, leaf: int) -> IntArray:
        """Counts of a region, of all for -1, (C, 4)."""
        return np.asarray(self.counts.sum(axis=0) if leaf == _EVERY else self.counts[leaf])

    @abstractmethod
    def search(
        self, tree: PartitionTree, *, n_grow: int, least: int, what: str, level: float = 0.95
    ) -> RegionSearch:
        """The regions with their faults, without the region of each row.

        Parameters
        ----------
        tree : PartitionTree
            Grown on ``n_grow`` other rows.
        least : int
            Fewest of them in a region.
        what : str
            What is stated.
        """


@dataclass(frozen=True, eq=False)
class ScoreRegions(RegionCells):
    """Of a probability, as :func:`kdcal_core.diagnostics.describe_regions` judges it."""

    def cells(self, leaf: int) -> ScoreCells:
        """The cells with rows, of all regions for -1."""
        return ScoreCells.of_counts(self.of(leaf))

    def search(
        self, tree: PartitionTree, *, n_grow: int, least: int, what: str, level: float = 0.95
    ) -> RegionSearch:
        n, some = int(self.rows.sum()), self.some
        fine = [self.cells(leaf).fine() for leaf in some]
        found = regions_of_cells(fine, [tree.words(leaf) for leaf in some], n, level)
        (whole,) = regions_of_cells([self.cells(_EVERY).fine()], [ALL_ROWS], n, level)
        none = np.empty(0, dtype=np.int64)
        return RegionSearch(
            tree=tree,
            regions=regions_in_tree(tree, dict(zip(some, found, strict=True)), level),
            overall=whole.gap,
            overall_p=whole.p_value,
            n_grow=n_grow,
            n_judge=n,
            seed=0,
            level=level,
            target=what,
            leaf=none,
            judged=none,
            least=least,
        )

    def curve(self, leaf: int, n_bins: int, level: float = 0.95) -> ReliabilityCurve:
        """As :func:`kdcal_core.diagnostics.confidence_reliability` of the rows."""
        rng = np.random.default_rng(0)
        return curve_of_cells(self.cells(leaf), n_bins, "uniform", level, rng)


@dataclass(frozen=True, eq=False)
class PitRegions(RegionCells):
    """Of PIT values, as :func:`kdcal_core.diagnostics.describe_pit_regions` judges them."""

    def sample(self, leaf: int) -> GroupPit:
        """The values of a region, of all for -1."""
        counts = self.of(leaf)
        return GroupPit(counts[:, 0], ScoreCells.of_counts(counts).score)

    def search(
        self, tree: PartitionTree, *, n_grow: int, least: int, what: str, level: float = 0.95
    ) -> RegionSearch:
        some = self.some
        samples, names = [self.sample(at) for at in some], [tree.words(at) for at in some]
        found = pit_regions_of_samples(samples, names, self.sample(_EVERY), level)
        regions = regions_in_tree(tree, dict(zip(some, found.regions, strict=True)), level)
        return replace(found, tree=tree, regions=regions, n_grow=n_grow, least=least)

    def histogram(self, leaf: int, bins: int, level: float = 0.95) -> PitHistogram:
        """As :func:`kdcal_core.diagnostics.pit_histogram` of the rows."""
        rows = self.of(leaf)[:, 0].astype(np.float64)
        counts = np.asarray(np.bincount(bins_of_cells(bins), rows, bins), dtype=np.float64)
        return histogram_of_counts(counts, int(rows.sum()), rows.sum(), level, "simultaneous")

    def fault(self, leaf: int, stated: tuple[float, ...] | None, level: float = 0.95) -> Fault:
        """As :func:`kdcal_core.diagnostics.fault` of the rows."""
        return named_fault(parts_of_sample(self.sample(leaf), level, stated))
