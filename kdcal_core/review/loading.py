"""Reading of a review's scored sets and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdcal_core.data.types import ScoredSet, Task
from kdcal_core.errors import InputError
from kdcal_core.review.complete import check_which
from kdcal_core.review.model import Review, SetInfo, TableInfo, Which
from kdcal_core.review.seals import check_folder
from kdcal_core.review.stored import kept, regression_arrays, scored_arrays, table_path
from kdcal_core.review.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.distributions import RegressionSet


def load_set(workspace: Workspace, review_id: str, which: Which) -> ScoredSet:
    """A scored set, its arrays memory-mapped and read-only.

    Raises
    ------
    InputError
        Where the set has not been scored, or the review is of a regression.
    """
    review = workspace.read(review_id)
    info = scored_info(review, which, "classification")
    folder = workspace.folder(review_id) / info.folder
    return scored_arrays(folder, review.classes, info.digest, which)


def load_regression_set(workspace: Workspace, review_id: str, which: Which) -> RegressionSet:
    """A scored set of a regression, its arrays memory-mapped and read-only.

    Raises
    ------
    InputError
        Where the set has not been scored, or the review is of a classification.
    """
    review = workspace.read(review_id)
    info = scored_info(review, which, "regression")
    return regression_arrays(workspace.folder(review_id) / info.folder, info.digest, which)


def check_scored(workspace: Workspace, review: Review) -> None:
    """Whether every scored set is unchanged; only unknown states of its files are read.

    Raises
    ------
    InputError
        Files of a set are missing or damaged.
    """
    for which, info in review.sets.items():
        folder = workspace.folder(review.id) / info.folder
        with kept(which):
            if not check_folder(folder):  # of an earlier version, or missing
                if review.task == "regression":
                    regression_arrays(folder, info.digest, which)
                else:
                    scored_arrays(folder, review.classes, info.digest, which)


def scored_info(review: Review, which: Which, task: Task) -> SetInfo:
    """The description of a scored set of a review of this task.

    Raises
    ------
    InputError
        Where the set has not been scored, or the review is of another task.
    """
    check_which(which)
    if review.task != task:
        raise InputError(
            f"The review is of a {review.task}, and this needs a {task}",
            fix="Choose a page for its task, or change the task on the Load page.",
        )
    info = review.sets.get(which)
    if info is None:
        raise InputError(
            f"The {which} set has not been scored yet", fix="Score it on the Load page."
        )
    return info


def load_frame(
    workspace: Workspace, review_id: str, which: Which, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """The rows of a set's table: all columns, or only those asked for.

    Raises
    ------
    InputError
        Where there is no such table.
    """
    check_which(which)
    table = workspace.read(review_id).tables.get(which)
    if table is None:
        raise InputError(f"The review has no {which} table", fix="Add it on the Load page.")
    return rows_of(workspace, review_id, table, columns)


def rows_of(
    workspace: Workspace,
    review_id: str,
    table: TableInfo,
    columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """The rows of any table of the review: a set's, the training rows, foreign ones.

    Raises
    ------
    InputError
        Its file is missing.
    """
    from kdcal_core.review.reading import read_frame

    path = table_path(workspace.folder(review_id), table)
    with kept(table.name):
        return read_frame(str(path), columns).reset_index(drop=True)
