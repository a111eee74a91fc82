"""A gate of predictions in many files, which may be larger than memory: a summary is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kdcal_core.audit.asked import AuditSettings
from kdcal_core.audit.calibrated import Calibrated, facts_of, fitted_there, of_calibrator
from kdcal_core.audit.chart_keeping import (
    CLASS_BINS,
    ClassCounts,
    Drawn,
    chart_of_groups,
    chart_of_pit_groups,
    charts_of_counts,
    charts_of_overview,
    kept_charts,
)
from kdcal_core.audit.config import AuditConfig
from kdcal_core.audit.content import AuditContent
from kdcal_core.audit.gate_files import with_question
from kdcal_core.audit.making import content_of, judged
from kdcal_core.checks import SummaryEvidence, measure_checks
from kdcal_core.data import Task
from kdcal_core.data.parquet_folder import allowed_roots, names_of_list, parquet_files
from kdcal_core.diagnostics import Estimate
from kdcal_core.diagnostics.summaries import (
    ClassSummary,
    RegressionSummary,
    Summary,
    judged_rows,
    summary_confusion,
    summary_decisions,
    summary_estimates,
    summary_groups,
    summary_pit_group_search,
    summary_pit_histogram,
    summary_question_estimates,
    summary_reliability,
    summary_scores,
)
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.review import Review, Workspace
from kdcal_core.review.folder_review import sampled_review, source_of, whole_review
from kdcal_core.review.folder_summary import folder_executor, tables_of_calibrator
from kdcal_core.review.folder_tallies import TALLIES, DeclaredGroups
from kdcal_core.store import load
from kdcal_core.store.disk import digest_of
from kdcal_core.tasks import ALL_BINS, PitOverview, of_units, overview_of_summary

_SUMMARY = "summary"


@dataclass(frozen=True)
class LoadedSummary:
    """The folder of a gate: its summary lies in the gate's own folder.

    ``files`` is the number of its files, ``listed`` their names where they were listed, and
    ``calibrated`` the calibrator whose output is judged.
    """

    review: Review
    files: int
    listed: tuple[str, ...] = ()
    calibrated: Calibrated | None = None

    def judge(
        self,
        config: AuditConfig,
        settings: AuditSettings,
        folder: str,
        progress: Progress = silent,
    ) -> AuditContent:
        """The audit of the summary, in any process that sees the folder in which it lies."""
        summary = judged_rows(load(Path(folder) / _SUMMARY, TALLIES[self.review.task].kind))
        content = summary_audit(self.review, summary, settings, progress)
        (table,) = content.subject.tables
        tables = (replace(table, files=self.files, listed=self.listed),)
        content = replace(content, subject=replace(content.subject, tables=tables))
        if self.calibrated is None:
            return content
        return of_calibrator(content, self.calibrated, settings)


def load_summary(
    config: AuditConfig, folder: str, progress: Progress = silent, *, spread: bool = False
) -> LoadedSummary:
    """Read the folder or the list of files that a configuration names, in an empty folder.

    Parameters
    ----------
    spread : bool
        Whether the workers that ``KDCAL_SCHEDULER`` names read parts of it: not where this is done
        by one of them. The summary is the same.

    Raises
    ------
    InputError
        For a calibrator that was fitted to one of the files, and as
        `kdcal_core.review.folder_review.sampled_review` and ``whole_review``.
    """
    if config.calibrator is not None and not Path(config.calibrator).is_file():
        raise InputError("There is no such file", fix="Check its path.", file=config.calibrator)
    place, roots = Path(folder), allowed_roots() or None
    sample, summary = place / "sample", place / _SUMMARY
    for one in (sample, summary):
        one.mkdir()
    workspace = Workspace(place / "reviews")
    review, size = sampled_review(workspace, config.files, sample, roots)
    review = with_question(workspace, review, config, config.files)
    source = source_of(review, config.files, config.calibrator)
    fitted = frozenset[str]()
    if source.calibrator is not None:
        assert review.roles is not None
        fitted = tables_of_calibrator(source, review.roles)
        _require_new_files(config, fitted, roots)
    declared = DeclaredGroups(config.groups, review.event)
    reading = part_of(progress, 0.05, 1.0)
    with folder_executor(size) if spread else nullcontext() as executor:
        whole = whole_review(
            review,
            config.files.rows,
            summary,
            roots,
            reading,
            groups=declared,
            size=size,
            executor=executor,
            source=source,
        )
    calibrated = None
    if config.calibrator is not None:
        facts = facts_of(config, whole.tables["calibration"].digest)
        calibrated = Calibrated(whole, "calibration", facts, fitted)
        calibrated.require_new_rows()
    return LoadedSummary(whole, size.files, names_of_list(config.files.rows), calibrated)


def _require_new_files(
    config: AuditConfig, fitted: frozenset[str], roots: Sequence[Path] | None
) -> None:
    """Refuse to judge a calibrator on a file to which it was fitted."""
    for path, name in parquet_files(config.files.rows, roots):
        if digest_of(path) in fitted:
            raise fitted_there(
                Path(config.calibrator or "").name,
                "of one of the files",
                "Leave the file out, or name other held-out rows.",
                name,
            )


def summary_audit(
    review: Review, summary: Summary, settings: AuditSettings, progress: Progress = silent
) -> AuditContent:
    """As `kdcal_core.audit.make_audit`, of the summary of the rows.

    Raises
    ------
    InputError
        If limits compare with a baseline and none is given.
    """
    evidence = SummaryEvidence(summary, settings.event)
    measured = measure_checks(evidence, settings.codes or None, part_of(progress, 0.0, 0.6))
    checked = judged(review, settings, measured)
    progress(0.6, "Measuring, with intervals")
    estimates, drawn = _SHOWN[review.task](summary, review, settings)
    progress(0.9, "Drawing")
    charts = kept_charts(drawn)
    return content_of(review, settings, measured, checked, estimates, charts)


Shown = tuple[tuple[Estimate, ...], Drawn]


def _classes_shown(summary: ClassSummary, review: Review, settings: AuditSettings) -> Shown:
    event = settings.event
    estimates = (*summary_estimates(summary), *summary_question_estimates(summary, event))
    if summary.clusters is not None:
        estimates = of_units(estimates, "clusters" if summary.by_time is None else "near times")
    return estimates, _class_charts(summary, review, settings)


def _class_charts(summary: ClassSummary, review: Review, settings: AuditSettings) -> Drawn:
    event = settings.event
    yield from charts_of_counts(_counts(summary, event), review, settings)
    if summary.groups is not None:
        yield chart_of_groups(summary_groups(summary, event))


def _distributions_shown(
    summary: RegressionSummary, review: Review, settings: AuditSettings
) -> Shown:
    overview = overview_of_summary(summary)
    charts = _distribution_charts(summary, overview, settings.groups)
    return tuple(overview.scores.rows.values()), charts


def _distribution_charts(
    summary: RegressionSummary, overview: PitOverview, columns: Sequence[str]
) -> Drawn:
    histogram = summary_pit_histogram(summary, ALL_BINS)
    yield from charts_of_overview(overview, histogram)
    if summary.groups is not None:
        yield chart_of_pit_groups(summary_pit_group_search(summary), columns)


_SHOWN: dict[Task, Callable[[Any, Review, AuditSettings], Shown]] = {
    "classification": _classes_shown,
    "regression": _distributions_shown,
}


def _counts(summary: ClassSummary, event: int | None) -> ClassCounts:
    several = len(summary.classes) > 2
    return ClassCounts(
        reliability=summary_reliability(
            summary, kind="confidence" if event is None else "class", label=event
        ),
        by_class=summary_reliability(summary, kind="top-label", n_bins=CLASS_BINS)
        if several
        else None,
        scores=summary_scores(summary),
        confusion=summary_confusion(summary),
        decisions=None if event is None else summary_decisions(summary, event),
    )
