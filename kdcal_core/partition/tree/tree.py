"""A tree that partitions the inputs, as plain arrays: its nodes, rules, and checks.

Arrays are checked before any kernel reads them, because files are hostile.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.blocks import cores
from kdcal_core.errors import InputError
from kdcal_core.partition.tree.binned import CODES, BinnedInputs, InputColumn, bin_inputs
from kdcal_core.store import storable
from kdcal_core.text import formatted, listed

ALL_ROWS = "all rows"  # the words of a region without a condition
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
        from kdcal_core.partition.tree._tree_kernels import find_leaves

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
        """A leaf's conditions, one a column, in the order in which the columns are first split."""
        return self.rule_of_node(self._node_of(leaf))

    def rule_of_node(self, node: int) -> tuple[Condition, ...]:
        """A node's conditions, one a column; none at the root."""
        allowed: dict[int, NDArray[np.bool_]] = {}
        for below in self.way_to(node)[1:].tolist():
            feature, condition = int(self.feature[self.parent[below]]), self._branch(below)
            allowed[feature] = allowed.get(feature, np.True_) & condition.allowed
        return tuple(Condition(self.columns[feature], codes) for feature, codes in allowed.items())

    def words(self, leaf: int) -> str:
        """A leaf's rule in words; names from the table are as they are, hence untrusted."""
        return "; ".join(condition.words for condition in self.rule(leaf)) or ALL_ROWS

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
        """The condition that the split above a node sets for its rows."""
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


@dataclass(frozen=True)
class TreeNode:
    """A node as it is drawn: where it hangs, its rows at growth, and the branch that leads to it.

    ``leaf`` is the leaf's index, None inside; ``condition`` is None at the root.
    """

    node: int
    parent: int | None
    depth: int
    n: int
    leaf: int | None
    condition: Condition | None

    @property
    def words(self) -> str:
        return ALL_ROWS if self.condition is None else self.condition.words


NAMED, NAMED_SHORT = 3, 2  # categories that a rule names before it counts the others
MISSING = "missing"


@dataclass(frozen=True, eq=False)
class Condition:
    """The values of one column that a rule lets through.

    Attributes
    ----------
    column : InputColumn
    allowed : (256,) bool
        Which codes pass; of a number's codes a run of neighbours, the missing one apart.
    """

    column: InputColumn
    allowed: NDArray[np.bool_]

    @property
    def low(self) -> float | None:
        """Of a number: values are above this; None where nothing bounds them."""
        first = self._run[0] if len(self._run) else 0
        return float(self.column.edges[first - 1]) if first else None

    @property
    def high(self) -> float | None:
        """Of a number: values are at most this; None where nothing bounds them."""
        last = self._run[-1] if len(self._run) else self.column.bins - 1
        return float(self.column.edges[last]) if last < self.column.bins - 1 else None

    @property
    def categories(self) -> tuple[str, ...]:
        """Of a category: the names that pass, the most frequent first."""
        return tuple(self.column.categories[code] for code in self._run) if self._named else ()

    @property
    def missing(self) -> bool:
        """Whether a missing value passes."""
        return bool(self.allowed[self.column.missing_code])

    @property
    def words(self) -> str:
        """The condition in words, with the column's and the categories' names as they are.

        Examples
        --------
        >>> age = InputColumn("age", "number", edges=np.array([28.0, 41.0]))
        >>> Condition(age, np.arange(256) == 1).words
        'age is above 28 and up to 41'
        >>> promo = InputColumn("promo", "number", edges=np.zeros(1), binary=True)
        >>> Condition(promo, np.arange(256) == 0).words
        'promo is 0'
        >>> job = InputColumn("job", "category", categories=("Sales", "Craft", "Clerk"))
        >>> Condition(job, np.arange(256) != 0).words
        'job is not Sales'
        """
        return self._words(NAMED)

    @property
    def label(self) -> str:
        """The condition where there is little room: one or two categories, the others counted.

        Examples
        --------
        >>> job = InputColumn("job", "category", categories=("Sales", "Craft", "Clerk", "x", "y"))
        >>> Condition(job, np.isin(np.arange(256), [0, 1, 2])).label
        'job is not x or y'
        >>> many = InputColumn("job", "category", categories=tuple("abcdefgh"))
        >>> Condition(many, np.arange(256) < 4).label
        'job is a, b or 2 more'
        """
        return self._words(NAMED_SHORT)

    def _words(self, named: int) -> str:
        text = self._named_words(named) if self._named else self._range_words()
        return f"{self.column.name} {text}"

    @property
    def _named(self) -> bool:
        return self.column.kind == "category"

    @property
    def _run(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.allowed[: self.column.bins])

    def _range_words(self) -> str:
        low, high = self.low, self.high
        if not len(self._run):
            return "is missing"
        if low is None and high is None:
            return "is anything" if self.missing else "is not missing"
        parts = [] if low is None else [f"above {_digits(low)}"]
        parts += [] if high is None else [f"up to {_digits(high)}"]
        if self.column.binary:  # either 0 or 1: both are anything, above
            parts = ["1" if high is None else "0"]
        also = " or missing" if self.missing and self.column.has_missing else ""
        return f"is {' and '.join(parts)}{also}"

    def _named_words(self, named: int) -> str:
        names = [name or '""' for name in self.column.categories]
        if self.column.has_missing:
            names.append(MISSING)
        passes = self.allowed[: len(names)]
        inside = [name for name, passed in zip(names, passes, strict=True) if passed]
        outside = [name for name, passed in zip(names, passes, strict=True) if not passed]
        if not outside:
            return "is anything"
        if len(outside) < len(inside):
            return f"is not {listed(outside, named, last='or')}"
        return f"is {listed(inside, named, last='or')}"


def _digits(value: float) -> str:
    return formatted(value, ",.15g")


def arranged(
    columns: tuple[InputColumn, ...],
    feature: NDArray[Any],
    goes_left: NDArray[np.bool_],
    left: NDArray[Any],
    right: NDArray[Any],
    n: NDArray[Any],
) -> dict[str, NDArray[Any]]:
    """A tree's arrays from nodes in any order, the root first, and the codes that go left."""
    order = _preorder(left, right)
    number = np.argsort(order)
    feature, goes_left = feature[order], goes_left[order]
    left, right = (
        np.where(feature < 0, -1, number[child[order]]).astype(np.int32) for child in (left, right)
    )
    parent = np.full(len(order), -1, dtype=np.int32)
    inside = np.flatnonzero(feature >= 0)
    parent[left[inside]] = parent[right[inside]] = inside
    threshold = np.full(len(order), -1, dtype=np.int32)
    missing_left = np.zeros(len(order), dtype=bool)
    subsets: list[NDArray[np.bool_]] = []
    for node in inside:
        column, goes = columns[feature[node]], goes_left[node]
        missing_left[node] = goes[column.missing_code]
        if column.kind == "category":
            threshold[node] = len(subsets)
            subsets.append(goes)
        else:
            threshold[node] = int(goes[: column.bins].sum()) - 1
    return {
        "feature": feature.astype(np.int32),
        "threshold": threshold,
        "subsets": np.array(subsets, dtype=bool).reshape(-1, CODES),
        "missing_left": missing_left,
        "left": left,
        "right": right,
        "parent": parent,
        "leaf_of_node": np.where(feature < 0, np.cumsum(feature < 0) - 1, -1).astype(np.int32),
        "n": n[order].astype(np.int64),
    }


def _preorder(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.int64]:
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        if left[node] >= 0:
            waiting += [int(right[node]), int(left[node])]
    return np.array(order, dtype=np.int64)


DTYPES: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "threshold": np.int32,
    "missing_left": np.bool_,
    "left": np.int32,
    "right": np.int32,
    "parent": np.int32,
    "leaf_of_node": np.int32,
    "n": np.int64,
}


def check_tree(tree: PartitionTree) -> None:
    """Raise :class:`InputError` where the columns or the arrays contradict each other."""
    if not tree.columns:
        raise _broken("it has no column")
    for column in tree.columns:
        column.check()
    _check_shapes(tree)
    inside = tree.feature >= 0
    _check_links(tree, inside)
    _check_leaves(tree, inside)
    _check_splits(tree, inside)


def _broken(why: str) -> InputError:
    return InputError(
        f"The arrays of a partition tree contradict each other: {why}",
        fix="Fit the tree again, or take the file as it was saved.",
    )


def _check_shapes(tree: PartitionTree) -> None:
    m = np.shape(tree.feature)
    for name, dtype in DTYPES.items():
        array = getattr(tree, name)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != m:
            raise _broken(f"{name!r} is not one {np.dtype(dtype)} for each node")
    if len(m) != 1 or not m[0]:
        raise _broken("it has no node")
    subsets = tree.subsets
    if (
        not isinstance(subsets, np.ndarray)
        or subsets.dtype != bool
        or subsets.ndim != 2
        or subsets.shape[1] != CODES
    ):
        raise _broken(f"'subsets' is not {CODES} truth values for each split of a category")


def _check_links(tree: PartitionTree, inside: NDArray[np.bool_]) -> None:
    """Every node but the root is the child of one split before it, so that every way ends."""
    m = len(inside)
    nodes = np.flatnonzero(inside)
    children = np.concatenate([tree.left[nodes], tree.right[nodes]]).astype(np.int64)
    above = np.concatenate([nodes, nodes])
    if not np.array_equal(np.sort(children), np.arange(1, m)):
        raise _broken("a node is not the child of exactly one split")
    if (children <= above).any() or (tree.parent[children] != above).any():
        raise _broken("a child does not follow its parent")
    if (
        tree.parent[0] != -1
        or (tree.left[~inside] != -1).any()
        or (tree.right[~inside] != -1).any()
    ):
        raise _broken("the root has a parent or a leaf has a child")
    if (tree.n < 0).any() or (tree.n[tree.left] + tree.n[tree.right] != tree.n)[inside].any():
        raise _broken("the rows of two children are not those of their parent")


def _check_leaves(tree: PartitionTree, inside: NDArray[np.bool_]) -> None:
    expected = np.where(inside, -1, np.cumsum(~inside) - 1)
    if not np.array_equal(tree.leaf_of_node, expected) or (tree.feature < -1).any():
        raise _broken("the leaves are not numbered from left to right")


def _check_splits(tree: PartitionTree, inside: NDArray[np.bool_]) -> None:
    feature, threshold = tree.feature[inside], tree.threshold[inside]
    if (feature >= len(tree.columns)).any():
        raise _broken("a node splits a column that is not there")
    ends = np.array([_end(tree, column) for column in tree.columns])
    if (threshold < -1).any() or (threshold >= ends[feature]).any():
        raise _broken("a threshold lies beyond the codes of its column")
    named = np.array([column.kind == "category" for column in tree.columns])
    if (threshold[named[feature]] < 0).any():
        raise _broken("a split of a category has no subset")


def _end(tree: PartitionTree, column: Any) -> int:
    return len(tree.subsets) if column.kind == "category" else int(column.bins)
