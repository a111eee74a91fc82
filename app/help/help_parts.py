"""The parts of the page Help: which guide, and the guide."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app.help.guides import NAMES, cut, on_screen, prose_and_code, read_guide
from app.shared import navigation
from app.shared.sections import sections
from kdcal_core.review import Review

_WIDTH = 760  # pixels: about a hundred letters, the longest line that is easy to read


def title() -> None:
    """The page's one heading of the first level."""
    st.title(navigation.places()["help"].title, anchor=False)


def choose_guide() -> str:
    """The guide whose title is in the address, or otherwise the first."""
    chosen: str = st.pills(
        "Guide",
        NAMES,
        key="guide",
        default=NAMES[0],
        required=True,
        format_func=lambda name: read_guide(name).title,
        bind="query-params",
        label_visibility="collapsed",
    )
    return chosen


def guide(name: str, review: Review | None) -> None:
    """A guide, section by section in a readable width; its links keep the open review."""
    text = on_screen(read_guide(name).text, review.id if review is not None else None)
    lead, parts = cut(text)
    _markdown(lead)
    sections(f"guide_{name}", {title: partial(_markdown, part) for title, part in parts.items()})


def _markdown(text: str) -> None:
    for part, code in prose_and_code(text):
        if code:
            # without Streamlit's colours of languages, some of which are too pale, and wrapped: who
            # has no mouse could not scroll a long line
            st.code(part, language=None, wrap_lines=True, width=_WIDTH)
        else:
            st.markdown(part, width=_WIDTH)
