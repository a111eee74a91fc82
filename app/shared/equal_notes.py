"""Notes on rows that are in two tables of a review."""

from __future__ import annotations

import streamlit as st

from app.shared import session, set_results
from kdcal_core.errors import InputError
from kdcal_core.evaluation import Note
from kdcal_core.review import Review
from kdcal_core.tasks import equal_sets
from kdcal_core.text import escape_markdown

_LONGEST = 600


def copies(review: Review) -> tuple[str, ...]:
    """Warnings about rows that training, calibration and evaluation set share: untrusted text.

    The top of every page shows them. A large review has none until its Load page has compared the
    tables; if a table cannot be read, that page says so.
    """
    if not review.ready or len(review.all_tables) < 2:
        return ()
    if not set_results.at_hand(review, equal_sets):
        return ()
    try:
        found = set_results.of(review, equal_sets)
    except InputError:
        return ()
    return () if found is None else tuple(one.sentence for one in found.notes if _on_top(one))


def equal_notes(review: Review, *, foreign: str | None = None) -> None:
    """Notes that are not at the top of the page: on foreign rows, and on rows equal by chance.

    Parameters
    ----------
    foreign : str, optional
        Show only notes on this table of foreign rows.
    """
    if len(review.all_tables) < 2:
        return
    try:
        found = set_results.of(review, equal_sets)
    except InputError as error:  # the training rows are read here first
        session.error_box(error)
        return
    for note in () if found is None else found.notes:
        if _on_top(note) or foreign not in (None, note.foreign):
            continue
        show_note(note)


def show_note(note: Note) -> None:
    """A note: a warning if two sets share rows, otherwise small print."""
    shown = escape_markdown(note.sentence, _LONGEST)
    if note.about == "copies":
        st.warning(shown, icon=":material/content_copy:")
    else:
        st.caption(shown)


def _on_top(note: Note) -> bool:
    return note.about == "copies" and not note.foreign
