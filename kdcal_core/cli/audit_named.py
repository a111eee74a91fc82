"""What the words of ``kdcal audit`` name: the record, its projects and audits, and files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdcal_core.errors import InputError

if TYPE_CHECKING:
    from kdcal_core.audit import Audit, AuditContent, Project, Record

VERIFY = "Run 'kdcal audit verify'."
_SHORTEST = 4  # characters of an identifier that may be given


def the_record() -> Record:
    """The record of this machine, or of the database that is set."""
    from kdcal_core.audit import Record

    return Record()


def find_audit(record: Record, name: str) -> tuple[Project, Audit]:
    """The audit whose id begins so, with its project.

    Raises
    ------
    InputError
        If there is none, or more than one.
    """
    found = [
        (project, audit)
        for project, audit in record.audits_like(name)
        if audit.id == name or len(name) >= _SHORTEST
    ]
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"{'No' if not found else 'More than one'} audit has an id that begins with {name[:40]!r}",
        fix="Choose one of 'kdcal audit list'."
        + f" A project cannot be read, too. {VERIFY}" * bool(not found and record.unreadable()),
    )


def content_of(record: Record, name: str) -> AuditContent:
    """The content of an audit: of the file of this name, or of the record."""
    if Path(name).is_file():
        return content_of_file(name)
    return record.content(find_audit(record, name)[1])


def content_of_file(name: str) -> AuditContent:
    """The content of an audit that a file holds."""
    from kdcal_core.audit import read_content

    try:
        return read_content(Path(name).read_bytes())
    except InputError as error:
        raise error.at(file=name) from error


def project_id(record: Record, name: str) -> str:
    """The id of the project of this name.

    Raises
    ------
    InputError
        If there is none; it names those that there are.
    """
    found = record.named(name)
    if found is None:
        names = [one.name for one in record.projects()]
        raise InputError(
            f"There is no project {name[:80]!r}",
            fix=f"The projects are: {', '.join(one[:80] for one in names[:20]) or 'none yet'}.",
        )
    return found.id


def names_of(record: Record, projects: Iterable[str]) -> dict[str, str]:
    """The names of those of the projects, given by their ids, that can be read."""
    found = {}
    for one in projects:
        with suppress(InputError):
            found[one] = record.project(one).name
    return found


def json_file(name: str) -> Any:
    """What a file of JSON holds.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return json.loads(Path(name).read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError("The file is not JSON", fix="Give it unchanged.", file=name) from error
