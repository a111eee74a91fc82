"""The reviews on this machine that may be listed."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlsplit

import streamlit as st

from app.shared import session
from kdcal_core.review import Review

_LOCAL = ("localhost", "127.0.0.1", "::1")

Used = tuple[Review, float]
"""A review, and when it was last used."""


def reviews_here() -> list[Used]:
    """The reviews that may be listed, the last used first.

    Samples are opened anew, so theirs are left out. Where others visit too the list is empty: on a
    shared server a review is open to whoever has its address, and no page names any.
    """
    if not at_this_machine():
        return []
    return [
        (review, used)
        for review, used in session.workspace().reviews()
        if review.sample is None and (review.tables or review.model)
    ]


def at_this_machine() -> bool:
    """Whether the browser has opened this machine's own address, and no proxy's."""
    return urlsplit(st.context.headers.get("Origin", "")).hostname in _LOCAL


def day_text(seconds: float) -> str:
    """The day of a time in seconds since the epoch."""
    day = datetime.fromtimestamp(seconds, UTC)
    return f"{day.day} {day:%B %Y}"
