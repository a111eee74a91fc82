"""The row of tiles at the top of a page, and everything for the table below it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from kdcal_core.calibration.calibrator_base import top_label
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics.beside_trivial import gain_over_most_frequent, gains_over_shares
from kdcal_core.diagnostics.between_sets import differences_between_sets
from kdcal_core.diagnostics.calibration_error import (
    calibration_error,
    confidence_calibration_error,
)
from kdcal_core.diagnostics.calibration_line import target_intercept, target_slope
from kdcal_core.diagnostics.estimate import EVENT_GAP, Estimate, of_event
from kdcal_core.diagnostics.score_range import certain_and_wrong, certain_share, score_range
from kdcal_core.diagnostics.scores import (
    accuracy,
    auroc,
    brier,
    brier_decomposition,
    confidence_brier,
    confidence_brier_decomposition,
    confidence_log_loss,
    log_loss,
    mean_max_confidence,
    target_gap,
    top_label_brier,
)
from kdcal_core.diagnostics.smooth_error import (
    confidence_smooth_calibration_error,
    smooth_calibration_error,
)
from kdcal_core.diagnostics.spiegelhalter import brier_gap
from kdcal_core.diagnostics.targets import Kind, Target, confidence_target, targets


def summary(
    scored: ScoredSet, confidence: Any = None, *, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, Estimate, Estimate, Estimate]:
    """Four tiles: accuracy, confidence gap, confidence ECE, top-label log loss.

    They show how often the model is right, how over- or under-confident it is, and how far its
    confidences are off in both directions. The log loss is a proper score, which a calibrator
    cannot improve by stating the same confidence everywhere. All four exist for a model and for
    calibrated confidences, so the two can be compared.

    Parameters
    ----------
    scored : ScoredSet
    confidence : (n,) array in [0, 1], optional
        Calibrated confidence in the model's predicted class, in place of its probability.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.3, 0.7]])
    >>> scored = ScoredSet(proba, np.array([0, 0]), ("a", "b"), "digest", "evaluation")
    >>> [tile.label for tile in summary(scored)]
    ['Accuracy', 'Confidence gap', 'ECE', 'Top-label log loss']
    """
    target = _target(scored, confidence)
    said, right, weight = target.score, target.hit, scored.design
    return (
        accuracy(scored.proba, scored.y, level=level, sample_weight=weight),
        target_gap(target, level),
        confidence_calibration_error(said, right, level=level, seed=seed, sample_weight=weight),
        confidence_log_loss(said, right, level=level, sample_weight=weight),
    )


def event_summary(
    scored: ScoredSet, event: int, *, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, Estimate, Estimate, Estimate]:
    """Four tiles of one class's probability: AUC, mean less rate, calibration error, log loss.

    Parameters
    ----------
    scored : ScoredSet
    event : int
        The class, from 0.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.3, 0.7]])
    >>> scored = ScoredSet(proba, np.array([0, 1]), ("no", "yes"), "digest", "evaluation")
    >>> [tile.label for tile in event_summary(scored, 1)]
    ['AUROC', 'Probability minus rate', 'ECE', 'Log loss']
    """
    (target,) = targets(scored.proba, scored.y, scored.design, "class", event)
    hit, weight = (scored.y == event).astype(np.int64), scored.design
    pair = np.stack([1.0 - target.score, target.score], axis=1)
    names = (f"not {scored.classes[event]}", scored.classes[event])
    return (
        auroc(pair, hit, level=level, sample_weight=weight, classes=names),
        event_gap(target, level),
        event_calibration_error(target, level, seed),
        of_event(log_loss(pair, hit, level=level, sample_weight=weight)),
    )


def event_gap(target: Target, level: float) -> Estimate:
    """Mean probability of the event less the rate at which it happens."""
    return replace(
        target_gap(target, level), name="Mean probability minus event rate", label=EVENT_GAP
    )


def event_calibration_error(target: Target, level: float, seed: int = 0) -> Estimate:
    """The expected calibration error of the event's probability, 15 equal-width bins."""
    return of_event(
        confidence_calibration_error(
            target.score,
            target.hit.astype(np.int64),
            level=level,
            seed=seed,
            sample_weight=target.design,
        )
    )


def all_estimates(
    scored: ScoredSet, confidence: Any = None, *, level: float = 0.95, seed: int = 0
) -> tuple[Estimate, ...]:
    """Every scalar estimate of the model, or of calibrated confidences if they are given.

    Calibrated confidences concern only the predicted class, so they have no estimates of the full
    vector.
    """
    tiles = summary(scored, confidence, level=level, seed=seed)
    if confidence is None:
        return (*tiles, *_of_model(scored, level, seed))
    return (*tiles, *_of_confidence(_target(scored, confidence), scored.design, level, seed))


def question_estimates(
    scored: ScoredSet, known: ScoredSet | None = None, event: int | None = None, *,
    level: float = 0.95, seed: int = 0,
) -> tuple[Estimate, ...]:  # fmt: skip
    """What checks judge of a set beside :func:`all_estimates`, for one question.

    The line in the log odds, the Brier score beside its expectation
    (Spiegelhalter's test), the range of what is stated, the gains over
    trivial rules, the differences from another set, and stated minus observed of every class.

    Parameters
    ----------
    scored : ScoredSet
    known : ScoredSet, optional
        Another set: it says which class is the most frequent and the classes' shares, and is
        compared with.
    event : int, optional
        The class whose probability is asked about; without it the confidence.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.3, 0.7]])
    >>> scored = ScoredSet(proba, np.array([0, 1]), ("no", "yes"), "digest", "evaluation")
    >>> [one.label for one in question_estimates(scored, event=1)][2:5]
    ['Calibration intercept', 'Calibration slope', 'Brier minus expected']
    """
    kind: Kind = "confidence" if event is None else "class"
    (target,) = targets(scored.proba, scored.y, scored.design, kind, event)
    what = "the confidence" if event is None else "the event's probability"
    line = (
        target_intercept(target, level),
        target_slope(target, level),
        brier_gap(target, level),
    )
    named = [replace(one, name=f"{one.name}, of {what}") for one in line]
    stated = score_range(target.score, level=level, sample_weight=target.design)
    own = (
        ()
        if event is None
        else (event_gap(target, level), event_calibration_error(target, level, seed))
    )
    between = () if known is None else differences_between_sets(scored, known, event, level=level)
    return (
        *own,
        *named,
        replace(stated, name=f"{stated.name}, of {what}"),
        certain_share(scored.proba, level=level, sample_weight=scored.design),
        certain_and_wrong(scored.proba, scored.y, level=level, sample_weight=scored.design),
        gain_over_most_frequent(scored, known, level=level),
        *gains_over_shares(scored, known, level=level),
        *between,
        *class_gaps(scored, "top-label", level=level),
        *(() if event is not None else class_gaps(scored, "class", level=level)),
    )


CLASS_GAPS = {
    "top-label": ("Mean confidence minus accuracy of the rows predicted as", "Confidence gap"),
    "class": ("Mean probability of a class minus its share", "Probability minus share"),
}
"""What the estimates of :func:`class_gaps` are, before the name of the class, and their labels."""


def class_gaps(
    scored: ScoredSet, kind: Literal["top-label", "class"], *, level: float = 0.95
) -> tuple[Estimate, ...]:
    """Mean stated minus observed of every class that has rows; of two, one says what both do.

    "top-label": of the rows predicted to be the class, confidence minus accuracy. "class": over all
    rows, the probability of the class minus its share. The name of an estimate holds its class:
    untrusted text.

    Examples
    --------
    >>> import numpy as np
    >>> proba = np.array([[0.9, 0.1], [0.3, 0.7]])
    >>> scored = ScoredSet(proba, np.array([0, 1]), ("no", "yes"), "digest", "evaluation")
    >>> [one.name for one in class_gaps(scored, "class")]
    ['Mean probability of a class minus its share: yes']
    """
    found = targets(scored.proba, scored.y, scored.design, kind)
    shown = found[1:] if kind == "class" and len(found) == 2 else found
    what, label = CLASS_GAPS[kind]
    return tuple(
        replace(
            target_gap(one, level), name=f"{what}: {scored.classes[one.label or 0]}", label=label
        )
        for one in shown
        if len(one.hit)
    )


def _target(scored: ScoredSet, confidence: Any) -> Target:
    if confidence is None:
        return targets(scored.proba, scored.y, scored.design, "confidence")[0]
    right = top_label(scored.proba)[0] == scored.y
    return confidence_target(confidence, right, scored.design)


def _of_model(scored: ScoredSet, level: float, seed: int) -> tuple[Estimate, ...]:
    proba, y = scored.proba, scored.y
    plain: dict[str, Any] = {"level": level, "sample_weight": scored.design}
    drawn: dict[str, Any] = {**plain, "seed": seed}
    return (
        calibration_error(proba, y, strategy="quantile", **drawn),
        calibration_error(proba, y, debiased=True, **drawn),
        calibration_error(proba, y, norm="l2", debiased=True, **drawn),
        calibration_error(proba, y, norm="max", **drawn),
        smooth_calibration_error(proba, y, **drawn),
        calibration_error(proba, y, kind="top-label", **drawn),
        calibration_error(proba, y, kind="class", **drawn),
        log_loss(proba, y, **plain),
        brier(proba, y, **plain),
        *brier_decomposition(proba, y, of="vector", **drawn),
        top_label_brier(proba, y, **plain),
        *brier_decomposition(proba, y, **drawn),
        auroc(proba, y, classes=scored.classes, **plain),
        mean_max_confidence(proba, y, **plain),
        mean_max_confidence(proba, y, of="errors", **plain),
    )


def _of_confidence(target: Target, weight: Any, level: float, seed: int) -> tuple[Estimate, ...]:
    said, right = target.score, target.hit
    plain: dict[str, Any] = {"level": level, "sample_weight": weight}
    drawn: dict[str, Any] = {**plain, "seed": seed}
    return (
        confidence_calibration_error(said, right, strategy="quantile", **drawn),
        confidence_calibration_error(said, right, debiased=True, **drawn),
        confidence_calibration_error(said, right, norm="l2", debiased=True, **drawn),
        confidence_calibration_error(said, right, norm="max", **drawn),
        confidence_smooth_calibration_error(said, right, **drawn),
        confidence_brier(said, right, **plain),
        *confidence_brier_decomposition(said, right, **drawn),
    )
