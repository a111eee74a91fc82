"""A tree that partitions the inputs, as plain arrays."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition._blocks import cores
from kdcal_core.partition.tree._arranging import arranged
from kdcal_core.partition.tree._checks import check_tree
from kdcal_core.partition.tree.binned import BinnedInputs, bin_inputs
from kdcal_core.partition.tree.columns import CODES, InputColumn
from kdcal_core.partition.tree.conditions import Condition
from kdcal_core.partition.tree.nodes import TreeNode
from kdcal_core.store import storable

APPLY_ROWS = 100_000  # rows a thread finds the leaves of at once


@storable
@dataclass(frozen=True, eq=False)
class PartitionTree:
    """A partition of the inputs by a tree of m nodes, numbered from the root in preorder.

    Attributes
    ----------
    columns : tuple of d :class:`InputColumn`
    feature : (m,) int32
        Column that a node splits, -1 in a leaf.
    threshold : (m,) int32
        Of a number: the last code that goes left. Of a category: which row of ``subsets``.
    subsets : (s, 256) bool
        Codes that go left, one row for each split of a category.
    missing_left : (m,) bool
        Whether missing values go left.
    left, right, parent : (m,) int32
        Nodes, -1 where there is none. A child's number is larger than its parent's.
    leaf_of_node : (m,) int32
        Leaves are numbered from left to right, -1 inside.
    n : (m,) int64
        Rows at growth.

    Raises
    ------
    InputError
        If the arrays contradict each other: no tree can send a row out of bounds.
    """

    columns: tuple[InputColumn, ...]
    feature: NDArray[np.int32]
    threshold: NDArray[np.int32]
    subsets: NDArray[np.bool_]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    parent: NDArray[np.int32]
    leaf_of_node: NDArray[np.int32]
    n: NDArray[np.int64]

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise :class:`InputError` where columns or arrays contradict each other."""
        check_tree(self)

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        return int((self.feature < 0).sum())

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """Splits above each node, (m,)."""
        depth = np.zeros(self.n_nodes, dtype=np.int32)
        for node in range(1, self.n_nodes):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    @cached_property
    def nodes_of_leaves(self) -> NDArray[np.int64]:
        """The node of each leaf, (n_leaves,)."""
        return np.flatnonzero(self.feature < 0)

    @cached_property
    def paths(self) -> NDArray[np.bool_]:
        """``[leaf, node]`` says whether the node is on the way to the leaf, (n_leaves, m).

        ``tree.paths.T @ sums`` adds up what the leaves hold in every node.
        """
        paths = np.zeros((self.n_leaves, self.n_nodes), dtype=bool)
        for leaf in range(self.n_leaves):
            paths[leaf, self.ancestors(leaf)] = True
        return paths

    @cached_property
    def goes_left(self) -> NDArray[np.bool_]:
        """Whether each code goes left at each node, (m, 256)."""
        table = np.arange(CODES) <= self.threshold[:, None]
        for node in np.flatnonzero(self.feature >= 0):
            column = self.columns[self.feature[node]]
            if column.kind == "category":
                table[node] = self.subsets[self.threshold[node]]
            table[node, column.missing_code :] = self.missing_left[node]
        return table

    def apply(
        self, X: pd.DataFrame | NDArray[Any] | BinnedInputs, *, file: str | None = None
    ) -> NDArray[np.int64]:
        """The leaf of every row, (n,), from 0 to ``n_leaves - 1``.

        Parameters
        ----------
        X : table, array or binned inputs
            With the columns of the fit; binned ones with the very codes of the fit.

        Raises
        ------
        InputError
            If the columns are others than at fit, or a value cannot be read.
        """
        from kdcal_core.partition.tree._kernels import find_leaves

        binned = X if isinstance(X, BinnedInputs) else bin_inputs(X, like=self.columns, file=file)
        self._check_codes(binned)
        out = np.empty(len(binned), dtype=np.int64)
        arrays = (self.feature, self.goes_left, self.left, self.right, self.leaf_of_node)

        def fill(start: int) -> None:
            stop = min(start + APPLY_ROWS, len(out))
            find_leaves(binned.codes.T, *arrays, start, stop, out)

        starts = range(0, len(out), APPLY_ROWS)
        if len(starts) == 1:
            fill(0)
            return out
        with ThreadPoolExecutor(max(1, min(cores(), len(starts)))) as pool:
            list(pool.map(fill, starts))
        return out

    def _check_codes(self, binned: BinnedInputs) -> None:
        same = len(binned.columns) == len(self.columns) and all(
            ours.same_as(theirs) for ours, theirs in zip(self.columns, binned.columns, strict=True)
        )
        if not same:
            raise InputError(
                "The inputs were coded by other columns than the tree's",
                fix="Code them with bin_inputs(X, like=tree.columns).",
            )

    def ancestors(self, leaf: int) -> NDArray[np.int64]:
        """Nodes from the root down to a leaf."""
        return self.way_to(self._node_of(leaf))

    def way_to(self, node: int) -> NDArray[np.int64]:
        """Nodes from the root down to a node."""
        way = [node]
        while way[-1]:
            way.append(int(self.parent[way[-1]]))
        return np.array(way[::-1], dtype=np.int64)

    def rule(self, leaf: int) -> tuple[Condition, ...]:
        """What a leaf asks of each column, in the order in which the columns are first split."""
        return self.rule_of_node(self._node_of(leaf))

    def rule_of_node(self, node: int) -> tuple[Condition, ...]:
        """What a node asks of each column; nothing at the root."""
        allowed: dict[int, NDArray[np.bool_]] = {}
        for below in self.way_to(node)[1:].tolist():
            feature, condition = int(self.feature[self.parent[below]]), self._branch(below)
            allowed[feature] = allowed.get(feature, np.True_) & condition.allowed
        return tuple(Condition(self.columns[feature], codes) for feature, codes in allowed.items())

    def words(self, leaf: int) -> str:
        """A leaf's rule in words; names from the table are as they are, hence untrusted."""
        return "; ".join(condition.words for condition in self.rule(leaf)) or "all rows"

    def nodes(self) -> tuple[TreeNode, ...]:
        """The nodes for drawing, in preorder, each with the branch that leads to it."""
        return tuple(
            TreeNode(
                node,
                int(self.parent[node]) if node else None,
                int(self.depth[node]),
                int(self.n[node]),
                int(self.leaf_of_node[node]) if self.feature[node] < 0 else None,
                self._branch(node) if node else None,
            )
            for node in range(self.n_nodes)
        )

    def _branch(self, node: int) -> Condition:
        """What the split above a node asks of the rows that come to it."""
        parent = int(self.parent[node])
        goes = self.goes_left[parent]
        went_left = self.left[parent] == node
        return Condition(self.columns[self.feature[parent]], goes if went_left else ~goes)

    def _node_of(self, leaf: int) -> int:
        if not 0 <= leaf < self.n_leaves:
            raise InputError(
                f"There is no leaf {leaf} among {self.n_leaves}", fix="The first is leaf 0."
            )
        return int(self.nodes_of_leaves[leaf])

    def pruned(self, keep: Iterable[int]) -> PartitionTree:
        """The same tree with only some of its nodes.

        Parameters
        ----------
        keep : node ids
            The root stays always; of a split's two children both or none, and a node only with
            its parent.

        Raises
        ------
        InputError
            If what is kept is no tree.
        """
        kept = np.zeros(self.n_nodes, dtype=bool)
        ids = np.array([0, *keep], dtype=np.int64)
        if ids.min() < 0 or ids.max() >= self.n_nodes:
            raise InputError(
                f"Nodes to keep are 0 to {self.n_nodes - 1}", fix="Give ids of the tree's nodes."
            )
        kept[ids] = True
        inside = self.feature >= 0
        both = kept[self.left] == kept[self.right]
        if (kept & ~kept[self.parent])[1:].any() or (inside & kept & ~both).any():
            raise InputError(
                "The nodes to keep make no tree: one of them lacks its parent or its sibling",
                fix="Keep both children of a split, and every node above them.",
            )
        leaf = kept & ~(inside & kept[self.left])
        arrays = arranged(
            self.columns,
            np.where(leaf, -1, self.feature)[kept],
            self.goes_left[kept],
            _renumbered(self.left, kept, leaf),
            _renumbered(self.right, kept, leaf),
            self.n[kept],
        )
        return PartitionTree(self.columns, **arrays)


def _renumbered(
    child: NDArray[np.int32], kept: NDArray[np.bool_], leaf: NDArray[np.bool_]
) -> NDArray[np.int32]:
    number = np.cumsum(kept) - 1
    return np.where(leaf, -1, number[child])[kept].astype(np.int32)
