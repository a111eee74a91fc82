"""Measures of stated probabilities: proper scores, calibration errors, ranking, speed, far rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, ScoredSet, check_weight
from kdcal_core.diagnostics.all_estimates import all_estimates
from kdcal_core.diagnostics.auc import Pairing, paired_auc
from kdcal_core.diagnostics.calibration_error import (
    calibration_error,
    confidence_calibration_error,
    error_label,
)
from kdcal_core.diagnostics.estimate import Estimate, share_estimate
from kdcal_core.diagnostics.foreign_scores import ood_calibration_error
from kdcal_core.diagnostics.influence import Influence, all_influences
from kdcal_core.diagnostics.regression import paired_difference
from kdcal_core.diagnostics.regression.coverage import mean_estimate
from kdcal_core.diagnostics.scores import (
    accuracy,
    auroc,
    brier,
    confidence_gap,
    log_loss,
    mean_max_confidence,
    top_label_log_loss,
)
from kdcal_core.diagnostics.smooth_error import (
    confidence_smooth_calibration_error,
    smooth_calibration_error,
)
from kdcal_core.diagnostics.targets import Norm, targets
from kdcal_core.evaluation.counted_pair import SMOOTH_DRAWS, CountedPair
from kdcal_core.evaluation.measures import (
    MEASURES,
    ByRow,
    BySet,
    Compared,
    Counted,
    Drawn,
    Judged,
    Measure,
    Paired,
)
from kdcal_core.evaluation.spread import (
    Spread,
    binned_spread,
    of_areas,
    of_means,
    resampled_bins,
    smooth_spread,
)
from kdcal_core.statistics import (
    brier_losses,
    dependence_of,
    effective_size,
    log_losses,
)

BINS = 15


def _less(title: str, by_row: ByRow) -> Paired:
    """Difference of two methods in the mean of a row's loss."""

    def paired(
        a: Any, b: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None, **given: Any
    ) -> Estimate:
        return paired_difference(
            by_row(a, y, **given),
            by_row(b, y, **given),
            weight=sample_weight,
            level=level,
            name=title,
            label=title,
        )

    return paired


def _less_area(
    a: Any, b: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """Difference of two methods in the AUROC of the second of two classes."""
    (score_a, score_b) = (np.asarray(proba)[:, 1] for proba in (a, b))
    return paired_auc(score_b, score_a, y, level=level, sample_weight=sample_weight).difference


def _mean(by_set: BySet, by_row: ByRow) -> Compared:
    """Comparison of methods by the mean of a row's loss."""

    def compared(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
        y, design = judged.y, judged.design
        shown = [
            by_set(one.proba, y, level=drawn.level, sample_weight=design) for one in judged.found
        ]
        losses = np.array([by_row(one.proba, y) for one in judged.found])
        return shown, of_means(losses, judged.weight, dependence=judged.dependence)

    return compared


def _binned(norm: Norm, debiased: bool) -> Compared:
    """Comparison of methods by a calibration error of the confidence, or of the event."""

    def compared(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
        problems = [judged.stated(one) for one in judged.found]
        shown = [
            judged.named(
                confidence_calibration_error(
                    one.score,
                    one.hit.astype(np.int64),
                    norm=norm,
                    n_bins=BINS,
                    debiased=debiased,
                    level=drawn.level,
                    n_boot=len(drawn.rows.times),
                    seed=drawn.seed,
                    sample_weight=one.design,
                )
            )
            for one in problems
        ]
        # the same bins for every norm, and the same spread for the debiased value of a norm
        alone = [(one,) for one in problems]
        bins = drawn.once(
            "bins", lambda: resampled_bins(alone, "uniform", BINS, drawn.rows, drawn.seed)
        )
        return shown, drawn.once(f"spread {norm}", lambda: binned_spread(bins, norm))

    return compared


def _smooth(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
    problems = [judged.stated(one) for one in judged.found]
    few = min(len(drawn.rows.times), SMOOTH_DRAWS)
    shown = [
        judged.named(
            confidence_smooth_calibration_error(
                one.score,
                one.hit.astype(np.int64),
                n_boot=few,
                level=drawn.level,
                seed=drawn.seed,
                sample_weight=one.design,
            )
        )
        for one in problems
    ]
    return shown, smooth_spread(problems, few, drawn.seed)


def _classwise(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
    shown = [
        calibration_error(
            one.proba,
            judged.y,
            kind="class",
            n_bins=BINS,
            level=drawn.level,
            n_boot=len(drawn.rows.times),
            seed=drawn.seed,
            sample_weight=judged.design,
        )
        for one in judged.found
    ]
    problems = [targets(one.proba, judged.y, judged.design, "class") for one in judged.found]
    bins = resampled_bins(problems, "uniform", BINS, drawn.rows, drawn.seed)
    return shown, binned_spread(bins, "l1")


def _far(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread] | None:
    """Distance to the prior's confidence: far from the data, less than the prior's is no better."""
    if not judged.far:
        return None
    expected = float(judged.prior.max())
    losses = np.array([np.abs(proba.max(axis=1) - expected) for proba in judged.far])
    shown = [
        ood_calibration_error(
            proba,
            judged.prior,
            prior_kind="empirical",
            prior_rows=judged.prior_rows,
            level=drawn.level,
            dependence=judged.far_dependence,
        )
        for proba in judged.far
    ]
    ones = np.ones(losses.shape[1])
    return shown, of_means(losses, ones, floor=1.0, dependence=judged.far_dependence)


def _auc(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread] | None:
    """Areas under the ROC curve; the model's is over all rows, as on every page.

    A method's area is the model's plus the difference between the two with rows ranked only within
    their fold. With one fold that is the method's area over all rows.
    """
    rows = judged.y, judged.weight, judged.n_classes
    whole = Pairing.of(*rows, dependence=judged.dependence)
    inside = Pairing.of(*rows, judged.fold, judged.dependence)
    if not inside.curves:  # so few rows that every fold holds one class
        inside = whole
    if not inside.curves:
        return None
    areas, parts = zip(*(inside.area(one.proba) for one in judged.found), strict=True)
    area, part = whole.area(judged.found[0].proba)
    shown = [
        _area_estimate(judged, whole, area, part, drawn.level)
        if at == 0
        else _area_estimate(
            judged,
            whole,
            float(np.clip(area + (own - areas[0]), 0.0, 1.0)),
            part + (own_part - parts[0]),
            drawn.level,
        )
        for at, (own, own_part) in enumerate(zip(areas, parts, strict=True))
    ]
    spread = of_areas(
        np.array(areas), np.array(parts), inside.lead, judged.y, judged.weight, judged.dependence
    )
    return shown, spread


def _area_estimate(
    judged: Judged, pairing: Pairing, area: float, part: FloatArray, level: float
) -> Estimate:
    low, high, how = pairing.interval(area, part, level)
    folds = len(np.unique(judged.fold)) > 1
    within = ", the model's plus the change inside folds" if folds else ""
    return Estimate(
        name=f"AUROC: {pairing.words(judged.classes)}{within}",
        label="AUROC",
        value=area,
        low=low,
        high=high,
        n=len(judged.y),
        level=level,
        interval=how,
    )


def _accuracy(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
    right = np.array([one.predicted == judged.y for one in judged.found], dtype=np.float64)
    shown = []
    rates = right @ judged.weight / judged.weight.sum()
    for rate, hit in zip(rates, right, strict=True):
        rows = effective_size(hit - rate, judged.weight, judged.dependence)
        name = "Accuracy of the predicted class"
        shown.append(share_estimate(name, "Accuracy", rate, rows, len(judged.y), drawn.level))
    return shown, of_means(right, judged.weight, 1.0, judged.dependence)


def row_measure(
    key: str,
    title: str,
    meaning: str,
    unit: str,
    by_row: ByRow,
    by_set: BySet | None = None,
    *,
    counted: Counted | None = None,
    on_card: bool = False,
) -> Measure:
    """A measure that is the mean of a row's loss, by which calibrators are compared.

    Parameters
    ----------
    key, title, meaning, unit, counted, on_card
        As in `Measure`.
    by_row : callable
        ``(proba, y) -> (n,)``, lower is better.
    by_set : callable, optional
        Its estimate over a set; by default the mean with its normal interval.
    """

    def mean(proba: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
        values, dependence = by_row(proba, y), dependence_of(sample_weight)
        weight = check_weight(sample_weight, len(values))
        return mean_estimate(values, weight, level, title, title, dependence=dependence)

    whole = by_set or mean
    return Measure(
        key,
        title,
        meaning,
        unit,
        True,
        "inside",
        "paired t test of the rows' losses",
        by_row,
        whole,
        _less(title, by_row),
        _mean(whole, by_row),
        counted,
        on_card=on_card,
    )


def estimates_of(scored: ScoredSet, *, level: float = 0.95) -> tuple[Estimate, ...]:
    """Every estimate of a set: those of `all_estimates`, and all further measures of the list."""
    known = all_estimates(scored, level=level)
    labels = {one.label for one in known}
    return (
        *known,
        *(
            one.by_set(scored.proba, scored.y, level=level, sample_weight=scored.design)
            for one in MEASURES.values()
            if one.by_set is not None and one.title not in labels
        ),
    )


def influences_of(scored: ScoredSet, estimates: Sequence[Estimate]) -> tuple[Influence, ...]:
    """Influence values of the rows (n,) on every estimate of :func:`estimates_of`, in its order.

    Parameters
    ----------
    estimates : sequence of Estimate
        Those that the set has.
    """
    known = all_influences(scored)
    titles = {one.title: one.by_row for one in MEASURES.values()}
    rest = [titles.get(one.label) for one in estimates[len(known) :]]
    return (
        *known,
        *(None if one is None else one(scored.proba, scored.y) for one in rest),
    )


_T_TEST = "paired t test of the rows' losses"
_ERRORS = "both errors resampled on the same rows, at the least favourable true errors"
_DELONG = "DeLong's covariances, with t quantiles"
_BY_CHANCE = "It is above 0 by chance alone, so compare it with what chance gives."
_OCE = (
    "Out-of-distribution calibration error: how far the confidence on foreign rows lies from the "
    "prior's, on average. 0 is best: of a row unlike the data, all that is known is how often each "
    "class occurs."
)

row_measure(
    "log_loss",
    "Log loss",
    "A score of the whole stated probability. Lower is better: confident predictions that are "
    "wrong cost most.",
    "nats",
    log_losses,
    log_loss,
    counted=CountedPair.log_loss,
    on_card=True,
).offer()

row_measure(
    "brier",
    "Brier score",
    "Squared distance between the stated probabilities and the true class. Lower is "
    "better: like log loss, but a confident prediction that is wrong costs at most 2. "
    "With two classes it is twice the Brier score of the event alone.",
    "squared probability",
    brier_losses,
    brier,
    counted=CountedPair.brier,
    on_card=True,
).offer()

Measure(
    "ece",
    error_label("l1", BINS),
    "Expected calibration error: how far the stated probability and the observed rate lie apart, "
    f"on average over the bins. {_BY_CHANCE}",
    "probability",
    True,
    "inside",
    _ERRORS,
    by_set=calibration_error,
    compared=_binned("l1", False),
    counted=lambda pair: pair.binned("l1"),
).offer()

Measure(
    "ece_debiased",
    error_label("l1", BINS, debiased=True),
    "Expected calibration error less what chance alone adds to it: near 0 where the model "
    "is calibrated.",
    "probability",
    True,
    "inside",
    _ERRORS,
    by_set=partial(calibration_error, debiased=True),
    compared=_binned("l1", True),
    counted=lambda pair: pair.binned("l1", debiased=True),
    on_card=True,
).offer()

Measure(
    "l2",
    error_label("l2", BINS, debiased=True),
    "Root mean square of the gaps between stated probability and observed rate over the bins, "
    "less what chance alone adds: large gaps count more than in the ECE.",
    "probability",
    True,
    "inside",
    _ERRORS,
    by_set=partial(calibration_error, norm="l2", debiased=True),
    compared=_binned("l2", True),
    counted=lambda pair: pair.binned("l2", debiased=True),
).offer()

Measure(
    "smooth_ece",
    "Smooth ECE",
    "Calibration error without bins: the gap between stated probability and observed rate, "
    f"smoothed along the probability. {_BY_CHANCE}",
    "probability",
    True,
    "inside",
    _ERRORS,
    by_set=smooth_calibration_error,
    compared=_smooth,
    counted=CountedPair.smooth,
    on_card=True,
).offer()

Measure(
    "mce",
    error_label("max", BINS),
    "Maximum calibration error: the largest gap between stated probability and observed rate in "
    "any bin. A bin with few rows can decide it alone.",
    "probability",
    True,
    "inside",
    _ERRORS,
    by_set=partial(calibration_error, norm="max"),
    compared=_binned("max", False),
    counted=lambda pair: pair.binned("max"),
).offer()

Measure(
    "classwise_ece",
    error_label("l1", BINS, kind="class"),
    "Calibration error of every class's probability, not of the predicted class alone, on "
    f"average over the classes. {_BY_CHANCE}",
    "probability",
    True,
    "inside",
    _ERRORS,
    by_set=partial(calibration_error, kind="class"),
    compared=_classwise,
    counted=CountedPair.classwise,
).offer()

Measure("oce", "OCE far away", _OCE, "probability", True, "outside", _T_TEST, compared=_far).offer()

Measure(
    "auc",
    "AUROC",
    "The chance that a row of the second class is given a higher probability of it than a "
    "row of the first. 1 is best, 0.5 is guessing. It depends on the order of the rows "
    "alone.",
    "share",
    False,
    "ranking",
    _DELONG,
    by_set=auroc,
    paired=_less_area,
    compared=_auc,
    counted=CountedPair.area,
    on_card=True,
).offer()

Measure(
    "accuracy",
    "Accuracy",
    "How often the predicted class is the true one.",
    "share",
    False,
    "ranking",
    _T_TEST,
    by_set=accuracy,
    compared=_accuracy,
    counted=CountedPair.accuracy,
    on_card=True,
).offer()

Measure(
    "fit_seconds",
    "Seconds to fit",
    "Time to fit the calibrator once, on this machine.",
    "seconds",
    True,
    "speed",
).offer()

Measure(
    "predict_seconds",
    "Seconds for a million rows",
    "Time to calibrate a million rows, on this machine.",
    "seconds",
    True,
    "speed",
).offer()

Measure(
    "size_bytes",
    "Bytes when fitted",
    "Memory that the fitted calibrator takes.",
    "bytes",
    True,
    "speed",
).offer()

Measure(
    "top_label_log_loss",
    "Top-label log loss",
    "A score of the stated confidence. Lower is better: confident predictions that are wrong "
    "cost most.",
    "nats",
    True,
    "confidence",
    by_set=top_label_log_loss,
).offer()

Measure(
    "confidence_gap",
    "Confidence gap",
    "Stated confidence minus accuracy, on average and in percentage points: above 0 the "
    "model is over-confident, below 0 under-confident.",
    "percentage points",
    None,
    "confidence",
    by_set=confidence_gap,
).offer()

Measure(
    "mean_confidence",
    "Mean confidence",
    "Probability of the predicted class, on average.",
    "probability",
    None,
    "confidence",
    by_set=mean_max_confidence,
).offer()

for kind in ("empirical", "given"):
    Measure(
        "oce_prior" if kind == "empirical" else "oce_given_prior",
        f"OCE, {kind} prior",
        _OCE,
        "probability",
        True,
        "foreign",
    ).offer()

Measure(
    "unknown",
    "Called unknown",
    "Ordinary rows that lie below the floor and therefore count as unknown: the price of caution, "
    "set by alpha.",
    "share",
    True,
    "foreign",
).offer()

Measure(
    "error",
    "Error",
    "Share of fresh rows whose predicted class is wrong.",
    "share",
    True,
    "simulation",
).offer()

Measure(
    "hellinger",
    "Hellinger distance",
    "How far the stated probabilities lie from the true ones, on average over fresh rows: 0 where "
    "they are equal, 1 where they share no class.",
    "0 to 1",
    True,
    "simulation",
).offer()

Measure(
    "box",
    "Hellinger, box",
    "The same over the points of the map that lie in the box, as in the papers. It counts "
    "places without rows as well, where no method can know the class; the interval treats the "
    "points as a random sample.",
    "0 to 1",
    True,
    "simulation",
).offer()

Measure(
    "confidence",
    "Confidence at radius 2",
    "Mean probability of the predicted class on a sphere of twice the rows' largest norm. It "
    "should be the prior's.",
    "probability",
    None,
    "simulation",
).offer()
