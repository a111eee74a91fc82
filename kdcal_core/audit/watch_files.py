"""`kdcal watch`: a new table against the reference rows that the files of a configuration name."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from kdcal_core.audit.config import AuditConfig
from kdcal_core.audit.content import AuditContent
from kdcal_core.audit.gate_files import (
    judged_files,
    made_apart,
    stated_columns,
    verified,
    with_question,
)
from kdcal_core.audit.watch import watch_table
from kdcal_core.audit.watch_audit import (
    Judging,
    reference_audit,
    reference_set,
    require_same_rows,
)
from kdcal_core.audit.watch_result import Watch, with_unknown
from kdcal_core.audit.watch_settings import WatchSettings
from kdcal_core.audit.watch_state import Watched, WatchedTable, check_continues, read_state
from kdcal_core.diagnostics import UnknownChange
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import (
    NamedFiles,
    Review,
    Workspace,
    add_watched,
    check_files,
    note_results,
    scored_review,
)
from kdcal_core.store import load_part
from kdcal_core.store.disk import digest_of
from kdcal_core.tasks import (
    GraphRecord,
    GraphSetting,
    Request,
    fit_graph,
    unknown_new_rows,
)

_SECONDS = 24 * 3600.0
_WATCHING = "Watching the new table"


def run_watch(
    config: AuditConfig,
    data: str | Path,
    *,
    state: str | Path | None = None,
    audit: AuditContent | None = None,
    judged: Judging | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Watch:
    """Hold a new table against the reference rows that a configuration names.

    Parameters
    ----------
    data : path
        The new table: rows for the model, or its predictions in the reference table's columns. Its
        target column is read if it has one; labels may be missing.
    state : path, optional
        The file that the watch of the table before wrote. Its bins are used again, and the
        sequential test goes on.
    audit : AuditContent, optional
        An audit of the reference rows, whose limits hold where the configuration has none.
    judged : tuple of Project and Audit, optional
        Where this audit is in the record.
    seed : int

    Raises
    ------
    InputError
        For input that cannot be used, and for an audit of other rows.

    Notes
    -----
    Files are read, and the model is run, in processes with limits. What is computed is
    `watch_table` of a review of the files.
    """
    table = Path(data)
    if not table.is_file():
        raise InputError("There is no such file", fix="Check its path.", file=str(data))
    earlier = None if state is None else read_state(Path(state))
    most = config.watch.unknown_by_density_at_most
    verified(config)
    training = None if most is None else config.files.training
    files = replace(config.files, training=training, foreign=())
    with tempfile.TemporaryDirectory(prefix="kdcal-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        workspace, review, source = _reference(
            config, files, table, folder, part_of(progress, 0.0, 0.3)
        )
        fit = None if most is None else _graph_request(workspace, source)
        of = _watched(config, files, review)
        file = WatchedTable(table.name, digest_of(table), 0, 0)
        kept = None if audit is None else reference_audit(review, audit, judged)
        if kept is not None:
            require_same_rows(kept, review, reference_set(review))
        if earlier is not None:  # before the new rows are scored
            check_continues(earlier, of, config.watch.alpha, file)
        note_results(review)
        rows = _calibrated(config, files, review, table, folder, part_of(progress, 0.3, 0.5))
        review = add_watched(workspace, review.id, rows, table.name)
        settings = WatchSettings(
            table=table.name,
            title=config.title,
            limits=config.watch,
            undecided=config.undecided,
            state=earlier,
            of=of,
            file=file,
            weighted_by=config.weighted_by,
            audit=kept,
            seed=seed,
        )
        request = watch_table.request(workspace, review, settings)
        end = 1.0 if fit is None else 0.7
        made = made_apart(request, folder / "watch", part_of(progress, 0.5, end), _WATCHING)
        found = watch_table.read(made)
        if fit is None or most is None:
            return found
        unknown = _unknown(workspace, source, fit, table, folder, part_of(progress, end, 1.0))
        return with_unknown(found, unknown, most, config.undecided)


def _reference(
    config: AuditConfig, files: NamedFiles, table: Path, folder: Path, progress: Progress
) -> tuple[Workspace, Review, Review]:
    """The review of the reference rows, and that of the model where a calibrator stands between."""
    workspace = Workspace(folder / "reviews")
    if config.calibrator is not None:
        files = _alone(files)
    asked = replace(config, files=files)
    files, calibrated = judged_files(asked, workspace, folder, progress, suffix=".parquet")
    if calibrated is not None:
        roles = calibrated.source.roles
        if config.weighted_by == "features" and roles is not None:
            files = replace(files, features=roles.features)
        calibrated.require_new_rows()
        calibrated.require_new_table(digest_of(table), table.name)
    check_files(files)
    review = scored_review(workspace, files)
    review = with_question(workspace, review, replace(config, groups=()), files)
    return workspace, review, review if calibrated is None else calibrated.source


def _graph_request(workspace: Workspace, source: Review) -> Request:
    """The fit of the model's kernel density version; refuses a review without a model for it."""
    try:
        return fit_graph.request(workspace, source.id)
    except InputError as error:
        raise InputError(
            f"watch.unknown_by_density_at_most cannot be answered. {error.what}",
            fix="Leave it out; watch.unknown_at_most goes by the scores.",
        ) from error


def _unknown(
    workspace: Workspace,
    source: Review,
    fit: Request,
    table: Path,
    folder: Path,
    progress: Progress,
) -> UnknownChange:
    """The rows of the new table that lie where the model has seen hardly any data."""
    made = made_apart(fit, folder / "graph", part_of(progress, 0.0, 0.7), _WATCHING)
    facts = load_part(made, "record", GraphRecord).facts
    source = workspace.read(source.id)
    if table.name not in source.watched:
        source = add_watched(workspace, source.id, table, table.name)
    request = unknown_new_rows.request(
        workspace,
        source,
        table=table.name,
        digest=source.watched[table.name].digest,
        graph=asdict(GraphSetting.own(made, facts)),
    )
    counted = made_apart(request, folder / "unknown", part_of(progress, 0.7, 1.0), _WATCHING)
    return unknown_new_rows.read(counted)


def _alone(files: NamedFiles) -> NamedFiles:
    """The reference rows without the other set."""
    if files.evaluation is None:
        return files
    named = replace(files, evaluation=None)
    if files.data:
        return replace(named, data=files.evaluation)
    return replace(named, predictions=files.evaluation)


def _watched(config: AuditConfig, files: NamedFiles, review: Review) -> Watched:
    source = files.evaluation or files.table
    return Watched(
        model=digest_of(Path(files.model)) if files.model else "",
        calibrator=digest_of(Path(config.calibrator)) if config.calibrator else "",
        reference=digest_of(Path(source)),
        classes=review.classes,
        event="" if review.event is None else review.classes[review.event],
    )


def _calibrated(
    config: AuditConfig,
    files: NamedFiles,
    review: Review,
    table: Path,
    folder: Path,
    progress: Progress,
) -> Path:
    """The new table or, with a calibrator, a table of its output."""
    if config.calibrator is None:
        return table
    out = folder / ("new.csv" if review.task == "regression" else "new.parquet")
    run_limited(
        "kdcal_core.audit.watch_rows:calibrated_rows",
        {
            "calibrator": config.calibrator,
            "data": str(table.absolute()),
            "out": str(out),
            "target": review.roles.target if review.roles else None,
            "features": list(review.roles.features) if review.roles else [],
            "name": table.name,
            "model": files.model,
            "task": review.task,
            "stated": stated_columns(files),
            "output_kind": files.output_kind,
            "units": files.time or files.cluster,
        },
        seconds=_SECONDS,
        progress=progress,
        what="Reading the new table",
    )
    return out
