"""The steps from added files to a scored review: task, roles, question, scores."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kdcal_core.data.column_doubts import Reading
from kdcal_core.data.schema import Roles, Task
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.quotas import JOB_TIME, READ_TIME
from kdcal_core.review.added_files import inspect, with_predictions, with_reading
from kdcal_core.review.baseline import baseline_of
from kdcal_core.review.changes import (
    Cancelled,
    ask_worker,
    change_review,
    decode_set,
    decode_table,
    model_of,
    naming_file,
    new_files,
    one_file_at_a_time,
    unscored,
)
from kdcal_core.review.question import Decision, Question
from kdcal_core.review.requirements import (
    check_classes,
    check_columns,
    check_complete,
    check_kept,
    check_unchanged,
    default_classes,
    keep_fitting,
    undoubted,
)
from kdcal_core.review.review import WHICH, Review, TableInfo
from kdcal_core.review.sealed_files import table_path
from kdcal_core.review.set_summary import prepared_for
from kdcal_core.review.workspace import Workspace
from kdcal_core.store import decode
from kdcal_core.text import listed

_LONGEST_TITLE = 200


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
    with naming_file(table.name):
        reply = ask_worker("read_again", kwargs, seconds=READ_TIME, what="Reading the columns")
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
    # before a column is known to be the target, the answer may also say which task it is
    known = before.chosen_task or (before.roles and before.roles.target)
    task = before.task if known else None
    reading = read_again(before, workspace.folder(review_id), task, answers)

    def change(now: Review) -> Review:
        check_unchanged(before, now)
        settled = replace(with_reading(now, reading), answers=answers)
        for table in settled.tables.values():
            check_columns(table, undoubted(settled.roles or Roles(), settled.doubts))
        return unscored(keep_fitting(settled))

    change_review(workspace, review_id, change)
    return with_predictions(workspace, review_id)


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
    with new_files(*paths.values()), naming_file(table.name):
        reply = ask_worker("divide_table", kwargs, seconds=READ_TIME, what="Dividing the table")
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
        "model": model_of(review, folder),
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
    with new_files(*folders.values()), naming_file(review.model.name if review.model else None):
        reply = ask_worker(
            "score_tables",
            kwargs,
            seconds=JOB_TIME,
            what="Scoring the rows",
            prepared=prepared_for(*review.tables.values()),
            progress=progress,
            cancelled=cancelled,
        )
        sets = {which: decode_set(reply[which], path) for which, path in folders.items()}

        def change(now: Review) -> Review:
            check_unchanged(review, now)
            return replace(now, sets=sets, verdict="")

        return change_review(workspace, review_id, change)


def _new_folder(folder: Path) -> Path:
    return folder / f"set-{secrets.token_hex(8)}"
