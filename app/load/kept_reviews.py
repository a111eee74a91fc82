"""The reviews on this machine: to open, rename, duplicate and delete."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlsplit

import streamlit as st

from app.shared import session
from app.shared.emphasis import emphasis
from kdcal_core.errors import InputError
from kdcal_core.review import Review, rename_review
from kdcal_core.text import counted, escape_markdown

_LOCAL = ("localhost", "127.0.0.1", "::1")
_MOST = 50


def kept_reviews() -> None:
    """A list that opens on demand; nothing where there is none, or where others visit too.

    On a shared server a review is open to whoever has its address: it names none of them.
    """
    if not _at_this_machine():
        return
    found = {
        review.id: (review, used)
        for review, used in session.workspace().reviews()
        if review.sample is None and (review.tables or review.model)
    }
    if not found:
        return
    with st.popover(f"Reviews on this machine ({len(found):,})", icon=":material/folder_open:"):
        chosen = st.selectbox(
            "Review",
            list(found)[:_MOST],
            format_func=lambda one: _line(*found[one]),
            key="kept_review",
        )
        review, _ = found[chosen]
        st.caption(_about(review))
        with st.container(horizontal=True):
            if st.button("Open", type=emphasis(), key="kept_open"):
                session.open_review(review.id)
                st.rerun()
            if st.button("Duplicate", key="kept_duplicate"):
                session.workspace().duplicate(review.id, f"{review.title} (copy)"[:200])
                st.rerun()
            sure = st.session_state.get(f"kept_sure_{review.id}", False)
            if st.button("Delete", key="kept_delete", disabled=not sure):
                session.workspace().delete(review.id)
                st.rerun()
        st.checkbox("Delete it with all its files", key=f"kept_sure_{review.id}")
        with st.form(f"kept_title_{review.id}", border=False):
            title = st.text_input("Title", value=review.title, max_chars=200)
            if st.form_submit_button("Rename"):
                _rename(review, title)


def _rename(review: Review, title: str) -> None:
    try:
        rename_review(session.workspace(), review.id, title)
    except InputError as error:
        session.error_box(error)
    else:
        st.rerun()


def _at_this_machine() -> bool:
    """Whether the browser has opened this machine's own address, and no proxy's."""
    return urlsplit(st.context.headers.get("Origin", "")).hostname in _LOCAL


def _line(review: Review, used: float) -> str:
    return f"{review.title[:80]}, {_day(used)}, {review.verdict or 'not checked yet'}"


def _day(seconds: float) -> str:
    day = datetime.fromtimestamp(seconds, UTC)
    return f"{day.day} {day:%B %Y}"


def _about(review: Review) -> str:
    rows = sum(table.n_rows for table in review.tables.values())
    kind = review.model.kind if review.model is not None else "No model, predictions only"
    state = "not scored yet"
    if review.scored:
        state = f"verdict: {review.verdict}" if review.verdict else "not checked yet"
    return f"{escape_markdown(kind)}, {counted(rows, 'row')}, {review.task}, {state}"
