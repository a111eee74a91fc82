"""One shallow tree as the partition: Durfee et al., Algorithm 1.

The paper grows the tree on the model's training rows and fits the maps on others (decision
D102); so does kdcal where training rows are given. Where they are not, the calibration set has to
do both. It is cut into five parts: each part grows a tree, the other four fit the maps of its
regions, and the five answers are averaged. No row then serves a tree and its maps at once, and
every row serves both in turn. Test log loss on simulated regions (8 inputs and a category, depth
3, mean over 20, 20, 20, 8 and 2 draws; without regions 0.6150, 0.6137, 0.6128, 0.6130, 0.6118):

======================================  ======  ======  ======  =======  ========
calibration rows                        300     1,000   3,000   10,000   100,000
======================================  ======  ======  ======  =======  ========
a fifth grows, four fifths fit (taken)  0.6128  0.6099  0.6093  0.6072   0.5999
four fifths grow, a fifth fits          0.6167  0.6118  0.6107  0.6080   0.5994
one half grows, the other fits, both    0.6181  0.6123  0.6105  0.6071   0.5992
one half grows, the other fits, once    0.6260  0.6180  0.6137  0.6083   0.5992
all rows do both                        0.6391  0.6190  0.6114  0.6083   0.5994
======================================  ======  ======  ======  =======  ========

**Pruning.** How fine a partition should be is found by cross-validation (section 4.2).
Every node of a tree is taken as a region in turn and its map judged on rows that the map was not
fitted on. Of all subtrees, the one whose leaves have the smallest sum of held-out log losses is
left. The tree itself must come from other rows than these.

Partial pooling has done most of this already, so it is not the default: trees of depth 5 had a
log loss of 0.3171 on adult and 0.4361 on credit default (an overfitted network, test rows, three
seeds), and pruned 0.3174 and 0.4359. What is gained is a partition that is shorter to read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.regions.region_layers import (
    FitRows,
    Layer,
    PartitionFit,
    fit_partition,
    hierarchy_of,
    region_fits,
    region_notes,
)
from kdcal_core.calibration.regions.region_maps import fit_maps
from kdcal_core.calibration.regions.scores_and_hierarchy import Scores
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.splits import stratified_folds
from kdcal_core.statistics import log_losses

if TYPE_CHECKING:
    from kdcal_core.partition.tree import BinnedInputs, PartitionTree


FOLDS = 5


def cut_back(settings: Any, rows: FitRows, tree: Any) -> Any:
    """The subtree with the smallest cross-validated log loss, where the settings ask for it.

    Parameters
    ----------
    settings : HeterogeneousCalibrator
        Its ``prune`` says whether trees are cut back.
    rows : FitRows
        Those that the regions' maps will be fitted on; the tree was grown on others.
    tree : PartitionTree

    Returns
    -------
    PartitionTree
        On ties the smaller one.
    """
    from kdcal_core.partition.tree import prune_tree

    if not settings.prune or tree.n_leaves == 1 or len(rows.y) < FOLDS:
        return tree
    return prune_tree(tree, held_out_losses(settings, rows, tree))


def held_out_losses(settings: Any, rows: FitRows, tree: Any) -> FloatArray:
    """Cross-validated log loss of every node of a tree if it were a region, (m,).

    Summed over the node's rows, which are those of its children too, so that nodes compare.
    """
    from kdcal_core.partition.tree import bin_inputs

    binned = bin_inputs(rows.X, like=tree.columns)
    fold = stratified_folds(rows.y, FOLDS, settings.random_state)
    losses = np.zeros(tree.n_nodes)
    for depth in range(int(tree.depth.max()) + 1):
        kept = np.flatnonzero(tree.depth <= depth)
        cut = tree.pruned(kept)
        leaf, hierarchy = cut.apply(binned), hierarchy_of(cut)
        found = np.empty(len(leaf))
        for out in (fold == i for i in range(FOLDS)):
            fit = fit_maps(
                settings.calibrator,
                Scores(rows.proba[~out], rows.y[~out], rows.weight[~out]),
                leaf[~out],
                hierarchy,
                pooling=settings.pooling,
            )
            found[out] = log_losses(fit.maps.predict(rows.proba[out], leaf[out]), rows.y[out])
        # a tree and what is cut from it are both numbered from the root in preorder
        node = kept[cut.nodes_of_leaves]
        losses[node] = np.bincount(leaf, rows.weight * found, minlength=cut.n_leaves)
    return losses


PARTS = 5

# (inputs, rows to grow on, fewest rows in a leaf) -> tree
Grow = Callable[["BinnedInputs", IntArray, int], "PartitionTree"]


def fit_tree(settings: Any, rows: FitRows) -> PartitionFit:
    """A tree that separates the classes, with a map in each of its leaves."""
    from kdcal_core.partition.tree import Gini, bin_inputs, grow_tree

    n_classes, depth = rows.proba.shape[1], settings.depth
    if rows.X_partition is None or rows.y_partition is None:
        criterion = Gini(class_target(rows.y, n_classes), rows.weight)
        return fit_in_parts(
            settings,
            rows,
            lambda inputs, which, least: grow_tree(
                inputs, criterion, max_depth=depth, min_rows=least, rows=which
            ),
        )
    grown_on = bin_inputs(rows.X_partition)
    least = min_rows_of(settings.min_rows, len(rows.y), depth)
    tree = grow_tree(
        grown_on,
        Gini(class_target(rows.y_partition, n_classes)),
        max_depth=depth,
        # a leaf of the training rows should hold enough of the calibration rows
        min_rows=max(1, round(least * len(grown_on) / len(rows.y))),
    )
    tree = cut_back(settings, rows, tree)
    return fit_partition(settings, rows, tree, _uncut([tree], least))


def fit_in_parts(settings: Any, rows: FitRows, grow: Grow) -> PartitionFit:
    """Each fifth of the calibration rows grows a tree whose maps the other four fifths fit.

    Parameters
    ----------
    settings : HeterogeneousCalibrator
    rows : FitRows
    grow : callable
        Grows a tree on some of the rows.
    """
    from kdcal_core.partition.tree import bin_inputs

    n = len(rows.y)
    inputs = bin_inputs(rows.X)
    least = min_rows_of(settings.min_rows, n, settings.depth)
    parts = min(PARTS, n)
    fold = stratified_folds(rows.y, parts, settings.random_state) if n > 1 else np.zeros(1, int)
    layers: list[Layer] = []
    regions: list[Any] = []
    for part in range(parts):
        rows.report(part / parts, f"Partition {part + 1} of {parts}")
        growing = np.flatnonzero(fold == part)
        fitting = np.flatnonzero(fold != part) if n > 1 else growing
        tree = grow(inputs, growing, max(1, round(least * len(growing) / n)))
        if settings.prune:
            tree = cut_back(settings, rows.take(fitting), tree)
        scores = Scores(rows.proba[fitting], rows.y[fitting], rows.weight[fitting])
        leaf = np.asarray(tree.apply(inputs), dtype=np.int64)[fitting]
        hierarchy = hierarchy_of(tree)
        fit = fit_maps(settings.calibrator, scores, leaf, hierarchy, pooling=settings.pooling)
        layers.append(Layer(tree, fit.maps))
        regions += region_fits(fit, scores, leaf, hierarchy.n_regions, tree.words, part)
    why = (
        "No rows of the model's training set were given"
        if rows.X_partition is None
        else "The model's training rows are left aside, as its scores rank better on them"
    )
    how = (
        f"{parts} trees, each grown on one part of the {n:,} calibration rows and fitted on the "
        "others, are averaged"
        if parts > 1
        else "one tree is grown and fitted on the only calibration row"
    )
    note = (
        f"{why}: {how}.",
        *_uncut([layer.partition for layer in layers], least),
    )
    return PartitionFit(tuple(layers), tuple(regions), (*note, *region_notes(tuple(regions))))


def class_target(y: IntArray, n_classes: int) -> NDArray[Any]:
    """What a tree separates: 0 or 1 for two classes, else (n, K) indicators."""
    return y if n_classes == 2 else (y[:, None] == np.arange(n_classes)).astype(np.float64)


def min_rows_of(min_rows: int | None, n: int, max_depth: int) -> int:
    """Smallest number of calibration rows in a region: as asked, or by rule.

    The rule is an eighth of what a full tree's leaf would hold, n / 2^(depth + 3), and at least
    40. Pooling carries the small ones, so that it matters little: a least number of 20 to 100 and
    a sixteenth to a half moved the log loss of the table above by 0.0008 at most.
    """
    return int(min_rows) if min_rows is not None else max(40, n // 2 ** (max_depth + 3))


def _uncut(trees: list[Any], least: int) -> tuple[str, ...]:
    """A sentence where nothing was cut."""
    if any(tree.n_leaves > 1 for tree in trees):
        return ()
    return (
        "The inputs were not cut into regions, so all rows share one map: no cut parts the "
        f"classes and leaves {least:,} rows on both sides. With {2 * least:,} rows or more, or a "
        "smaller least number of rows, a cut is possible.",
    )
