"""The jobs in the sidebar of every page: progress, a stop button, and how the last one ended."""

from __future__ import annotations

import streamlit as st

from app.shared import session, waiting
from kdcal_core.jobs import JobSnapshot, jobs
from kdcal_core.text import escape_markdown

_SHOWN = "jobs_in_badge"
_POLL = 1.0  # seconds, while there is something to wait for; a page that waits asks twice as often


def show() -> None:
    """Draw the badge; it polls only while a job is queued or running.

    When one of them ends, the page runs again once to show the result. Each run and each poll also
    reports that the review is open: jobs of reviews that nobody has open are stopped after a while
    (`kdcal_core.jobs.limits`).
    """
    owners = waiting.owners()
    jobs().seen(owners)
    active = _active(owners)
    st.session_state[_SHOWN] = [job.id for job in active]
    with st.sidebar:
        if active:
            st.fragment(_follow, run_every=_POLL)(owners)
        elif (last := waiting.last_ended()) is not None:
            st.caption(_outcome(last))


def _follow(owners: tuple[str, ...]) -> None:
    jobs().seen(owners)
    if session.page_left():
        return
    active = _active(owners)
    if not set(st.session_state[_SHOWN]) <= {job.id for job in active}:
        session.run_after_a_job()
    for job in active:
        waiting.progress(job, where="badge")


def _active(owners: tuple[str, ...]) -> list[JobSnapshot]:
    return [job for job in jobs().active() if any(map(job.belongs_to, owners))]


def _outcome(job: JobSnapshot) -> str:
    title = escape_markdown(job.title, 120)
    if job.state == "done":
        return f":material/check_circle: {title}: done"
    if (error := waiting.error_of(job)) is not None:
        return f":material/error: {escape_markdown(str(error), 600)}"
    return f":material/stop_circle: {title}: stopped"
