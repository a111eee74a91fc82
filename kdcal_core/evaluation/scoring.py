"""Every measure of every method, with its interval and with what comparing two of them needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kdcal_core.calibration import Calibrated
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.calibration_error import (
    RowDraws,
    calibration_error,
    confidence_calibration_error,
    error_label,
    row_draws,
)
from kdcal_core.diagnostics.foreign_scores import ood_calibration_error
from kdcal_core.diagnostics.ranking import Pairing
from kdcal_core.diagnostics.results import Estimate, Norm
from kdcal_core.diagnostics.scores import brier, log_loss
from kdcal_core.diagnostics.smooth_error import confidence_smooth_calibration_error
from kdcal_core.diagnostics.targets import Target, confidence_target, targets
from kdcal_core.evaluation.comparison import Measure
from kdcal_core.evaluation.error_draws import binned_spread, smooth_spread
from kdcal_core.evaluation.spread import Spread, of_areas, of_means
from kdcal_core.progress import Progress
from kdcal_core.statistics import brier_losses, clopper_pearson, kish, log_losses

BINS = 15
SMOOTH_DRAWS = 200

MEASURES: dict[str, Measure] = {
    one.key: one
    for one in (
        Measure("log_loss", "Log loss", True, "inside"),
        Measure("brier", "Brier score", True, "inside"),
        Measure("ece", "ECE, equal-width bins", True, "inside"),
        Measure("ece_debiased", error_label("l1", BINS, debiased=True), True, "inside"),
        Measure("l2", error_label("l2", BINS, debiased=True), True, "inside"),
        Measure("smooth_ece", "Smooth ECE", True, "inside"),
        Measure("mce", "MCE", True, "inside"),
        Measure("classwise_ece", "Classwise ECE", True, "inside"),
        Measure("oce", "OCE far away", True, "outside"),
        Measure("auc", "AUROC", False, "ranking"),
        Measure("accuracy", "Accuracy", False, "ranking"),
        Measure("fit_seconds", "Seconds to fit", True, "speed"),
        Measure("predict_seconds", "Seconds for a million rows", True, "speed"),
        Measure("size_bytes", "Bytes when fitted", True, "speed"),
    )
}
"""Every measure by key, in the order in which it is shown."""


@dataclass(frozen=True, eq=False)
class Judged:
    """The rows that judge (n of them), and what each method says of them and of the far rows.

    ``far`` are their probabilities (m, K), a method each; empty where nothing is asked far away.
    """

    y: IntArray
    weight: FloatArray
    fold: IntArray
    found: tuple[Calibrated, ...]
    far: tuple[FloatArray, ...]
    prior: FloatArray
    classes: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        return len(self.prior)

    def confidence(self, one: Calibrated) -> Target:
        """Confidence in the predicted class, and whether it was right."""
        said = np.clip(one.confidence, 0.0, 1.0)
        return confidence_target(said, (one.predicted == self.y).astype(np.int64), self.weight)


@dataclass(frozen=True, eq=False)
class Scored:
    """One measure of all methods."""

    measure: Measure
    estimates: tuple[Estimate, ...]
    spread: Spread


def scored_measures(
    judged: Judged,
    *,
    level: float,
    n_boot: int,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Scored, ...]:
    """All measures but those of speed; those that are not defined on these rows are left out."""
    draws = row_draws(len(judged.y), n_boot, np.random.default_rng(seed))
    steps: list[tuple[str, Callable[[], tuple[list[Estimate], Spread] | None]]] = [
        ("log_loss", lambda: _log_loss(judged, level)),
        ("brier", lambda: _brier(judged, level)),
        ("ece", lambda: _binned(judged, "l1", False, draws, level, seed)),
        ("ece_debiased", lambda: _binned(judged, "l1", True, draws, level, seed)),
        ("l2", lambda: _binned(judged, "l2", True, draws, level, seed)),
        ("smooth_ece", lambda: _smooth(judged, draws, level, seed)),
        ("mce", lambda: _binned(judged, "max", False, draws, level, seed)),
        ("classwise_ece", lambda: _classwise(judged, draws, level, seed)),
        ("oce", lambda: _far(judged, level)),
        ("auc", lambda: _auc(judged, level)),
        ("accuracy", lambda: _accuracy(judged, level)),
    ]
    scored = []
    for at, (key, step) in enumerate(steps):
        measure = MEASURES[key]
        if progress is not None:
            progress(at / len(steps), f"Measuring: {measure.title}")
        if (result := step()) is not None:
            estimates, spread = result
            titled = tuple(
                replace(one, label=measure.title, lower_is_better=measure.lower_is_better)
                for one in estimates
            )
            shown = np.array([one.value for one in titled])
            scored.append(Scored(measure, titled, replace(spread, shown=shown)))
    return tuple(scored)


def _log_loss(judged: Judged, level: float) -> tuple[list[Estimate], Spread]:
    y, weight = judged.y, judged.weight
    shown = [log_loss(one.proba, y, level=level, sample_weight=weight) for one in judged.found]
    return shown, of_means(np.array([log_losses(one.proba, y) for one in judged.found]), weight)


def _brier(judged: Judged, level: float) -> tuple[list[Estimate], Spread]:
    y, weight = judged.y, judged.weight
    shown = [brier(one.proba, y, level=level, sample_weight=weight) for one in judged.found]
    return shown, of_means(np.array([brier_losses(one.proba, y) for one in judged.found]), weight)


def _binned(
    judged: Judged,
    norm: Norm,
    debiased: bool,
    draws: RowDraws,
    level: float,
    seed: int,
) -> tuple[list[Estimate], Spread]:
    problems = [judged.confidence(one) for one in judged.found]
    shown = [
        confidence_calibration_error(
            one.score,
            one.hit.astype(np.int64),
            norm=norm,
            n_bins=BINS,
            debiased=debiased,
            level=level,
            n_boot=len(draws.times),
            seed=seed,
            sample_weight=one.weight,
        )
        for one in problems
    ]
    alone = [(one,) for one in problems]
    return shown, binned_spread(alone, norm, "uniform", BINS, draws, seed)


def _smooth(
    judged: Judged, draws: RowDraws, level: float, seed: int
) -> tuple[list[Estimate], Spread]:
    problems = [judged.confidence(one) for one in judged.found]
    few = min(len(draws.times), SMOOTH_DRAWS)
    shown = [
        confidence_smooth_calibration_error(
            one.score,
            one.hit.astype(np.int64),
            n_boot=few,
            level=level,
            seed=seed,
            sample_weight=one.weight,
        )
        for one in problems
    ]
    return shown, smooth_spread(problems, few, seed)


def _classwise(
    judged: Judged, draws: RowDraws, level: float, seed: int
) -> tuple[list[Estimate], Spread]:
    shown = [
        calibration_error(
            one.proba,
            judged.y,
            kind="class",
            n_bins=BINS,
            level=level,
            n_boot=len(draws.times),
            seed=seed,
            sample_weight=judged.weight,
        )
        for one in judged.found
    ]
    problems = [targets(one.proba, judged.y, judged.weight, "class") for one in judged.found]
    return shown, binned_spread(problems, "l1", "uniform", BINS, draws, seed)


def _far(judged: Judged, level: float) -> tuple[list[Estimate], Spread] | None:
    """Distance to the prior's confidence: far away a lower one is no better than the prior's."""
    if not judged.far:
        return None
    expected = float(judged.prior.max())
    losses = np.array([np.abs(proba.max(axis=1) - expected) for proba in judged.far])
    shown = [
        ood_calibration_error(proba, judged.prior, prior_kind="empirical", level=level)
        for proba in judged.far
    ]
    return shown, of_means(losses, np.ones(losses.shape[1]), floor=1.0)


def _auc(judged: Judged, level: float) -> tuple[list[Estimate], Spread] | None:
    """The model's own area is that of all rows, as on every page.

    A method's is the model's plus the difference of the two where rows are ranked inside their
    fold alone; in one fold that is the method's area over all rows.
    """
    whole = Pairing.of(judged.y, judged.weight, judged.n_classes)
    inside = Pairing.of(judged.y, judged.weight, judged.n_classes, judged.fold)
    if not inside.curves:
        return None
    areas, parts = zip(*(inside.area(one.proba) for one in judged.found), strict=True)
    area, part = whole.area(judged.found[0].proba)
    shown = [
        _area_estimate(judged, whole, area, part, level)
        if at == 0
        else _area_estimate(
            judged,
            whole,
            float(np.clip(area + (own - areas[0]), 0.0, 1.0)),
            part + (own_part - parts[0]),
            level,
        )
        for at, (own, own_part) in enumerate(zip(areas, parts, strict=True))
    ]
    spread = of_areas(np.array(areas), np.array(parts), inside.lead, judged.y, judged.weight)
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


def _accuracy(judged: Judged, level: float) -> tuple[list[Estimate], Spread]:
    right = np.array([one.predicted == judged.y for one in judged.found], dtype=np.float64)
    shown = []
    for rate in right @ judged.weight / judged.weight.sum():
        low, high = clopper_pearson(rate, kish(judged.weight), level)
        shown.append(
            Estimate(
                name="Accuracy of the predicted class",
                label="Accuracy",
                value=float(rate),
                low=float(low),
                high=float(high),
                n=len(judged.y),
                level=level,
                interval="Clopper-Pearson",
                percent=True,
            )
        )
    return shown, of_means(right, judged.weight, floor=1.0)
