"""One shallow tree as the partition, whose splits separate the classes or raise the AUROC.

The first is Durfee et al., Algorithm 1. The paper grows the tree on the model's training rows and
fits the maps on others. kdcal does the same if training rows are given. If not, the calibration set
is used for both. It is divided into five parts: each part grows a tree, the other four fit the maps
of its regions, and the five answers are averaged. No row is used for both a tree and its maps, and
every row is used for both in turn. Test log loss on simulated regions (8 inputs and a category,
depth 3, mean over 20, 20, 20, 8 and 2 draws; without regions 0.6150, 0.6137, 0.6128, 0.6130,
0.6118):

======================================  ======  ======  ======  =======  ========
calibration rows                        300     1,000   3,000   10,000   100,000
======================================  ======  ======  ======  =======  ========
a fifth grows, four fifths fit (taken)  0.6128  0.6099  0.6093  0.6072   0.5999
four fifths grow, a fifth fits          0.6167  0.6118  0.6107  0.6080   0.5994
one half grows, the other fits, both    0.6181  0.6123  0.6105  0.6071   0.5992
one half grows, the other fits, once    0.6260  0.6180  0.6137  0.6083   0.5992
all rows do both                        0.6391  0.6190  0.6114  0.6083   0.5994
======================================  ======  ======  ======  =======  ========

**Pruning.** The size of a partition is chosen by cross-validation (section 4.2). Every node of a
tree is treated as a region, and its map is judged on rows that the map was not fitted on. The
result is the subtree whose leaves have the smallest sum of held-out log losses. The tree itself
must come from other rows.

Pruning is not the default, because partial pooling has almost the same effect: trees of depth 5 had
a log loss of 0.3171 on adult and 0.4361 on credit default (an overfitted network, test rows, three
seeds), and pruned trees 0.3174 and 0.4359. The gain is a partition that is shorter to read.

**Splits that raise the area under the ROC curve** (Durfee et al., section 12, whose text is lost)
are derived here. Divide the rows into cells, which are regions crossed with bins of the score. Cell
i holds the shares p_i of all positives and n_i of all negatives. A calibration by region gives
every cell one value T_i, and its AUROC (Definition 4.2) is

    AUROC = sum over pairs i, j of  p_i n_j ([T_i > T_j] + [T_i = T_j] / 2).

An unordered pair of cells adds at most max(p_i n_j, p_j n_i). T = p / (p + n), the zero-safe
likelihood ratio of Lemma 9.1, reaches this for all pairs at once. Since max(a, b) is (a + b + |a -
b|) / 2,

    calibrated AUROC = 1/2 + 1/2 sum over i < j of |p_i n_j - p_j n_i|,

with half the area between the two outer ROC curves of the cells ordered by T. Splitting a cell c
into l and r replaces |c x j| by |l x j| + |r x j| >= |c x j| for each other cell j (x is the cross
product of the vectors (p, n)) and adds |l x r|, so partitioning can only improve (the remark under
Lemma 4.3).

**The gain of a split** is therefore the calibrated AUROC after it less that before it. A node and
the rest of the rows are two regions, and its split makes three:

    gain = AUROC({left, right, rest}) - AUROC({node, rest}).

The rest counts as one region, so the tree does not depend on the order in which nodes are split. At
the root, where there is no rest, the gain is the exact lift of the whole partition. Sums over few
rows are too optimistic (every split of pure noise has a gain above zero), so there are few bins: of
4, 8 and 16, no number was better than 8 on both simulated regions and real tables (adult, credit
default).

On simulated regions these trees were better than those of the Gini index (log loss 0.573 against
0.580 with 3,000 rows). On adult and credit default they were a little worse (0.330 against 0.327,
0.443 against 0.437), because this gain needs more rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.calibrator_base import top_label
from kdcal_core.calibration.regions.region_layers import (
    FitRows,
    Layer,
    PartitionFit,
    fit_maps,
    fit_partition,
    hierarchy_of,
    region_fits,
    region_notes,
)
from kdcal_core.calibration.regions.scores_and_hierarchy import Scores, logit_of
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import log_losses

if TYPE_CHECKING:
    from kdcal_core.partition.tree import BinnedInputs, PartitionTree


FOLDS = 5


def cut_back(settings: Any, rows: FitRows, tree: Any) -> Any:
    """The subtree with the smallest cross-validated log loss, if the settings prune.

    Parameters
    ----------
    settings : HeterogeneousCalibrator
        Its ``prune`` says whether trees are pruned.
    rows : FitRows
        Rows on which the regions' maps will be fitted; the tree was grown on others.
    tree : PartitionTree

    Returns
    -------
    PartitionTree
        The smaller one on ties.
    """
    from kdcal_core.partition.tree import prune_tree

    if not settings.prune or tree.n_leaves == 1 or len(rows.y) < FOLDS:
        return tree
    return prune_tree(tree, held_out_losses(settings, rows, tree))


def held_out_losses(settings: Any, rows: FitRows, tree: Any) -> FloatArray:
    """Cross-validated log loss of every node of a tree as a region, (m,).

    It is summed over the node's rows, so a node compares with the sum of its children.
    """
    from kdcal_core.partition.tree import bin_inputs

    binned = bin_inputs(rows.X, like=tree.columns)
    fold = rows.folds(FOLDS, settings.random_state)
    losses = np.zeros(tree.n_nodes)
    for depth in range(int(tree.depth.max()) + 1):
        kept = np.flatnonzero(tree.depth <= depth)
        cut = tree.pruned(kept)
        leaf, hierarchy = cut.apply(binned), hierarchy_of(cut)
        found = np.empty(len(leaf))
        for out in (fold == i for i in range(int(fold.max()) + 1)):
            fit = fit_maps(
                settings.calibrator,
                Scores(rows.proba[~out], rows.y[~out], rows.weight[~out]),
                leaf[~out],
                hierarchy,
                pooling=settings.pooling,
            )
            found[out] = log_losses(fit.maps.predict(rows.proba[out], leaf[out]), rows.y[out])
        # a tree and its subtrees are numbered from the root in preorder
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
    least = min_rows_of(settings.min_rows, len(rows.y), depth, rows.effect)
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
    """Grow trees on each fifth of the calibration rows, with maps fitted on the other four fifths.

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
    least = min_rows_of(settings.min_rows, n, settings.depth, rows.effect)
    fold = rows.folds(PARTS, settings.random_state) if n > 1 else np.zeros(1, int)
    parts = int(fold.max()) + 1
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
        else "The model's training rows are not used, because its scores rank better on them"
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
    """The target of a tree: 0 or 1 for two classes, else (n, K) indicators."""
    return y if n_classes == 2 else (y[:, None] == np.arange(n_classes)).astype(np.float64)


def min_rows_of(min_rows: int | None, n: int, max_depth: int, effect: float = 1.0) -> int:
    """Smallest number of calibration rows in a region, as given or by the default rule.

    The rule is an eighth of the rows in a leaf of a full tree, n / 2^(depth + 3), and at least 40.
    It matters little, because pooling supports small regions: least numbers of 20 to 100, and
    shares from a sixteenth to a half, changed the log loss of the table above by at most 0.0008.
    Dependent rows, which count ``effect`` times fewer, must be as many times more than 40.
    """
    least = round(40 * effect)
    return int(min_rows) if min_rows is not None else max(least, n // 2 ** (max_depth + 3))


def _uncut(trees: list[Any], least: int) -> tuple[str, ...]:
    """A note if the inputs were not divided."""
    if any(tree.n_leaves > 1 for tree in trees):
        return ()
    return (
        "The inputs were not divided into regions, so all rows share one map: no split separates "
        f"the classes with {least:,} rows on both sides. With {2 * least:,} rows or more, or a "
        "smaller least number of rows, a split is possible.",
    )


if TYPE_CHECKING:
    from kdcal_core.partition.tree import BinnedInputs, PartitionTree, RowStats

BINS = 8
# A smaller lift is rounding in two sums.
ROUNDING = 1e-12


def calibrated_auc(positive: Any, negative: Any) -> FloatArray:
    """AUROC of cells ordered by likelihood ratio (Durfee et al., Definition 4.2, Lemma 9.1).

    Parameters
    ----------
    positive, negative : (..., m) arrays
        Weight of the positives and of the negatives in each cell, at least 0. Leading dimensions
        are separate partitions.

    Returns
    -------
    (...) array in [0.5, 1]
        0.5 if there are no positives or no negatives.

    Examples
    --------
    Two regions of one score each, with three positives to one negative and the other way round:

    >>> calibrated_auc([3, 1], [1, 3]).item()
    0.75
    """
    p, n = np.broadcast_arrays(np.asarray(positive, float), np.asarray(negative, float))
    total = p + n
    ratio = np.divide(p, total, out=np.zeros_like(total), where=total > 0)
    order = np.argsort(-ratio, axis=-1, kind="stable")
    p, n = np.take_along_axis(p, order, axis=-1), np.take_along_axis(n, order, axis=-1)
    # cells of equal ratio have p_i n_j = p_j n_i, so their order does not matter
    won = (n * (np.cumsum(p, axis=-1) - p / 2)).sum(axis=-1)
    pairs = p.sum(axis=-1) * n.sum(axis=-1)
    return np.asarray(np.divide(won, pairs, out=np.full(np.shape(won), 0.5), where=pairs > 0))


class AucGain:
    """The increase of the calibrated AUROC by a split, as a criterion for ``grow_tree``.

    Gains are in rows: the lift of the AUROC times the weight of all rows.

    Parameters
    ----------
    score : (n,) array
        The score whose order is to be corrected; finite.
    positive : (n,) array of bool
        Whether the row is of the class that high scores indicate.
    weight : (n,) array, optional
    bins : int, 1 to 64, default=8
        Quantile bins of the score.

    Notes
    -----
    The rest of a node is counted over all rows given here, so the tree must be grown on all of them
    or on a resample of them.

    Examples
    --------
    The score is the same in both regions, but the labels are not:

    >>> criterion = AucGain([0.0, 0.0, 0.0, 0.0], [True, True, False, False], bins=1)
    >>> criterion.gain(np.array([[0.0], [2.0]]), np.array([[2.0], [0.0]])).item()
    2.0
    """

    def __init__(self, score: Any, positive: Any, weight: Any = None, *, bins: int = BINS) -> None:
        from kdcal_core.partition.tree import RowStats

        label = np.asarray(positive, dtype=bool)
        weight = np.ones(len(label)) if weight is None else np.asarray(weight, dtype=np.float64)
        bin_of = _bins(np.asarray(score, dtype=np.float64), bins)
        self._stats = RowStats((2 * bin_of + label).astype(np.uint8), 2 * bins, weight[:, None])
        self._total = np.bincount(self._stats.cells, weights=weight, minlength=2 * bins)

    @property
    def stats(self) -> RowStats:
        """Each row's cell, by bin and label, with its weight as the value."""
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Lift of the AUROC by splits of one node, (...), from the sums of the two sides."""
        left, right = left[..., 0], right[..., 0]
        node = left + right
        rest = np.maximum(self._total - node, 0.0)
        lift = _area(left, right, rest) - _area(node, rest)
        return np.where(lift > ROUNDING, lift * self._total.sum(), 0.0)

    def order(self, sums: FloatArray) -> FloatArray:
        """Excess of positives per row of a category over those that its scores predict."""
        negative, positive = sums[..., 0::2, 0], sums[..., 1::2, 0]
        rows = negative + positive
        seen = rows.sum(axis=-2, keepdims=True)
        of_bin = positive.sum(axis=-2, keepdims=True)
        rate = np.divide(of_bin, seen, out=np.zeros_like(seen), where=seen > 0)
        total = rows.sum(axis=-1)
        excess = positive.sum(axis=-1) - (rows @ np.swapaxes(rate, -1, -2))[..., 0]
        return np.asarray(np.divide(excess, total, out=np.zeros_like(total), where=total > 0))


def _area(*regions: FloatArray) -> FloatArray:
    """Calibrated AUROC of regions, each (..., 2 bins) with alternating negatives and positives."""
    cells = np.concatenate(regions, axis=-1)
    return calibrated_auc(cells[..., 1::2], cells[..., 0::2])


def _bins(score: FloatArray, bins: int) -> IntArray:
    """Quantile bin of each score, (n,), 0 to ``bins`` - 1; equal scores share a bin."""
    edges = np.quantile(score, np.arange(1, bins) / bins)
    return np.searchsorted(edges, score, side="left")


def fit_auc(settings: Any, rows: FitRows) -> PartitionFit:
    """One tree whose splits raise the calibrated AUROC, with a map in each of its leaves.

    Two classes are ranked by the score of the second. With more, it is the AUROC of the confidence
    for right against wrong predictions. The tree is grown on the calibration rows even if training
    rows are given, because the model's scores rank better on rows that it was trained on.
    """
    from kdcal_core.partition.tree import grow_tree

    predicted, confidence = top_label(rows.proba)
    if rows.proba.shape[1] == 2:
        score, positive = logit_of(rows.proba[:, 1]), rows.y == 1
    else:
        score, positive = logit_of(confidence), rows.y == predicted

    def grow(inputs: BinnedInputs, which: IntArray, least: int) -> PartitionTree:
        gain = AucGain(score[which], positive[which], rows.weight[which])
        return grow_tree(inputs.take(which), gain, max_depth=settings.depth, min_rows=least)

    return fit_in_parts(settings, rows, grow)
