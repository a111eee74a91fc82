"""Classification or regression: guessed from the files, shown, and changeable."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import streamlit as st

from app.shared import session, waiting
from kdcal_core.data import Task
from kdcal_core.progress import Progress
from kdcal_core.review import Review, set_task

_NAMES: dict[Task, str] = {"classification": "Classification", "regression": "Regression"}
_NEW = "task_of_new"
_MANY = 50  # distinct values of a numeric target that are hardly classes

_HELP = (
    "In a classification the target is a class and the model gives each class a probability. In a "
    "regression it is a number and the model gives a predictive distribution: a mean and a "
    "standard deviation, quantiles, samples, or a single number. By default the files determine it."
)


def task_choice(review: Review | None) -> None:
    """The choice of the task. A change reads the model's file and the columns again."""
    if review is None or not (review.tables or review.model):
        _before_files(review)
        return
    key = f"task_{review.id}_{review.task}"
    st.session_state.setdefault(key, review.task)  # an additional default would cause a warning
    st.segmented_control(
        "What the model does",
        get_args(Task),
        required=True,
        format_func=_NAMES.__getitem__,
        key=key,
        help=_HELP,
        on_change=_change,
        args=(key, review),
        disabled=waiting.busy(review.id),
    )
    if _looks_like_numbers(review):
        st.caption(
            ":material/help: The target holds many different numbers. If the model predicts a "
            "number instead of a class, choose Regression."
        )


def review_to_fill(review: Review | None) -> str:
    """The id of the review that files go to, with the task that was chosen before any was loaded.

    Without such a choice the files determine the task.
    """
    review_id = review.id if review is not None else session.new_review()
    if (wanted := st.session_state.get(_NEW)) is not None:
        set_task(session.workspace(), review_id, wanted)
    return review_id


def _before_files(review: Review | None) -> None:
    st.segmented_control(
        "What the model does",
        get_args(Task),
        default=review.chosen_task if review else None,
        format_func=_NAMES.__getitem__,
        key=_NEW,
        help=_HELP,
    )


def _change(key: str, review: Review) -> None:
    """Start the change. Until it succeeds, the choice shows the current task."""
    task: Task = st.session_state[key]
    st.session_state[key] = review.task
    if task == review.task:
        return
    workspace = session.workspace()

    def work(progress: Progress, cancelled: Callable[[], bool]) -> Review:
        return set_task(workspace, review.id, task, progress=progress, cancelled=cancelled)

    title = f"Reading the files again for a {task}"
    waiting.start(work, title=title, owner=review.id, short=True)


def _looks_like_numbers(review: Review) -> bool:
    table = review.tables.get("calibration")
    if review.task != "classification" or review.scored or table is None or review.roles is None:
        return False
    target = next((one for one in table.columns if one.name == review.roles.target), None)
    return target is not None and target.kind == "number" and target.n_distinct > _MANY
