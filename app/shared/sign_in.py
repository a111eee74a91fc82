"""Who signed in: the person whom a provider identified, for as long as its token says.

Streamlit checks the provider's answer once, when somebody signs in, and keeps what it said in a
signed cookie for 30 days. When the answer expires is checked here, in every run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from kdcal_core.errors import InputError
from kdcal_core.text import printable

if TYPE_CHECKING:  # the first page does without the room of audits
    from kdcal_core.audit import Person

T = TypeVar("T")
Claims = Mapping[str, object]

_ON = "sign_in_is_on"  # in the session
_LONGEST = 1_000
_NAMES = ("name", "preferred_username", "email", "sub")


def note() -> None:
    """Note at the beginning of a run whether people sign in, for all that asks for it."""
    st.session_state[_ON] = _asked()


def is_on() -> bool:
    """Whether people sign in on this server: its secrets have a section `auth`."""
    noted: bool | None = st.session_state.get(_ON)
    return _asked() if noted is None else noted


def _asked() -> bool:
    # Streamlit looks for the files of secrets each time, as long as there are none
    return "is_logged_in" in st.user.to_dict()


def settings_unreadable() -> bool:
    """Whether there is a file of secrets that cannot be read, so that nobody knows what it asks."""
    files = st.get_option("secrets.files")
    return any(Path(one).exists() for one in files) and not st.secrets.load_if_toml_exists()


def providers() -> tuple[str | None, ...]:
    """Those with which one can sign in; None is the one without a name."""
    settings = st.secrets.get("auth", {}) if st.secrets.load_if_toml_exists() else {}
    if settings.get("client_id"):
        return (None,)
    return tuple(name for name, one in settings.items() if isinstance(one, Mapping)) or (None,)


def person_in_front() -> Person:
    """The person in front of the page.

    Where people sign in and the sign-in has ended, this run ends and the next one asks for it: a
    part of a page may run alone, without what `app/main.py` checks.
    """
    person = signed_in() if is_on() else nobody()
    if person is None:
        st.rerun()
    return person


def identity_in_front() -> tuple[str, str] | None:
    """What identifies the person in front of the page; None where nobody signs in."""
    if not is_on():
        return None
    return person_in_front().identity


def nobody() -> Person:
    """Whoever uses a machine where nobody signs in: the user of its operating system."""
    from kdcal_core.audit import system_user

    return replace(system_user(), believed="the user of this machine; nobody signed in")


def signed_in() -> Person | None:
    """The person who signed in; None before, and after the sign-in has ended."""
    return person_of(st.user.to_dict(), time.time())


def person_of(claims: Claims, now: float) -> Person | None:
    """The person of whom a provider's token speaks; None where it names nobody, or has expired.

    Parameters
    ----------
    claims : mapping
        Untrusted text, beside what identifies the person.
    now : float
        In seconds since the epoch, as the token's expiry.

    Examples
    --------
    >>> ann = {"is_logged_in": True, "iss": "https://id.example.org", "sub": "7", "exp": 100}
    >>> person_of(ann, 99).believed
    'signed in with https://id.example.org'
    >>> person_of(ann, 100) is None, person_of({**ann, "exp": None}, 99) is None
    (True, True)
    """
    from kdcal_core.audit import Person

    issuer, subject = _text(claims.get("iss")), _text(claims.get("sub"))
    if claims.get("is_logged_in") is not True or issuer is None or subject is None:
        return None
    ends = _expiry(claims)
    if ends is None or ends <= now:
        return None
    name = next(filter(None, (_text(claims.get(one)) for one in _NAMES)), subject)
    return Person(printable(name, 200), issuer, subject, f"signed in with {printable(issuer, 200)}")


def why_nobody(claims: Claims, now: float) -> str:
    """Why a token identifies nobody, in a sentence; empty where nobody signed in.

    Examples
    --------
    >>> why_nobody({"is_logged_in": True, "iss": "i", "sub": "s", "exp": 60}, 61)
    'Your sign-in ended on 1 January 1970 at 00:01 UTC.'
    """
    if claims.get("is_logged_in") is not True:
        return ""
    ends = _expiry(claims)
    if ends is None or _text(claims.get("iss")) is None or _text(claims.get("sub")) is None:
        return "The provider's answer does not say who you are and until when."
    if ends > now:
        return ""
    at = datetime.fromtimestamp(ends, UTC)
    return f"Your sign-in ended on {at.day} {at:%B %Y} at {at:%H:%M} UTC."


def while_it_lasts(make: Callable[[], T]) -> Callable[[], T]:
    """What makes a file when it is downloaded, which no run of the page precedes."""
    if not is_on():
        return make
    claims = st.user.to_dict()

    def made() -> T:
        if person_of(claims, time.time()) is None:
            raise InputError("Your sign-in has ended", fix="Load the page again, and sign in.")
        return make()

    return made


def _expiry(claims: Claims) -> float | None:
    """When a token expires, in seconds since the epoch; None where it does not say."""
    ends = claims.get("exp")
    if isinstance(ends, bool) or not isinstance(ends, int | float):
        return None
    return float(ends) if math.isfinite(ends) and 0 <= ends < 1e11 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and len(value) <= _LONGEST else None
