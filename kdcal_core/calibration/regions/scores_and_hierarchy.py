"""Scores and the hierarchy of regions, on which the maps of regions are fitted.

Scores of one class are gathered into cells, so that a fit on a million rows takes milliseconds. The
hierarchy holds the ancestors from which regions with few rows borrow. The protocol of fitted maps
is here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.statistics import CLIP

# Up to this many rows are not gathered, and fits are exact.
EXACT = 50_000
# Width of a cell on the logit. Within it the logit varies by 1/222 (standard deviation) around its
# stored mean, which changes a fitted slope by well below a hundredth of its standard error.
WIDTH = 1.0 / 64.0
_NARROWEST = 1e-9
_LARGEST_GRID = 20_000_000


@dataclass(frozen=True, eq=False)
class Cells:
    """Weighted points on the logit of one class's probability, each in one region.

    Attributes
    ----------
    region : (c,) int array
    logit : (c,) array
        log(p / (1 - p)), p clipped at 1e-12.
    weight, positive : (c,) arrays
        Weight of the rows, and of those that are of the class.
    """

    region: IntArray
    logit: FloatArray
    weight: FloatArray
    positive: FloatArray

    def take(self, which: IntArray) -> Cells:
        """Some of the cells."""
        return Cells(
            self.region[which],
            self.logit[which],
            self.weight[which],
            self.positive[which],
        )

    @classmethod
    def joined(cls, parts: list[Cells], n_regions: int) -> Cells:
        """The cells of several classes as one; the regions of part c start at c ``n_regions``."""
        return cls(
            np.concatenate([one.region + c * n_regions for c, one in enumerate(parts)]),
            np.concatenate([one.logit for one in parts]),
            np.concatenate([one.weight for one in parts]),
            np.concatenate([one.positive for one in parts]),
        )


def logit_of(p: FloatArray) -> FloatArray:
    """log(p / (1 - p)) with p clipped at 1e-12 on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> logit_of(np.array([0.5, 0.0, 1.0])).round(2).tolist()
    [0.0, -27.63, 27.63]
    """
    kept = np.clip(p, CLIP, 1.0 - CLIP)
    value: FloatArray = np.log(kept) - np.log1p(-kept)
    return value


def lattice_of(logit: FloatArray) -> IntArray:
    """Cell of each row on a fixed lattice of the logit, counted from the lowest.

    If all logits are nearly equal, it is finer in proportion to their standard deviation.
    """
    width = WIDTH * min(1.0, max(float(logit.std()), _NARROWEST))
    cell = np.floor(logit / width).astype(np.int64)
    cell -= cell.min()
    return cell


def gather(
    logit: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    region: IntArray,
    n_regions: int,
    lattice: IntArray | None = None,
) -> Cells:
    """Cells of the rows: up to 50,000 rows one for each row, else by region and logit.

    Parameters
    ----------
    logit, target, weight : (n,) arrays
        ``target`` is 1 for rows of the class and 0 for others.
    region : (n,) int array
        0 to ``n_regions`` - 1.
    lattice : (n,) int array, optional
        :func:`lattice_of` the logits, to gather many partitions of the same rows.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(2)
    >>> gather(np.zeros(2), one, one, np.array([0, 1]), 2).positive.tolist()
    [1.0, 1.0]
    """
    if len(logit) <= EXACT:
        return Cells(region, logit, weight, weight * target)
    lattice = lattice_of(logit) if lattice is None else lattice
    width = int(lattice.max()) + 1
    if n_regions * width > _LARGEST_GRID:
        return Cells(region, logit, weight, weight * target)
    cell = region * width + lattice
    size = n_regions * width
    total = bin_sums(cell, size, weight)
    kept = np.flatnonzero(total > 0)
    return Cells(
        kept // width,
        bin_sums(cell, size, weight * logit)[kept] / total[kept],
        total[kept],
        bin_sums(cell, size, weight * target)[kept],
    )


class RegionMaps(Protocol):
    """The fitted maps of R regions: arrays and two methods."""

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K) of rows in these regions (n,), rows summing to one."""

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse arrays that do not fit, as in a damaged file."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The rows on which maps are fitted, with what many partitions of them share.

    Attributes
    ----------
    proba : (n, K) array
        The model's probabilities.
    y : (n,) int array
    weight : (n,) array
    """

    proba: FloatArray
    y: IntArray
    weight: FloatArray

    @property
    def n_classes(self) -> int:
        return int(self.proba.shape[1])

    @property
    def mapped(self) -> tuple[int, ...]:
        """The classes with their own map: the second of two, or all."""
        return (1,) if self.n_classes == 2 else tuple(range(self.n_classes))

    @cached_property
    def _logits(self) -> dict[int, FloatArray]:
        return {label: logit_of(self.proba[:, label]) for label in self.mapped}

    @cached_property
    def _lattices(self) -> dict[int, IntArray]:
        return {label: lattice_of(logit) for label, logit in self._logits.items()}

    def cells(self, label: int, leaf: IntArray, n_regions: int) -> Cells:
        """The rows of one class against the rest, gathered by region and score."""
        return gather(
            self._logits[label],
            (self.y == label).astype(np.float64),
            self.weight,
            leaf,
            n_regions,
            self._lattices[label] if len(self.y) > EXACT else None,
        )


@dataclass(frozen=True, eq=False)
class MapFit:
    """Fitted maps with what is reported about each region.

    Attributes
    ----------
    maps : RegionMaps
    borrowed : (C, R) array in [0, 1]
        The ancestor's share of each region's map, for each mapped class.
    parameters : dict of str to (C, R) array
        Parameters by name ("slope", "offset"); empty for maps without parameters.
    falling : (R,) array of bool
        Whether a higher score of some class means a lower probability of it.
    """

    maps: RegionMaps
    borrowed: FloatArray
    parameters: dict[str, FloatArray]
    falling: NDArray[np.bool_]


def normalised(mapped: FloatArray) -> FloatArray:
    """Full vectors from (n, C) mapped probabilities: the complement for two classes, else scaled.

    A row of zeros becomes uniform.
    """
    if mapped.shape[1] == 1:
        return np.column_stack([1.0 - mapped[:, 0], mapped[:, 0]])
    total = mapped.sum(axis=1, keepdims=True)
    uniform = np.full_like(mapped, 1.0 / mapped.shape[1])
    np.divide(mapped, total, out=uniform, where=total > 0)
    return uniform


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Nodes with their parents, and the node of each region.

    Attributes
    ----------
    parent : (m,) int array
        Node above each node, and -1 for a root, which is node 0 or, in :meth:`copies`, the first of
        each copy. Parents come first.
    node : (R,) int array
        The node of each region.

    Examples
    --------
    >>> flat = Hierarchy.flat(3)
    >>> flat.parent.tolist(), flat.node.tolist()
    ([-1, 0, 0, 0], [1, 2, 3])
    >>> flat.above(0).tolist()
    [0, 0, 0]
    """

    parent: IntArray
    node: IntArray

    @classmethod
    def flat(cls, n_regions: int) -> Hierarchy:
        """Siblings under one root; a single region is the root itself."""
        if n_regions == 1:
            return cls(np.array([-1]), np.array([0]))
        return cls(
            np.concatenate([[-1], np.zeros(n_regions, dtype=np.int64)]),
            np.arange(1, n_regions + 1),
        )

    @classmethod
    def of_tree(cls, tree: Any) -> Hierarchy:
        """The hierarchy of a ``kdcal_core.partition.tree.PartitionTree``, renumbered by depth."""
        order = np.argsort(tree.depth, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        above = np.asarray(tree.parent, dtype=np.int64)[order]
        parent = np.where(above >= 0, place[above], -1)
        leaf = np.asarray(tree.leaf_of_node, dtype=np.int64)[order]
        node = np.empty(int(tree.n_leaves), dtype=np.int64)
        node[leaf[leaf >= 0]] = np.flatnonzero(leaf >= 0)
        return cls(parent, node)

    def copies(self, count: int) -> Hierarchy:
        """This hierarchy repeated ``count`` times, to fit as many classes together.

        The numbers of nodes and regions in copy c are those of the first plus c times their count.

        Examples
        --------
        >>> twice = Hierarchy.flat(2).copies(2)
        >>> twice.parent.tolist(), twice.node.tolist(), twice.copy.tolist()
        ([-1, 0, 0, -1, 3, 3], [1, 2, 4, 5], [0, 0, 0, 1, 1, 1])
        """
        start = np.arange(count)[:, None] * len(self.parent)
        return Hierarchy(
            np.where(self.parent >= 0, self.parent + start, -1).ravel(),
            (self.node + start).ravel(),
        )

    @cached_property
    def copy(self) -> IntArray:
        """The copy that each node belongs to, (m,)."""
        return np.cumsum(self.parent < 0) - 1

    @property
    def n_regions(self) -> int:
        return len(self.node)

    @cached_property
    def depth(self) -> IntArray:
        """Number of steps from the root to each node, (m,)."""
        depth = np.zeros(len(self.parent), dtype=np.int64)
        while True:
            deeper = np.where(self.parent >= 0, depth[self.parent] + 1, 0)
            if np.array_equal(deeper, depth):
                return depth
            depth = deeper

    @cached_property
    def levels(self) -> tuple[IntArray, ...]:
        """The nodes of each depth, the roots first."""
        return tuple(np.flatnonzero(self.depth == d) for d in range(int(self.depth.max()) + 1))

    @cached_property
    def spans(self) -> tuple[IntArray, IntArray, IntArray]:
        """An order of the regions in which those below any node are adjacent.

        Returns
        -------
        first, last : (m,) int arrays
            A node's regions are those from place ``first`` up to place ``last``.
        rank : (R,) int array
            The place of each region.

        Examples
        --------
        >>> first, last, rank = Hierarchy(np.array([-1, 0, 0, 1, 1]), np.array([3, 2, 4])).spans
        >>> rank.tolist(), first.tolist(), last.tolist()
        ([0, 2, 1], [0, 0, 2, 0, 1], [3, 2, 3, 1, 2])
        """
        above = [self.above(level) for level in range(len(self.levels))]
        order = np.lexsort(above[::-1])
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        m = len(self.parent)
        first, last = np.full(m, len(order)), np.zeros(m, dtype=np.int64)
        for node in above:
            np.minimum.at(first, node, rank)
            np.maximum.at(last, node, rank + 1)
        return np.minimum(first, last), last, rank

    def totals(self, own: FloatArray) -> FloatArray:
        """Sums of the regions' values (R, ...) below each node, (m, ...).

        Examples
        --------
        >>> Hierarchy.flat(2).totals(np.array([1.0, 2.0])).tolist()
        [3.0, 1.0, 2.0]
        """
        total = np.zeros((len(self.parent), *own.shape[1:]))
        np.add.at(total, self.node, own)
        for nodes in self.levels[:0:-1]:
            np.add.at(total, self.parent[nodes], total[nodes])
        return total

    def above(self, level: int) -> IntArray:
        """The node of this depth above each region, or the region's own node if it is less deep."""
        depth, at = self.depth, self.node
        for deepest in range(int(depth.max(initial=0)), level, -1):
            at = np.where(depth[at] == deepest, self.parent[at], at)
        return at

    def place_among(self, nodes: IntArray) -> IntArray:
        """Index of the node among ``nodes``, all of one depth, at or above each region; else -1."""
        place = np.full(len(self.parent), -1)
        place[nodes] = np.arange(len(nodes))
        return place[self.above(int(self.depth[nodes[0]]))]
