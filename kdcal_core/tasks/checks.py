"""The checks of a review: the quick ones for a page, and all of them as a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdcal_core.checks import (
    CHECKS,
    Evidence,
    MeasuredChecks,
    SummaryEvidence,
    measure_checks,
    with_group_sums,
)
from kdcal_core.data import Roles, ScoredSet
from kdcal_core.diagnostics.summaries import Summary, summarise, summarise_regression
from kdcal_core.distributions import RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation import Space
from kdcal_core.jobs import job_key
from kdcal_core.progress import Progress, part_of
from kdcal_core.regression.spaces import LAYER
from kdcal_core.review import (
    PARTS,
    Review,
    ReviewReader,
    Which,
    Workspace,
    baseline_of,
    identity,
    review_data,
)
from kdcal_core.review.review import input_columns
from kdcal_core.tasks.counted_groups import with_class_groups, with_pit_groups
from kdcal_core.tasks.decorators import BOTH_SETS, FITTED, Sets, require_scored, review_task
from kdcal_core.tasks.set_measures import tables_of
from kdcal_core.tasks.spaces import regression_space, space_names


def _edition() -> str:
    return " ".join(
        (
            "p values by part and with a contrast, ratios with both errors, keys, none certain, "
            "regions of both halves and parts that are missed, copies with another number, "
            "splits of dependent rows, no errors of a stated risk, nor few that name it, many "
            "rows as their summaries with groups, sums over groups of rows, weighted range, "
            "foreign rows together, sums by time",
            FITTED,
            *CHECKS,
        )
    )


@review_task("Overview: the quick checks", reads=BOTH_SETS, needs=require_scored, edition=_edition)
def quick_checks(
    sets: Sets, *, which: Which, event: int | None, groups: Sequence[str]
) -> MeasuredChecks:
    """The checks that are fast enough for a page.

    Parameters
    ----------
    which : str
        The set whose rows are judged.
    event : int or None
        The event of two classes; None for the confidence in the predicted class.
    groups : sequence of str
        Columns of the declared groups. Untrusted text.
    """
    return _measured(sets, which, event, groups, quick=True)


@review_task("Overview: checking everything", reads=PARTS, needs=require_scored, edition=_edition)
def thorough_checks(
    sets: Sets, *, which: Which, event: int | None, groups: Sequence[str]
) -> MeasuredChecks:
    """The checks that search regions, fit calibrators or run the model.

    The parameters are those of `quick_checks`.
    """
    return _measured(sets, which, event, groups, quick=False)


def _measured(
    sets: Sets, which: Which, event: int | None, groups: Sequence[str], *, quick: bool
) -> MeasuredChecks:
    codes = [one.code for one in CHECKS.values() if one.quick == quick]
    return measured_checks(sets, which, event, groups, codes, sets.progress)


def measured_checks(
    sets: Sets,
    which: Which,
    event: int | None,
    groups: Sequence[str],
    codes: Sequence[str],
    progress: Progress,
) -> MeasuredChecks:
    """These checks of a set; of one with a summary, those that it answers are asked of that.

    Differences from another model on the same rows are paired, but not of so many rows that a set
    has a summary: that would take every row once more, to narrow intervals that are narrow.

    Raises
    ------
    InputError
        As of `evidence_of`.
    """
    review = sets.reader.review
    _require_set(review, which)
    summary = _summary(sets, which)
    evidence = evidence_of(sets, which, event, groups)
    if summary is None:
        return with_group_sums(measure_checks(evidence, codes, progress), evidence)
    grouped = _with_groups(sets, which, event, groups)
    ways = {code: CHECKS[code].from_summary for code in codes}
    counted = [
        code for code, way in ways.items() if way and not (way.of_groups and grouped is None)
    ]
    rest = [code for code in codes if code not in counted]
    halves = part_of(progress, 0.0, 0.5), part_of(progress, 0.5, 1.0)
    known = _summarised(sets) if evidence.calibration is not None else None
    of_summary = measure_checks(
        SummaryEvidence(grouped or summary, event, known), counted, halves[0]
    )
    of_rows = measure_checks(evidence, rest, halves[1])
    found = {one.code: one for one in (*of_summary.checks, *of_rows.checks)}
    checks = tuple(found[code] for code in CHECKS if code in found)
    return MeasuredChecks(checks, of_rows.n)


def _summary(sets: Sets, which: Which) -> Summary | None:
    if sets.reader.review.task == "classification":
        return sets.summary(which)
    return sets.regression_summary(which)


def _with_groups(
    sets: Sets, which: Which, event: int | None, groups: Sequence[str]
) -> Summary | None:
    """The summary with its declared groups; None without any, or where the rows are divided."""
    if not groups:
        return None
    if sets.reader.review.task == "classification":
        return with_class_groups(sets, which, event, groups)
    return with_pit_groups(sets, which, groups)


def _summarised(sets: Sets) -> Summary:
    """The summary of the calibration set, made now if it has fewer rows."""
    found = _summary(sets, "calibration")
    if found is not None:
        return found
    if sets.reader.review.task == "classification":
        rows = sets.read("calibration")
        return summarise(rows.proba, rows.y, rows.classes)
    forecasts = sets.distributions("calibration")
    return summarise_regression(forecasts.distribution, forecasts.y)


def checks_settings(review: Review, which: Which) -> dict[str, Any]:
    """The arguments with which `quick_checks` and `thorough_checks` answer a review's question."""
    return {"which": which, "event": review.event, "groups": list(review.question.groups)}


def baseline_settings(review: Review, other: Review) -> dict[str, Any]:
    """The arguments with which another review answers this one's question, as far as it can.

    Its evaluation set is judged, where it has one. The event is the class of the same name. Where
    one of the groups' columns is missing, no groups are judged.
    """
    which: Which = "evaluation" if other.has_evaluation else "calibration"
    event = None if review.event is None else other.classes.index(review.classes[review.event])
    groups = review.question.groups
    known = set(groups) <= set(other.tables[which].column_names)
    return {"which": which, "event": event, "groups": list(groups) if known else []}


def verdict_edition(workspace: Workspace, review: Review) -> str:
    """What the verdict of a review's checks depends on beside the review itself, as a digest.

    That is how the checks measure, their default limits, and the rows of the baseline, if limits
    compare with one. A kept verdict of another edition may no longer be right.
    """
    limits = {one.code: str(one.limit) for one in CHECKS.values()}
    compared: dict[str, Any] = {}
    if any(one.against == "baseline" for one in review.question.limits.values()):
        try:
            other = baseline_of(workspace, review)
        except InputError as error:
            compared = {"missing": error.what}
        else:
            settings = baseline_settings(review, other)
            compared = {"settings": settings, "read": identity(other, PARTS)}
    return job_key("verdict", {"limits": limits, "compared": compared}, _edition())


def _space(reader: ReviewReader) -> Space:
    """The first space that is offered, without running the model."""
    names = space_names(reader.review)
    return regression_space(reader, next(one for one in names if not one.startswith(LAYER)))


def _require_set(review: Review, which: Which) -> None:
    if which not in review.sets:
        raise InputError(f"There is no {which} set", fix="Load one, or choose the other set.")


def evidence_of(
    sets: Sets, which: Which, event: int | None = None, groups: Sequence[str] = ()
) -> Evidence:
    """The data that a review's checks use; tables are read when a check needs them.

    Raises
    ------
    InputError
        Where the set has not been scored, or a file is gone.
    """
    review = sets.reader.review
    _require_set(review, which)
    read = sets.read if review.task == "classification" else sets.distributions
    columns = input_columns(review)
    table = review.tables[which]
    chosen = tuple(groups)
    time = (review.roles or Roles()).time
    known: dict[Which, ScoredSet | RegressionSet] = {which: read(which)}
    if which == "evaluation" and "calibration" in review.sets:
        known["calibration"] = read("calibration")
    classified = review.task == "classification"
    return Evidence(
        rows=known[which],
        calibration=known.get("calibration") if which == "evaluation" else None,
        event=event,
        inputs=(lambda: sets.frame(which, tuple(columns))) if columns else None,
        groups=(lambda: sets.frame(which, chosen)) if chosen else None,
        times=(lambda: sets.frame(which, (time,))[time]) if time else None,
        review=(lambda: review_data(sets.reader, with_model=True)) if classified else None,
        space=None if classified else (lambda: _space(sets.reader)),
        sets=lambda: tables_of(sets),
        missing={one.name: one.n_missing for one in table.columns if one.name in columns},
        file=table.digest,
        progress=sets.progress,
    )
