"""Pruning by losses measured on rows that the tree was not grown on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.partition.tree.tree import PartitionTree


def prune_tree(tree: PartitionTree, loss: NDArray[Any], *, penalty: float = 0.0) -> PartitionTree:
    """The subtree whose leaves have the smallest sum of losses.

    Parameters
    ----------
    tree : PartitionTree of m nodes
    loss : (m,)
        Sum, over the rows of each node that were held out, of their losses if the node were a
        leaf. A cross-validated loss is the sum over the folds.
    penalty : float, not below zero
        Added for every leaf.

    Returns
    -------
    PartitionTree
        On ties the smaller tree.

    Raises
    ------
    InputError
        If there is not one finite loss for each node.

    Examples
    --------
    >>> from kdcal_core.partition.tree import Gini, bin_inputs, grow_tree
    >>> binned = bin_inputs(np.arange(4.0)[:, None])
    >>> tree = grow_tree(binned, Gini(np.array([0, 0, 1, 1])), min_rows=1)
    >>> prune_tree(tree, np.array([2.0, 1.5, 0.5])).n_leaves
    1
    >>> prune_tree(tree, np.array([2.0, 1.0, 0.5])).n_leaves
    2
    """
    losses = np.asarray(loss, dtype=np.float64)
    if losses.shape != (tree.n_nodes,) or not np.isfinite(losses).all() or not penalty >= 0:
        raise InputError(
            f"Pruning needs a finite loss for each of {tree.n_nodes} nodes and a penalty of 0 "
            f"or more",
            fix="Compute the loss of every node as if it were a leaf.",
        )
    best = losses + penalty
    split = np.zeros(tree.n_nodes, dtype=bool)
    for node in np.flatnonzero(tree.feature >= 0)[::-1]:
        below = best[tree.left[node]] + best[tree.right[node]]
        if below < best[node]:
            best[node], split[node] = below, True
    stays = np.ones(tree.n_nodes, dtype=bool)
    for node in range(1, tree.n_nodes):
        stays[node] = stays[tree.parent[node]] and split[tree.parent[node]]
    return tree.pruned(np.flatnonzero(stays))
