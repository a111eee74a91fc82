"""``kdcal diagnose``: the app's estimates for a pipeline, computed from the same review."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from kdcal_core.cli.diagnose_report import (
    Measured,
    MeasuredRegression,
    measure,
    measure_regression,
    record,
    record_text,
    regression_report,
    report,
    write_record,
)
from kdcal_core.cli.review_of_options import (
    calibrator_input,
    calibrator_words,
    copies_words,
    doubts_words,
    event_words,
    model_input,
    model_words,
    named_files,
    outputs_words,
    table_notes,
)
from kdcal_core.cli.terminal import (
    Report,
    check_out,
    progress_line,
    temporary_folder,
    warn,
    with_standard_input,
)
from kdcal_core.data import Roles
from kdcal_core.data.parquet_folder import is_parted
from kdcal_core.diagnostics import mean_scale
from kdcal_core.progress import silent
from kdcal_core.review import (
    NamedFiles,
    Review,
    ReviewReader,
    Which,
    Workspace,
    check_files,
    dependence_words,
    event_of,
    need,
    need_groups,
    note_results,
    scored_review,
)
from kdcal_core.text import printable

_BINS = 15
_PIT_BINS = 20  # bins of the PIT histogram


def run(options: argparse.Namespace) -> Report:
    """Measure, write the JSON file if requested, and return the report or the JSON.

    Raises
    ------
    InputError
        For input that cannot be used, with its file, column and row.
    """
    if is_parted(options.data or options.predictions):
        from kdcal_core.cli.diagnose_folder import run_folder  # its reader is not always needed

        return run_folder(options)
    with with_standard_input(options) as given:
        return _run(given)


def _run(options: argparse.Namespace) -> Report:
    check_files(named_files(options))
    calibrated, to_output = calibrator_input(options), options.json == "-"
    if options.json is not None and not to_output:
        names = ("data", "predictions", "model", "evaluation", "calibrator")
        read = [getattr(options, name) for name in names]
        check_out(options.json, read, force=options.force)
    # Files are read in a worker process with limits, because they may be hostile.
    with temporary_folder() as folder:
        workspace = Workspace(folder / "reviews")
        review = scored_review(workspace, _judged_files(options, workspace, folder))
        note_results(review)
        measured = _measured(ReviewReader(workspace, review.id, review=review), options)
        doubts = (*doubts_words(review), *copies_words(workspace, review))
        settings = _settings(options, review)
        inputs = {**calibrated, **_inputs(review)}
        content = record(measured, review.task, inputs, settings, doubts)
    if to_output:
        for doubt in doubts:
            warn(doubt)
        return Report(record_text(content), asked=True)
    if options.json:
        write_record(Path(options.json), content)
    texts = [_text(one, review, options) for one in measured]
    if review.model:
        texts.insert(0, model_words(review))
    elif review.task == "classification":
        texts.insert(0, outputs_words(review))
    if review.task == "classification":
        event = event_of(review, named_files(options))
        texts[0] = "\n".join(filter(None, (texts[0], event_words(review, event))))
    if words := dependence_words(review):
        texts.insert(1, printable(words, 500))
    if calibrated:
        texts.insert(0, calibrator_words(options))
    if doubts:
        texts.insert(0, "\n".join(f"Warning: {doubt}" for doubt in doubts))
    return Report("\n\n".join(texts))


def _judged_files(options: argparse.Namespace, workspace: Workspace, folder: Path) -> NamedFiles:
    """The named files or, with a calibrator, a table of its output on the judged rows."""
    given = named_files(options)
    if options.calibrator is None:
        return given
    from kdcal_core.audit import AuditConfig  # loads much
    from kdcal_core.audit.gate_files import judged_files

    asked = AuditConfig("diagnose", given, calibrator=options.calibrator)
    with progress_line() as progress:
        judged, calibrated = judged_files(asked, workspace, folder, progress or silent, ".parquet")
    if calibrated is not None:
        calibrated.require_new_rows()
    return replace(judged, option=given.option)


def _measured(
    reader: ReviewReader, options: argparse.Namespace
) -> list[Measured] | list[MeasuredRegression]:
    sets = _sets(reader.review)
    if reader.review.task == "regression":
        return _measured_regression(reader, sets, options)
    bins, event = options.bins or _BINS, event_of(reader.review, named_files(options))
    need_groups(reader.review, options.groups)
    return [
        measure(
            reader.scored(which),
            notes=_notes(reader, which),
            n_bins=bins,
            level=options.level,
            event=event,
            groups=_declared(reader, which, options),
        )
        for which in sets
    ]


def _measured_regression(
    reader: ReviewReader, sets: Sequence[Which], options: argparse.Namespace
) -> list[MeasuredRegression]:
    """Every set's results; the scale of sMIS is that of the calibration set."""
    review = reader.review
    scale = mean_scale(reader.distributions("calibration").y)
    need_groups(review, options.groups)
    found = []
    for which in sets:
        frame = reader.frame(which)
        for column in options.by:
            need(review.tables[which], column, "The table has no such column")
        found.append(
            measure_regression(
                reader.distributions(which),
                {name: frame[name] for name in options.by},
                notes=(*reader.fitness(which).flags, *table_notes(review, which)),
                scale=scale,
                n_bins=options.bins or _PIT_BINS,
                level=options.level,
                seed=options.seed,
                fitted_spread=review.sets[which].spread is not None,
                groups=_declared(reader, which, options),
            )
        )
    return found


def _declared(
    reader: ReviewReader, which: Which, options: argparse.Namespace
) -> pd.DataFrame | None:
    """The columns of the declared groups."""
    return reader.frame(which)[list(options.groups)] if options.groups else None


def _notes(reader: ReviewReader, which: Which) -> tuple[str, ...]:
    """Cautions about the rows, without the doubts, which are printed first."""
    review, flags = reader.review, reader.fitness(which).flags
    others = (flag for flag in flags if flag not in review.sets[which].doubts)
    return (*others, *table_notes(review, which))


def _text(
    measured: Measured | MeasuredRegression, review: Review, options: argparse.Namespace
) -> str:
    source = review.tables[measured.scored.name].name
    if options.calibrator is not None:  # of its output a table was made
        source = Path(options.evaluation or options.data or options.predictions).name
    if isinstance(measured, MeasuredRegression):
        return regression_report(measured, source, options.level)
    return report(measured, source, options.level)


def _sets(review: Review) -> tuple[Which, ...]:
    return ("calibration", "evaluation") if review.has_evaluation else ("calibration",)


def _inputs(review: Review) -> dict[str, dict[str, Any] | None]:
    inputs = {"model": model_input(review)}
    for which, table in review.tables.items():
        inputs[which] = {"name": table.name, "rows": table.n_rows, "sha256": table.digest}
    return inputs


def _settings(options: argparse.Namespace, review: Review) -> dict[str, Any]:
    settings = {name: getattr(options, name) for name in ("target", "weight", "level")}
    named = ((name, getattr(options, name)) for name in ("cluster", "time"))
    settings |= {name: column for name, column in named if column is not None}
    settings |= {"groups": options.groups} if options.groups else {}
    if review.task == "classification":
        return {**settings, "classes": options.classes, "bins": options.bins or _BINS}
    roles = review.roles or Roles()
    return {
        **settings,
        "bins": options.bins or _PIT_BINS,
        "by": options.by,
        "seed": options.seed,
        "family": roles.family,
        "parameters": dict(roles.parameters),
        "true_mean": roles.true_mean,
    }
