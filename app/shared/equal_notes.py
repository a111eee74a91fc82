"""Notes on rows that lie in two tables of a review, wherever a page shows them."""

from __future__ import annotations

import streamlit as st

from app.shared import session, set_results
from kdcal_core.errors import InputError
from kdcal_core.review import Review
from kdcal_core.tasks import equal_sets
from kdcal_core.text import escape_markdown

LONGEST_NOTE = 600


def equal_notes(review: Review, *, foreign: str | None = None) -> None:
    """A warning for each two tables that share rows; a remark where chance explains them.

    Parameters
    ----------
    foreign : str, optional
        Only what is said of this table of foreign rows.
    """
    if len(review.all_tables) < 2:
        return
    try:
        found = set_results.of(review, equal_sets)
    except InputError as error:  # the training rows are read here first
        session.error_box(error)
        return
    for note in () if found is None else found.notes:
        shown = escape_markdown(note.sentence, LONGEST_NOTE)
        if foreign not in (None, note.foreign):
            continue
        if note.copies:
            st.warning(shown, icon=":material/content_copy:")
        else:
            st.caption(shown)
