"""The steps from files to a scored review. A step that fails does not change the review."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

from kdcal_core.data.readings import Reading
from kdcal_core.data.schema import Roles, Task
from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled as CancelledError
from kdcal_core.jobs import run_limited
from kdcal_core.models.protocol import ModelInfo
from kdcal_core.progress import Progress
from kdcal_core.review.baseline import baseline_of
from kdcal_core.review.question import Decision, Question
from kdcal_core.review.requirements import (
    check_classes,
    check_columns,
    check_complete,
    check_kept,
    check_unchanged,
    check_which,
    default_classes,
    keep_fitting,
    lacking,
    shared_features,
    undoubted,
    with_true_places,
)
from kdcal_core.review.review import WHICH, Review, SetInfo, TableInfo, Which
from kdcal_core.review.sealed_files import check_digest, remove_seal, table_path
from kdcal_core.review.workspace import Workspace
from kdcal_core.store import decode
from kdcal_core.store.disk import locked
from kdcal_core.text import listed

Cancelled = Callable[[], bool]

_READ_SECONDS = 300
_SCORE_SECONDS = 1800
_HEAD_BYTES = 4096
_LONGEST_TITLE = 200
_WORKER = "kdcal_core.review.in_worker:"


def create_review(workspace: Workspace) -> Review:
    """A new, empty review."""
    return workspace.read(workspace.create())


def read_review(workspace: Workspace, review_id: str) -> Review:
    """The current review.

    Raises
    ------
    InputError
        If no review has this id.
    """
    return workspace.read(review_id)


def rename_review(workspace: Workspace, review_id: str, title: str) -> Review:
    """Give the review another title.

    Raises
    ------
    InputError
        The title is blank, or longer than 200 characters.
    """
    plain = title.strip()
    if not 0 < len(plain) <= _LONGEST_TITLE:
        raise InputError(
            "A review needs a title", fix=f"Write one of 1 to {_LONGEST_TITLE} characters."
        )
    return change_review(workspace, review_id, lambda review: replace(review, title=plain))


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
    with _new_files(path):
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
    with _named(name):
        reply = _run(
            "inspect_model",
            kwargs,
            seconds=_READ_SECONDS,
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


def set_task(
    workspace: Workspace,
    review_id: str,
    task: Task,
    *,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Set the task, and read the model's file and the columns again for it.

    Files that are added later are also read for this task.

    Parameters
    ----------
    task : str
        "classification" or "regression".
    progress, cancelled
        As for `add_model`.

    Raises
    ------
    InputError
        If the model's file states another task. The review then keeps its task.
    """
    with one_file_at_a_time(workspace, review_id, cancelled):
        before = workspace.read(review_id)
        if before.task == task and before.chosen_task == task:
            return before
        understood = _under_task(workspace, before, task, progress, cancelled)

        def change(review: Review) -> Review:
            check_unchanged(before, review)
            changed = replace(understood(review), chosen_task=task)
            if before.task == task:
                return replace(review, chosen_task=task)
            return unscored(keep_fitting(changed))

        return change_review(workspace, review_id, change)


def _under_task(
    workspace: Workspace,
    before: Review,
    task: Task,
    progress: Progress | None,
    cancelled: Cancelled | None,
) -> Callable[[Review], Review]:
    """The change of the review after its files are read for ``task``."""
    folder = workspace.folder(before.id)
    if before.model is not None and before.model_file is not None:
        path = folder / before.model_file
        return inspect(before, path, before.model.name, task, progress, cancelled)
    table = before.tables.get("calibration")
    if table is None:
        return lambda review: replace(review, doubts=())
    reading = read_again(before, folder, task, {})
    return lambda review: replace(with_reading(review, reading), answers={})


def read_again(review: Review, folder: Path, task: Task | None, answers: dict[str, str]) -> Reading:
    """What the columns are taken for with these answers; the calibration table decides."""
    table = next(iter(review.tables.values()))
    kwargs = {
        "frame_path": str(table_path(folder, table)),
        "name": table.name,
        "digest": table.digest,
        "model": asdict(review.model) if review.model else None,
        "task": task,
        "answers": answers,
    }
    with _named(table.name):
        reply = _run("read_again", kwargs, seconds=_READ_SECONDS, what="Reading the columns")
        return decode(Reading, reply)


def settle(workspace: Workspace, review_id: str, about: str, answer: str) -> Review:
    """Answer a doubt about the columns; the other roles are guessed again with the answer.

    Parameters
    ----------
    about, answer : str
        Of one of the review's doubts and of one of its choices.

    Raises
    ------
    InputError
        The review has no such doubt, the doubt no such answer, or a set's table lacks the column
        that the answer names.
    """
    before = workspace.read(review_id)
    choices = [one for doubt in before.doubts if doubt.about == about for one in doubt.choices]
    chosen = next((one for one in choices if one.answer == answer), None)
    if chosen is None:
        raise InputError(
            "This is no answer to an open question of the review",
            fix="Load the page again, and choose one of the answers that it shows.",
        )
    answers = {**before.answers, about: answer}
    reading = read_again(before, workspace.folder(review_id), before.task, answers)

    def change(now: Review) -> Review:
        check_unchanged(before, now)
        settled = replace(with_reading(now, reading), answers=answers)
        for table in settled.tables.values():
            check_columns(table, undoubted(settled.roles or Roles(), settled.doubts))
        return unscored(keep_fitting(settled))

    change_review(workspace, review_id, change)
    return with_predictions(workspace, review_id)


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
        shows = _run(
            "show_targets",
            {
                "model": _model_of(before, folder),
                "frame_path": str(table_path(folder, table)),
                "features": list(roles.features),
                "classes": list(before.classes),
                "targets": [choice.answer for choice in doubt.choices],
            },
            seconds=_READ_SECONDS,
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
    with _new_files(workspace.folder(review_id) / table.file), _named(name):
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
    with _new_files(frame_path), _named(name):
        try:
            reply = _run(
                "import_table",
                kwargs,
                seconds=_READ_SECONDS,
                what="Reading the table",
                progress=progress,
                cancelled=cancelled,
            )
        finally:
            path.unlink(missing_ok=True)  # the Arrow file has everything that is needed
        return decode_table(reply["table"], name, frame_path), decode(Reading, reply["reading"])


def set_roles(
    workspace: Workspace, review_id: str, roles: Roles, classes: tuple[str, ...] | None = None
) -> Review:
    """Set the role of each column, and the class names of a model without class names.

    Raises
    ------
    InputError
        If a column does not exist or has two roles, if the number of class names is not that of
        the model's outputs, or if the task is not the model's. The review then keeps its roles.
    """

    def change(review: Review) -> Review:
        if review.model is not None and roles.task != review.model.task:
            raise InputError(
                f"The roles are those of a {roles.task}, but the model was read for a "
                f"{review.model.task}",
                fix="Choose the task first, so that the model is read again.",
            )
        for table in review.tables.values():
            check_columns(table, roles)
        check_classes(review.model, roles, classes)
        chosen = classes or default_classes(review.model, roles, review.tables.get("calibration"))
        # choosing the roles answers all questions about them
        changed = replace(review, roles=roles, classes=chosen, doubts=())
        # confirming a guess does not change any number
        if review.roles is not None and changed == replace(
            review, roles=replace(review.roles, class_by=roles.class_by), doubts=()
        ):
            return changed
        return unscored(keep_fitting(changed))

    return change_review(workspace, review_id, change)


def set_question(workspace: Workspace, review_id: str, question: Question) -> Review:
    """Set what the review asks about its model, without scoring rows again; decisions stay.

    Raises
    ------
    InputError
        If the event is not a class, a table lacks the column of a group, or a baseline that was
        just chosen cannot be compared with.
    """

    def change(review: Review) -> Review:
        if question.event is not None and question.event not in review.classes:
            raise InputError(
                f"The event {question.event[:80]!r} is not a class of the review",
                fix=f"Choose one of {listed([repr(name[:80]) for name in review.classes])}.",
            )
        for table in review.tables.values():
            missing = [name for name in question.groups if name not in table.column_names]
            if missing:
                raise InputError(
                    "There is no such column, so it cannot divide the rows into groups",
                    fix="Choose columns that every table has.",
                    file=table.name,
                    column=missing[0],
                )
        if question.baseline not in (None, review.question.baseline):
            baseline_of(workspace, replace(review, question=question))
        decisions = review.question.decisions
        return replace(review, question=replace(question, decisions=decisions), verdict="")

    return change_review(workspace, review_id, change)


def set_decision(workspace: Workspace, review_id: str, name: str, **changed: Any) -> Review:
    """Set the threshold or the costs of a class, on which no check depends.

    Parameters
    ----------
    name : str
        The class.
    changed
        Fields of `Decision`.

    Raises
    ------
    InputError
        If the threshold or a cost cannot be one.
    """

    def change(review: Review) -> Review:
        known = review.question.decisions
        decisions = {**known, name: replace(known.get(name, Decision()), **changed)}
        return replace(review, question=replace(review.question, decisions=decisions))

    return change_review(workspace, review_id, change)


def note_verdict(workspace: Workspace, review: Review, verdict: str, edition: str) -> None:
    """Keep the verdict of a review's checks, unless the review has changed since it was read.

    Parameters
    ----------
    edition : str
        `kdcal_core.tasks.verdict_edition` when the checks were judged.
    """

    def noted(now: Review, verdict: str, edition: str) -> Review:
        return replace(now, verdict=verdict, verdict_edition=edition)

    def change(now: Review) -> Review:
        same = noted(replace(now, title=review.title), review.verdict, review.verdict_edition)
        return noted(now, verdict, edition) if same == review else now

    if noted(review, verdict, edition) != review:
        change_review(workspace, review.id, change)


DIVIDED = "The rows were divided by the split column."
"""Beginning of the note of a review whose sets are parts of one file."""


def split_table(workspace: Workspace, review_id: str) -> Review:
    """Divide the rows of a single table into the sets that its split column names.

    Its training rows become the review's training table.

    Raises
    ------
    InputError
        If there is no split column, a value names no set, or no row is for calibration.
    """
    review = workspace.read(review_id)
    table, roles = review.tables.get("calibration"), review.roles
    if table is None or roles is None or roles.split is None or review.has_evaluation:
        raise InputError(
            "There is no table to divide",
            fix="Load one table and give one of its columns the role of the split.",
        )
    folder = workspace.folder(review_id)
    parts = (*WHICH, "training")
    paths = {part: workspace.new_file(review_id, "table.arrow") for part in parts}
    kwargs = {
        "frame_path": str(table_path(folder, table)),
        "table": asdict(table),
        "column": roles.split,
        "paths": {part: str(path) for part, path in paths.items()},
    }
    with _new_files(*paths.values()), _named(table.name):
        reply = _run("divide_table", kwargs, seconds=_READ_SECONDS, what="Dividing the table")
        tables: dict[str, TableInfo] = {
            part: decode_table(reply[part], table.name, path)
            for part, path in paths.items()
            if part in reply
        }
        if "calibration" not in tables:
            raise InputError(
                "The split column marks no row for calibration",
                fix="Use the words train, calibration and evaluation, or remove the role.",
                column=roles.split,
            )
    note = DIVIDED
    training = tables.pop("training", None)
    if training is not None:
        note += f" Its {training.n_rows:,} training rows are not used to calibrate."

    def change(now: Review) -> Review:
        check_unchanged(review, now)
        divided = replace(
            now,
            tables=tables,
            training=training or now.training,
            roles=replace(roles, split=None),
            notes=(*now.notes, note),
        )
        return unscored(keep_fitting(divided))

    return change_review(workspace, review_id, change)


def score(
    workspace: Workspace,
    review_id: str,
    *,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Score every table: run the model on its rows, or read its probabilities.

    Raises
    ------
    InputError
        For the first error, with its file, column and row. The review does not change.
    """
    review = workspace.read(review_id)
    roles = check_complete(review)
    folder = workspace.folder(review_id)
    check_kept(review, folder)
    folders = {which: _new_folder(folder) for which in review.tables}
    kwargs = {
        "model": _model_of(review, folder),
        "tables": [
            {
                "which": which,
                "name": table.name,
                "frame_path": str(table_path(folder, table)),
                "folder": str(folders[which]),
            }
            for which, table in review.tables.items()
        ],
        "roles": asdict(roles),
        "classes": list(review.classes),
    }
    with _new_files(*folders.values()), _named(review.model.name if review.model else None):
        reply = _run(
            "score_tables",
            kwargs,
            seconds=_SCORE_SECONDS,
            what="Scoring the rows",
            progress=progress,
            cancelled=cancelled,
        )
        sets = {which: decode_set(reply[which], path) for which, path in folders.items()}

        def change(now: Review) -> Review:
            check_unchanged(review, now)
            return replace(now, sets=sets, verdict="")

        return change_review(workspace, review_id, change)


def decode_table(reply: Any, name: str, path: Path) -> TableInfo:
    """A worker's description of a table, with our path and name for it."""
    return replace(decode(TableInfo, reply), name=name, file=path.name)


def decode_set(reply: Any, folder: Path) -> SetInfo:
    """A worker's description of a scored set, with our path for it."""
    return replace(decode(SetInfo, reply), folder=folder.name)


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


@contextmanager
def one_file_at_a_time(
    workspace: Workspace, review_id: str, cancelled: Cancelled | None
) -> Iterator[None]:
    """Wait until no other file of this review is being read; roles are guessed from all files."""

    def waiting() -> None:
        if cancelled is not None and cancelled():
            raise CancelledError("Reading the file")

    workspace.folder(review_id)  # raises if there is no such review
    with locked(workspace.lock(review_id, "reading"), waiting=waiting):
        yield


def unscored(review: Review) -> Review:
    """The review without its scored sets, and so without a verdict or results that were shown."""
    return replace(review, sets={}, verdict="", first_results="")


def _model_of(review: Review, folder: Path) -> dict[str, str] | None:
    if review.model is None or review.model_file is None:
        return None
    with _named(review.model.name):
        check_digest(folder / review.model_file, review.model.digest)
    return {"path": str(folder / review.model_file), "name": review.model.name}


def head_of(source: BinaryIO | Path) -> bytes:
    """The first bytes of a file."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            return file.read(_HEAD_BYTES)
    source.seek(0)
    return source.read(_HEAD_BYTES)


def _run(function: str, kwargs: dict[str, Any], **limits: Any) -> Any:
    return run_limited(_WORKER + function, kwargs, confined=True, **limits)


def change_review(
    workspace: Workspace, review_id: str, change: Callable[[Review], Review]
) -> Review:
    """Change the review, then delete files and notes on tables that it no longer refers to."""
    before: set[str] = set()

    def noted(review: Review) -> Review:
        before.update(_files_of(review))
        return with_true_places(change(review))

    after = workspace.update(review_id, noted)
    for name in before - _files_of(after):
        _remove(workspace.folder(review_id) / name)
    return after


def _files_of(review: Review) -> set[str]:
    names = {info.file for info in (*review.all_tables, *review.watched.values())}
    names |= {info.folder for info in review.sets.values()}
    return names | ({review.model_file} if review.model_file else set())


def _new_folder(folder: Path) -> Path:
    return folder / f"set-{secrets.token_hex(8)}"


def remove_file(workspace: Workspace, review: Review, table: TableInfo) -> None:
    """Delete the file of a table that did not become part of the review."""
    _remove(workspace.folder(review.id) / table.file)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
        remove_seal(path)


@contextmanager
def _new_files(*paths: Path) -> Iterator[None]:
    """Files that are deleted if the step fails."""
    try:
        yield
    except BaseException:
        for path in paths:
            _remove(path)
        raise


@contextmanager
def _named(name: str | None) -> Iterator[None]:
    """Make errors in the body name this file unless they name another; check the reply's form."""
    try:
        yield
    except InputError as error:
        raise error.at(file=name) from error
    except (TypeError, KeyError, AttributeError) as error:
        raise InputError(
            "The process that read the file returned a malformed reply",
            fix="The file may be malicious: do not use it.",
            file=name,
        ) from error
