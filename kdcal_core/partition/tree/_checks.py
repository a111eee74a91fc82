"""A tree's arrays, checked before any kernel reads them: files are hostile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition.tree.columns import CODES

if TYPE_CHECKING:
    from kdcal_core.partition.tree.tree import PartitionTree

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
