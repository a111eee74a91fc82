"""Tables beside the scored sets: training rows, foreign rows, and new tables to watch.

They are not scored, are not used to calibrate and do not determine the roles of columns. Adding or
removing one therefore does not change the scores of the review.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from kdcal_core.data.schema import Roles
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.review.added_files import read_upload
from kdcal_core.review.changes import Cancelled, change_review, one_file_at_a_time
from kdcal_core.review.requirements import (
    check_foreign,
    check_training,
    check_watched,
    without_place_note,
)
from kdcal_core.review.review import Review, TableInfo
from kdcal_core.review.workspace import Workspace


def add_training(
    workspace: Workspace,
    review_id: str,
    source: BinaryIO | Path,
    name: str,
    *,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Add the rows that the model was trained on, or replace them.

    Parameters
    ----------
    source, name, progress, cancelled
        As for `add_model`.

    Raises
    ------
    InputError
        If there is no calibration table yet, the file is not a table, or it lacks a feature or the
        true class.
    """

    def change(review: Review, table: TableInfo) -> Review:
        check_aside(review, table, foreign=False)
        return replace(without_place_note(review, name), training=table)

    return _add(workspace, review_id, source, name, progress, cancelled, change)


def add_foreign(
    workspace: Workspace,
    review_id: str,
    source: BinaryIO | Path,
    name: str,
    *,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Add a table of foreign rows under its file's name; a table of the same name is replaced.

    Parameters
    ----------
    source, name, progress, cancelled
        As for `add_model`.

    Raises
    ------
    InputError
        If there is no calibration table yet, the file is not a table, or it lacks a feature.
    """

    def change(review: Review, table: TableInfo) -> Review:
        check_aside(review, table, foreign=True)
        foreign = {**review.foreign, name: table}
        return replace(without_place_note(review, name), foreign=foreign)

    return _add(workspace, review_id, source, name, progress, cancelled, change)


def _add(
    workspace: Workspace,
    review_id: str,
    source: BinaryIO | Path,
    name: str,
    progress: Progress | None,
    cancelled: Cancelled | None,
    change: Callable[[Review, TableInfo], Review],
) -> Review:
    """Read a table of a review that has a calibration set, and change the review by it."""
    _roles_of(workspace.read(review_id))
    with (
        one_file_at_a_time(workspace, review_id, cancelled),
        read_upload(workspace, review_id, source, name, progress, cancelled) as (table, _),
    ):
        return change_review(workspace, review_id, lambda review: change(review, table))


def remove_foreign(workspace: Workspace, review_id: str, name: str) -> Review:
    """Remove a table of foreign rows; nothing happens if the name is not known."""
    return change_review(
        workspace, review_id, lambda one: replace(one, foreign=_without(one.foreign, name))
    )


def add_watched(
    workspace: Workspace,
    review_id: str,
    source: BinaryIO | Path,
    name: str,
    *,
    progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Review:
    """Add a new table to hold against the review's rows, under its file's name, behind the others.

    A table of the same name is replaced and keeps its place: later ones still come after it.

    Parameters
    ----------
    source, name, progress, cancelled
        As for `add_model`.

    Raises
    ------
    InputError
        If there is no calibration table yet, the file is not a table, or it lacks a column that
        the model needs, or one of the predictions.
    """

    def change(review: Review, table: TableInfo) -> Review:
        check_watched(table, review)
        return replace(review, watched={**review.watched, name: table})

    return _add(workspace, review_id, source, name, progress, cancelled, change)


def remove_watched(workspace: Workspace, review_id: str, name: str) -> Review:
    """Remove a new table; nothing happens if the name is not known."""
    return change_review(
        workspace, review_id, lambda one: replace(one, watched=_without(one.watched, name))
    )


def _without(tables: Mapping[str, TableInfo], name: str) -> dict[str, TableInfo]:
    return {key: table for key, table in tables.items() if key != name}


def check_aside(review: Review, table: TableInfo, *, foreign: bool) -> None:
    """Refuse training or foreign rows that do not fit the review.

    Raises
    ------
    InputError
        Where there is no calibration table yet, or a column that is needed is missing.
    """
    check = check_foreign if foreign else check_training
    check(table, _roles_of(review))


def _roles_of(review: Review) -> Roles:
    if "calibration" not in review.tables or review.roles is None:
        raise InputError(
            "There is no calibration set yet, so it is not known which columns are needed",
            fix="Add the calibration set on the Load page first.",
        )
    return review.roles
