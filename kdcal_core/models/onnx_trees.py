"""Tree ensembles of ``ai.onnx.ml``: checks of their nodes, and the leaf of each row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import IntArray
from kdcal_core.errors import InputError
from kdcal_core.models.output_meaning import blocks

TREE_OPS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")
_LEAF = -1
_COMPARE: tuple[Callable[..., NDArray[np.bool_]], ...] = (
    np.less_equal,
    np.less,
    np.greater_equal,
    np.greater,
    np.equal,
    np.not_equal,
)
_MODES = {
    b"LEAF": _LEAF,
    b"BRANCH_LEQ": 0,
    b"BRANCH_LT": 1,
    b"BRANCH_GTE": 2,
    b"BRANCH_GT": 3,
    b"BRANCH_EQ": 4,
    b"BRANCH_NEQ": 5,
}
# Maximum number of pairs of a row and a tree that descend together.
_BLOCK_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class TreeTable:
    """All nodes of an ensemble in one table, in which children are positions.

    Attributes
    ----------
    source : str
        Name of the tensor that the trees read.
    roots : (n_trees,) int64
        Position of each tree's root.
    mode : (n_nodes,) int64
        Index into the six comparisons, or -1 for a leaf.
    feature, yes, no : (n_nodes,) int64
        Feature compared, and the children where the comparison holds and where it does not.
    value : (n_nodes,) float32 or float64
        Threshold of the comparison, in the precision in which the runtime compares.
    missing_yes : (n_nodes,) bool
        Whether NaN goes to ``yes``, whatever the comparison.
    leaf_id : (n_nodes,) int32
        Id of the node inside its tree, as in the file.
    """

    source: str
    roots: IntArray
    mode: IntArray
    feature: IntArray
    value: NDArray[np.floating[Any]]
    yes: IntArray
    no: IntArray
    missing_yes: NDArray[np.bool_]
    leaf_id: NDArray[np.int32]

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    def check_features(self, n_features: int) -> None:
        """Refuse a split on a missing feature, for which the runtime would read beyond the row.

        Raises
        ------
        InputError
        """
        used = self.feature[self.mode != _LEAF]
        if used.size and (used.min() < 0 or used.max() >= n_features):
            worst = used.min() if used.min() < 0 else used.max()
            raise _broken(f"a tree splits on feature {worst:,} of {n_features:,}")

    def apply(self, X: NDArray[Any]) -> NDArray[np.int32]:
        """Leaf of every row in every tree.

        Parameters
        ----------
        X : (n, n_features)
            Input of the trees, compared in the precision of ``value`` as in the runtime.

        Returns
        -------
        (n, n_trees) int32
        """
        rows = np.asarray(X).astype(self.value.dtype)
        leaves = np.empty((len(rows), self.n_trees), dtype=np.int32)
        for block in blocks(len(rows), max(1, _BLOCK_CELLS // self.n_trees)):
            leaves[block] = self.leaf_id[self._descend(rows[block])]
        return leaves

    def _descend(self, X: NDArray[Any]) -> IntArray:
        """Position of the leaf, (n, n_trees); pairs that have reached a leaf drop out."""
        at = np.tile(self.roots, len(X))
        walking = np.flatnonzero(self.mode[at] != _LEAF)
        while walking.size:
            node = at[walking]
            x = X[walking // self.n_trees, self.feature[node]]
            at[walking] = np.where(self._goes_yes(node, x), self.yes[node], self.no[node])
            walking = walking[self.mode[at[walking]] != _LEAF]
        return at.reshape(len(X), self.n_trees)

    def _goes_yes(self, node: IntArray, x: NDArray[Any]) -> NDArray[np.bool_]:
        mode, value = self.mode[node], self.value[node]
        goes = np.zeros(len(node), dtype=bool)
        for kind in np.unique(mode):
            here = mode == kind
            goes[here] = _COMPARE[kind](x[here], value[here])
        return np.asarray(goes | (self.missing_yes[node] & np.isnan(x)))


def read_trees(node: Any) -> TreeTable:
    """Read and check the trees of a ``TreeEnsemble*`` node.

    Parameters
    ----------
    node : onnx.NodeProto

    Returns
    -------
    TreeTable

    Raises
    ------
    InputError
        Arrays of unequal length, a child or class out of range, a node without a parent or with
        two, a cycle, or an unknown kind of split.
    """
    read = _read_v5 if node.op_type == "TreeEnsemble" else _read_v3
    try:
        table = read(node, _fields(node))
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise _broken("an array is of the wrong type") from error
    _check_shape(table)
    return table


def _read_v3(node: Any, fields: dict[str, Any]) -> TreeTable:
    tree, local = _ints(fields, "nodes_treeids"), _ints(fields, "nodes_nodeids")
    value = _floats(fields, "nodes_values")
    n = len(tree)
    if n == 0:
        raise _broken("it has no nodes")
    modes = list(fields.get("nodes_modes", []))
    columns: dict[str, Any] = {
        "nodes_nodeids": local,
        "nodes_featureids": _ints(fields, "nodes_featureids"),
        "nodes_values": value,
        "nodes_modes": modes,
        "nodes_truenodeids": _ints(fields, "nodes_truenodeids"),
        "nodes_falsenodeids": _ints(fields, "nodes_falsenodeids"),
        "nodes_missing_value_tracks_true": _optional(fields, "nodes_missing_value_tracks_true", n),
        "nodes_hitrates": _optional(fields, "nodes_hitrates", n),
    }
    _check_lengths(columns, n)
    unknown = set(modes) - set(_MODES)
    if unknown:
        raise _broken(f"it has a split of the unknown kind {min(unknown)!r}")
    mode = np.array([_MODES[m] for m in modes], dtype=np.int64)
    order, keys = _sorted_keys(tree, local)
    branch = mode != _LEAF
    yes = _positions(order, keys, tree, columns["nodes_truenodeids"], branch)
    no = _positions(order, keys, tree, columns["nodes_falsenodeids"], branch)
    _check_targets(node, fields, order, keys)
    is_child = np.zeros(n, dtype=bool)
    is_child[yes[branch]] = True
    is_child[no[branch]] = True
    roots = np.flatnonzero(~is_child)
    _, first = np.unique(tree, return_index=True)
    if not np.array_equal(np.sort(tree[roots]), np.sort(tree[first])):
        raise _broken("a tree has no root, or more than one")
    # Trees in the order in which they appear in the file.
    return TreeTable(
        source=node.input[0],
        roots=roots[np.argsort(_rank(tree, first)[roots], kind="stable")],
        mode=mode,
        feature=columns["nodes_featureids"],
        value=value,
        yes=yes,
        no=no,
        missing_yes=columns["nodes_missing_value_tracks_true"] != 0,
        leaf_id=_int32(local),
    )


def _rank(tree: IntArray, first: IntArray) -> IntArray:
    """Position of each node's tree in order of first appearance."""
    names = tree[first]
    ranks = np.argsort(np.argsort(first))
    return np.asarray(ranks[np.searchsorted(names, tree)], dtype=np.int64)


def _read_v5(node: Any, fields: dict[str, Any]) -> TreeTable:
    feature, value = _ints(fields, "nodes_featureids"), _floats(fields, "nodes_splits")
    roots, n = _ints(fields, "tree_roots"), len(feature)
    leaf_target, leaf_weight = _ints(fields, "leaf_targetids"), _floats(fields, "leaf_weights")
    n_leaves = len(leaf_target)
    columns: dict[str, Any] = {
        "nodes_splits": value,
        "nodes_modes": _array(fields, "nodes_modes").astype(np.int64),
        "nodes_truenodeids": _ints(fields, "nodes_truenodeids"),
        "nodes_trueleafs": _ints(fields, "nodes_trueleafs"),
        "nodes_falsenodeids": _ints(fields, "nodes_falsenodeids"),
        "nodes_falseleafs": _ints(fields, "nodes_falseleafs"),
        "nodes_missing_value_tracks_true": _optional(fields, "nodes_missing_value_tracks_true", n),
        "nodes_hitrates": _optional(fields, "nodes_hitrates", n),
    }
    _check_lengths(columns, n)
    _check_lengths({"leaf_weights": leaf_weight}, n_leaves)
    _check_range("leaf_targetids", leaf_target, fields.get("n_targets", 0))
    if not len(roots):
        raise _broken("it has no nodes")
    _check_range("tree_roots", roots, n)
    _check_range("nodes_modes", columns["nodes_modes"], len(_COMPARE))
    yes = _child_v5(columns, "true", n, n_leaves)
    no = _child_v5(columns, "false", n, n_leaves)
    # The format has no tree of one leaf, so writers send both answers of a root to the same leaf.
    # One of them then gets a copy, so that every node has one parent.
    twin = np.flatnonzero(yes == no)
    if not np.isin(twin, roots).all():
        raise _broken("both answers of a split lead to the same node")
    no = no.copy()
    no[twin] = n + n_leaves + np.arange(len(twin))
    leaf = np.concatenate([np.arange(n_leaves), yes[twin] - n])
    pad = np.zeros(len(leaf), dtype=np.int64)
    missing = columns["nodes_missing_value_tracks_true"]
    return TreeTable(
        source=node.input[0],
        roots=roots,
        mode=np.concatenate([columns["nodes_modes"], np.full(len(leaf), _LEAF)]),
        feature=np.concatenate([feature, pad]),
        value=np.concatenate([value, np.zeros(len(leaf), dtype=value.dtype)]),
        yes=np.concatenate([yes, pad]),
        no=np.concatenate([no, pad]),
        missing_yes=np.concatenate([missing, pad]) != 0,
        leaf_id=_int32(np.concatenate([np.full(n, -1), leaf])),
    )


def _child_v5(columns: dict[str, Any], answer: str, n: int, n_leaves: int) -> IntArray:
    child = columns[f"nodes_{answer}nodeids"]
    is_leaf = columns[f"nodes_{answer}leafs"] != 0
    _check_range(f"nodes_{answer}nodeids", child[~is_leaf], n)
    _check_range(f"nodes_{answer}nodeids", child[is_leaf], n_leaves)
    return np.asarray(np.where(is_leaf, child + n, child), dtype=np.int64)


def _check_shape(table: TreeTable) -> None:
    """Check that each node is reached exactly once: no cycle, no second parent, no orphan."""
    n = len(table.mode)
    visits = np.zeros(n, dtype=np.int64)
    level = table.roots
    while level.size:
        np.add.at(visits, level, 1)
        if visits[level].max() > 1:
            raise _broken("a node is reached twice (a cycle, or two parents)")
        inner = level[table.mode[level] != _LEAF]
        level = np.concatenate([table.yes[inner], table.no[inner]])
    if not visits.all():
        raise _broken("a node is never reached from a root")


def _sorted_keys(tree: IntArray, local: IntArray) -> tuple[IntArray, NDArray[Any]]:
    """Order of the nodes by (tree, node), and the pairs in that order."""
    keys = _pairs(tree, local)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any():
        raise _broken("a tree holds two nodes with the same id")
    return order, keys


def _pairs(tree: IntArray, local: IntArray) -> NDArray[Any]:
    limit = 1 << 31
    for what, ids in (("tree", tree), ("node", local)):
        if ids.size and (ids.min() < 0 or ids.max() >= limit):
            raise _broken(f"a {what} id is out of range")
    return tree * limit + local


def _find(order: IntArray, keys: NDArray[Any], wanted: NDArray[Any], what: str) -> IntArray:
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    if (keys[at] != wanted).any():
        raise _broken(f"{what} names a node that does not exist")
    return np.asarray(order[at], dtype=np.int64)


def _positions(
    order: IntArray, keys: NDArray[Any], tree: IntArray, child: IntArray, branch: NDArray[np.bool_]
) -> IntArray:
    positions = np.zeros(len(tree), dtype=np.int64)
    wanted = _pairs(tree[branch], child[branch])
    positions[branch] = _find(order, keys, wanted, "a child index out of range")
    return positions


def _check_targets(node: Any, fields: dict[str, Any], order: IntArray, keys: NDArray[Any]) -> None:
    """Check leaf weights: arrays of equal length, at existing nodes, for existing classes."""
    classifier = node.op_type == "TreeEnsembleClassifier"
    part = "class" if classifier else "target"
    ids = _ints(fields, f"{part}_ids")
    columns: dict[str, Any] = {
        f"{part}_treeids": _ints(fields, f"{part}_treeids"),
        f"{part}_nodeids": _ints(fields, f"{part}_nodeids"),
        f"{part}_weights": _floats(fields, f"{part}_weights"),
    }
    _check_lengths(columns, len(ids))
    pairs = _pairs(columns[f"{part}_treeids"], columns[f"{part}_nodeids"])
    _find(order, keys, pairs, f"a leaf weight ({part}_nodeids)")
    if classifier:
        labels = fields.get("classlabels_strings") or fields.get("classlabels_int64s") or []
        _check_range("class_ids", ids, len(labels))
    else:
        _check_range("target_ids", ids, fields.get("n_targets", 1))


def _fields(node: Any) -> dict[str, Any]:
    from onnx import helper

    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def _array(fields: dict[str, Any], name: str) -> NDArray[Any]:
    from onnx import numpy_helper

    if name not in fields:
        return np.zeros(0)
    try:
        return np.asarray(numpy_helper.to_array(fields[name])).reshape(-1)
    except (ValueError, TypeError) as error:
        raise _broken(f"its array {name!r} cannot be read") from error


def _ints(fields: dict[str, Any], name: str) -> IntArray:
    return np.asarray(fields.get(name, []), dtype=np.int64)


def _floats(fields: dict[str, Any], name: str) -> NDArray[np.floating[Any]]:
    """A float attribute, or its tensor form, the only one with double precision."""
    for tensor in (f"{name}_as_tensor", name):
        if tensor in fields and hasattr(fields[tensor], "data_type"):
            values = _array(fields, tensor)
            return values.astype(np.float64 if values.dtype == np.float64 else np.float32)
    return np.asarray(fields.get(name, []), dtype=np.float32)


def _optional(fields: dict[str, Any], name: str, n: int) -> NDArray[Any]:
    value = fields.get(name, fields.get(f"{name}_as_tensor"))
    if value is None:
        return np.zeros(n, dtype=np.int64)
    array = _array(fields, name) if hasattr(value, "data_type") else np.asarray(value)
    return array if array.size else np.zeros(n, dtype=np.int64)


def _check_lengths(columns: dict[str, Any], n: int) -> None:
    for name, column in columns.items():
        if len(column) != n:
            raise _broken(f"its array {name!r} has {len(column):,} entries, expected {n:,}")


def _check_range(name: str, ids: IntArray, n: int) -> None:
    if ids.size and (ids.min() < 0 or ids.max() >= n):
        worst = ids.min() if ids.min() < 0 else ids.max()
        raise _broken(f"its array {name!r} holds {worst:,}, outside 0 to {n - 1:,}")


def _int32(ids: IntArray) -> NDArray[np.int32]:
    return ids.astype(np.int32)


def _broken(what: str) -> InputError:
    return InputError(
        f"The file's tree ensemble is broken: {what}",
        fix="Export the model again; a runtime could crash on this file.",
    )
