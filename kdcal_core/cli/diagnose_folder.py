"""``kdcal diagnose`` of many Parquet files, which may hold more rows than memory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kdcal_core.cli.diagnose_report import (
    Measured,
    MeasuredRegression,
    SummarisedSet,
    class_groups_words,
    pit_groups_words,
    record,
    record_text,
    regression_report,
    report,
    write_record,
)
from kdcal_core.cli.review_of_options import (
    calibrator_input,
    calibrator_words,
    doubts_words,
    event_words,
    model_input,
    model_words,
    named_files,
    outputs_words,
)
from kdcal_core.cli.terminal import Report, check_out, progress_line, temporary_folder, warn
from kdcal_core.data import Roles, Task
from kdcal_core.data.parquet_folder import allowed_roots, name_of_parted, parquet_files
from kdcal_core.diagnostics import (
    confusion_finding,
    headline_estimate,
    regression_findings,
    reliability_finding,
)
from kdcal_core.diagnostics.summaries import (
    ClassSummary,
    RegressionSummary,
    Summary,
    judged_rows,
    rows_of,
    summary_confusion,
    summary_coverage,
    summary_estimates,
    summary_event_estimates,
    summary_fault,
    summary_groups,
    summary_pit_group_search,
    summary_pit_histogram,
    summary_reliability,
    summary_scale,
    summary_uniformity,
)
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells
from kdcal_core.evaluation import summary_scores
from kdcal_core.review import Review, Workspace, event_of, need_groups
from kdcal_core.review.folder_review import refuse_for_folder, sampled_review, source_of
from kdcal_core.review.folder_summary import FolderSize, folder_executor, summary_of_folder
from kdcal_core.review.folder_tallies import DeclaredGroups
from kdcal_core.text import counted, listed, printable

_BINS: dict[Task, int] = {"classification": 15, "regression": 20}

NEEDS_ROWS: dict[Task, str] = {
    "classification": "Computed from counts of all rows. Cautions "
    "about single rows and tests that need the rows are not available for a folder.",
    "regression": "Computed from counts and sums of all rows. "
    "Cautions about single rows and regions of a column are not available for a folder.",
}


def run_folder(options: argparse.Namespace) -> Report:
    """Measure the predictions in many files, write the JSON file if requested, and report.

    Raises
    ------
    InputError
        For an option that needs the rows, and for input that cannot be used: the error names its
        file, row group, row and column.
    """
    given = named_files(options)
    refuse_for_folder(given)
    where = given.rows
    calibrated = calibrator_input(options)
    bins_of_cells(options.bins or 1)  # refuses before a long pass what it could not answer
    to_output, roots = options.json == "-", allowed_roots() or None
    if options.json is not None and not to_output:
        read = [str(path) for path, _ in parquet_files(where, roots)]
        read += [options.model, options.calibrator]
        check_out(options.json, read, force=options.force)
    with temporary_folder() as folder, progress_line() as progress:
        made = [folder / name for name in ("sample", "review", "summary")]
        for one in made:
            one.mkdir()
        review, size = sampled_review(Workspace(made[1]), given, made[0], roots)
        assert review.roles is not None
        event = event_of(review, given)
        need_groups(review, options.groups)
        with folder_executor(size) as executor:
            summary = summary_of_folder(
                where,
                review.roles,
                review.classes,
                made[2],
                roots,
                progress=progress,
                groups=DeclaredGroups(options.groups, event),
                size=size,
                executor=executor,
                source=source_of(review, given, options.calibrator),
            )
        measured = _measured(judged_rows(summary), review, options, event)
        doubts = doubts_words(review)
    name = name_of_parted(where)
    inputs = {**calibrated, **_inputs(name, size, summary, review)}
    settings = _settings(options, review)
    content = record([measured], review.task, inputs, settings, doubts)  # type: ignore[arg-type]
    if to_output:
        for doubt in doubts:
            warn(doubt)
        return Report(record_text(content), asked=True)
    if options.json:
        write_record(Path(options.json), content)
    text = _text(measured, review, name, size, options.level, doubts)
    return Report("\n\n".join(filter(None, (calibrator_words(options), text))))


def _measured(
    summary: Summary, review: Review, options: argparse.Namespace, event: int | None
) -> Measured | MeasuredRegression:
    n_bins, level = options.bins or _BINS[review.task], options.level
    if isinstance(summary, ClassSummary):
        return measure_summary(summary, n_bins=n_bins, level=level, event=event)
    return measure_regression_summary(
        summary,
        n_bins=n_bins,
        level=level,
        seed=options.seed,
        notes=review.sets["calibration"].notes,
    )


def measure_summary(
    summary: ClassSummary, *, n_bins: int, level: float, event: int | None = None
) -> Measured:
    """What ``kdcal diagnose`` reports of a summary; see :func:`.diagnose_report.measure`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]] * 50, [0, 1] * 50, ("a", "b"))
    >>> measure_summary(one, n_bins=10, level=0.95).findings[1]
    'All 100 predictions are right.'
    """
    diagram = summary_reliability(
        summary,
        kind="confidence" if event is None else "class",
        label=event,
        n_bins=n_bins,
        level=level,
    )
    by_class = summary_reliability(summary, kind="top-label", n_bins=1, level=level, smooth=False)
    counts = summary_confusion(summary)
    estimates = summary_estimates(summary, level=level)
    asked = estimates
    if event is not None:
        asked = summary_event_estimates(summary, event, level=level)
        known = {one.name for one in asked}
        estimates = (*asked, *(one for one in estimates if one.name not in known))
    groups = None if summary.groups is None else summary_groups(summary, event, level=level)
    findings = (
        reliability_finding(diagram, headline_estimate(asked), summary.classes),
        confusion_finding(counts, summary.classes),
        *class_groups_words(groups),
    )
    scored = SummarisedSet("calibration", summary.digest, rows_of(summary), summary.classes)
    return Measured(
        scored, findings, _notes(summary), estimates, by_class, diagram, counts, event, groups
    )


def measure_regression_summary(
    summary: RegressionSummary,
    *,
    n_bins: int,
    level: float,
    seed: int,
    notes: tuple[str, ...] = (),
) -> MeasuredRegression:
    """As :func:`.diagnose_report.measure_regression`, of a summary; it has no regions.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> y = np.random.default_rng(0).normal(2.0, size=500)
    >>> one = summarise_regression(Normal(np.zeros(500), 1.0), y)
    >>> measure_regression_summary(one, n_bins=20, level=0.95, seed=0).fault.kind
    'too low'
    """
    held = summary_coverage(summary, scale=summary_scale(summary), level=level)
    found = summary_fault(summary, level=level)
    groups = None
    if summary.groups is not None:
        groups = summary_pit_group_search(summary, level=level)
    return MeasuredRegression(
        scored=SummarisedSet("calibration", summary.digest, rows_of(summary)),
        family=summary.family,
        findings=(*regression_findings(held, found), *pit_groups_words(groups)),
        notes=(*_notes(summary), *notes),
        fault=found,
        tests=summary_uniformity(summary, seed),
        scores=summary_scores(summary, level=level, seed=seed),
        coverage=held,
        histogram=summary_pit_histogram(summary, n_bins, level),
        by_column={},
        groups=groups,
    )


def _notes(summary: Summary) -> tuple[str, ...]:
    weighted = () if summary.weights is None else (summary.weights.words,)
    together = () if summary.clusters is None else (summary.clusters.names.words,)
    return (*weighted, *together, NEEDS_ROWS[summary.task])


def _text(
    measured: Measured | MeasuredRegression,
    review: Review,
    name: str,
    size: FolderSize,
    level: float,
    doubts: tuple[str, ...],
) -> str:
    parts = listed([counted(size.files, "file"), counted(size.groups, "row group")])
    read, source = f"{parts[0].upper()}{parts[1:]} were read.", printable(name, 80)
    if isinstance(measured, Measured):
        read = f"{outputs_words(review)} {read}" if review.model is None else read
        read = "\n".join(filter(None, (read, event_words(review, measured.event))))
        shown = report(measured, source, level)
    else:
        shown = regression_report(measured, source, level)
    warnings = "\n".join(f"Warning: {doubt}" for doubt in doubts)
    return "\n\n".join(filter(None, (warnings, model_words(review), read, shown)))


def _inputs(
    name: str, size: FolderSize, summary: Summary, review: Review
) -> dict[str, dict[str, Any] | None]:
    return {
        "model": model_input(review),
        "calibration": {
            "name": name,
            "rows": rows_of(summary),
            "files": size.files,
            "row_groups": size.groups,
            "summary_sha256": summary.digest,
        },
    }


def _settings(options: argparse.Namespace, review: Review) -> dict[str, Any]:
    roles = review.roles or Roles()
    of_task: dict[Task, dict[str, Any]] = {
        "classification": {"classes": options.classes},
        "regression": {
            "seed": options.seed,
            "family": roles.family,
            "parameters": dict(roles.parameters),
            "true_mean": roles.true_mean,
        },
    }
    return {
        "target": options.target,
        **({"weight": options.weight} if options.weight else {}),
        **({"cluster": options.cluster} if options.cluster is not None else {}),
        **({"time": options.time} if options.time is not None else {}),
        "level": options.level,
        **({"groups": options.groups} if options.groups else {}),
        **of_task[review.task],
        "bins": options.bins or _BINS[review.task],
        "from": "summary",
    }
