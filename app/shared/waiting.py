"""Jobs on the page: start one, find it again, show its progress, stop it, and report its end.

A page that needs a long computation does this in every run::

    job = waiting.find(key) or waiting.run(target, kwargs, key=key, title=title, owner=review.id)
    if job.state == "done":
        draw(read(job.folder))
    elif not job.finished:
        waiting.follow(job.id)
    elif waiting.start_again(job):
        waiting.run(target, kwargs, key=key, title=title, owner=review.id)
        st.rerun()

`find` starts nothing, so a failed or stopped job does not start again by itself, and a page that
first offers a button calls `run` only after a click.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import streamlit as st

from app.shared import reviews_here, session, sign_in
from kdcal_core.errors import InputError
from kdcal_core.jobs import JobSnapshot, jobs
from kdcal_core.progress import Progress
from kdcal_core.review import read_review
from kdcal_core.text import escape_markdown, in_sentence

Work = Callable[[Progress, Callable[[], bool]], Any]
EVERYBODY = ""  # owner of a job without private data, such as a simulation: all sessions see it
_LAST = "last_job"
_OWNERS = "job_owners"
_STOPPED = "stopped_jobs"
_SESSION = "session_user"
_NEARLY_DONE, _YOUNG = 0.9, 4.0  # progress, and seconds: such a job may end at once
_PATIENCE = 0.3  # seconds to wait for that: the page need not ask again
_ASKED = "asked_jobs"  # everybody's jobs that this session began, waited for or stopped


def start(work: Work, *, title: str, owner: str, short: bool = False) -> None:
    """Start ``work`` for the review ``owner``; `show` follows it from the next run.

    ``short`` work, such as reading a file, does not wait for long jobs.
    """
    _remember(owner)
    st.session_state[_LAST] = jobs().start(
        work, title=title, owner=owner, short=short, user=_user()
    )


def run(
    target: str,
    kwargs: Mapping[str, Any],
    *,
    key: str,
    title: str,
    owner: str,
    about: str = "",
    prepared: str = "",
    reads: Sequence[str] | None = None,
) -> JobSnapshot:
    """Start a function of the core as a job, or join the job of this key.

    Parameters
    ----------
    target, kwargs, key, prepared, reads
        As for `kdcal_core.jobs.JobManager.submit`; `kdcal_core.jobs.job_key` makes the key.
    title : str
        Description of the job for users.
    owner : str
        The review's id, or `EVERYBODY`.
    about : str
        The id of the review whose rows it reads; empty if it reads none.

    Returns
    -------
    JobSnapshot
        Already done if the result is stored.
    """
    _remember(owner)
    job = jobs().get(
        jobs().submit(
            target,
            kwargs,
            key=key,
            title=title,
            owner=owner,
            about=about,
            user=_user(),
            prepared=prepared,
            reads=reads,
        )
    )
    assert job is not None
    _ask_for(job)
    return job


def find(key: str) -> JobSnapshot | None:
    """The current job of this key, or its stored result; None if it was never started."""
    return jobs().find(key)


def show(owner: str) -> JobSnapshot | None:
    """Show the running steps of this review. Returns the last one after it has ended.

    Running steps are found by their owner, so a reload or a second tab also finds them. The last
    one is returned until the next one starts, so an error stays on the page. Jobs with a key belong
    to the pages that show their results.
    """
    for job in jobs().active(owner):
        if not job.key:
            st.session_state[_LAST] = job.id
            follow(job.id)
    last = jobs().get(st.session_state.get(_LAST, "")) or _interrupted(owner)
    return last if last is not None and last.finished and last.belongs_to(owner) else None


def dismiss() -> None:
    """Say no more how the last step ended, since what it was about has changed."""
    st.session_state.pop(_LAST, None)


def busy(owner: str) -> bool:
    """Whether a step is running for this review."""
    return bool(jobs().active(owner))


def reading(owner: str) -> bool:
    """Whether a file of this review is being read, or its rows scored."""
    return any(not job.key for job in jobs().active(owner))


def follow(job_id: str) -> None:
    """The job's progress, with a button that stops it; the page runs again when it has ended.

    Another review may have started it. It then also belongs to the open review, until Stop is
    pressed here.
    """
    review_id = session.open_review_id()
    job = jobs().get(job_id)
    if job is not None:
        _ask_for(job)
        wanted = job_id not in st.session_state.get(_STOPPED, ())
        if review_id is not None and wanted and not _is_ours(job):
            jobs().join(job_id, review_id)
    _follow(job_id, count())


@st.fragment(run_every=0.5)
def _follow(job_id: str, runs: Iterator[int]) -> None:
    first = next(runs) == 0  # the page's own run, which shows the progress at once
    if session.page_left():
        return
    job = jobs().get(job_id)
    if job is not None and _may_end_soon(job, first):
        job = jobs().wait(job_id, _PATIENCE)
    if job is None or job.finished:
        session.run_after_a_job()
    progress(job, where="page")


def _may_end_soon(job: JobSnapshot, first: bool) -> bool:
    young = not first and job.started is not None and time.time() - job.started < _YOUNG
    return not job.finished and (young or job.progress > _NEARLY_DONE)


def progress(job: JobSnapshot, *, where: str) -> None:
    """The job's progress and Stop button; ``where`` distinguishes two of them on a page."""
    with st.container(border=True):
        if where == "badge" and (title := _other_review(job)):
            st.caption(f"Review {title}")
        st.progress(job.progress, text=_sentence(job))
        if not _is_ours(job):
            st.caption("It continues, because another review needs the same result.")
            return
        st.button(
            _stop_words(job),
            key=f"stop_{where}_{job.id}",
            icon=":material/stop_circle:",
            on_click=_stop,
            args=(job,),
            disabled=job.state == "cancelling",
        )


def _stop_words(job: JobSnapshot) -> str:
    """What the button stops: two jobs may run at once, and a screen reader reads a button alone."""
    page, _, what = job.title.partition(": ")
    of = f" for {title}" if (title := _other_review(job)) else ""
    return f"Stop {escape_markdown(in_sentence(what or page), 80)}{of}"


def _is_ours(job: JobSnapshot) -> bool:
    return any(map(job.belongs_to, owners()))


def _stop(job: JobSnapshot) -> None:
    _ask_for(job)
    st.session_state[_STOPPED] = (*st.session_state.get(_STOPPED, ()), job.id)
    jobs().cancel(job.id, owners())


def start_again(job: JobSnapshot) -> bool:
    """Report why there is no result; returns whether the button to start again was pressed.

    There is no button if a file was refused, because it would be refused again.
    """
    _ask_for(job)
    error = error_of(job)
    if job.error is not None and error is not None:
        session.error_box(error)
        if job.error.file is not None:
            return False
    else:
        st.info("Stopped before it ended.", icon=":material/stop_circle:")
    return st.button("Start again", key=f"again_{job.id}", icon=":material/refresh:")


def error_of(job: JobSnapshot) -> InputError | None:
    """Why the job failed, as this visitor may read it; None if it did not fail."""
    if job.error is None or job.about in ("", *owners()):
        return job.error
    return of_another_review(job.error)


def of_another_review(error: InputError) -> InputError:
    """An error about the rows of another review, as this visitor may read it.

    Where others visit this server too it names neither that review nor its files: a review is open
    to whoever has its address, and an error may hold it.
    """
    if reviews_here.at_this_machine():
        return error
    what = "The results of another review cannot be computed"
    if error.file is not None:
        what = "A file of another review cannot be used"
    return InputError(
        what,
        fix="This one is compared with it, or is a copy of it. Load the rows again there, or "
        "compare with another review under Limits.",
    )


def owners() -> tuple[str, ...]:
    """Owners whose jobs this session sees: the open review, everybody, and its own."""
    return (*open_owners(), *st.session_state.get(_OWNERS, ()))


def last_ended() -> JobSnapshot | None:
    """The job that ended last, of the open review and of those of everybody asked for here.

    How jobs of other reviews and of other visitors ended is not shown.
    """
    review_id = session.open_review_id()
    found = [jobs().get(job_id) for job_id in st.session_state.get(_ASKED, ())]
    found += [jobs().last_ended([review_id])] if review_id is not None else []
    ended = [job for job in found if job is not None and job.finished and job.started]
    return max(ended, key=lambda job: job.ended or 0.0, default=None)


def open_owners() -> tuple[str, ...]:
    """The open review and everybody."""
    review_id = session.open_review_id()
    return (EVERYBODY,) if review_id is None else (EVERYBODY, review_id)


def _ask_for(job: JobSnapshot) -> None:
    asked = st.session_state.get(_ASKED, ())
    if job.belongs_to(EVERYBODY) and job.id not in asked:
        st.session_state[_ASKED] = (*asked, job.id)


def _other_review(job: JobSnapshot) -> str:
    """The title of this session's review that a job belongs to, unless that is the open one."""
    if any(map(job.belongs_to, open_owners())):
        return ""
    owner = next(filter(job.belongs_to, owners()), "")
    try:
        return f"**{escape_markdown(read_review(session.workspace(), owner).title)}**"
    except InputError:  # deleted meanwhile, or no review
        return ""


def _remember(owner: str) -> None:
    st.session_state[_OWNERS] = sorted({*st.session_state.get(_OWNERS, ()), owner})
    jobs().seen([owner])


def _user() -> str:
    """Whoever signed in; where nobody does, each session counts as one user."""
    person = sign_in.identity_in_front()
    if person is not None:
        return " ".join(person)
    return str(st.session_state.setdefault(_SESSION, secrets.token_hex(8)))


def _interrupted(owner: str) -> JobSnapshot | None:
    last = jobs().last_ended([owner])
    return last if last is not None and last.state == "interrupted" and not last.key else None


def _sentence(job: JobSnapshot) -> str:
    title = escape_markdown(job.title, 120)
    if job.state == "queued":
        return f"{title}: number {job.queue_position} in the queue"
    if job.state == "cancelling":
        return f"{title}: stopping"
    note = f" ({escape_markdown(job.note, 120)})" if job.note else ""
    return f"{title}{note}"
