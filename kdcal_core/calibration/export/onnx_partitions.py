"""The region of each row, computed inside an ONNX graph from the codes of its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.export.onnx_nodes import Nodes
from kdcal_core.calibration.regions.columns import ColumnPartition

if TYPE_CHECKING:
    from kdcal_core.partition.tree import InputColumn, PartitionTree

# Column -> its codes, (n, 1) int64.
Codes = Callable[["InputColumn"], str]


def columns_read(partitions: Sequence[Any]) -> tuple[InputColumn, ...]:
    """The columns that partitions read: those that a tree's nodes split, in their order."""
    first = partitions[0]
    if isinstance(first, ColumnPartition):
        return first.columns
    return tuple(first.columns[feature] for feature in _split(partitions))


def regions(nodes: Nodes, partitions: Sequence[Any], codes: Codes, start: str) -> str:
    """The region of each row in each of L partitions, (n, L) int64.

    Regions are counted on from one partition to the next.

    Parameters
    ----------
    partitions : sequence of PartitionTree, or of one ColumnPartition
    codes : callable
    start : str
        Zeros, (n, 1) int64.
    """
    if isinstance(partitions[0], ColumnPartition):
        return _of_columns(nodes, partitions[0], codes, start)
    return _of_trees(nodes, partitions, codes, start)


def _of_trees(nodes: Nodes, trees: Sequence[PartitionTree], codes: Codes, start: str) -> str:
    """All trees together, level by level; a leaf is its own child."""
    first_node = np.cumsum([0, *(tree.n_nodes for tree in trees)])
    first_leaf = np.cumsum([0, *(tree.n_leaves for tree in trees)])
    inside = np.concatenate([tree.feature >= 0 for tree in trees])

    def joined(name: str, first: NDArray[np.int64]) -> NDArray[np.int64]:
        parts = zip(trees, first.tolist(), strict=False)
        return np.concatenate([getattr(tree, name).astype(np.int64) + at for tree, at in parts])

    def child(side: str) -> str:
        own = np.arange(len(inside))
        return nodes.constant(np.where(inside, joined(side, first_node), own))

    node = nodes.add(start, first_node[None, :-1])
    split = _split(trees)
    if split:
        read = columns_read(trees)
        table = nodes.columns([codes(column) for column in read])
        place = np.searchsorted(split, np.concatenate([tree.feature for tree in trees]))
        column_of, left, right = nodes.constant(place), child("left"), child("right")
        width = 1 + max(column.missing_code for column in read)
        sides = np.concatenate([tree.goes_left[:, :width] for tree in trees])
        goes_left = nodes.constant(sides.ravel())
        for _ in range(max(int(tree.depth.max()) for tree in trees)):
            code = nodes.node("GatherElements", table, nodes.look_up(column_of, node), axis=1)
            goes = nodes.look_up(goes_left, nodes.add(nodes.mul(node, np.array(width)), code))
            node = nodes.node("Where", goes, nodes.look_up(left, node), nodes.look_up(right, node))
    return nodes.look_up(nodes.constant(joined("leaf_of_node", first_leaf)), node)


def _split(trees: Sequence[PartitionTree]) -> list[int]:
    return sorted({int(feature) for tree in trees for feature in tree.feature if feature >= 0})


def _of_columns(nodes: Nodes, partition: ColumnPartition, codes: Codes, start: str) -> str:
    """Column by column: which of the known beginnings of a combination a row has so far."""
    so_far, known, n_known = start, np.zeros(len(partition.codes), dtype=np.int64), 1
    for at, column in enumerate(partition.columns):
        width = column.missing_code + 1
        beginnings, ends = np.unique(known * width + partition.codes[:, at], return_inverse=True)
        # one more stands for all that are not known, and leads to its like
        table = np.full((n_known + 1) * width, len(beginnings))
        table[beginnings] = np.arange(len(beginnings))
        so_far = nodes.look_up(
            nodes.constant(table),
            nodes.add(nodes.mul(so_far, np.array(width)), codes(column)),
        )
        known, n_known = ends, len(beginnings)
    region = np.full(n_known + 1, partition.n_leaves - 1)
    region[known] = np.arange(len(known))
    return nodes.look_up(nodes.constant(region), so_far)
