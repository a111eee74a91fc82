"""How long the texts of a record may be, and the error that names the text that cannot be kept.

Lengths hold for what is written, and for what comes from elsewhere or was stored before. That a
name shows something is asked of what is written alone: a record of before stays readable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from kdcal_core.audit.events import (
    AuditApproved,
    AuditDrafted,
    AuditRejected,
    Commented,
    FilesDeleted,
    FindingChanged,
    FindingOpened,
    Happened,
    LimitsLocked,
    MemberSet,
    Moment,
    Person,
    ProjectCreated,
)
from kdcal_core.errors import InputError
from kdcal_core.review import PlaceInList
from kdcal_core.text import counted, is_visible

LONGEST_NAME, LONGEST_TEXT, LONGEST_ID = 200, 10_000, 128
_LONGEST_ISSUER = 2_000
_AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")
_NAMES: dict[tuple[type[Any], str], str] = {
    (ProjectCreated, "name"): "The name of the project",
    (MemberSet, "name"): "The name of the member",
    (LimitsLocked, "note"): "The note on the limits",
    (AuditDrafted, "title"): "The title of the audit",
    (AuditDrafted, "headline"): "The sentence of the verdict",
    (AuditApproved, "words"): "What is said with the approval",
    (AuditRejected, "words"): "The reason for the rejection",
    (FindingOpened, "title"): "The title of the finding",
    (FindingOpened, "owner"): "The owner of the finding",
    (FindingChanged, "owner"): "The owner of the finding",
    (FindingChanged, "words"): "What was done about the finding",
    (Commented, "words"): "The comment",
    (FilesDeleted, "words"): "The reason for the deletion",
    (Person, "name"): "The name of the person",
    (Moment, "clock"): "What is said of the clock",
}
"""Texts that people write, in the words of the screen. Others are named by their field."""
_SHORT = {
    (ProjectCreated, "name"),
    (MemberSet, "name"),
    (Person, "name"),
    (AuditDrafted, "title"),
    (FindingOpened, "title"),
    (FindingOpened, "owner"),
    (FindingChanged, "owner"),
}
_IDS = {"audit", "by", "finding", "model", "rows", "question"}


def require_bounded(happened: Happened) -> None:
    """Refuse times that are none, and texts that are longer than anybody needs.

    Raises
    ------
    InputError
        It names the text.
    """
    if not _is_time(happened.when.at):
        raise InputError(
            f"{happened.when.at[:40]!r} is no time of a record",
            fix="Write it as 2026-12-31T16:20:00Z.",
        )
    for holder in (happened.when, happened.who, happened.event):
        for field, value in vars(holder).items():
            most = _most(type(holder), field)
            for text in _texts(value):
                require_short(text, _NAMES.get((type(holder), field), f"The field {field!r}"), most)
    place = getattr(happened.event, "results", None)
    if isinstance(place, PlaceInList):
        require_short(place.list, "The field 'results'", LONGEST_ID)


def require_visible_names(happened: Happened) -> None:
    """Refuse to write a name that shows nothing.

    An empty one is another rule's: an owner may be left out. A member is removed under any name.

    Raises
    ------
    InputError
        It names the text.
    """
    if isinstance(happened.event, MemberSet) and happened.event.role is None:
        return
    for holder in (happened.who, happened.event):
        for field, value in vars(holder).items():
            if value and (type(holder), field) in _SHORT:
                _require_visible(value, _NAMES[type(holder), field])


def require_given(text: str, what: str) -> None:
    """Refuse an empty name.

    Parameters
    ----------
    what : str
        What it names, such as "A project".
    """
    if not text.strip():
        raise InputError(f"{what} needs a name", fix="Write one.")


def require_name(text: str, what: str) -> None:
    """Refuse a name that is empty, shows nothing or is very long.

    Parameters
    ----------
    what : str
        What it names, such as "A project".

    Examples
    --------
    >>> require_name("x" * 201, "A project")
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The name of a project has 201 characters, and at most 200 are ...
    """
    require_given(text, what)
    called = f"The name of {what[:1].lower()}{what[1:]}"
    require_short(text, called, LONGEST_NAME)
    _require_visible(text, called)


def require_short(text: str, name: str, most: int = LONGEST_TEXT) -> None:
    """Refuse a text that is too long, or that no file can keep.

    Raises
    ------
    InputError
    """
    if len(text) > most:
        raise InputError(
            f"{name} has {counted(len(text), 'character')}, and at most {most:,} are kept",
            fix="Shorten it.",
        )
    if any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InputError(
            f"{name} holds characters that no file can keep", fix="Write it without them."
        )


def _require_visible(text: str, name: str) -> None:
    if not is_visible(text):
        raise InputError(
            f"{name} shows nothing: it has only invisible characters",
            fix="Write it with letters, digits or signs.",
        )


def _most(kind: type[Any], field: str) -> int:
    if (kind, field) in _SHORT:
        return LONGEST_NAME
    if field in ("issuer", "subject"):
        return _LONGEST_ISSUER
    return LONGEST_ID if field in _IDS else LONGEST_TEXT


def _is_time(at: str) -> bool:
    try:
        return _AT.fullmatch(at) is not None and bool(datetime.fromisoformat(at))
    except ValueError:
        return False


def _texts(value: Any) -> Iterator[str]:
    """Every text of a value, wherever it stands in it."""
    match value:
        case str():
            yield value
        case Mapping():
            for name, one in value.items():
                yield from _texts([name, one])
        case list() | tuple():
            for one in value:
                yield from _texts(one)
