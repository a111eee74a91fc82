"""What a page does with a job, from the button that begins it to the stored result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from app.shared import session, waiting
from app.shared.kept import by_digest
from kdcal_core.errors import InputError
from kdcal_core.jobs import JobSnapshot, jobs
from kdcal_core.review import Review
from kdcal_core.tasks import Request, Task

T = TypeVar("T")


def finished(
    asked: Request, review: Review, *, offer: Callable[[], bool] | None = None
) -> JobSnapshot | None:
    """The job of a request once it is done; until then its progress or why there is no result.

    ``offer`` draws what is offered and says whether it was accepted; without it a job that was
    never begun begins.
    """
    job = waiting.find(asked.key)
    if job is None:
        if offer is not None and not offer():
            return None
        job = begin(asked, review)
        if offer is not None:
            st.rerun()  # what was offered gives way to the progress
    if job.state == "done":
        return job
    if not job.finished:
        waiting.follow(job.id)
    elif waiting.start_again(job):
        begin(asked, review)
        st.rerun()
    return None


def asked_for(
    asked: Request, review: Review, place: Any, *, label: str, name: str, will_show: str
) -> JobSnapshot | None:
    """The job of these settings, or that of the last settings until these are begun.

    Parameters
    ----------
    place : container
        Of the button that begins the job, with this ``label``.
    name : str
        Of what is computed: distinguishes the session's last one of each review from those of
        others.
    will_show : str
        What the page will show then, our own words, while there is nothing yet.
    """
    kept = st.session_state.setdefault(f"{name}_last", {})
    if waiting.find(asked.key) is not None:
        job = finished(asked, review)
        if job is not None:
            kept[review.id] = asked.key
        return job
    if place.button(label, key=f"{name}_start", type="primary", icon=":material/play_arrow:"):
        begin(asked, review)
        st.rerun()
    former = kept.get(review.id)
    last = None if former is None else waiting.find(former)
    if last is not None and last.state == "done":
        st.info(
            "The settings have changed. The results below are those of the previous settings.",
            icon=":material/info:",
        )
        return last
    with st.container(border=True):
        st.markdown(will_show)
    return None


def begin(asked: Request, review: Review) -> JobSnapshot:
    """Begin the job of a request, or join it."""
    return waiting.run(
        asked.target, asked.kwargs, key=asked.key, title=asked.title, owner=review.id
    )


def answer_of(job: JobSnapshot, read: Callable[[str, Path], T]) -> T | None:
    """A job's stored result; the page reports a damaged one and offers to compute it again."""
    assert job.folder is not None  # of every job with a key that is done
    try:
        return read(job.key, job.folder)
    except InputError as error:
        session.error_box(error)
    if st.button("Compute again", key=f"anew_{job.key[:16]}", icon=":material/refresh:"):
        jobs().forget(job.key)
        st.rerun()
    return None


def result_of(job: JobSnapshot, task: Task[T]) -> T | None:
    """The stored result of a task's job, read once; None, and why, where it cannot be read."""
    return answer_of(job, lambda key, folder: task_result(key, task=task, folder=folder))


@by_digest
def task_result(key: str, *, task: Task[T], folder: Path) -> T:
    """The result of the job with this key."""
    return task.read(folder)
