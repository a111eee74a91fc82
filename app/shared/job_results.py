"""Jobs on a page, from the button that starts one to the stored result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from app.shared import session, waiting
from app.shared.emphasis import emphasis, quiet
from app.shared.kept import by_digest
from kdcal_core.errors import InputError
from kdcal_core.jobs import JobSnapshot, jobs
from kdcal_core.review import Review
from kdcal_core.tasks import Request, ReviewTask, Task

T = TypeVar("T")
_SHORT = 0.4  # seconds in which most measures of many rows end, so that the page need not ask again
_AGAIN = "compute_again"  # the key of the job whose damaged result is to be computed again


def finished(
    asked: Request, owner: str, *, offer: Callable[[], bool] | None = None
) -> JobSnapshot | None:
    """The finished job of a request; until then the page shows progress or an error.

    Parameters
    ----------
    owner : str
        The review's id, or `waiting.EVERYBODY`.
    offer : callable, optional
        Draws the offer of a new job and returns whether it was accepted. Without it a new job
        starts at once.
    """
    job = waiting.find(asked.key)
    if job is None:
        again = st.session_state.get(_AGAIN) == asked.key  # asked for already: no second offer
        if offer is not None and not again and not offer():
            return None
        job = begin(asked, owner)
        if again:
            del st.session_state[_AGAIN]
        if offer is not None:
            st.rerun()  # replaces the offer by the progress
        job = jobs().wait(job.id, _SHORT)
    if job.state == "done":
        return job
    if not job.finished:
        waiting.follow(job.id)
    elif waiting.start_again(job):
        begin(asked, owner)
        st.rerun()
    return None


def fitted_when_asked(
    asked: Request, owner: str, place: Any, *, name: str, will_show: str
) -> JobSnapshot | None:
    """The finished job of a request that writes a file; before, the button that starts it.

    Parameters
    ----------
    owner, place, name
        As of `asked_for`.
    will_show : str
        What will be seen here, in Markdown.
    """
    label = "Fit, judge and write the file"
    if waiting.find(asked.key) is not None or _clicked(
        asked, owner, place, label=label, key="export_start", name=name
    ):
        return finished(asked, owner)
    with st.container(border=True):
        st.markdown(will_show)
    return None


def _clicked(asked: Request, owner: str, place: Any, *, label: str, key: str, name: str) -> bool:
    """Whether the button that starts the job was clicked; the job then runs, without a button."""
    if not place.button(label, key=key, type=emphasis(), icon=":material/play_arrow:"):
        return False
    begin(asked, owner)
    st.session_state.setdefault(f"{name}_begun", {})[owner] = asked.key
    place.empty()
    return True


def settings_card(owner: str, name: str, label: str = "Settings") -> Any:
    """Where the settings of `asked_for` stand: open at first, and a fold once there is a result.

    Parameters
    ----------
    owner, name : str
        As of `asked_for`.
    label : str
        Of the fold.
    """
    folded = owner in st.session_state.get(f"{name}_last", {}) or _begun_is_done(owner, name)
    st.session_state[f"{name}_folded"] = folded
    if folded:
        return st.popover(label, icon=":material/tune:", type=quiet())
    return st.container(border=True)


def _begun_is_done(owner: str, name: str) -> bool:
    """Whether the job that was begun here last has a result, which this run will show."""
    key = st.session_state.get(f"{name}_begun", {}).get(owner)
    job = None if key is None else waiting.find(key)
    return job is not None and job.state == "done"


def fold_settings(owner: str, name: str, asked: Request) -> None:
    """Note the job whose result is shown; the settings fold from the first one on."""
    st.session_state.setdefault(f"{name}_last", {})[owner] = asked.key
    if not st.session_state[f"{name}_folded"]:
        st.rerun()


def request(task: ReviewTask[Any], review: Review, settings: Any) -> Request | None:
    """The job of a review's task; where it cannot run, None, and the page says why."""
    try:
        return task.request(session.workspace(), review.id, settings)
    except InputError as error:
        session.info_box(error)
        return None


def asked_for(
    asked: Request, owner: str, place: Any, *, label: str, name: str, will_show: str
) -> JobSnapshot | None:
    """The job of these settings, or that of the last settings until it is started.

    Parameters
    ----------
    owner : str
        As of `finished`.
    place : empty
        Place of the button that starts the job, with this ``label``.
    name : str
        Name of the computation, which distinguishes the session's last jobs of an owner.
    will_show : str
        What the page will show after the job. Our own text.
    """
    kept = st.session_state.setdefault(f"{name}_last", {})
    again = st.session_state.get(_AGAIN) == asked.key  # a damaged result: computed without a click
    if (
        again
        or waiting.find(asked.key) is not None
        or _clicked(asked, owner, place, label=label, key=f"{name}_start", name=name)
    ):
        job = finished(asked, owner)
        if job is not None:
            fold_settings(owner, name, asked)
        return job
    former = kept.get(owner)
    last = None if former is None else waiting.find(former)
    if last is not None and last.state == "done":
        st.info(
            "The settings have changed. The results shown are those of the previous settings.",
            icon=":material/info:",
        )
        return last
    with st.container(border=True):
        st.markdown(will_show)
    return None


def begin(asked: Request, owner: str) -> JobSnapshot:
    """Start the job of a request, or join it; ``owner`` as for `finished`."""
    return waiting.run(
        asked.target,
        asked.kwargs,
        key=asked.key,
        title=asked.title,
        owner=owner,
        about=asked.review,
        prepared=asked.prepared,
        reads=asked.reads,
    )


def answer_of(job: JobSnapshot, read: Callable[[str, Path], T]) -> T | None:
    """A job's stored result; the page reports a damaged result and offers to compute it again."""
    assert job.folder is not None  # of every job with a key that is done
    try:
        return read(job.key, job.folder)
    except InputError as error:
        session.error_box(error)
    if st.button("Compute again", key=f"anew_{job.key[:16]}", icon=":material/refresh:"):
        jobs().forget(job.key)
        st.session_state[_AGAIN] = job.key
        st.rerun()
    return None


def result_of(job: JobSnapshot, task: Task[T]) -> T | None:
    """The stored result of a task's job, read once; if unreadable, None and an error."""
    return answer_of(job, lambda key, folder: task_result(key, task=task, folder=folder))


def key_today(task: ReviewTask[Any], review: Review, settings: Any) -> str | None:
    """The key of a task's job for this review as it is now; None if it cannot run."""
    try:
        return task.request(session.workspace(), review, settings).key
    except InputError:
        return None


def stored_result(key: str, task: Task[T]) -> T | None:
    """The result of the job with this key; None if there is none, or it cannot be read.

    The page of the task reports a damaged one.
    """
    return stored(key, lambda key, folder: task_result(key, task=task, folder=folder))


def stored(key: str, read: Callable[[str, Path], T]) -> T | None:
    """As `stored_result`, read otherwise."""
    job = waiting.find(key)
    if job is None or job.state != "done" or job.folder is None:
        return None
    try:
        return read(job.key, job.folder)
    except InputError:
        return None


@by_digest
def task_result(key: str, *, task: Task[T], folder: Path) -> T:
    """The result of the job with this key."""
    return task.read(folder)
