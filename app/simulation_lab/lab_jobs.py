"""The lab's jobs: offered, followed, read once they are done, and computed again where damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from app.shared import session, waiting
from app.shared.job_results import task_result
from kdcal_core.errors import InputError
from kdcal_core.jobs import JobSnapshot, jobs
from kdcal_core.tasks import Request, Task

T = TypeVar("T")


def result_of(request: Request, task: Task[T], offer: Callable[[], bool]) -> T | None:
    """What the job of a request left; None until there is one, and the page says how it stands.

    Parameters
    ----------
    task : Task
        The request's.
    offer : callable
        Draws what the job would do, where it was never begun, and says whether it was asked for.
    """
    job = waiting.find(request.key)
    if job is None:
        if offer():
            _begin(request)
    elif job.state == "done" and job.folder is not None:
        try:
            return task_result(request.key, task=task, folder=job.folder)
        except InputError as error:
            session.error_box(error)
            _offer_again(request, job)
    elif not job.finished:
        waiting.follow(job.id)
    elif waiting.start_again(job):
        _begin(request)
    return None


def _offer_again(request: Request, job: JobSnapshot) -> None:
    if st.button("Compute again", key=f"anew_{job.key[:16]}", icon=":material/refresh:"):
        jobs().forget(job.key)
        _begin(request)


def _begin(request: Request) -> None:
    waiting.run(
        request.target,
        request.kwargs,
        key=request.key,
        title=request.title,
        owner=waiting.EVERYBODY,
    )
    st.rerun()
