"""A model and tables that are read from files and become part of a review."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

from kdcal_core.data.column_doubts import Reading
from kdcal_core.data.schema import Task
from kdcal_core.errors import InputError
from kdcal_core.models.protocol import ModelInfo
from kdcal_core.progress import Progress
from kdcal_core.quotas import READ_TIME
from kdcal_core.review.changes import (
    Cancelled,
    ask_worker,
    change_review,
    decode_table,
    head_of,
    model_of,
    naming_file,
    new_files,
    one_file_at_a_time,
    unscored,
)
from kdcal_core.review.requirements import (
    check_columns,
    check_unchanged,
    check_which,
    default_classes,
    keep_fitting,
    lacking,
    shared_features,
    undoubted,
)
from kdcal_core.review.review import WHICH, Review, TableInfo, Which
from kdcal_core.review.sealed_files import table_path
from kdcal_core.review.workspace import Workspace
from kdcal_core.store import decode


def add_model(
    workspace: Workspace,
    review_id: str,
    source: BinaryIO | Path,
    name: str,
    *,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Add the model under review, or replace it.

    Parameters
    ----------
    source : path or binary file
        The model file.
    name : str
        The owner's name for it. Untrusted text.
    progress, cancelled : callable, optional
        As for `kdcal_core.jobs.run_limited`.

    Raises
    ------
    InputError
        If the file is a pickle, is not a model, crashes its reader, or takes too much time or
        memory.
    """
    with one_file_at_a_time(workspace, review_id, cancelled):
        return _add_model(workspace, review_id, source, name, progress, cancelled)


def _add_model(
    workspace: Workspace,
    review_id: str,
    source: BinaryIO | Path,
    name: str,
    progress: Progress | None,
    cancelled: Cancelled | None,
) -> Review:
    before = workspace.read(review_id)
    change = read_model_file(workspace, before, source, name, progress, cancelled)
    change_review(workspace, review_id, change)
    return with_predictions(workspace, review_id, cancelled)


def read_model_file(
    workspace: Workspace,
    before: Review,
    source: BinaryIO | Path,
    name: str,
    progress: Progress | None,
    cancelled: Cancelled | None,
) -> Callable[[Review], Review]:
    """Read a model in the worker and keep its file; return how the review changes with it.

    Raises
    ------
    InputError
        As `add_model`.
    """
    from kdcal_core.models import refuse_pickle

    refuse_pickle(name, head_of(source))
    path = workspace.keep(before.id, source, name)
    with new_files(path):
        understood = inspect(before, path, name, before.chosen_task, progress, cancelled)

    def change(review: Review) -> Review:
        # that of another model is none of this one; one that came before its model is kept
        signature = review.signature if review.model is None else None
        changed = replace(understood(review), sample=None, title=name, signature=signature)
        return unscored(keep_fitting(changed))

    return change


def inspect(
    before: Review,
    path: Path,
    name: str,
    task: Task | None,
    progress: Progress | None,
    cancelled: Cancelled | None,
) -> Callable[[Review], Review]:
    """Read the model at ``path`` in the worker; return how a review changes with it."""
    table = before.tables.get("calibration")
    kwargs: dict[str, Any] = {"path": str(path), "name": name, "task": task}
    if table is not None:
        kwargs |= {"frame_path": str(table_path(path.parent, table)), "digest": table.digest}
        kwargs |= {"answers": before.answers}
    if before.model is None and before.roles is not None:
        kwargs |= {"hint": before.roles.task}
    with naming_file(name):
        reply = ask_worker(
            "inspect_model",
            kwargs,
            seconds=READ_TIME,
            what="Reading the model",
            progress=progress,
            cancelled=cancelled,
        )
        model = decode(ModelInfo, reply["model"])
        reading = decode(Reading, reply["reading"]) if reply["reading"] else None
        notes = decode(tuple[str, ...], reply["notes"])

    def change(review: Review) -> Review:
        changed = replace(
            review,
            model=model,
            model_file=path.name,
            classes=model.classes,
            notes=(*review.notes, *notes),
        )
        return changed if reading is None else with_reading(changed, reading)

    return change


def with_predictions(
    workspace: Workspace, review_id: str, cancelled: Cancelled | None = None
) -> Review:
    """Show beside each possible target what the model predicts, where a model is reviewed.

    The review stays as it is if no target is asked about, or the model cannot predict these rows.
    """
    before = workspace.read(review_id)
    doubt = next((one for one in before.doubts if one.about == "target"), None)
    table, roles = before.tables.get("calibration"), before.roles
    if doubt is None or table is None or roles is None or not roles.features:
        return before
    if before.model is None or before.task == "regression" or not before.classes:
        return before
    folder = workspace.folder(review_id)
    try:
        shows = ask_worker(
            "show_targets",
            {
                "model": model_of(before, folder),
                "frame_path": str(table_path(folder, table)),
                "features": list(roles.features),
                "classes": list(before.classes),
                "targets": [choice.answer for choice in doubt.choices],
            },
            seconds=READ_TIME,
            what="Asking the model about the possible targets",
            cancelled=cancelled,
        )
    except InputError:  # scoring the rows reports it, with its row
        return before
    choices = tuple(
        replace(choice, shows=words)
        for choice, words in zip(doubt.choices, decode(tuple[str, ...], shows), strict=True)
    )
    shown = replace(doubt, choices=choices)

    def change(now: Review) -> Review:
        check_unchanged(before, now)
        return replace(now, doubts=tuple(shown if one == doubt else one for one in now.doubts))

    return change_review(workspace, review_id, change)


def with_reading(review: Review, reading: Reading) -> Review:
    """The review with what its calibration table was taken for; a note is not repeated."""
    notes = tuple(note for note in reading.notes if note not in review.notes)
    roles = reading.roles
    if (other := review.tables.get("evaluation")) is not None:
        roles, lost = shared_features(review, roles, other)
        notes += tuple(note for note in lost if note not in review.notes)
    table = next(iter(review.tables.values()))
    return replace(
        review,
        roles=roles,
        classes=reading.classes or default_classes(review.model, roles, table),
        doubts=reading.doubts,
        notes=(*review.notes, *notes),
    )


def add_table(
    workspace: Workspace,
    review_id: str,
    which: Which,
    source: BinaryIO | Path,
    name: str,
    *,
    target: str | None = None,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Add the calibration or the evaluation table, or replace it.

    The calibration table determines the role of each column; an evaluation table must have all
    columns with a role. An evaluation table that does not match a new calibration table is dropped,
    with a note in the review. Without a model, a column that only one table has is no longer a
    feature, also with a note.

    Parameters
    ----------
    which : str
        "calibration" or "evaluation".
    target : str, optional
        The column of true classes, if known; the other roles are guessed from it.
    source, name, progress, cancelled
        As for `add_model`.

    Raises
    ------
    InputError
        If the file is not a table, or an evaluation table lacks a required column.
    """
    check_which(which)
    with one_file_at_a_time(workspace, review_id, cancelled):
        return _add_table(workspace, review_id, which, source, name, target, progress, cancelled)


def _add_table(
    workspace: Workspace,
    review_id: str,
    which: Which,
    source: BinaryIO | Path,
    name: str,
    target: str | None,
    progress: Progress | None,
    cancelled: Cancelled | None,
) -> Review:
    upload = read_upload(workspace, review_id, source, name, progress, cancelled, target)
    with upload as (table, reading):
        change_review(
            workspace, review_id, lambda review: with_table(review, which, table, reading)
        )
    return with_predictions(workspace, review_id, cancelled)


@contextmanager
def read_upload(
    workspace: Workspace,
    review_id: str,
    source: BinaryIO | Path,
    name: str,
    progress: Progress | None,
    cancelled: Cancelled | None,
    target: str | None = None,
) -> Iterator[tuple[TableInfo, Reading]]:
    """Read a table in the worker; yield its description and what its columns were taken for.

    Its Arrow file is deleted if the body fails, and errors in the body name the table.
    """
    before = workspace.read(review_id)
    table, reading = read_table_file(workspace, before, source, name, progress, cancelled, target)
    with new_files(workspace.folder(review_id) / table.file), naming_file(name):
        yield table, reading


def read_table_file(
    workspace: Workspace,
    before: Review,
    source: BinaryIO | Path,
    name: str,
    progress: Progress | None,
    cancelled: Cancelled | None,
    target: str | None = None,
) -> tuple[TableInfo, Reading]:
    """Read a table in the worker and keep it in the review's folder, which its record does not."""
    review_id = before.id
    path = workspace.keep(review_id, source, name)
    frame_path = workspace.new_file(review_id, "table.arrow")
    kwargs = {
        "path": str(path),
        "name": name,
        "frame_path": str(frame_path),
        "model": asdict(before.model) if before.model else None,
        "task": before.chosen_task,
        "answers": {} if target is None else {"target": target},
    }
    with new_files(frame_path), naming_file(name):
        try:
            reply = ask_worker(
                "import_table",
                kwargs,
                seconds=READ_TIME,
                what="Reading the table",
                progress=progress,
                cancelled=cancelled,
            )
        finally:
            path.unlink(missing_ok=True)  # the Arrow file has everything that is needed
        return decode_table(reply["table"], name, frame_path), decode(Reading, reply["reading"])


def with_table(review: Review, which: Which, table: TableInfo, reading: Reading) -> Review:
    """The review with a table as one of its sets; the calibration table decides the roles."""
    guessed = reading.roles
    tables = {**review.tables, which: table}
    before = review.roles
    if which == "calibration" or before is None:
        roles, notes = guessed, tuple[str, ...]()
        other = tables.get("evaluation")
        if which == "calibration" and other:
            roles, notes = shared_features(review, guessed, other)
            if lacking(other, undoubted(roles, reading.doubts)):
                del tables["evaluation"]
                roles = guessed
                notes = ("The evaluation table was dropped: it lacks columns of the new one.",)
        classes = default_classes(review.model, roles, table)
    else:
        roles, notes = shared_features(review, before, table)
        check_columns(table, undoubted(roles, review.doubts))
        classes = review.classes or default_classes(review.model, roles, table)
    first = which == "calibration" or before is None
    if first:
        notes = (*(note for note in reading.notes if note not in review.notes), *notes)
    title = review.model.name if review.model else tables.get("calibration", table).name
    # the calibration table before the evaluation table, whatever order they were added in
    ordered: dict[str, TableInfo] = {one: tables[one] for one in WHICH if one in tables}
    changed = replace(
        review,
        tables=ordered,
        roles=roles,
        classes=classes,
        notes=(*review.notes, *notes),
        title=title,
        sample=None,
        doubts=reading.doubts if first else review.doubts,
        answers={} if first else review.answers,
    )
    return unscored(keep_fitting(changed))
