"""The reviews on this machine that may be listed."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlsplit

import streamlit as st

from app.shared import session, sign_in
from kdcal_core.review import Review

_LOCAL = ("localhost", "127.0.0.1", "::1")
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")

Used = tuple[Review, float]
"""A review, and when it was last used."""


def reviews_here() -> list[Used]:
    """The reviews that may be listed, the last used first.

    Samples are opened anew each time, so of those that are still alike only the last one is listed.
    Where others visit too and nobody signs in the list is empty: there a review is open to whoever
    has its address, and no page names any.
    """
    if not may_be_named():
        return []
    kept: dict[object, Used] = {}
    for review, used in session.workspace().reviews():
        if review.tables or review.model:
            as_opened = (review.sample, review.title, repr(review.question))
            kept.setdefault(as_opened if review.sample else review.id, (review, used))
    return list(kept.values())


def may_be_named() -> bool:
    """Whether a page may name other reviews than the open one.

    They belong to the person who signed in, or all visitors are at this machine.
    """
    return sign_in.is_on() or at_this_machine()


def at_this_machine() -> bool:
    """Whether the browser has opened this machine's own address, and no proxy's.

    No page of another site can change what a browser says of its own address, but a program can
    say anything. From another machine such a program reaches the server itself, and then its own
    address shows it, or through a proxy, which nearly always says so or passes on its own host's
    name. What is left is a proxy on this machine that hides that it is one. Whoever shares the app
    needs sign-in, for which none of this matters.
    """
    given = st.context.headers
    addresses = (given.get("Origin", ""), f"//{given.get('Host', '')}")
    return (
        all(_host(one) in _LOCAL for one in addresses)
        and not any(one in given for one in _FORWARDED)
        and st.context.ip_address is None  # as Streamlit says of this machine's own
    )


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:  # half an address of IPv6
        return None


def day_text(seconds: float) -> str:
    """The day of a time in seconds since the epoch."""
    day = datetime.fromtimestamp(seconds, UTC)
    return f"{day.day} {day:%B %Y}"
