"""A project's record in one file: its signed lines and its files, for a backup or another machine.

The file is a zip of ``lines.json`` and of ``files/`` by their SHA-256. Importing verifies
everything before anything is written. Files pass through in blocks, and are read one at a time.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kdcal_core.audit.content import read_content
from kdcal_core.audit.database import Database
from kdcal_core.audit.project import Project, name_taken
from kdcal_core.audit.record import Record
from kdcal_core.audit.signing import ENTRY, Signed, digest
from kdcal_core.audit.verifying import CheckedLines, check_lines, differing
from kdcal_core.errors import InputError, NewerVersionError
from kdcal_core.store import new_file
from kdcal_core.store.claims import read_json
from kdcal_core.text import counted

_LINES = "lines.json"
_KIND, _VERSION = "kdcal record", 1
MOST_FILES = 50_000
MOST_FILE_BYTES = 64 << 20
MOST_LINES_BYTES = 256 << 20
MOST_BYTES = 4_000_000_000
"""What one file may hold: files, bytes of each, of the lines, and of everything together."""
_BLOCK = 1 << 20
_NAME_BYTES = 128  # of a file in the list of names; ours have 116
_WHEN = (1980, 1, 1, 0, 0, 0)  # so that the same record gives the same bytes
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_AGAIN = "Write the file again from its record."


def export_project(record: Record, project: str, path: Path) -> int:
    """Write a project's record and files; the number of its lines.

    Raises
    ------
    InputError
        If there is no such project, one of its files is gone, its record does not hold, or it is
        larger than a file may be.
    NewerVersionError
        If a newer version of kdcal wrote some of it.
    OSError
        If the file cannot be written; then there is none.
    """
    lines = record.database.read(project)
    checked = check_lines(project, lines)  # the very lines that are written
    if not lines:
        raise InputError("There is no such project", fix="Choose one of 'kdcal audit list'.")
    known = whole(checked, "Run 'kdcal audit verify', and restore the database from a backup.")
    names = sorted({one.facts.content for one in known.audits.values() if one.has_files})
    with new_file(path) as made, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        add(archive, _LINES, lines_json(project, [signed for _, signed in lines]))
        for name in names:
            add(archive, f"files/{name}", record.files.get(name))
            check_sizes(archive.infolist())
    return len(lines)


def lines_json(project: str, lines: Sequence[Signed]) -> bytes:
    """The lines of a project as a file."""
    envelopes = [signed.envelope() for signed in lines]
    content = {"kind": _KIND, "version": _VERSION, "project": project, "lines": envelopes}
    return json.dumps(content).encode()


def whole(checked: CheckedLines, fix: str) -> Project:
    """The project, if all of its lines hold and can be read."""
    if checked.altered:
        what = checked.altered[0].removesuffix(".")
        raise InputError(f"The record was altered: {what}", fix=fix)
    checked.require_readable()
    assert checked.project is not None  # it has lines, and they hold
    return checked.project


def add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a member whose bytes are the same whenever it is written."""
    info = zipfile.ZipInfo(name, _WHEN)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)


def check_sizes(members: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse more than one file of a record may hold.

    Raises
    ------
    InputError
        That says which bound is exceeded.
    """
    fix = "Back up the folder of audits and its database in place of a file."
    if len(members) > MOST_FILES:
        raise InputError(
            f"The record has {len(members):,} files, and one file may hold {MOST_FILES:,}", fix=fix
        )
    for one in members:
        most = MOST_LINES_BYTES if one.filename.endswith(".json") else MOST_FILE_BYTES
        if one.file_size > most:
            raise InputError(
                f"{one.filename[:80]} of the record has {one.file_size:,} bytes, and at most "
                f"{most:,} are allowed",
                fix=fix,
            )
    total = sum(one.file_size for one in members)
    if total > MOST_BYTES:
        raise InputError(
            f"The record has {total:,} bytes, and one file may hold {MOST_BYTES:,}", fix=fix
        )


def import_project(record: Record, path: Path) -> str:
    """Read what `export_project` wrote into a record that does not have the project; its id.

    Raises
    ------
    InputError
        If it is no such file, is too large, was altered, is older than what the record has, or the
        record has another course of the project, or another project of its name.
    NewerVersionError
        If a newer version of kdcal wrote it.
    """
    with ExitStack() as open_files:
        with errors_of(path, "record that 'kdcal audit export' wrote"):
            archive = open_files.enter_context(opened(path))
            id_said, lines = read_lines(archive, _LINES)
            project = checked_project(archive, id_said, lines)
            if set(archive.namelist()) != {_LINES, *files_of(project)}:
                raise InputError("The file holds other files than its record names", fix=_AGAIN)
        names = {one.facts.content for one in project.audits.values() if one.has_files}
        there = record.named(project.name)
        if there is not None and there.id != project.id:  # revision 0001 had ids by chance
            raise name_taken(project.name)
        with record.files_alone():
            # before any file is kept: it may be one that was deleted here since
            _check_course(record.database.read(project.id), lines, path)
            for name in sorted(names):
                record.files.put_blocks(name, blocks(archive, f"files/{name}"))
            _write(record.database, project.id, lines, path)
        record.keep_pin(project)
    return project.id


def checked_project(archive: zipfile.ZipFile, project: str, lines: list[Signed]) -> Project:
    """The project of these lines, after a look at each of them and at every file that they name.

    Raises
    ------
    InputError
        If the lines do not hold, are of another project, or a file is gone or says otherwise.
    NewerVersionError
        If a newer version of kdcal wrote some of it.
    """
    if not lines or any(one.kind != ENTRY for one in lines):
        raise InputError("The file holds no lines of a record", fix=_AGAIN)
    found = whole(check_lines(project, list(enumerate(lines, 1))), _AGAIN)
    _check_files(archive, found)
    return found


def files_of(project: Project) -> set[str]:
    """The members that hold the files of a project."""
    return {f"files/{one.facts.content}" for one in project.audits.values() if one.has_files}


def _check_files(archive: zipfile.ZipFile, project: Project) -> None:
    """Whether the files that the record names are there, unchanged, and say what it says."""
    kept = [one.facts for one in project.audits.values() if one.has_files]
    if not files_of(project) <= set(archive.namelist()):
        raise InputError("The file lacks files that its record names", fix=_AGAIN)
    for name in sorted({one.content for one in kept}):
        stored = archive.read(f"files/{name}")
        if digest(stored) != name:
            raise InputError(f"The file {name[:12]} was altered", fix=_AGAIN)
        content = read_content(stored)
        for facts in kept:
            if facts.content == name and (others := differing(facts, content)):
                raise InputError(
                    f"The audit {facts.title[:80]!r} has another file than its entry says "
                    f"({others[0]})",
                    fix=_AGAIN,
                )


def blocks(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """A member's bytes, block by block."""
    with archive.open(name) as file:
        while block := file.read(_BLOCK):
            yield block


def _write(database: Database, project: str, lines: list[Signed], path: Path) -> None:
    with database.writing(project) as writing:
        there = writing.lines()
        _check_course(there, lines, path)
        for number, signed in list(enumerate(lines, 1))[len(there) :]:
            writing.append(number, signed)


def _check_course(there: Sequence[tuple[int, Signed]], lines: Sequence[Signed], path: Path) -> None:
    """Refuse lines unless they are those that the record has, or go on from them."""
    here = [signed for _, signed in there]
    if len(lines) < len(here) and here[: len(lines)] == list(lines):
        more = counted(len(here) - len(lines), "entry", "entries")
        raise InputError(
            f"The file is older than what is here, which has {more} more: nothing to import",
            fix="Keep what is here; verify it with 'kdcal audit verify'.",
            file=path.name,
        )
    if here != list(lines[: len(here)]):
        raise InputError(
            "The record here has another course of this project",
            fix="Look at both with 'kdcal audit verify' and the receipts that you kept.",
            file=path.name,
        )


@contextmanager
def errors_of(path: Path, what: str) -> Iterator[None]:
    """Report what breaks in a file from elsewhere, which should be ``what``, as an error of it."""
    try:
        yield
    except InputError as error:
        raise error.at(file=path.name) from error
    except FileNotFoundError as error:
        raise InputError("There is no such file", fix="Check its path.", file=str(path)) from error
    except Exception as error:  # zipfile raises many kinds of errors for hostile files
        raise InputError(
            f"This is not a {what}, or it was cut off",
            fix=_AGAIN,
            file=path.name,
        ) from error


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip file, once its list of names is known to be short enough to be read."""
    with path.open("rb") as file:
        file.seek(-42, 2)  # what ends a zip file without a comment, and where a large one has more
        tail = file.read()
        if tail[20:24] != b"PK\x05\x06" or tail[:4] == b"PK\x06\x07":
            raise ValueError("no zip file of ours")
        if int.from_bytes(tail[32:36], "little") > (MOST_FILES + 32) * _NAME_BYTES:
            raise ValueError("too long a list of names")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            check_sizes(members)
            if len({one.filename for one in members}) != len(members):
                raise ValueError("a name twice")
            if any(one.compress_type not in _METHODS for one in members):
                raise ValueError("another compression")
            yield archive


def read_lines(archive: zipfile.ZipFile, name: str) -> tuple[str, list[Signed]]:
    """The id of a project and its lines, as `lines_json` wrote them; nothing of them is checked.

    Raises
    ------
    NewerVersionError
        If a newer version of kdcal wrote them.
    Exception
        Of many kinds, for anything else.
    """
    about = about_of(archive, name, _KIND, _VERSION)
    if not re.fullmatch(r"[0-9a-f]{16}", about["project"]) or not isinstance(about["lines"], list):
        raise ValueError("no project")
    return str(about["project"]), [Signed.of(one) for one in about["lines"]]


def about_of(archive: zipfile.ZipFile, name: str, kind: str, version: int) -> dict[str, Any]:
    """A member's JSON of this kind and version; errors are those of `read_lines`."""
    about = read_json(archive.read(name))
    if about["kind"] == kind and type(about["version"]) is int and about["version"] > version:
        raise NewerVersionError(
            "The file was written by a newer version of kdcal", fix="Update kdcal."
        )
    if (about["kind"], about["version"]) != (kind, version):
        raise ValueError("another kind or version")
    return dict(about)
