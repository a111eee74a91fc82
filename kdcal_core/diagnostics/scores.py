"""Accuracy, proper scores, confidence and ranking, each as an estimate with its interval.

The Brier score can be split into miscalibration, discrimination and uncertainty (CORP). In
simulations the true posterior is known, and the Hellinger distance from it is also a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from kdcal_core.data import FloatArray, check_columns, column_names
from kdcal_core.diagnostics.auc import Pairing
from kdcal_core.diagnostics.calibration_curves import FineCells, fine_cells, isotonic_values
from kdcal_core.diagnostics.estimate import Estimate, share_estimate
from kdcal_core.diagnostics.split_noise import (
    LikelyTruth,
    expected_miscalibration,
    interval_draws,
    noise_of_units,
    split_intervals,
)
from kdcal_core.diagnostics.targets import (
    Target,
    bin_table,
    check_choice,
    check_level,
    checked,
    confidence_target,
    edges_for,
    overall_effect,
    targets,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    CLIP,
    Dependence,
    bounded_mean_interval,
    brier_losses,
    dependence_of,
    effective_size,
    kish,
    log_losses,
    mean_interval,
    normal_quantile,
    surprisal,
)

_CLIPPED = "probabilities clipped at 1e-12"

LIKELY_BINS = 10
ONE_CLASS = "not defined: only one true class"
FOUR_ROWS = "normal, four rows at the ends of the range added"
TWO_AND_TWO = "normal, two hits and two misses added"
OWN_VARIANCE = "normal, at least the model's own variance"


@dataclass(frozen=True)
class Quantity:
    """A mean over the rows: its names, and the range in which it lies."""

    name: str
    label: str
    least: float
    most: float
    percent: bool = False
    lower_is_better: bool | None = True
    target: float | None = None

    def estimate(
        self, value: float, bounds: tuple[float, float], n: int, level: float, interval: str
    ) -> Estimate:
        """With an interval that is cut to the possible range."""
        return Estimate(
            name=self.name,
            label=self.label,
            value=value,
            low=min(max(bounds[0], self.least), value),
            high=max(min(bounds[1], self.most), value),
            n=n,
            level=level,
            interval=interval if n else "not defined: no rows",
            percent=self.percent,
            lower_is_better=self.lower_is_better,
            target=self.target,
        )


_MOST = -float(np.log(CLIP))
LOG_LOSS = Quantity(f"Log loss of the full vector, {_CLIPPED}", "Log loss", 0.0, _MOST)
BRIER = Quantity("Brier score of the full vector", "Brier score", 0.0, 2.0)
TOP_LABEL_LOG_LOSS = Quantity(
    f"Top-label log loss (Salamon et al., Eq. 14, mean per row), {_CLIPPED}",
    "Top-label log loss",
    0.0,
    _MOST,
)
TOP_LABEL_BRIER = Quantity(
    "Top-label Brier score (Salamon et al., Eq. 15, mean per row)", "Top-label Brier", 0.0, 1.0
)
CONFIDENCE = Quantity("Mean max confidence (MMC)", "Mean confidence", 0.0, 1.0, True, None)
CONFIDENCE_ON_ERRORS = Quantity(
    "Mean max confidence on errors (MMC*)", "Confidence on errors", 0.0, 1.0, True
)
GAP = Quantity("Mean confidence minus accuracy", "Confidence gap", -1.0, 1.0, True, None, 0.0)


def accuracy(proba: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
    """Share of rows whose largest probability (the first of equals) is that of the true class.

    Arguments and errors as in :func:`kdcal_core.diagnostics.reliability`.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.2, 0.8]], [0, 0]).value
    0.5
    """
    check_level(level)
    (target,) = targets(proba, y, sample_weight, "confidence")
    rate = float(target.weight @ target.hit / target.weight.sum())
    rows = effective_size(target.hit - rate, target.weight, target.dependence)
    return accuracy_of(rate, rows, len(target.hit), level)


def accuracy_of(rate: float, rows: float, n: int, level: float) -> Estimate:
    """:func:`accuracy` from the share of right rows, the effective rows and the rows."""
    name = "Accuracy of the top label"
    return share_estimate(name, "Accuracy", rate, rows, n, level, lower_is_better=False)


def log_loss(proba: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
    """Mean of -log of the true class's probability, in nats, in [0, 27.6].

    Examples
    --------
    >>> round(log_loss([[0.5, 0.5], [0.5, 0.5]], [0, 1]).value, 4)
    0.6931
    """
    dependence = dependence_of(sample_weight)
    proba, y, weight = checked(proba, y, sample_weight)
    return _mean(log_losses(proba, y), weight, level, LOG_LOSS, dependence=dependence)


def brier(proba: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
    """Mean squared distance between the vector and the true class's indicator, in [0, 2].

    Examples
    --------
    >>> brier([[0.5, 0.5], [1.0, 0.0]], [0, 0]).value
    0.25
    """
    dependence = dependence_of(sample_weight)
    proba, y, weight = checked(proba, y, sample_weight)
    return _mean(brier_losses(proba, y), weight, level, BRIER, dependence=dependence)


def top_label_log_loss(
    proba: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """Log loss of "the predicted class is right": Salamon et al., Eq. 14, mean per row.

    Examples
    --------
    >>> round(top_label_log_loss([[0.8, 0.2], [0.8, 0.2]], [0, 1]).value, 4)
    0.9163
    """
    (target,) = targets(proba, y, sample_weight, "confidence")
    return _target_log_loss(target, level)


def confidence_log_loss(
    confidence: Any, correct: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """:func:`top_label_log_loss` of confidences (n,) and whether each row was right.

    Examples
    --------
    >>> round(confidence_log_loss([0.8, 0.8], [1, 0]).value, 4)
    0.9163
    """
    return _target_log_loss(confidence_target(confidence, correct, sample_weight), level)


def top_label_brier(
    proba: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """Brier score of "the predicted class is right": Salamon et al., Eq. 15, mean per row.

    Examples
    --------
    >>> round(top_label_brier([[0.8, 0.2], [0.8, 0.2]], [0, 1]).value, 4)
    0.34
    """
    (target,) = targets(proba, y, sample_weight, "confidence")
    return _target_brier(target, level)


def confidence_brier(
    confidence: Any, correct: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """:func:`top_label_brier` of confidences (n,) and whether each row was right.

    Examples
    --------
    >>> round(confidence_brier([0.8, 0.8], [1, 0]).value, 4)
    0.34
    """
    return _target_brier(confidence_target(confidence, correct, sample_weight), level)


def mean_max_confidence(
    proba: Any,
    y: Any = None,
    *,
    of: Literal["all", "errors"] = "all",
    level: float = 0.95,
    sample_weight: Any = None,
) -> Estimate:
    """Mean probability of the top label: MMC; over the wrong rows only, MMC* (``of="errors"``).

    NaN if there are no wrong rows. Only MMC* needs the true classes ``y``. For the interval of
    MMC*, or where all rows have the same confidence, two rows at each end of the range, 1/K and 1,
    are added: a few rows with nearly the same confidence say little about the next.

    Raises
    ------
    InputError
        As in :func:`kdcal_core.diagnostics.reliability`, and for MMC* without true classes.

    Examples
    --------
    >>> mean_max_confidence([[0.9, 0.1], [0.5, 0.5]]).value
    0.7
    """
    if y is None:
        if of == "errors":
            raise InputError(
                "The confidence on errors needs the true classes",
                fix="Give y, one class for each row.",
            )
        proba = check_columns(proba)
        y = np.zeros(len(proba), dtype=np.int64)
    (target,) = targets(proba, y, sample_weight, "confidence")
    some = target.hit == 0.0 if of == "errors" else np.ones(len(target.hit), dtype=bool)
    score, weight = target.score[some], target.weight[some]
    dependence = None if target.dependence is None else target.dependence.only(some)
    bounds, interval = None, "normal"
    if len(score) > 1 and (of == "errors" or np.ptp(score) < 1e-12):
        least = 1.0 / checked(proba, y, None)[0].shape[1]
        bounds = bounded_mean_interval(score, weight, least, 1.0, level, dependence)[1:]
        interval = FOUR_ROWS
    quantity = CONFIDENCE_ON_ERRORS if of == "errors" else CONFIDENCE
    return _mean(
        score, weight, level, quantity, bounds=bounds, interval=interval, dependence=dependence
    )


def confidence_gap(
    proba: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """Mean confidence minus accuracy, in [-1, 1]: above 0 the model is over-confident.

    For the normal interval, two hits and two misses at the mean confidence are added to the rows
    (Agresti and Coull 1998), so that a model that was never wrong does not look certain.

    Examples
    --------
    >>> round(confidence_gap([[0.9, 0.1], [0.7, 0.3]], [0, 1]).value, 3)
    0.3
    """
    (target,) = targets(proba, y, sample_weight, "confidence")
    return target_gap(target, level)


def auroc(
    proba: Any,
    y: Any,
    *,
    level: float = 0.95,
    sample_weight: Any = None,
    classes: Sequence[str] | None = None,
) -> Estimate:
    """Area under the ROC curve; with more than two classes, the mean of one against the rest.

    With two classes it ranks rows by the probability of the second, which ``classes`` names. With
    more, each class counts by its share of the rows. Classes without rows, or with all of them,
    have no curve and are left out of the mean; NaN if none is left. The interval is that of
    :func:`kdcal_core.diagnostics.auc`, with the covariances between the classes' curves;
    O(K n log n).

    Examples
    --------
    >>> auroc([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]], [0, 0, 1, 1]).value
    0.75
    """
    check_level(level)
    dependence = dependence_of(sample_weight)
    proba, y, weight = checked(proba, y, sample_weight)
    pairing = Pairing.of(y, weight, proba.shape[1], dependence=dependence)
    value, low, high, how = np.nan, np.nan, np.nan, ONE_CLASS
    if pairing.curves:
        value, part = pairing.area(proba)
        low, high, how = pairing.interval(value, part, level)
    return auroc_of(pairing.words(classes), (value, low, high), len(y), level, how)


def auroc_of(
    words: str, values: tuple[float, float, float], n: int, level: float, how: str
) -> Estimate:
    """:func:`auroc` from the words for its classes, its value and its interval."""
    value, low, high = values
    return Estimate(
        name=f"AUROC: {words}",
        label="AUROC",
        value=value,
        low=low,
        high=high,
        n=n,
        level=level,
        interval=how,
        lower_is_better=False,
    )


def target_gap(target: Target, level: float) -> Estimate:
    """Mean score minus observed frequency of one target.

    Four pseudo-rows, two hits and two misses at the mean score (Agresti and Coull 1998), are added
    for the interval, so that a model that was never wrong does not look certain.
    """
    gap = target.score - target.hit
    mean = float(target.weight @ target.score / target.weight.sum())
    pseudo = np.array([mean, mean, mean - 1.0, mean - 1.0])
    # each weighs as much as one of the effective rows
    each = target.weight.sum() / kish(target.weight)
    widened = mean_interval(
        np.concatenate([gap, pseudo]),
        np.concatenate([target.weight, np.full(4, each)]),
        level,
        dependence=None if target.dependence is None else target.dependence.and_alone(4),
    )
    return _mean(
        gap,
        target.weight,
        level,
        GAP,
        bounds=widened[1:],
        interval=TWO_AND_TWO,
        dependence=target.dependence,
    )


def _target_log_loss(target: Target, level: float) -> Estimate:
    hit, miss = surprisal(target.score), surprisal(1.0 - target.score)
    return _target_loss(target, hit, miss, level, TOP_LABEL_LOG_LOSS)


def _target_brier(target: Target, level: float) -> Estimate:
    hit, miss = np.square(target.score - 1.0), np.square(target.score)
    return _target_loss(target, hit, miss, level, TOP_LABEL_BRIER)


def _target_loss(
    target: Target,
    hit: FloatArray,
    miss: FloatArray,
    level: float,
    quantity: Quantity,
) -> Estimate:
    """Mean loss, from each row's loss if its prediction is right (``hit``) and if it is wrong.

    A few rows with no or few errors show too little variance. The interval therefore uses at least
    the variance of outcomes under the model's own probabilities. Half a hit and half a miss are
    added to each row, so that a stated 0 or 1 is not certain.
    """
    loss = np.where(target.hit == 1.0, hit, miss)
    weight = target.weight
    effective = kish(weight)
    chance = (target.score * effective + 0.5) / (effective + 1.0)
    own = chance * (1.0 - chance) * np.square(miss - hit)
    floor = float(np.sqrt(np.square(weight) @ own)) / float(weight.sum())
    value, low, high = mean_interval(loss, weight, level, dependence=target.dependence)
    half = normal_quantile(level) * floor
    bounds = min(low, value - half), max(high, value + half)
    return _mean(
        loss, weight, level, quantity,
        bounds=bounds, interval=OWN_VARIANCE, dependence=target.dependence,
    )  # fmt: skip


def _mean(
    values: FloatArray,
    weight: FloatArray,
    level: float,
    quantity: Quantity,
    bounds: tuple[float, float] | None = None,
    interval: str = "normal",
    dependence: Dependence | None = None,
) -> Estimate:
    """A weighted mean with its normal interval (or ``bounds``), cut to its possible range."""
    check_level(level)
    value, low, high = np.nan, np.nan, np.nan
    if len(values):
        value, low, high = mean_interval(values, weight, level, dependence=dependence)
        low, high = bounds or (low, high)
    return quantity.estimate(value, (low, high), len(values), level, interval)


def brier_decomposition(
    proba: Any,
    y: Any,
    *,
    of: Literal["top-label", "vector"] = "top-label",
    level: float = 0.95,
    seed: int = 0,
    sample_weight: Any = None,
) -> tuple[Estimate, Estimate, Estimate]:
    """Miscalibration, discrimination and uncertainty: Brier = MCB - DSC + UNC, exactly.

    The CORP split (Dimitriadis, Gneiting and Jordan 2021): with c the isotonic regression of
    the outcomes on the scores and m their mean, MCB = Brier(score) - Brier(c), DSC = Brier(m) -
    Brier(c), UNC = Brier(m). MCB is what calibration can correct; UNC - DSC is the refinement.

    Parameters
    ----------
    proba, y, level, sample_weight
        As in :func:`kdcal_core.diagnostics.reliability`.
    of : {"top-label", "vector"}
        "top-label": whether the predicted class is right (Salamon et al., Eq. 15). "vector": all
        probabilities; the Brier score is the sum over the classes, each split separately.
    seed : int
        Seed of the draws behind the intervals and the miscalibration's ``expected``.

    Returns
    -------
    tuple of three Estimate
        Miscalibration and discrimination are too large by what the isotonic curve fits of the
        rows' noise; their intervals allow for it (Notes). That of uncertainty is normal.

    Notes
    -----
    The intervals invert a test, as those of :func:`kdcal_core.diagnostics.calibration_error`: they
    hold the true parts for which the observed one is no outlier. Outcomes are drawn from the
    scores, and from a truth that the rows support, and the curve is fitted anew on each draw
    (:func:`kdcal_core.diagnostics.split_noise.split_intervals`). If noise raises a value above all
    that the rows support, the interval ends at the value. tests/benchmarks/RESULTS_coverage.md
    lists the measured coverage: 93.5 to 99.0% (miscalibration) and 94.8 to 97.0% (discrimination).
    With the curve held fixed instead, an interval of a calibrated model's miscalibration never
    contained its true value, 0.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> mcb, dsc, unc = brier_decomposition(proba, [0, 0, 1, 0])
    >>> round(mcb.value - dsc.value + unc.value, 6) == round((0.01 + 0.04 + 0.09 + 0.36) / 4, 6)
    True
    """
    check_choice("of", of, ("top-label", "vector"))
    found = targets(proba, y, sample_weight, "confidence" if of == "top-label" else "class")
    return _decompose(found, of, level, seed)


@dataclass(frozen=True)
class BrierSplit:
    """The parts of the full-vector Brier score: ``miscalibration - discrimination + uncertainty``.

    All as in :func:`brier_decomposition`, without intervals.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float

    @property
    def score(self) -> float:
        """The Brier score."""
        return self.miscalibration - self.discrimination + self.uncertainty


def brier_split(proba: Any, y: Any, *, sample_weight: Any = None) -> BrierSplit:
    """The parts of the full-vector Brier score; arguments as for :func:`brier_decomposition`.

    Examples
    --------
    >>> brier_split([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]], [0, 0, 1, 0]).score
    0.25
    """
    weight = checked(proba, y, sample_weight)[2]
    return split_of_parts(brier_parts(proba, y, sample_weight), weight)


def brier_parts(proba: Any, y: Any, sample_weight: Any = None) -> FloatArray:
    """Each row's part of miscalibration, discrimination and uncertainty, all classes, (3, n)."""
    found = targets(proba, y, sample_weight, "class")
    return np.asarray(sum(split_rows(target) for target in found))


def split_of_parts(parts: FloatArray, weight: FloatArray) -> BrierSplit:
    """:func:`brier_split` from the rows' parts (3, n) and their weights."""
    return BrierSplit(*(float(max(one, 0.0)) for one in parts @ (weight / weight.sum())))


def confidence_brier_decomposition(
    confidence: Any,
    correct: Any,
    *,
    level: float = 0.95,
    seed: int = 0,
    sample_weight: Any = None,
) -> tuple[Estimate, Estimate, Estimate]:
    """:func:`brier_decomposition` of confidences (n,) and whether each row was right.

    Examples
    --------
    >>> confidence_brier_decomposition([0.5, 0.5], [1, 0])[0].value
    0.0
    """
    found = (confidence_target(confidence, correct, sample_weight),)
    return _decompose(found, "top-label", level, seed)


def _decompose(
    found: tuple[Target, ...], of: str, level: float, seed: int
) -> tuple[Estimate, Estimate, Estimate]:
    check_level(level)
    rng = np.random.default_rng(seed)
    n, weight = len(found[0].score), found[0].weight
    dependence = found[0].dependence
    parts, likely = np.zeros((3, n)), np.zeros((2, n))
    cells = [fine_cells(target) for target in found]
    floor = sum(expected_miscalibration(one, rng) for one in cells) if dependence is None else 0.0
    draws, truths = interval_draws(len(found)), []
    for target, one in zip(found, cells, strict=True):
        parts += split_rows(target)
        table = bin_table(target, edges_for(target, LIKELY_BINS, "quantile"))
        noise = partial(noise_of_units, target, one)
        truths.append(LikelyTruth.of(one, table, draws, rng, overall_effect(target), noise))
        best = np.square(truths[-1].at(target.score) - target.hit)
        base = np.square(float(weight @ target.hit / weight.sum()) - target.hit)
        likely += np.square(target.score - target.hit) - best, base - best
    if dependence is not None:
        floor = float(sum(one.noise[0].mean() for one in truths))
    means = [mean_interval(values, weight, level, dependence=dependence) for values in parts]
    fixed = [mean_interval(values, weight, level, dependence=dependence) for values in likely]
    halves = (fixed[0][2] - fixed[0][0], fixed[1][2] - fixed[1][0])
    ends = split_intervals(truths, halves, level, rng)
    return split_of([one[0] for one in means], [*ends, means[2][1:]], n, level, of, floor, draws)


def split_of(
    values: Sequence[float],
    ends: Sequence[tuple[float, float]],
    n: int,
    level: float,
    of: str,
    floor: float,
    draws: int,
) -> tuple[Estimate, Estimate, Estimate]:
    """:func:`brier_decomposition` from the three values and the ends of their intervals."""
    noun = "top-label Brier score" if of == "top-label" else "full-vector Brier score"
    inverted = f"test inversion, {draws} draws"
    said: tuple[tuple[str, bool | None, float | None, str], ...] = (
        ("Miscalibration", True, floor, inverted),
        ("Discrimination", False, None, inverted),
        ("Uncertainty", None, None, "normal"),
    )
    miscalibration, discrimination, uncertainty = (
        _part((value, *end), n, level, label, noun, lower, expected, interval)
        for value, end, (label, lower, expected, interval) in zip(values, ends, said, strict=True)
    )
    return miscalibration, discrimination, uncertainty


def _part(
    found: tuple[float, float, float],
    n: int,
    level: float,
    label: str,
    noun: str,
    lower_is_better: bool | None,
    expected: float | None,
    interval: str,
) -> Estimate:
    value, low, high = found
    value = max(value, 0.0)  # below 0 only by a rounding error
    return Estimate(
        name=f"{label} part of the {noun} (CORP)",
        label=f"Top-label {label.lower()}" if noun.startswith("top-label") else label,
        value=value,
        low=min(max(low, 0.0), value),
        high=max(min(high, 2.0), value),
        n=n,
        level=level,
        interval=interval,
        expected=expected,
        lower_is_better=lower_is_better,
    )


def split_rows(target: Target) -> FloatArray:
    """Each row's part of miscalibration, discrimination and uncertainty, (3, n).

    The isotonic curve is of distinct scores.
    """
    order = np.argsort(target.score)
    score, hit, weight = target.score[order], target.hit[order], target.weight[order]
    start = np.flatnonzero(np.diff(score, prepend=-1.0) != 0.0)
    mass = np.add.reduceat(weight, start)
    cells = FineCells(score[start], mass, mass, np.add.reduceat(weight * hit, start))
    recalibrated = np.repeat(isotonic_values(cells), np.diff(np.append(start, len(score))))
    best = np.square(recalibrated - hit)
    base = np.square(float(weight @ hit / weight.sum()) - hit)
    parts = np.empty((3, len(score)))
    parts[:, order] = np.square(score - hit) - best, base - best, base
    return parts


def hellinger_distances(p: Any, q: Any) -> FloatArray:
    """Hellinger distance of each row's two distributions over K classes, (n,) in [0, 1].

    The square root of half the sum of squares of sqrt(p) - sqrt(q).

    Parameters
    ----------
    p, q : (n, K) array-like
        Probabilities, each row summing to one.

    Raises
    ------
    InputError
        For values that are not probabilities (the row is named), or two shapes that differ.

    Examples
    --------
    >>> hellinger_distances([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]).tolist()
    [1.0, 0.0]
    """
    named = column_names(p)
    p, q = check_columns(p), check_columns(q, named)
    if p.shape != q.shape:
        raise InputError(
            f"The probabilities have shapes {p.shape} and {q.shape}",
            fix="Give both for the same rows and classes.",
        )
    square = 0.5 * np.square(np.sqrt(p) - np.sqrt(q)).sum(axis=1)
    return np.asarray(np.sqrt(np.minimum(square, 1.0)))


def hellinger_distance(p: Any, q: Any, *, level: float = 0.95) -> Estimate:
    """Mean over the rows of :func:`hellinger_distances`, with its interval.

    Examples
    --------
    >>> hellinger_distance([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]).value
    0.5
    """
    check_level(level)
    distances = hellinger_distances(p, q)
    value, low, high = bounded_mean_interval(distances, np.ones(len(distances)), 0.0, 1.0, level)
    return Estimate(
        name="Mean Hellinger distance between posteriors",
        label="Hellinger distance",
        value=value,
        low=low,
        high=high,
        n=len(distances),
        level=level,
        interval="normal, four rows at the ends of the range added",
    )
