"""The limits of a watch: what each is held against, and its verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from kdcal_core.audit.config import WATCH_OF_CLASSES, WATCH_OF_FORECASTS, WatchLimits
from kdcal_core.checks import Verdict, verdict_of
from kdcal_core.checks.verdicts import VERDICTS
from kdcal_core.data import Task
from kdcal_core.diagnostics import (
    CalibrationWatch,
    Estimate,
    ForecastMeasures,
    LabelFreeForecasts,
    LabelFreePerformance,
    ScoreShift,
    SequentialCalibration,
    UnknownChange,
    unpaired_difference,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Limit

Source = Literal["scores", "forecasts", "features", "without labels", "labels"]
BEYOND_SCORES = "Beyond the reference scores"
"""Title of the share of new rows that are unlike all reference rows by their score."""
BEYOND_FORECASTS = "Beyond the reference forecasts"
"""The same of a regression, by predicted median and interval width."""
UNLIKE = "Unlike the reference rows"
"""The same by all features."""


@dataclass(frozen=True)
class WithLabels:
    """Measures of the new rows that have a label.

    Attributes
    ----------
    accuracy, calibration_error : Estimate
        The calibration error is that of the watched score.
    auc, rate : Estimate or None
        Of the event; None with more than two classes.
    """

    accuracy: Estimate
    calibration_error: Estimate
    auc: Estimate | None
    rate: Estimate | None


@dataclass(frozen=True)
class WatchResult:
    """One limit and what follows from it.

    Attributes
    ----------
    key : str
        Of the configuration's table ``[watch]``.
    title : str
    estimate : Estimate or None
        None for a sequential test that signalled at an earlier table, if this one has no labels.
    limit : Limit or None
        None for the sequential test, whose e-value decides.
    source : {"scores", "forecasts", "features", "without labels", "labels"}
        What the estimate was computed from.
    verdict : str
    of_audit : bool
        Whether the limit is that of the audit which judged the reference rows.
    """

    key: str
    title: str
    estimate: Estimate | None
    limit: Limit | None
    source: Source
    verdict: Verdict
    of_audit: bool = False


def worst(results: tuple[WatchResult, ...]) -> Verdict:
    """The worst verdict; "pass" without any."""
    found = {one.verdict for one in results}
    return next((one for one in VERDICTS if one in found), "pass")


def check_limits(limits: WatchLimits, asked: int | None, task: Task) -> None:
    """Refuse limits of the other task, and on an event where there is none."""
    regression = task == "regression"
    for key in WATCH_OF_CLASSES if regression else WATCH_OF_FORECASTS:
        if getattr(limits, key) is not None:
            other = "classification" if regression else "regression"
            raise InputError(
                f"watch.{key} is of a {other}, and this is a {task}", fix="Leave it out."
            )
    if regression:
        return
    for key in ("auc_at_least", "rate_change_at_most"):
        if asked is None and getattr(limits, key) is not None:
            raise InputError(
                f"watch.{key} is of an event of two classes, and here are more",
                fix="Leave it out, and give watch.accuracy_at_least.",
            )


def held(key: str, title: str, estimate: Estimate, limit: Limit, source: Source) -> WatchResult:
    """An estimate held against its limit."""
    return WatchResult(key, title, estimate, limit, source, verdict_of(estimate, limit))


def judged(
    limits: WatchLimits,
    shift: ScoreShift,
    estimated: LabelFreePerformance,
    event: int | None,
    labels: WithLabels | None,
    all_labelled: bool,
) -> list[WatchResult]:
    """A verdict for every measure that has a limit."""
    found: list[WatchResult] = []
    if math.isfinite(limits.psi_at_most):
        limit = Limit(high=limits.psi_at_most)
        found.append(
            held("psi_at_most", "Drift of the scores", shift.psi.estimate, limit, "scores")
        )
    of_event = estimated.event
    watched = estimated.predictions if event is None or of_event is None else of_event
    if limits.unknown_at_most is not None:
        limit = Limit(high=limits.unknown_at_most)
        if watched.weighted_by == "features":
            found.append(held("unknown_at_most", UNLIKE, watched.outside, limit, "features"))
        else:
            found.append(held("unknown_at_most", BEYOND_SCORES, watched.outside, limit, "scores"))
    known = labels if all_labelled else None
    source: Source = "without labels" if known is None else "labels"
    if limits.accuracy_at_least is not None:
        one = estimated.predictions.rate.rows if known is None else known.accuracy
        found.append(
            held("accuracy_at_least", "Accuracy", one, Limit(low=limits.accuracy_at_least), source)
        )
    if limits.auc_at_least is not None and of_event is not None:
        area = of_event.auc.rows if known is None or known.auc is None else known.auc
        found.append(
            held("auc_at_least", "AUROC of the event", area, Limit(low=limits.auc_at_least), source)
        )
    if limits.rate_change_at_most is not None and of_event is not None:
        rate = of_event.rate.rows if known is None or known.rate is None else known.rate
        change = replace(
            unpaired_difference(rate, of_event.rate.reference),
            name="Event rate: new rows minus reference rows",
            label="Change of the event's rate",
        )
        limit = Limit(-limits.rate_change_at_most, limits.rate_change_at_most)
        found.append(
            held("rate_change_at_most", "Change of the event's rate", change, limit, source)
        )
    if limits.calibration_error_at_most is not None:
        error = watched.calibration_error if known is None else known.calibration_error
        limit = Limit(high=limits.calibration_error_at_most)
        found.append(held("calibration_error_at_most", "Calibration error", error, limit, source))
    return found


def judged_forecasts(
    limits: WatchLimits,
    shifts: tuple[ScoreShift, ...],
    estimated: LabelFreeForecasts,
    labels: ForecastMeasures | None,
    all_labelled: bool,
) -> list[WatchResult]:
    """The same of a regression. What only labels show is judged by those that there are."""
    found: list[WatchResult] = []
    if math.isfinite(limits.psi_at_most):
        for one in shifts:
            limit = Limit(high=limits.psi_at_most)
            found.append(
                held("psi_at_most", f"Drift of the {one.noun}", one.psi.estimate, limit, "scores")
            )
    if limits.unknown_at_most is not None:
        limit = Limit(high=limits.unknown_at_most)
        found.append(
            held("unknown_at_most", BEYOND_FORECASTS, estimated.outside, limit, "forecasts")
        )
    if limits.crps_at_most is not None:
        limit = Limit(high=limits.crps_at_most)
        if labels is None or not all_labelled:
            found.append(held("crps_at_most", "CRPS", estimated.crps, limit, "without labels"))
        else:
            found.append(held("crps_at_most", "CRPS", labels.crps, limit, "labels"))
    if limits.calibration_error_at_most is not None and labels is not None:
        limit = Limit(high=limits.calibration_error_at_most)
        found.append(
            held("calibration_error_at_most", "PIT distance", labels.pit_distance, limit, "labels")
        )
    if limits.coverage_error_at_most is not None and labels is not None:
        most = limits.coverage_error_at_most
        for row in labels.coverage:
            title = f"Coverage of the {100 * row.level:g}% intervals"
            limit = Limit(row.level - most, row.level + most)
            found.append(held("coverage_error_at_most", title, row.coverage, limit, "labels"))
    return found


def judged_by_density(found: UnknownChange, most: float) -> WatchResult:
    """The verdict of the share of rows that lie where the model has seen hardly any data."""
    limit, title = Limit(high=most), "Unknown rows by density"
    return held("unknown_by_density_at_most", title, found.new, limit, "features")


def signal(test: SequentialCalibration | None, after: CalibrationWatch) -> tuple[WatchResult, ...]:
    """The sequential test's verdict. A signal stands until a recalibrated model is watched."""
    if test is None and after.crossed_at is None:
        return ()
    verdict: Verdict = "pass" if after.crossed_at is None else "fail"
    gap = None if test is None else test.gap
    return (WatchResult("alpha", "Sequential test of calibration", gap, None, "labels", verdict),)
