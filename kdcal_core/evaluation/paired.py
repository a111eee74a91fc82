"""Differences between methods on the same rows, and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from kdcal_core.data import FloatArray, ScoredSet
from kdcal_core.diagnostics.auc import PairedAuc, paired_auc
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.evaluation.measures import MEASURES, Measure
from kdcal_core.evaluation.spread import Spread
from kdcal_core.statistics import holm, step_down, t_quantile

JOINT_DRAWS = 4000
_FLOOR_STREAM = (7, 20)
LEAST_ROWS = 20  # the mean loss of fewer rows is too far from normal for a valid test


Verdict = Literal["better", "worse", "cannot be told apart"]


@dataclass(frozen=True)
class PairedDifference:
    """A method's value less its reference's, on the same rows.

    Attributes
    ----------
    key : str
        Key of the method.
    difference : Estimate
        In the measure's unit. Against the model, its interval is for this pair alone; against the
        best, it allows for the best having been selected on these rows.
    p_value, adjusted_p : float
        Against the hypothesis "no difference from the model", or "no worse than any other";
        ``adjusted_p`` is corrected for all methods.
    verdict : str
        What ``adjusted_p`` supports. Against the best, a method is "worse" or cannot be told apart.
    """

    key: str
    difference: Estimate
    p_value: float
    adjusted_p: float
    verdict: Verdict


@dataclass(frozen=True)
class BesideModel:
    """A method and the model on the same rows, as if no other method had been tried.

    Attributes
    ----------
    log_loss : Estimate
        Log loss of the method.
    difference : Estimate
        The method's log loss less the model's, paired by row.
    auc : PairedAuc or None
        AUROC of the model (a) and the method (b); None for more than two classes, and where the
        rows are all of one class.
    """

    log_loss: Estimate
    difference: Estimate
    auc: PairedAuc | None


def beside_model(proba: FloatArray, rows: ScoredSet) -> BesideModel:
    """A method's probabilities (n, K) compared with the model's, which are those of ``rows``.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    >>> rows = ScoredSet(proba, np.array([0, 1, 0]), ("no", "yes"), "digest", "evaluation")
    >>> round(beside_model(np.full((3, 2), 0.5), rows).difference.value, 3)
    0.278
    """
    measure, y, weight = MEASURES["log_loss"], rows.y, rows.design
    assert measure.by_set is not None
    assert measure.paired is not None
    change = measure.paired(proba, rows.proba, y, sample_weight=weight)
    auc = None
    if len(rows.classes) == 2 and len(np.unique(y)) == 2:
        auc = paired_auc(rows.proba[:, 1], proba[:, 1], y, sample_weight=weight)
    loss = measure.by_set(proba, y, sample_weight=weight)
    return BesideModel(loss, replace(change, expected=None), auc)


@dataclass(frozen=True, eq=False)
class Held:
    """All methods compared with one, (M, P) over the possible pairs of true errors."""

    gap: FloatArray  # observed difference less its bias
    error: FloatArray  # its standard error
    allowed: np.ndarray[tuple[int, int], np.dtype[np.bool_]]

    def limits(self, quantile: float) -> tuple[FloatArray, FloatArray]:
        """Least and largest difference that is not rejected, (M,) each."""
        low = np.where(self.allowed, self.gap - quantile * self.error, np.inf).min(axis=1)
        high = np.where(self.allowed, self.gap + quantile * self.error, -np.inf).max(axis=1)
        return low, high

    def scores(self) -> tuple[FloatArray, FloatArray]:
        """Standard scores of "larger" and of "smaller", each at the least favourable pair, (M,)."""
        tiny = np.abs(self.gap) <= 1e-15
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(tiny, 0.0, self.gap / self.error)
        larger = np.where(self.allowed, z, np.inf).min(axis=1)
        smaller = np.where(self.allowed, -z, np.inf).min(axis=1)
        return larger, smaller

    def directed(self, shown: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same scores, at most 0 in the direction that the shown differences do not have.

        The test corrects for the bias of a magnitude, and the numbers on the screen do not. Without
        this, a method could be called better next to a difference that says worse.
        """
        larger, smaller = self.scores()
        return (
            np.where(shown > 0.0, larger, np.minimum(larger, 0.0)),
            np.where(shown < 0.0, smaller, np.minimum(smaller, 0.0)),
        )


def held_against(spread: Spread, other: int) -> Held:
    """Every method less the one at ``other``.

    The two true errors are unknown, and the bias of the difference depends on them. So every pair
    of errors that the two observed values allow is examined, and every pair of equal errors, which
    is the null hypothesis. The least favourable pair counts (a projected test; Dufour 1990).
    """
    m, t = spread.bias.shape
    variance = np.einsum("itit->it", spread.covariance)
    bias = spread.bias[:, :, None] - spread.bias[other][None, None, :]
    square = variance[:, :, None] + variance[other] - 2.0 * spread.covariance[:, :, other, :]
    allowed = spread.possible[:, :, None] & spread.possible[other] | np.eye(t, dtype=bool)
    gap = (spread.value - spread.value[other])[:, None, None] - bias
    same = np.arange(m) == other
    gap[same], square[same] = 0.0, 0.0
    # ignore rounding errors: methods that agree on every row differ by exactly 0
    scale = variance[:, :, None] + variance[other]
    square = np.where(square < 1e-13 * scale, 0.0, square) + spread.floor**2 * ~same[:, None, None]
    shape = (m, t * t)
    return Held(gap.reshape(shape), np.sqrt(square).reshape(shape), allowed.reshape(shape))


def against_model(
    spread: Spread,
    measure: Measure,
    keys: Sequence[str],
    model: int,
    n: int,
    level: float,
    seed: int = 0,
) -> tuple[PairedDifference, ...]:
    """Each method less the model: two-sided, corrected for all methods.

    Most methods change the same rows alike, for which Holm's correction is too strict. Joint draws
    know how alike they are, but cannot show a p value below one over their number: the smaller of
    both counts.
    """
    held = held_against(spread, model)
    larger, smaller = held.directed(spread.shown - spread.shown[model])
    p = np.minimum(2.0 * stdtr(spread.freedom, -np.maximum(larger, smaller)), 1.0)
    p[model] = 1.0
    others = np.arange(len(keys)) != model
    adjusted = np.ones(len(keys))
    drawn = np.abs(_standard(_joint(spread, seed), model, spread.floor))[:, others]
    together = step_down(-ndtri(0.5 * p[others]), drawn)
    # draws can fall a little below the p value of a single pair, which is exact
    adjusted[others] = np.maximum(p[others], np.minimum(together, holm(p[others])))
    better = smaller > larger if measure.lower_is_better else larger > smaller
    verdicts: list[Verdict] = [
        "cannot be told apart" if a >= 1.0 - level else "better" if b else "worse"
        for a, b in zip(adjusted, better, strict=True)
    ]
    quantile = t_quantile(level, spread.freedom)
    limits = held.limits(quantile)
    how = "paired by row, for this pair alone"
    return _pairs(spread, measure, keys, model, n, level, limits, p, adjusted, verdicts, how)


def against_best(
    spread: Spread,
    measure: Measure,
    keys: Sequence[str],
    best: int,
    n: int,
    level: float,
    seed: int,
) -> tuple[PairedDifference, ...]:
    """Each method less the best on these rows, corrected for having selected the best.

    A method's p value tests "no other method is better than this one" by the largest of its
    standardised losses to the others. This is the test of Hansen (2005) with each method as the
    benchmark. The methods that it does not reject include the truly best one with probability
    ``level``; with Holm's correction over the methods, no best one is called worse.
    """
    m = len(keys)
    sign = 1 if measure.lower_is_better else -1
    worse = np.full((m, m), -np.inf)  # standard score of "row i is worse than j"
    for j in range(m):
        larger, smaller = held_against(spread, j).directed(spread.shown - spread.shown[j])
        worse[:, j] = larger if sign > 0 else smaller
        worse[j, j] = -np.inf
    p_pair = stdtr(spread.freedom, -worse)
    joint = _joint(spread, seed)
    p = np.array([_largest(joint, i, p_pair[i]) for i in range(m)])
    p[best] = 1.0
    others = np.arange(m) != best
    adjusted = np.ones(m)
    adjusted[others] = holm(p[others])
    verdicts: list[Verdict] = [
        "worse" if a < 1.0 - level else "cannot be told apart" for a in adjusted
    ]
    held = held_against(spread, best)
    largest = np.abs(_standard(joint, best)).max(axis=1, initial=0.0)
    normal = float(np.quantile(largest, level))
    quantile = float(stdtrit(spread.freedom, float(ndtr(normal))))
    how = "paired by row, at once for all methods"
    limits = held.limits(quantile)
    return _pairs(spread, measure, keys, best, n, level, limits, p, adjusted, verdicts, how)


def untested(pairs: tuple[PairedDifference, ...]) -> tuple[PairedDifference, ...]:
    """The same differences where rows are too few to distinguish any two methods."""
    return tuple(
        replace(
            pair,
            difference=without_interval(pair.difference),
            p_value=1.0,
            adjusted_p=1.0,
            verdict="cannot be told apart",
        )
        for pair in pairs
    )


def without_interval(estimate: Estimate) -> Estimate:
    """The same number, without its interval on fewer than :data:`LEAST_ROWS` rows.

    Examples
    --------
    >>> without_interval(Estimate("Log loss", "Log loss", 0.0, 0.0, 0.0, 8)).interval
    'none on fewer than 20 rows'
    """
    if estimate.n >= LEAST_ROWS:
        return estimate
    none = f"none on fewer than {LEAST_ROWS} rows"
    return replace(estimate, low=np.nan, high=np.nan, interval=none)


def _pairs(
    spread: Spread,
    measure: Measure,
    keys: Sequence[str],
    other: int,
    n: int,
    level: float,
    limits: tuple[FloatArray, FloatArray],
    p: FloatArray,
    adjusted: FloatArray,
    verdicts: Sequence[Verdict],
    how: str,
) -> tuple[PairedDifference, ...]:
    # The difference is that of the two estimates shown. The limits allow for the bias of a
    # magnitude and may exclude it, so they are widened to include it, which keeps their level.
    value = spread.shown - spread.shown[other]
    low, high = np.minimum(limits[0], value), np.maximum(limits[1], value)
    name = f"{measure.title}: difference from {keys[other]} on the same rows"
    return tuple(
        PairedDifference(
            key,
            Estimate(
                name=name,
                label=f"{measure.title}, difference",
                value=float(value[i]),
                low=float(low[i]),
                high=float(high[i]),
                n=n,
                level=level,
                interval=how,
                lower_is_better=measure.lower_is_better,
            ),
            float(p[i]),
            float(adjusted[i]),
            verdicts[i],
        )
        for i, key in enumerate(keys)
    )


def _joint(spread: Spread, seed: int) -> tuple[FloatArray, FloatArray]:
    """Normal draws (B, M) and their covariance, that of the methods near their likely errors."""
    m, t = spread.bias.shape
    at = np.abs(np.arange(t) - _likely(spread)[:, None]).argmin(axis=1)
    every = np.arange(m)
    covariance = spread.covariance[every[:, None], at[:, None], every[None, :], at[None, :]]
    normal = np.random.default_rng(seed).normal(size=(JOINT_DRAWS, m))
    return normal @ _root(covariance), covariance


def _root(covariance: FloatArray) -> FloatArray:
    """Symmetric square root (M, M) of a covariance, whatever basis a library returns.

    Methods that agree on every row repeat an eigenvalue or make it 0: its eigenvectors are then
    any basis of their space, and the root of a rounding error is far larger than the error.
    """
    values, vectors = np.linalg.eigh(covariance)
    values = np.where(values > 1e-13 * values.max(initial=0.0), values, 0.0)
    return np.asarray((vectors * np.sqrt(values)) @ vectors.T)


def _likely(spread: Spread) -> FloatArray:
    """Grid index in the middle of the possible errors of each method, (M,)."""
    place = np.arange(spread.possible.shape[1])
    weights = spread.possible / spread.possible.sum(axis=1, keepdims=True)
    return np.asarray(weights @ place)


def _standard(joint: tuple[FloatArray, FloatArray], i: int, floor: float = 0.0) -> FloatArray:
    """Draws of method i less each other method, standardised, (B, M); 0 where they never differ.

    The ``floor`` of an error is a noise of its own for each method.
    """
    draws, covariance = joint
    variance = np.diag(covariance)
    square = variance[i] + variance - 2.0 * covariance[i]
    varies = square > 1e-13 * (variance[i] + variance)
    square = np.where(varies, square, 0.0) + floor**2
    gap = np.where(varies, draws[:, [i]] - draws, 0.0)
    if floor > 0.0:
        # a stream of its own: one that repeated the joint draws would shrink or widen them
        gap += floor * np.random.default_rng([i, *_FLOOR_STREAM]).normal(size=gap.shape)
    return np.asarray(np.divide(gap, np.sqrt(square), out=np.zeros_like(gap), where=square > 0.0))


def _largest(joint: tuple[FloatArray, FloatArray], i: int, p: FloatArray) -> float:
    """Probability of a loss as large as method i's largest, from its p values against each (M,).

    Both the share of the joint draws (plus one) and Bonferroni's bound are at least this
    probability. The smaller is taken, because B draws cannot show a probability below 1 / B.
    """
    least = float(np.delete(p, i).min(initial=1.0))
    bound = min(least * (len(p) - 1), 1.0)
    largest = np.delete(_standard(joint, i), i, axis=1).max(axis=1, initial=-np.inf)
    drawn = (1.0 + float((largest >= -ndtri(least)).sum())) / (len(largest) + 1.0)
    return min(bound, drawn)
