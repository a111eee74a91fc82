"""Every measure: its name, meaning, unit and direction, and how methods are compared by it.

Tiles, the columns of a comparison, charts, the card of an exported file and the command line read
`MEASURES`. A measure that methods are to be compared by is one entry more in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from kdcal_core.calibration import Calibrated
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.auc import Pairing, paired_auc
from kdcal_core.diagnostics.calibration_error import (
    RowDraws,
    calibration_error,
    confidence_calibration_error,
    error_label,
    row_draws,
)
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.foreign_scores import ood_calibration_error
from kdcal_core.diagnostics.regression import paired_difference
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
from kdcal_core.diagnostics.targets import Norm, Target, confidence_target, targets
from kdcal_core.evaluation.spread import Spread, binned_spread, of_areas, of_means, smooth_spread
from kdcal_core.progress import Progress
from kdcal_core.statistics import brier_losses, clopper_pearson, kish, log_losses

BINS = 15
SMOOTH_DRAWS = 200

Group = Literal["inside", "outside", "ranking", "speed"]


ByRow = Callable[..., FloatArray]
BySet = Callable[..., Estimate]
Paired = Callable[..., Estimate]
Compared = Callable[["Judged", "Drawn"], tuple[list[Estimate], Spread] | None]


@dataclass(frozen=True)
class Measure:
    """What a model or a calibrator is measured by.

    Attributes
    ----------
    key, title : str
        Stable identifier, and its name for people: the label of its estimates.
    meaning : str
        What it says, in a sentence or two for readers to whom the name means nothing.
    unit : str
        Of its values: "nats", "probability", "share", "the outcome's unit", "seconds", ...
    lower_is_better : bool or None
        None where neither direction is better.
    group : str or None
        Of a comparison. "inside": how well confidence fits on data like the calibration set's.
        "outside": what is said far from it. "ranking": which rows and classes come first.
        "speed": time and size. None where calibrators are not compared by it.
    test : str or None
        How two methods are told apart on the same rows.
    by_row : callable or None
        ``(proba, y) -> (n,)``: each row's part, where the measure is the mean of the rows.
    by_set : callable or None
        ``(proba, y, *, level, sample_weight) -> Estimate`` over the rows of a set.
    paired : callable or None
        ``(proba_a, proba_b, y, *, level, sample_weight) -> Estimate``: that of a less that of b
        over the same rows, for these two alone.
    compared : callable or None
        Estimates of all methods on the rows that judge, with how they vary together; None of it
        where the measure is not defined on these rows.
    """

    key: str
    title: str
    meaning: str
    unit: str
    lower_is_better: bool | None
    group: Group | None = None
    test: str | None = None
    by_row: ByRow | None = field(default=None, repr=False)
    by_set: BySet | None = field(default=None, repr=False)
    paired: Paired | None = field(default=None, repr=False)
    compared: Compared | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The draws that all measures of a comparison share, with the level and the seed."""

    rows: RowDraws
    level: float
    seed: int


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
    drawn = Drawn(draws, level, seed)
    asked = [one for one in MEASURES.values() if one.compared is not None]
    scored = []
    for at, measure in enumerate(asked):
        assert measure.compared is not None
        if progress is not None:
            progress(at / len(asked), f"Measuring: {measure.title}")
        if (result := measure.compared(judged, drawn)) is not None:
            estimates, spread = result
            titled = tuple(
                replace(one, label=measure.title, lower_is_better=measure.lower_is_better)
                for one in estimates
            )
            shown = np.array([one.value for one in titled])
            scored.append(Scored(measure, titled, replace(spread, shown=shown)))
    return tuple(scored)


def _less(title: str, by_row: ByRow) -> Paired:
    """How two methods differ in the mean of a row's loss."""

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
    """How two methods differ in the AUROC of the second of two classes."""
    (score_a, score_b) = (np.asarray(proba)[:, 1] for proba in (a, b))
    return paired_auc(score_b, score_a, y, level=level, sample_weight=sample_weight).difference


def _mean(by_set: BySet, by_row: ByRow) -> Compared:
    """How methods are compared by the mean of a row's loss."""

    def compared(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
        y, weight = judged.y, judged.weight
        shown = [
            by_set(one.proba, y, level=drawn.level, sample_weight=weight) for one in judged.found
        ]
        return shown, of_means(np.array([by_row(one.proba, y) for one in judged.found]), weight)

    return compared


def _binned(norm: Norm, debiased: bool) -> Compared:
    """How methods are compared by a calibration error of the confidence."""

    def compared(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
        problems = [judged.confidence(one) for one in judged.found]
        shown = [
            confidence_calibration_error(
                one.score,
                one.hit.astype(np.int64),
                norm=norm,
                n_bins=BINS,
                debiased=debiased,
                level=drawn.level,
                n_boot=len(drawn.rows.times),
                seed=drawn.seed,
                sample_weight=one.weight,
            )
            for one in problems
        ]
        alone = [(one,) for one in problems]
        return shown, binned_spread(alone, norm, "uniform", BINS, drawn.rows, drawn.seed)

    return compared


def _smooth(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
    problems = [judged.confidence(one) for one in judged.found]
    few = min(len(drawn.rows.times), SMOOTH_DRAWS)
    shown = [
        confidence_smooth_calibration_error(
            one.score,
            one.hit.astype(np.int64),
            n_boot=few,
            level=drawn.level,
            seed=drawn.seed,
            sample_weight=one.weight,
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
            sample_weight=judged.weight,
        )
        for one in judged.found
    ]
    problems = [targets(one.proba, judged.y, judged.weight, "class") for one in judged.found]
    return shown, binned_spread(problems, "l1", "uniform", BINS, drawn.rows, drawn.seed)


def _far(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread] | None:
    """Distance to the prior's confidence: far away a lower one is no better than the prior's."""
    if not judged.far:
        return None
    expected = float(judged.prior.max())
    losses = np.array([np.abs(proba.max(axis=1) - expected) for proba in judged.far])
    shown = [
        ood_calibration_error(proba, judged.prior, prior_kind="empirical", level=drawn.level)
        for proba in judged.far
    ]
    return shown, of_means(losses, np.ones(losses.shape[1]), floor=1.0)


def _auc(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread] | None:
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


def _accuracy(judged: Judged, drawn: Drawn) -> tuple[list[Estimate], Spread]:
    right = np.array([one.predicted == judged.y for one in judged.found], dtype=np.float64)
    shown = []
    for rate in right @ judged.weight / judged.weight.sum():
        low, high = clopper_pearson(rate, kish(judged.weight), drawn.level)
        shown.append(
            Estimate(
                name="Accuracy of the predicted class",
                label="Accuracy",
                value=float(rate),
                low=float(low),
                high=float(high),
                n=len(judged.y),
                level=drawn.level,
                interval="Clopper-Pearson",
                percent=True,
            )
        )
    return shown, of_means(right, judged.weight, floor=1.0)


_T_TEST = "paired t test of the rows' losses"
_ERRORS = "both errors resampled on the same rows, at the least favourable true errors"
_NORMAL = "normal interval of the mean difference over the same rows"
_OUTCOME = "the outcome's unit"
_DELONG = "DeLong's covariances, with t quantiles"
_BY_CHANCE = "It is above 0 by chance alone, so compare it with what chance gives."
_OCE = (
    "Out-of-distribution calibration error: how far the confidence on foreign rows lies from the "
    "prior's, on average. 0 is best: of a row unlike the data nothing is known but how often each "
    "class occurs."
)

MEASURES: dict[str, Measure] = {
    one.key: one
    for one in (
        Measure(
            "log_loss",
            "Log loss",
            "A score of the whole stated probability, lower is better: sure predictions that are "
            "wrong cost most.",
            "nats",
            True,
            "inside",
            _T_TEST,
            log_losses,
            log_loss,
            _less("Log loss", log_losses),
            _mean(log_loss, log_losses),
        ),
        Measure(
            "brier",
            "Brier score",
            "Squared distance between the stated probabilities and the true class, lower is "
            "better: like log loss, but a sure prediction that is wrong costs at most 2.",
            "squared probability",
            True,
            "inside",
            _T_TEST,
            brier_losses,
            brier,
            _less("Brier score", brier_losses),
            _mean(brier, brier_losses),
        ),
        Measure(
            "ece",
            error_label("l1", BINS),
            "Expected calibration error: how far stated confidence and accuracy lie apart, on "
            f"average over the bins. {_BY_CHANCE}",
            "probability",
            True,
            "inside",
            _ERRORS,
            by_set=calibration_error,
            compared=_binned("l1", False),
        ),
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
        ),
        Measure(
            "l2",
            error_label("l2", BINS, debiased=True),
            "Root mean square of the gaps between stated confidence and accuracy over the bins, "
            "less what chance alone adds: large gaps count more than in the ECE.",
            "probability",
            True,
            "inside",
            _ERRORS,
            by_set=partial(calibration_error, norm="l2", debiased=True),
            compared=_binned("l2", True),
        ),
        Measure(
            "smooth_ece",
            "Smooth ECE",
            "Calibration error without bins: the gap between stated confidence and accuracy, "
            f"smoothed along the confidence. {_BY_CHANCE}",
            "probability",
            True,
            "inside",
            _ERRORS,
            by_set=smooth_calibration_error,
            compared=_smooth,
        ),
        Measure(
            "mce",
            error_label("max", BINS),
            "Maximum calibration error: the largest gap between stated confidence and accuracy in "
            "any bin. A bin with few rows can decide it alone.",
            "probability",
            True,
            "inside",
            _ERRORS,
            by_set=partial(calibration_error, norm="max"),
            compared=_binned("max", False),
        ),
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
        ),
        Measure(
            "oce", "OCE far away", _OCE, "probability", True, "outside", _T_TEST, compared=_far
        ),
        Measure(
            "auc",
            "AUROC",
            "The chance that a row of the second class is given a higher probability of it than a "
            "row of the first. 1 is best, 0.5 is guessing. It looks at the order of the rows "
            "alone.",
            "share",
            False,
            "ranking",
            _DELONG,
            by_set=auroc,
            paired=_less_area,
            compared=_auc,
        ),
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
        ),
        Measure(
            "fit_seconds",
            "Seconds to fit",
            "Time to fit the calibrator once, on this machine.",
            "seconds",
            True,
            "speed",
        ),
        Measure(
            "predict_seconds",
            "Seconds for a million rows",
            "Time to calibrate a million rows, on this machine.",
            "seconds",
            True,
            "speed",
        ),
        Measure(
            "size_bytes",
            "Bytes when fitted",
            "What the fitted calibrator takes in memory.",
            "bytes",
            True,
            "speed",
        ),
        Measure(
            "top_label_log_loss",
            "Top-label log loss",
            "A score of the stated confidence, lower is better: sure predictions that are wrong "
            "cost most.",
            "nats",
            True,
            by_set=top_label_log_loss,
        ),
        Measure(
            "confidence_gap",
            "Confidence gap",
            "Stated confidence minus accuracy, on average and in percentage points: above 0 the "
            "model is too sure, below 0 not sure enough.",
            "percentage points",
            None,
            by_set=confidence_gap,
        ),
        Measure(
            "mean_confidence",
            "Mean confidence",
            "Probability of the predicted class, on average.",
            "probability",
            None,
            by_set=mean_max_confidence,
        ),
        Measure("oce_prior", "OCE, empirical prior", _OCE, "probability", True),
        Measure(
            "foreign_auc",
            "AUROC, foreign rows",
            "How well ordinary and foreign rows are told apart: the chance that an ordinary row "
            "scores above a foreign one. 1 is best, 0.5 is guessing.",
            "share",
            False,
        ),
        Measure(
            "fpr95",
            "FPR@95",
            "Share of foreign rows taken for ordinary where 95% of the ordinary rows are. 0% is "
            "best.",
            "share",
            True,
        ),
        Measure(
            "unknown",
            "Called unknown",
            "Ordinary rows that lie below the floor and so count as unknown: the price of caution, "
            "set by alpha.",
            "share",
            True,
        ),
        Measure(
            "crps",
            "CRPS",
            "Continuous ranked probability score: how far the whole predicted distribution lies "
            "from the outcome, in the outcome's own unit. Lower is better.",
            _OUTCOME,
            True,
            test=_NORMAL,
        ),
        Measure(
            "log_score",
            "Log score",
            "Minus the logarithm of the stated density at the outcome, on average, lower is "
            "better: sure predictions that are wrong cost most.",
            "nats",
            True,
            test=_NORMAL,
        ),
        Measure(
            "rmse",
            "RMSE",
            "Root mean squared error of the predicted mean: it asks nothing of the rest of the "
            "distribution. Lower is better.",
            _OUTCOME,
            True,
        ),
        Measure(
            "mse",
            "MSE",
            "Mean squared error of the predicted mean against the outcomes. Lower is better.",
            f"{_OUTCOME}, squared",
            True,
            test=_NORMAL,
        ),
        Measure(
            "mse_truth",
            "MSE against the truth",
            "Mean squared error of the predicted mean against the true one, which only simulated "
            "data know. Lower is better.",
            f"{_OUTCOME}, squared",
            True,
        ),
        Measure(
            "coverage95",
            "Coverage 95%",
            "How often the outcome lies inside the stated central 95% interval.",
            "share",
            None,
        ),
        Measure(
            "width95",
            "Width 95%",
            "Mean width of the stated central 95% intervals. Of two methods that cover alike the "
            "narrower one says more.",
            _OUTCOME,
            True,
        ),
        Measure(
            "smis95",
            "sMIS 95%",
            "Scaled mean interval score: the width of the central 95% intervals plus a fine for "
            "every outcome outside, over the mean absolute outcome. Lower is better.",
            "mean absolute outcomes",
            True,
            test=_NORMAL,
        ),
        Measure(
            "qce",
            "Quantile error",
            "How far the stated quantiles lie from the share of outcomes below them, as a root "
            "mean square over the levels. 0 is best.",
            "share",
            True,
        ),
        Measure(
            "wasserstein",
            "Wasserstein",
            "Distance of the PIT values from the uniform distribution that right predictions "
            "give. 0 is best.",
            "share",
            True,
        ),
        Measure(
            "kl",
            "KL",
            "Kullback-Leibler divergence of the prediction from the true distribution, which only "
            "simulated data know. 0 is best.",
            "nats",
            True,
        ),
        Measure(
            "bias",
            "Bias",
            "Mean PIT value minus 0.5. Above 0 the predictions are too low, below 0 too high.",
            "share",
            None,
        ),
    )
}
"""Every measure by key, in the order in which it is shown."""

_BY_TITLE = {one.title: one for one in MEASURES.values()}


def compared_measures() -> tuple[Measure, ...]:
    """The measures that calibrators are compared by, in the order in which they are shown.

    Examples
    --------
    >>> [one.key for one in compared_measures() if one.group == "ranking"]
    ['auc', 'accuracy']
    """
    return tuple(one for one in MEASURES.values() if one.group is not None)


def meaning_of(estimate: Estimate) -> str:
    """What an estimate says, for readers to whom its name means nothing; "" of an unknown one.

    Examples
    --------
    >>> meaning_of(accuracy([[0.9, 0.1]], [0]))
    'How often the predicted class is the true one.'
    """
    found = _BY_TITLE.get(estimate.label)
    return "" if found is None else found.meaning
