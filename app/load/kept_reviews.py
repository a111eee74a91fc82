"""The reviews on this machine: to open, rename, duplicate and delete."""

from __future__ import annotations

import streamlit as st

from app.shared import in_browser, server_process, session, sign_in
from app.shared.emphasis import quiet
from app.shared.labels import unique_labels, words_of
from app.shared.reviews_here import Used, day_text
from kdcal_core.errors import InputError
from kdcal_core.review import Review, rename_review
from kdcal_core.text import counted, escape_markdown, printable

_TEN = 10
_SHOWN = "kept_reviews_shown"
_ANCHOR = "reviews-on-this-machine"
_WIDTHS = (5, 3, 2, 3, 3, 3)  # title, model, rows, date, verdict, what can be done with it


def link_to_kept(found: list[Used]) -> None:
    """How many there are, as a link to their list further down; nothing where there are none."""
    if found:
        whose = "of yours" if sign_in.is_on() else "on this machine"
        words = f"{counted(len(found), 'review')} {whose}"
        st.markdown(f":material/folder_open: [{words}](#{_ANCHOR})", width="content")


def kept_reviews(found: list[Used]) -> None:
    """A row for each review, ten at first: to open, rename, duplicate and delete it."""
    if not found:
        return
    title = "Your reviews" if sign_in.is_on() else "Reviews on this machine"
    st.header(title, anchor=_ANCHOR)
    shown = found[: st.session_state.get(_SHOWN, _TEN)]
    labels = unique_labels([_label(review) for review, _ in shown])
    names = unique_labels([words_of(label) for label in labels])
    with st.container(gap="xxsmall"):
        for (review, used), label, name in zip(shown, labels, names, strict=True):
            _row(review, used, label, name)
    if len(found) > len(shown) and st.button("Show ten more", key="kept_more"):
        st.session_state[_SHOWN] = len(shown) + _TEN
        st.rerun()


def _label(review: Review) -> str:
    """The title; the button that opens a sample anew has the sample's."""
    before = ", opened before" if review.sample else ""
    return f"{printable(review.title, 70)}{before}"


def _row(review: Review, used: float, label: str, name: str) -> None:
    title, model, rows, day, verdict, more = st.columns(_WIDTHS, vertical_alignment="center")
    if title.button(
        escape_markdown(label),
        key=f"kept_open_{review.id}",
        type="tertiary",
        icon=":material/folder_open:",
        help="Open this review",
    ):
        session.open_review(review.id)
        in_browser.focus_title()
        st.rerun()
    n_rows = sum(table.n_rows for table in review.tables.values())
    model.caption(escape_markdown(review.model.kind) if review.model else "Predictions only")
    rows.caption(counted(n_rows, "row"))
    day.caption(day_text(used))
    verdict.caption(_verdict(review))
    with more.popover(
        # cut off in its narrow column, but read aloud in full: ten buttons "Change" would be alike
        f"Change {name}",
        type=quiet(),
        wrap=False,
        width="stretch",
        key=f"kept_change_{review.id}",
    ):
        _changes(review)


def _changes(review: Review) -> None:
    """What can be done with a review without opening it."""
    with st.form(f"kept_title_{review.id}", border=False):
        title = st.text_input("Title", value=review.title, max_chars=200)
        if st.form_submit_button("Rename"):
            _rename(review, title)
    if st.button("Duplicate", key=f"kept_duplicate_{review.id}"):
        session.workspace().duplicate(review.id, f"{review.title} (copy)"[:200])
        st.rerun()
    sure = st.checkbox("Delete it with all its files", key=f"kept_sure_{review.id}")
    if st.button("Delete", key=f"kept_delete_{review.id}", disabled=not sure):
        session.workspace().delete(review.id)
        st.rerun()


def _rename(review: Review, title: str) -> None:
    try:
        rename_review(session.workspace(), review.id, title)
    except InputError as error:
        session.error_box(error, of_action=True)
    else:
        st.rerun()


def _verdict(review: Review) -> str:
    server_process.ready_for_all_pages()
    from kdcal_core.tasks import verdict_edition

    if not review.scored:
        return "Not scored yet"
    if not review.verdict or review.verdict_edition != verdict_edition(session.workspace(), review):
        return "Not checked yet"
    return review.verdict.capitalize()
