"""The hierarchy of regions: the ancestors that regions with few rows borrow from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Nodes with their parents, and the node of each region.

    Attributes
    ----------
    parent : (m,) int array
        Node above each node, and -1 for a root: node 0, and in :meth:`copies` the first of each.
        Parents come first.
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
        """Sisters under one root; a single region is the root itself."""
        if n_regions == 1:
            return cls(np.array([-1]), np.array([0]))
        return cls(
            np.concatenate([[-1], np.zeros(n_regions, dtype=np.int64)]),
            np.arange(1, n_regions + 1),
        )

    @classmethod
    def of_tree(cls, tree: Any) -> Hierarchy:
        """That of a :class:`kdcal_core.partition.tree.PartitionTree`, renumbered by depth."""
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
        """This hierarchy ``count`` times, for as many classes that are fitted together.

        Nodes and regions of copy c are those of the first plus c times their number.

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
        """Steps from the root to each node, (m,)."""
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
        """An order of the regions in which those below any node stand side by side.

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
        """Of what each region has, (R, ...), the sum below each node, (m, ...).

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
        """The node of this depth above each region, or the region's own where it ends earlier."""
        depth, at = self.depth, self.node
        for deepest in range(int(depth.max(initial=0)), level, -1):
            at = np.where(depth[at] == deepest, self.parent[at], at)
        return at

    def place_among(self, nodes: IntArray) -> IntArray:
        """Which of the ``nodes``, all of one depth, each region lies below (or is); else -1."""
        place = np.full(len(self.parent), -1)
        place[nodes] = np.arange(len(nodes))
        return place[self.above(int(self.depth[nodes[0]]))]
