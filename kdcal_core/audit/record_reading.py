"""Reading the record: its projects, their audits and what these found."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from kdcal_core.audit.bounds import LONGEST_ID, require_name, require_short
from kdcal_core.audit.content import AuditContent, read_content
from kdcal_core.audit.database import Database
from kdcal_core.audit.events import Person
from kdcal_core.audit.files import Files
from kdcal_core.audit.pins import Pins
from kdcal_core.audit.project import Audit, Project
from kdcal_core.audit.record_lines import followed
from kdcal_core.audit.signing import Signed, canonical, digest
from kdcal_core.audit.swap import settle_swap
from kdcal_core.errors import InputError
from kdcal_core.review import root_of_audits


def id_of(name: str) -> str:
    """A project's id: by its name, so that two who create it at once cannot both do so."""
    return digest(name.encode("utf-8", "surrogatepass"))[:16]


class RecordReader:
    """What `Record` can read.

    Parameters
    ----------
    root, url : optional
        As of `Record`.

    Attributes
    ----------
    root : Path
        The folder of audits.
    database : Database
    files : Files
    pins : Pins
    """

    def __init__(self, root: Path | None = None, url: str | None = None) -> None:
        self.root = root or root_of_audits()
        settle_swap(self.root, url)
        self.database = Database(self.root, url)
        self.files = Files(self.root / "files")
        self.pins = Pins(self.root, "" if self.database.is_file else self.database.place)
        self._known: dict[str, Project] = {}
        self._lock = threading.Lock()

    def projects(self, who: Person | None = None) -> tuple[Project, ...]:
        """Every project whose record can be read, or those that a person may see, by name."""
        seen = [one for one in self.readable() if who is None or one.may(who, "viewer")]
        return tuple(sorted(seen, key=lambda one: (one.name.casefold(), one.id)))

    def unreadable(self) -> tuple[str, ...]:
        """The ids of projects whose record was altered, or is of a newer kdcal."""
        readable = {one.id for one in self.readable()}
        return tuple(one for one in self.database.projects() if one not in readable)

    def readable(self, ids: Collection[str] | None = None) -> Iterator[Project]:
        """The projects whose record can be read, of these ids or of all."""
        heads = self.database.heads() if ids is None else {}
        for one in self.database.projects() if ids is None else ids:
            known = self._known.get(one)
            if known is not None and heads.get(one) == (known.number, known.head):
                yield known
                continue
            with suppress(InputError):
                yield self.project(one)

    def project(self, project_id: str) -> Project:
        """A project as it stands.

        Raises
        ------
        InputError
            If there is no such project, or its record was altered.
        """
        with self._lock:
            known = self._known.get(project_id)
            found = followed(project_id, known, partial(self.database.read, project_id))
            if found is None:
                raise InputError(
                    "There is no such project", fix="Choose one of the list, or create it."
                )
            self._known[project_id] = found
            return found

    def named(self, name: str) -> Project | None:
        """The project of this name, if there is one.

        Raises
        ------
        InputError
            If its record was altered, or several have the name, as earlier versions allowed.
        """
        project_id = id_of(name)
        if self.database.has(project_id):
            return self.project(project_id)
        try:
            require_name(name, "A project")
        except InputError:
            return None  # no record holds it
        words = canonical(name).decode()
        # revision 0001 had ids by chance, and every line of a record holds its project's
        found = [self.project(one) for one in self.database.begun_with(words)]
        found = [one for one in found if one.name == name]
        if len(found) > 1:
            raise InputError(
                f"{len(found)} projects have the name {name[:80]!r}", fix="Choose another name."
            )
        return found[0] if found else None

    def audits_like(self, begins: str) -> tuple[tuple[Project, Audit], ...]:
        """The audits whose id begins so, each with its project, where that can be read.

        No record of another project is read.
        """
        try:
            require_short(begins, "The audit's id", LONGEST_ID)
        except InputError:
            return ()  # no record holds it
        words = f'"audit":{canonical(begins).decode()[:-1]}'
        return tuple(
            (project, audit)
            for project in self.readable(self.database.holding(words))
            for audit in project.audits.values()
            if audit.id.startswith(begins)
        )

    def content(self, audit: Audit) -> AuditContent:
        """What an audit found.

        Raises
        ------
        InputError
            If its file is gone, was altered, or is of a newer kdcal.
        """
        if not audit.has_files:
            raise InputError(
                "The files of this audit were deleted, as its history says",
                fix="Its title, verdict and digests stay in the record.",
            )
        return read_content(self.files.get(audit.facts.content))

    def as_of(self, project: Project, audit: Audit) -> Project:
        """The project with the number and head of an audit's last entry in place of its own."""
        number = audit.history[-1].number
        return replace(project, number=number, head=digest(self.line(project.id, number).payload))

    def line(self, project_id: str, number: int) -> Signed:
        """The line of a number that the record has.

        Raises
        ------
        InputError
            If it was deleted meanwhile.
        """
        lines = self.database.read(project_id, number - 1)
        if not lines or lines[0][0] != number:
            raise InputError(
                f"Entry {number} of the record is gone",
                fix="Run 'kdcal audit verify', and restore the database from a backup.",
            )
        return lines[0][1]
