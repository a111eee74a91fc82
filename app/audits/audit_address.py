"""Which audit is open: its address, and whether it was opened from the list, to work on it."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

import streamlit as st

from app.shared import in_browser

_KEY = "audit"
_WORK = "audit_to_work_on"
_LONGEST = 100


def asked() -> tuple[str, str] | None:
    """The project and the audit that the address names; None where it names none."""
    given = st.query_params.get(_KEY, "")[:_LONGEST]
    if not given:
        return None
    project, _, audit = given.partition(":")
    return project, audit


def open_to_work(project: str, audit: str) -> None:
    """Open an audit for whoever may change it, and end this run."""
    allow_work(project, audit)
    st.query_params[_KEY] = f"{project}:{audit}"
    in_browser.focus_title()
    st.rerun()


def allow_work(project: str, audit: str) -> None:
    """Show what can be done with this audit: who opens its address sees it read-only at first."""
    st.session_state[_WORK] = (project, audit)


def to_work_on(project: str, audit: str) -> bool:
    """Whether the audit was opened from the list, or its reader asked to change it."""
    return bool(st.session_state.get(_WORK) == (project, audit))


def close() -> None:
    """Go back to the list, and end this run."""
    st.session_state.pop(_WORK, None)
    st.query_params.pop(_KEY, None)
    in_browser.focus_title()
    st.rerun()


def link(here: str | None, project: str, audit: str) -> str:
    """The whole address of an audit, for whoever may read it; empty where no browser gave its own.

    Parameters
    ----------
    here : str or None
        The page's address in the browser, as of ``st.context.url``.

    Examples
    --------
    >>> link("https://kdcal.example.org/audits?review=secret#top", "p", "a")
    'https://kdcal.example.org/audits?audit=p%3Aa'
    >>> link(None, "p", "a")
    ''
    """
    if not here:
        return ""
    query = urlencode({_KEY: f"{project}:{audit}"})
    return urlsplit(here)._replace(query=query, fragment="").geturl()


def without_review() -> None:
    """Take the open review out of the address, which may be passed on; it stays open.

    Whoever has a review's address may change the review.
    """
    st.query_params.pop("review", None)
