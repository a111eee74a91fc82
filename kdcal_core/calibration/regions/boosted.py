"""Boosted partitions: nested calibrations (Durfee et al., section 13, whose text is lost).

**Derivation.** Section 5 proposes a sequence of partitions from boosted trees, calibrated one after
the other, which gives the composition ``C_M(... C_1(C_0(s, x), x) ..., x)``. Let F be the logit of
the current probability, and F_0 the model's logit after one map for all rows. Stage m

1. grows a shallow tree, whose gain is the second-order decrease of the log loss of F_{m-1} by a
   separate map in each leaf: an offset, or a line;
2. fits a map T of F_{m-1} in every leaf, which calibrates the leaf;
3. takes a partial step, F_m = F_{m-1} + rate * (T(F_{m-1}) - F_{m-1}).

With Platt's map, T(F) = a F + b, a stage is F + rate * ((a - 1) F + b). The composition is again
affine in the model's logit inside each cell of the overlaid trees, and slopes multiply. A leaf with
a = 1 and b = 0 does not change its rows. With more than two classes the gains of the classes are
summed as chi-squares, and step 3 is applied to log probabilities, which are then scaled to sum to
one.

The gain and the number of stages are chosen by the smallest log loss on held-out rows; then all
rows are used. Test log loss with either gain and with the choice (1,500 simulated rows, mean over
four draws, and 6,000 rows of adult with an overfitted network, three draws):

==================================================  =======  ======  ======
what is wrong                                       offsets  lines   choice
==================================================  =======  ======  ======
scores are reversed in half of the inputs           0.697    0.538   0.538
scores are too steep in half of the inputs          0.614    0.603   0.603
both, in three classes                              0.819    0.752   0.752
offsets by one column, slopes by another            0.552    0.543   0.546
offsets that grow with six inputs                   0.478    0.488   0.483
nothing                                             0.599    0.599   0.599
one column was not seen (Durfee et al.'s toy)       0.479    0.481   0.479
adult                                               0.326    0.332   0.326
==================================================  =======  ======  ======

Stages grow on the calibration rows even if training rows are given, because they look for errors on
rows that the model was not trained on. (Boosted trees of the training labels, calibrated in
sequence, were not better, three seeds each: the log loss was 0.321 against 0.305 on adult and 0.438
with both on credit default.)

**Gains.** They are of second order. Let r be the residual ``y_k - p_k`` of a class, v its curvature
``p_k (1 - p_k)`` and z its logit, all weighted. A separate offset for a region lowers the log loss
by half of :class:`OffsetGain`'s ``r**2 / v``. A separate line, Platt's map, lowers it by half of
:class:`LineGain`'s score statistic ``s' I^-1 s`` with

    s = (sum r, sum r z),    I = (sum v, sum v z; sum v z, sum v z**2).

If only the slope of a region is wrong, its residuals sum to zero, and only the second gain detects
it. If offsets are wrong, the second gain spends half of its evidence on slopes and is slightly
worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from kdcal_core.calibration.calibrator_base import log_proba, softmax_in_place
from kdcal_core.calibration.regions.one_tree import min_rows_of
from kdcal_core.calibration.regions.region_layers import (
    FitRows,
    Layer,
    PartitionFit,
    Tally,
    fit_maps,
    hierarchy_of,
    layer_notes,
    tally,
)
from kdcal_core.calibration.regions.scores_and_hierarchy import RegionMaps, Scores, logit_of
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.partition.tree import RowStats
from kdcal_core.statistics import log_losses
from kdcal_core.store import storable
from kdcal_core.store.estimators import demand

if TYPE_CHECKING:
    from kdcal_core.partition.tree import BinnedInputs


_LEAST_VARIANCE = 1e-6
# Share of the largest possible determinant below which scores in a region count as equal.
_EQUAL = 1e-9


class OffsetGain:
    """The decrease of the log loss by offsets in regions, summed over the classes.

    The gain of a side is ``r**2 / v``, twice the decrease of the loss. For one class and equal
    weights it equals :class:`kdcal_core.partition.tree.Residual`. That one measures evidence and
    counts a row of weight 2 as one row, while this one counts it as two rows.

    Parameters
    ----------
    happened : (n, C) array
        1 where the row is of the class, else 0.
        p : (n, C) array
        Probability of the class.
    weight : (n,) array

    Examples
    --------
    >>> score = OffsetGain(np.array([[1.0], [0.0]]), np.full((2, 1), 0.5), np.ones(2))
    >>> score.gain(np.array([[0.5, 0.25]])[:, None], np.array([[-0.5, 0.25]])[:, None]).tolist()
    [2.0]
    """

    def __init__(self, happened: FloatArray, p: FloatArray, weight: FloatArray) -> None:
        w = weight[:, None]
        self._stats = _stats([w * (happened - p), w * _curvature(p)])

    @property
    def stats(self) -> RowStats:
        """Residuals and curvatures of the classes side by side."""
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Chi-square of the two sides less that of their union, summed over the classes."""
        return _of_offsets(left) + _of_offsets(right) - _of_offsets(left + right)

    def order(self, sums: FloatArray) -> FloatArray:
        """Mean residual of the class in which the categories differ most."""
        residual, variance = _parts(sums, 2)
        return _most_different(residual, variance)


class LineGain:
    """The decrease of the log loss by Platt's map in regions, summed over the classes.

    Parameters
    ----------
    happened, p, weight : arrays
        As in :class:`OffsetGain`.

    Examples
    --------
    Two regions, of reversed and of right scores; no offset separates them:

    >>> p = np.array([0.2, 0.8, 0.2, 0.8])[:, None]
    >>> score = LineGain(np.array([0.0, 1.0, 1.0, 0.0])[:, None], p, np.ones(4))
    >>> sums = score.stats.values.reshape(2, 2, 1, 5).sum(axis=1)
    >>> score.gain(sums[0], sums[1]).round(2).tolist()
    6.25
    """

    def __init__(self, happened: FloatArray, p: FloatArray, weight: FloatArray) -> None:
        residual, mass, logit = happened - p, weight[:, None] * _curvature(p), logit_of(p)
        logit = logit - (mass * logit).sum(axis=0) / mass.sum(axis=0)
        residual *= weight[:, None]
        self._stats = _stats([residual, residual * logit, mass, mass * logit, mass * logit**2])

    @property
    def stats(self) -> RowStats:
        """Both scores and the three entries of their information, with classes side by side.

        The logits' mean is subtracted, which does not change the gains.
        """
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Chi-square of the two sides less that of their union, summed over the classes."""
        return _of_lines(left) + _of_lines(right) - _of_lines(left + right)

    def order(self, sums: FloatArray) -> FloatArray:
        """Mean residual, or that times the logit, of the most different class."""
        residual, product, mass, _, square = _parts(sums, 5)
        return _most_different(
            np.concatenate([residual, product], axis=-1), np.concatenate([mass, square], axis=-1)
        )


def _of_offsets(sums: FloatArray) -> FloatArray:
    residual, mass = _parts(sums, 2)
    found: FloatArray = _over(residual**2, mass).sum(axis=-1)
    return found


def _of_lines(sums: FloatArray) -> FloatArray:
    residual, product, mass, first, square = _parts(sums, 5)
    determinant = mass * square - first**2
    both = square * residual**2 - 2.0 * first * residual * product + mass * product**2
    apart = determinant > _EQUAL * mass * square
    found: FloatArray = np.where(
        apart, _over(both, np.where(apart, determinant, 1.0)), _over(residual**2, mass)
    ).sum(axis=-1)
    return found


def _curvature(p: FloatArray) -> FloatArray:
    return np.maximum(p * (1.0 - p), _LEAST_VARIANCE)


def _stats(values: list[FloatArray]) -> RowStats:
    return RowStats(np.zeros(len(values[0]), dtype=np.uint8), 1, np.hstack(values))


def _parts(sums: FloatArray, count: int) -> list[FloatArray]:
    return np.split(sums[..., 0, :], count, axis=-1)


def _most_different(score: FloatArray, mass: FloatArray) -> FloatArray:
    """The one of several means, (..., b, C), in which the categories differ most, (..., b)."""
    most = _over(score**2, mass).sum(axis=-2, keepdims=True).argmax(axis=-1, keepdims=True)
    return np.asarray(np.take_along_axis(_over(score, mass), most, -1)[..., 0])


def _over(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b > 0)


# The step of a stage towards a leaf's map.
RATE = 0.3
# The search stops after this many stages without a smaller held-out loss.
PATIENCE = 20
_FOLDS = 5
# The smallest regions are those of a tree of this depth.
_AS_DEEP = 6
# (whether rows are of each class, its probabilities, weights) -> criterion of splits
Gain = type[OffsetGain] | type[LineGain]


@storable
@dataclass(frozen=True, eq=False)
class Damped:
    """Maps with partial steps: the weighted geometric mean of a row and its map.

    Attributes
    ----------
    maps : RegionMaps
    rate : float
        0 does not change the rows, 1 applies the maps fully.
    """

    maps: RegionMaps
    rate: float

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Probabilities (n, K) of rows in these regions (n,), rows summing to one."""
        here, there = log_proba(proba), log_proba(self.maps.predict(proba, leaf))
        return softmax_in_place(here + self.rate * (there - here))

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse maps that do not fit, as in a damaged file."""
        demand(isinstance(self.rate, float) and 0.0 <= self.rate <= 1.0, "the rate")
        self.maps.check(n_classes, n_regions)


def fit_boosted(settings: Any, rows: FitRows) -> PartitionFit:
    """The number of stages chosen on held-out rows, at most ``n_trees``."""
    from kdcal_core.partition.tree import bin_inputs

    binned = bin_inputs(rows.X)
    gain, wanted = _wanted(settings, rows, binned)
    layers: list[Layer] = []
    tallies: list[Tally] = []
    for layer, counts in islice(_stages(settings, rows, binned, gain), wanted + 1):
        rows.report(0.5 + 0.5 * len(layers) / (wanted + 1), f"Stage {len(layers):,} of {wanted:,}")
        layers.append(layer)
        tallies.append(counts)
    described = _described(len(rows.y), len(layers) - 1, settings.n_trees)
    return PartitionFit(tuple(layers), (), (described, *layer_notes(tallies)))


def nested(layers: tuple[Layer, ...], proba: FloatArray, X: Any) -> FloatArray:
    """The layers applied one after the other to the model's probabilities."""
    from kdcal_core.partition.tree import bin_inputs

    binned = bin_inputs(X, like=layers[0].partition.columns)
    for layer in layers:
        proba = layer.predict(proba, binned)
    return proba


def _stages(
    settings: Any, rows: FitRows, binned: BinnedInputs, gain: Gain
) -> Iterator[tuple[Layer, Tally]]:
    """Yield each stage with the counts of its regions, until no split improves the fit."""
    from kdcal_core.partition.tree import grow_tree

    proba = rows.proba
    least = min_rows_of(settings.min_rows, len(rows.y), _AS_DEEP, rows.effect)
    depth, rate = 0, 1.0  # one map for all rows comes first, with a full step
    while True:
        scores = Scores(proba, rows.y, rows.weight)
        mapped = list(scores.mapped)
        happened = (rows.y[:, None] == mapped).astype(np.float64)
        tree = grow_tree(
            binned,
            gain(happened, proba[:, mapped], rows.weight),
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
        yield layer, tally(fit, scores, leaf, tree.n_leaves)
        depth, rate = settings.depth, RATE


def _wanted(settings: Any, rows: FitRows, binned: BinnedInputs) -> tuple[Gain, int]:
    """The gain and the number of stages with the smallest log loss of the held-out rows.

    Zero stages if only the first map helps, or if there are too few rows to hold any out.
    """
    if len(rows.y) < _FOLDS:
        return OffsetGain, 0
    held_out = rows.folds(_FOLDS, settings.random_state) == 0
    fitted, judged = rows.take(~held_out), rows.take(held_out)
    binned_fitted, binned_judged = binned.take(~held_out), binned.take(held_out)
    choices: list[tuple[float, Gain, int]] = []
    for gain in (OffsetGain, LineGain):
        proba, losses, best = judged.proba, list[float](), 0
        stages = _stages(settings, fitted, binned_fitted, gain)
        for layer, _ in islice(stages, settings.n_trees + 1):
            proba = layer.predict(proba, binned_judged)
            losses.append(float(judged.weight @ log_losses(proba, judged.y)))
            best = int(np.argmin(losses))
            share = len(choices) + len(losses) / (settings.n_trees + 1)
            rows.report(0.25 * share, f"Stage {len(losses) - 1:,}: {best:,} are best so far")
            if len(losses) - 1 - best >= PATIENCE:
                break
        choices.append((losses[best], gain, best))
    _, gain, wanted = min(choices, key=lambda choice: choice[0])
    return gain, wanted


def _described(n: int, n_stages: int, most: int) -> str:
    if n < _FOLDS:
        return f"With fewer than {_FOLDS} rows none are held out: one map for all rows is used."
    if not n_stages:
        return "No partition lowered the log loss of held-out rows: one map for all rows is used."
    more = " (as many as were allowed: more may do better)" if n_stages == most else ""
    if n_stages == 1:
        return f"One partition is calibrated after one map for all rows{more}."
    return f"{n_stages:,} partitions are calibrated one after the other{more}."
