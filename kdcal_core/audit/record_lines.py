"""The lines of a project's record: read, checked as a chain, and what the project is after them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from kdcal_core.audit.events import EVENTS, Entry, Happened
from kdcal_core.audit.project import Project, after, require_signer
from kdcal_core.audit.signing import Signed, digest
from kdcal_core.errors import InputError
from kdcal_core.store import decode


def followed(
    project_id: str, known: Project | None, read: Callable[[int], tuple[tuple[int, Signed], ...]]
) -> Project | None:
    """The project as stored, from what was known of it if that is still there."""
    if known is not None:
        lines = read(known.number - 1)
        if lines and (lines[0][0], digest(lines[0][1].payload)) == (known.number, known.head):
            return _with_lines(project_id, known, lines[1:])
    return _with_lines(project_id, None, read(0))  # also after a backup was restored


def _with_lines(
    project_id: str, known: Project | None, lines: tuple[tuple[int, Signed], ...]
) -> Project | None:
    """The project after further lines, whose chain is checked; their signatures are `verify`'s."""
    for number, signed in lines:
        if known is not None and signed.key not in known.keys:
            raise InputError(
                f"Entry {number} of the record is signed by a key that nobody admitted",
                fix="Run 'kdcal audit verify', and restore the database from a backup.",
            )
        before = known.number if known else 0
        entry = read_entry(signed.payload)
        head = known.head if known else None
        if (entry.number, entry.project) != (number, project_id) or (
            (before + 1, head) != (number, entry.previous)
        ):
            raise InputError(
                f"The record of the project was altered at entry {number}",
                fix="Run 'kdcal audit verify', and restore the database from a backup.",
            )
        if known is not None:
            require_signer(known, entry.who, signed.key)
        known = after(known, happened_of(entry), project_id)
        known = replace(known, number=number, head=digest(signed.payload))
    return known


def read_entry(payload: bytes) -> Entry:
    """A line of the record.

    Raises
    ------
    InputError
        If it is not one, or of a newer kdcal.
    """
    try:
        return decode(Entry, json.loads(payload.decode()))
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(
            "A line of the record cannot be read: it was altered, or a newer kdcal wrote it",
            fix="Install the newest kdcal, or restore the database from a backup.",
        ) from error


def happened_of(entry: Entry) -> Happened:
    """The event of a line.

    Raises
    ------
    InputError
        As `read_entry`.
    """
    kind = EVENTS.get(entry.what)
    try:
        if kind is None:
            raise TypeError(entry.what)
        return Happened(entry.number, entry.when, entry.who, decode(kind, entry.body))
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"Entry {entry.number} says {entry.what[:40]!r}, which this kdcal does not know",
            fix="Install the newest kdcal, or restore the database from a backup.",
        ) from error
