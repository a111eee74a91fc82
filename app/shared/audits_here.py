"""The record of audits on this machine, and the way to it from a review."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from app.shared import navigation, people, reviews_here
from app.shared.emphasis import quiet
from kdcal_core.audit import (
    URL,
    Audit,
    Project,
    Record,
    audits_of_rows,
    deliver_in_background,
    root_of_audits,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Review

_ASKED = "audit_asked_for"


def record() -> Record:
    """The record that all sessions share.

    Raises
    ------
    InputError
        If its database or key cannot be used.
    """
    return _record(str(root_of_audits()), os.environ.get(URL))


@st.cache_resource(show_spinner="Opening the record of audits", max_entries=4)
def _record(root: str, url: str | None) -> Record:
    del root, url  # what the record reads from the environment; here the cache's key
    opened = Record()
    deliver_in_background(opened)  # messages that an earlier server left
    return opened


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Keep where the record lies from people on a server that others visit too."""
    try:
        yield
    except (InputError, OSError) as error:
        if reviews_here.at_this_machine():
            raise
        raise InputError(
            "The record of audits cannot be used now", fix="Ask whoever runs this server."
        ) from error


def judging(rows: str) -> tuple[tuple[Project, Audit], ...] | None:
    """The audits that judged a scored set, by its digest, the latest first.

    None where the person in front of the page may not ask, or the record cannot be read: a page
    that only mentions them goes on.
    """
    who = people.current_person()
    if not people.may_work(who):
        return None
    try:
        return audits_of_rows(record(), rows, who)
    except (InputError, OSError):
        return None


def record_button(review: Review) -> None:
    """A button that opens the form in which an audit of this review is recorded."""
    if st.button(
        "Record an audit", key="record_an_audit", icon=":material/history_edu:", type=quiet()
    ):
        ask_to_record(review)
        navigation.go_to("audits")


def ask_to_record(review: Review | None) -> None:
    """Open the form for this review, or close it."""
    st.session_state[_ASKED] = None if review is None else review.id


def asked_to_record(review: Review) -> bool:
    """Whether the form is open for this review."""
    return bool(st.session_state.get(_ASKED) == review.id)
