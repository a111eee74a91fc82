"""A job on the page: what is being done, how far it is, and a way to stop it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from kdcal_core.data import escape_markdown
from kdcal_core.jobs import JobSnapshot, Progress, jobs

Work = Callable[[Progress, Callable[[], bool]], Any]
_LAST = "last_job"


def start(work: Work, *, title: str, owner: str) -> None:
    """Begin ``work`` for the review ``owner``; `show` follows it from the next run on."""
    st.session_state[_LAST] = jobs().start(work, title=title, owner=owner)


def show(owner: str) -> JobSnapshot | None:
    """Show what runs for this review. Returns the last job of this session, once it has ended.

    Running jobs are found by their owner, so that a reload or a second tab finds them too. The
    last one is returned until the next begins: what went wrong stays on the page to be read.
    """
    for job in jobs().active(owner):
        st.session_state[_LAST] = job.id
        follow(job.id)
    last = jobs().get(st.session_state.get(_LAST, ""))
    return last if last is not None and last.finished and last.owner == owner else None


def busy(owner: str) -> bool:
    """Whether something runs for this review."""
    return bool(jobs().active(owner))


@st.fragment(run_every=0.5)
def follow(job_id: str) -> None:
    """The job's progress, with a button that stops it; the page runs anew when it has ended."""
    job = jobs().get(job_id)
    if job is None or job.finished:
        st.rerun()
    with st.container(border=True):
        st.progress(job.progress, text=_sentence(job))
        st.button(
            "Stop",
            key=f"stop_{job.id}",
            icon=":material/stop_circle:",
            on_click=jobs().cancel,
            args=(job.id,),
            disabled=job.state == "cancelling",
        )


def _sentence(job: JobSnapshot) -> str:
    title = escape_markdown(job.title, 120)
    if job.state == "queued":
        return f"{title}: number {job.queue_position} in the queue"
    if job.state == "cancelling":
        return f"{title}: stopping"
    note = f" ({escape_markdown(job.note, 120)})" if job.note else ""
    return f"{title}{note}"
