"""Boosted partitions: calibrations nested in one another (paper 004 section 13, text lost).

**Derivation.** Section 5 asks for a sequence of partitions from boosted trees, calibrated one
after the other, so that the whole is a composition ``C_M(... C_1(C_0(s, x), x) ..., x)``. Write F
for the logit of the probability so far and start with F_0, the parent's after one map for all
rows. The log loss of a calibrated score F falls, to second order, when a region R is moved by its
own offset, by

    (sum over R of r)**2 / (2 * sum over R of v),    r = y - p,  v = p (1 - p),  p = sigmoid(F),

r being the negative gradient of the loss in F and v its curvature. So stage m

1. grows a shallow tree on the residuals r of F_{m-1}, whose gain is just that, rows counting by
   their weight (:class:`ClassResiduals`);
2. fits a map T of F_{m-1} in every leaf, the calibration of the leaf;
3. goes a share of the way, F_m = F_{m-1} + rate * (T(F_{m-1}) - F_{m-1}).

With Platt's map, T(F) = a F + b, a stage is F + rate * ((a - 1) F + b), and the composition is
again affine in the parent's logit inside each cell of all trees laid over one another: slopes
multiply. A leaf with a = 1 and b = 0 leaves its rows to the stages before. With more than two
classes residuals are those of each class, summed as chi-squares, and step 3 acts on log
probabilities, which are then scaled to sum to one.

The number of stages is the one with the smallest log loss on rows that were held out; then all
rows are used. Stages grow on the calibration rows even where training rows are given: what is
wanted is where the parent errs on rows that it was not trained on. (Boosted trees of the training
labels, calibrated in sequence, were worse on adult and credit default, three seeds each: log loss
0.321 against 0.305, and 0.438 alike.) The gain of a tree with a slope of its own in each leaf was
tried in step 1: rows with extreme logits rule it, and it was no better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.base import CLIP
from kdcal_core.calibration.heterogeneous.layers import FitRows, Layer, PartitionFit, hierarchy_of
from kdcal_core.calibration.heterogeneous.one_tree import min_rows_of
from kdcal_core.calibration.heterogeneous.region_maps import fit_maps
from kdcal_core.calibration.heterogeneous.scores import RegionMaps, Scores, log_losses
from kdcal_core.calibration.state import demand
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.splits import stratified_folds
from kdcal_core.partition.tree import RowStats

if TYPE_CHECKING:
    from kdcal_core.partition.tree import BinnedInputs

# The share of the way to a leaf's map that a stage goes.
RATE = 0.3
# Stages without a smaller held-out loss after which no more are tried.
PATIENCE = 20
_FOLDS = 5
# The stages together cut as finely as a tree of this depth, and so do their smallest regions.
_AS_DEEP = 6
_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Damped:
    """Maps that go a share of the way: the weighted geometric mean of a row and its map.

    Attributes
    ----------
    maps : RegionMaps
    rate : float
        0 leaves the rows as they are, 1 is the maps themselves.
    """

    maps: RegionMaps
    rate: float

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Probabilities (n, K) of rows in these regions (n,), rows summing to one."""
        here, there = _log(proba), _log(self.maps.predict(proba, leaf))
        return _softmax(here + self.rate * (there - here))

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse maps that do not fit, as a damaged file may hold them."""
        demand(isinstance(self.rate, float) and 0.0 <= self.rate <= 1.0, "the rate")
        self.maps.check(n_classes, n_regions)


class ClassResiduals:
    """How much offsets in regions would lower the log loss, summed over the classes.

    With r the sum of the residuals and v that of their curvatures, both weighted, a side's worth
    is ``r**2 / v``, twice the fall of the loss. For one class and rows that weigh alike it is
    :class:`kdcal_core.partition.tree.Residual`; that asks for evidence, in which a row of weight
    2 counts as one row, while here it counts as the row twice.

    Parameters
    ----------
    residual, variance : (n, C) arrays
        ``y_k - p_k`` and ``p_k (1 - p_k)``.
    weight : (n,) array

    Examples
    --------
    >>> score = ClassResiduals(np.array([[0.5], [-0.5]]), np.full((2, 1), 0.25), np.ones(2))
    >>> score.gain(np.array([[0.5, 0.25]])[:, None], np.array([[-0.5, 0.25]])[:, None]).tolist()
    [2.0]
    """

    def __init__(self, residual: FloatArray, variance: FloatArray, weight: FloatArray) -> None:
        w = weight[:, None]
        values = np.hstack([w * residual, w * np.maximum(variance, _LEAST_VARIANCE)])
        self._stats = RowStats(np.zeros(len(w), dtype=np.uint8), 1, values)

    @property
    def stats(self) -> RowStats:
        """Residuals and variances of the classes side by side."""
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Chi-square of the sides less that of both together, summed over the classes."""
        return _evidence(left) + _evidence(right) - _evidence(left + right)

    def order(self, sums: FloatArray) -> FloatArray:
        """Mean residual of the class that the categories differ in most."""
        residual, variance = np.split(sums[..., 0, :], 2, axis=-1)
        mean = _over(residual, variance)
        return mean[..., np.argmax(_over(residual**2, variance).sum(axis=0))]


def fit_boosted(settings: Any, rows: FitRows) -> PartitionFit:
    """Stages up to the number that held-out rows ask for, at most ``n_trees``."""
    from kdcal_core.partition.tree import bin_inputs

    binned = bin_inputs(rows.X)
    held_out = stratified_folds(rows.y, _FOLDS, settings.random_state) == 0
    wanted = _stages_wanted(settings, rows, binned, held_out)
    layers: list[Layer] = []
    for layer, _ in islice(_stages(settings, rows, binned), wanted + 1):
        rows.report(0.5 + 0.5 * len(layers) / (wanted + 1), f"Stage {len(layers):,} of {wanted:,}")
        layers.append(layer)
    return PartitionFit(tuple(layers), (), (_described(len(layers) - 1, settings.n_trees),))


def nested(layers: tuple[Layer, ...], proba: FloatArray, X: Any) -> FloatArray:
    """The last layer's answer to the one before it, down to the parent's probabilities."""
    from kdcal_core.partition.tree import bin_inputs

    binned = bin_inputs(X, like=layers[0].partition.columns)
    for layer in layers:
        proba = layer.predict(proba, binned)
    return proba


def _stages(
    settings: Any, rows: FitRows, binned: BinnedInputs
) -> Iterator[tuple[Layer, FloatArray]]:
    """Stage after stage, each with the rows' probabilities after it, until no split has worth."""
    from kdcal_core.partition.tree import grow_tree

    proba = rows.proba
    least = min_rows_of(settings.min_rows, len(rows.y), _AS_DEEP)
    depth, rate = 0, 1.0  # one map for all rows comes first, whole
    while True:
        scores = Scores(proba, rows.y, rows.weight)
        mapped = list(scores.mapped)
        p = proba[:, mapped]
        tree = grow_tree(
            binned,
            ClassResiduals((rows.y[:, None] == mapped) - p, p * (1.0 - p), rows.weight),
            max_depth=depth,
            min_rows=least,
        )
        if depth and tree.n_leaves == 1:
            return
        leaf = tree.apply(binned)
        fit = fit_maps(
            settings.calibrator, scores, leaf, hierarchy_of(tree), pooling=settings.pooling
        )
        layer = Layer(tree, Damped(fit.maps, rate))
        proba = layer.maps.predict(proba, leaf)
        yield layer, proba
        depth, rate = settings.depth, RATE


def _stages_wanted(
    settings: Any, rows: FitRows, binned: BinnedInputs, held_out: NDArray[np.bool_]
) -> int:
    """Stages with the smallest log loss of the held-out rows, 0 where only the first map helps."""
    fitted, judged = rows.take(~held_out), rows.take(held_out)
    binned_judged, proba = binned.take(held_out), judged.proba
    losses: list[float] = []
    for layer, _ in islice(_stages(settings, fitted, binned.take(~held_out)), settings.n_trees + 1):
        proba = layer.predict(proba, binned_judged)
        losses.append(float(judged.weight @ log_losses(proba, judged.y)))
        best = int(np.argmin(losses))
        share = len(losses) / (settings.n_trees + 1)
        rows.report(0.5 * share, f"Stage {len(losses) - 1:,}: {best:,} are best so far")
        if len(losses) - 1 - best >= PATIENCE:
            break
    return best


def _described(n_stages: int, most: int) -> str:
    if not n_stages:
        return "No partition lowered the log loss of held-out rows: one map for all rows is used."
    more = " (as many as were allowed: more may do better)" if n_stages == most else ""
    return f"{n_stages:,} partitions are calibrated one after the other{more}."


def _evidence(sums: FloatArray) -> FloatArray:
    residual, variance = np.split(sums[..., 0, :], 2, axis=-1)
    found: FloatArray = _over(residual**2, variance).sum(axis=-1)
    return found


def _over(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0)


def _log(proba: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(proba, CLIP)))


def _softmax(logits: FloatArray) -> FloatArray:
    scaled = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))
