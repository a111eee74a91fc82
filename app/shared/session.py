"""The open review, and how a page reports errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.shared import in_browser, sign_in
from kdcal_core.data import Task
from kdcal_core.errors import InputError
from kdcal_core.review import (
    PersonalWorkspace,
    Review,
    Workspace,
    create_review,
    read_review,
    start_sample,
)
from kdcal_core.text import escape_markdown

_KEY = "review"
_PAGE = "page_shown"
_FAILED = "failed_actions"  # their errors, in this run
_BY_JOB = "run_by_job"  # whether the end of a job asked for the next run
WINDOW = "open_window"  # the name of the window that is open, see `window`
_log = logging.getLogger(__name__)


def note_page() -> None:
    """Note which page this run shows, for `page_left`; a window stays on the page it was opened.

    Errors of actions are forgotten, except in a run that only the end of a job asked for.
    """
    page = _page_of_run()
    if st.session_state.get(_PAGE) != page:
        st.session_state.pop(WINDOW, None)
    st.session_state[_PAGE] = page
    again = st.session_state.pop(_BY_JOB, False)
    for error in st.session_state.pop(_FAILED, ()):
        if again:
            error_box(error, of_action=True)


def run_after_a_job() -> NoReturn:
    """Run the page again because a job has ended, which nobody in front of it asked for.

    The error of the action before is shown again: whoever acted may not have read it yet.
    """
    st.session_state[_BY_JOB] = True
    st.rerun()


def page_left() -> bool:
    """Whether this run of a fragment was asked for by a page that has been left meanwhile.

    A page's timer may still ask for one run after another page was chosen. To run everything again
    from there would show the page that was left, and the click on the other would be lost.
    """
    now = _page_of_run()
    return bool(st.session_state.get(_PAGE, now) != now)


def _page_of_run() -> str | None:
    context = get_script_run_ctx()
    return context.page_script_hash if context is not None else None


def open_task() -> Task | None:
    """The open review's task; None without an open review, so that every page is listed."""
    chosen = st.query_params.get(_KEY) or st.session_state.get(_KEY)
    try:
        return task_of(read_review(workspace(), chosen)) if chosen else None
    except (InputError, OSError):  # the page itself reports it
        return None


def task_of(review: Review) -> Task | None:
    """The review's task; None while nothing in the review determines it."""
    known = review.tables or review.model or review.chosen_task
    return review.task if known else None


def in_address() -> dict[str, str] | None:
    """The query parameters with which the address of another page keeps the review open."""
    current = st.session_state.get(_KEY)
    return {_KEY: current} if current else None


def workspace() -> Workspace:
    """The reviews of the person in front of the page; those of others do not exist in it."""
    return PersonalWorkspace(sign_in.identity_in_front())


def current_review() -> Review | None:
    """The review named in the address, or otherwise the last one open in this session.

    Its id is written to the address in every run, because a change of page drops it. If there is no
    such review, the page reports that and None is returned.
    """
    chosen = st.query_params.get(_KEY) or st.session_state.get(_KEY)
    if not chosen:
        return None
    if not workspace().exists(chosen):
        close_review()
        st.warning(
            "The review named in the address is not on this machine. It may have been deleted, or "
            "the address may be incomplete.",
            icon=":material/link_off:",
        )
        return None
    try:
        review = read_review(workspace(), chosen)
    except InputError as error:  # it exists but is damaged
        close_review()
        error_box(error)
        return None
    open_review(review.id)
    return review


def open_review(review_id: str) -> None:
    """Open this review in the session and in the address."""
    st.session_state[_KEY] = review_id
    if st.query_params.get(_KEY) != review_id:
        st.query_params[_KEY] = review_id


def open_review_id() -> str | None:
    """The id of the review that is open in this session, from `current_review`."""
    review_id: str | None = st.session_state.get(_KEY)
    return review_id


def close_review() -> None:
    """Close the review; it remains in the workspace."""
    st.session_state.pop(_KEY, None)
    if _KEY in st.query_params:
        del st.query_params[_KEY]


def new_review() -> str:
    """Create an empty review, open it, and return its id."""
    review = create_review(workspace())
    open_review(review.id)
    return review.id


def open_sample(sample: str, then: Callable[[], None] = st.rerun) -> None:
    """Start a sample's review, score its rows and open it; ``then`` shows it."""
    with st.spinner("Opening the sample: reading the model and scoring its rows"):
        try:
            opened = start_sample(workspace(), sample)
        except InputError as error:
            error_box(error)
            return
    open_review(opened.id)
    in_browser.focus_title()
    then()


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Report errors that a page did not handle: bad input, and full or unwritable disks."""
    try:
        yield
    except (InputError, OSError) as error:
        error_box(error)


def _of_files(error: OSError) -> InputError:
    reason = error.strerror or type(error).__name__
    return InputError(
        f"kdcal could not read or write its files ({reason})",
        fix="Free some space, or set KDCAL_HOME to a folder that kdcal may write to, and load the "
        "page again. Nothing that was loaded before is lost.",
    )


def info_box(error: InputError) -> None:
    """Why a page cannot compute something of this review, and what to do about it."""
    st.info(escape_markdown(f"{error.what}. {error.fix}", 1500), icon=":material/info:")


def error_box(error: InputError | OSError, *, of_action: bool = False) -> None:
    """What is wrong, where, and how to fix it; every name in it escaped.

    Parameters
    ----------
    of_action : bool
        Whether it comes from a click, so that no later run would show it: see `run_after_a_job`.
    """
    if isinstance(error, OSError):
        _log.error("A page could not use its files", exc_info=error)
        error = _of_files(error)
    if of_action:
        st.session_state.setdefault(_FAILED, []).append(error)
    where = f" ({escape_markdown(error.where, 300)})" if error.where else ""
    fix = f"\n\n{escape_markdown(error.fix, 1000)}" if error.fix else ""
    st.error(f"{escape_markdown(error.what, 1000)}{where}.{fix}", icon=":material/error:")
