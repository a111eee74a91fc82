"""All projects of a record in one file, and back: for another day, machine or database.

The file is a zip of ``backup.json``, of the lines of each project as `export_project` writes them,
of ``files/`` by their SHA-256 and, if asked for, of the key. What this machine knows of each
project (`pins`) is not in it: a restored record is known as it was restored. Nor are messages that
wait to be sent: whoever changed a file could have this machine send what they like. The list of
results that this machine knows stays its own.

Restoring builds a whole record beside the folder of audits, verifies it there, and only then puts
it in place (`swap`). What was there before is moved aside, never deleted.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from kdcal_core.audit import archive as zips
from kdcal_core.audit.database import SQLITE, Database, Writing
from kdcal_core.audit.files import Files
from kdcal_core.audit.pins import Pin, Pins
from kdcal_core.audit.project import Project
from kdcal_core.audit.record import Record
from kdcal_core.audit.signing import KEY_FILE, OWN_KEY, Signed, signer_in
from kdcal_core.audit.swap import Swap, made_beside, swapped, swaps_alone
from kdcal_core.audit.verifying import verify
from kdcal_core.errors import InputError, NewerVersionError
from kdcal_core.progress import Progress, silent
from kdcal_core.review import root_of_audits
from kdcal_core.review.known_results import FILE as KNOWN_RESULTS
from kdcal_core.store import new_file
from kdcal_core.store.disk import make_folder, private, write_bytes
from kdcal_core.text import counted

_ABOUT = "backup.json"
_KIND, _VERSION = "kdcal backup", 1
_WHAT = "backup that 'kdcal audit backup' wrote"
_SQLITE = b"SQLite format 3\0"
_MOST_KEY_BYTES = 10_000
_EXPORT = (
    "Run 'kdcal audit verify' and put an earlier backup back. 'kdcal audit export' still writes "
    "the other projects."
)


@dataclass(frozen=True)
class Backup:
    """What a backup holds.

    Attributes
    ----------
    projects, entries, files : int
    """

    projects: int
    entries: int
    files: int

    @property
    def words(self) -> str:
        """What it holds.

        Examples
        --------
        >>> Backup(1, 12, 2).words
        '1 project with 12 entries and 2 files'
        """
        return (
            f"{counted(self.projects, 'project')} with "
            f"{counted(self.entries, 'entry', 'entries')} and {counted(self.files, 'file')}"
        )


@dataclass(frozen=True)
class Restored:
    """What was restored, and where that lies which was there before.

    Attributes
    ----------
    backup : Backup
    root : Path
        The folder of audits.
    aside : Path or None
        The folder of audits of before.
    schema : str
        Where PostgreSQL keeps the tables of before; empty if there are none.
    key : {"backup", "kept", "none"}
        The key beside the record: that of the file, the one that was here before, or none.
    """

    backup: Backup
    root: Path
    aside: Path | None
    schema: str
    key: Literal["backup", "kept", "none"]


def back_up(
    record: Record, path: Path, *, with_key: bool = False, progress: Progress = silent
) -> Backup:
    """Write all projects of a record to one file that only its owner can read.

    Others may read and comment meanwhile; drafts and deletions of files wait. The same record gives
    the same bytes.

    Parameters
    ----------
    with_key : bool
        Write the key that signs, too.

    Raises
    ------
    InputError
        If the record is empty or does not hold, is larger than a file may be, or has no key of its
        own that could be written. Then no file is written, and one of this name stays.
    NewerVersionError
        If a newer version of kdcal wrote some of it.
    """
    key = _own_key(record.root) if with_key else None
    with record.files_alone(), new_file(path) as made:
        ids = sorted({*record.database.projects(), *record.pins.projects()})
        if not ids:
            raise InputError("There is no project in the record, so nothing to back up")
        n, names = 0, set[str]()
        with open(made, "xb", opener=private) as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                about = {"kind": _KIND, "version": _VERSION, "projects": ids}
                zips.add(archive, _ABOUT, json.dumps(about).encode())
                for at, one in enumerate(ids):
                    progress(0.7 * at / len(ids), "Verifying the record")
                    lines = _verified(record, one)
                    zips.add(archive, _member(one), zips.lines_json(one, lines))
                    n, names = n + len(lines), names | zips.files_of(record.project(one))
                for at, name in enumerate(sorted(names)):
                    progress(0.7 + 0.3 * at / len(names), "Writing the files")
                    zips.add(archive, name, record.files.get(name.partition("/")[2]))
                if key is not None:
                    zips.add(archive, OWN_KEY, key)
                zips.check_sizes(archive.infolist())
            os.fsync(file.fileno())
    return Backup(len(ids), n, len(names))


def _member(project: str) -> str:
    return f"projects/{project}.json"


def _own_key(root: Path) -> bytes:
    """Our own key; one that a variable names lies elsewhere, and is backed up there."""
    if os.environ.get(KEY_FILE):
        raise InputError(
            f"The key is the file that {KEY_FILE} names, which is no part of the record",
            fix="Leave --with-key out, and keep a copy of that file.",
        )
    if not (root / OWN_KEY).exists():
        raise InputError("The record has no key yet", fix="Leave --with-key out.")
    return (root / OWN_KEY).read_bytes()


def _verified(record: Record, project: str) -> list[Signed]:
    """The lines of a project, which hold, as do its files."""
    found = verify(record, project)
    if found.altered:
        what = found.altered[0].removesuffix(".")
        raise InputError(
            f"The record of the project {(found.name or project)[:80]!r} was altered: {what}",
            fix=_EXPORT,
        )
    if found.newer:
        raise NewerVersionError(found.newer[0].partition(":")[0], fix="Update kdcal.")
    # somebody may have written a further one since
    return [signed for _, signed in record.database.read(project)[: found.n_entries]]


def restore(
    path: Path,
    root: Path | None = None,
    url: str | None = None,
    *,
    replace: bool = False,
    progress: Progress = silent,
) -> Restored:
    """Put the record of a backup in the place of the one that is here.

    Stop kdcal before. A key that is here stays if the file holds none.

    Parameters
    ----------
    path : Path
        What `back_up` wrote, or the copy of the tables from before an upgrade, whose files lie in
        the folder of audits. Untrusted.
    root, url : optional
        As of `Record`. A backup of either database may be restored to either.
    replace : bool
        Whether a record that is here is moved aside.

    Raises
    ------
    InputError
        If the file is no backup or does not hold, if there is a record already, or if it cannot be
        written. Then what was here stays.
    NewerVersionError
        If a newer version of kdcal wrote the file.
    """
    home = Path(os.path.realpath(root or root_of_audits()))
    with ExitStack() as held, _errors_of_folder(home):
        database = held.enter_context(swaps_alone(home, url))
        if not replace and not _is_free(home, database):
            raise InputError(
                "There is a record already",
                fix="Add --replace to move it aside, or set KDCAL_HOME to another folder.",
                file=str(home) if database is None else database.place,
            )
        made = held.enter_context(_beside(home))
        path = held.enter_context(_as_zip(path, home))
        backup = _unpack(path, made, database, progress)
        key = _key(path, home, made)
        _keep_known_results(home, made)
        moment = datetime.now(UTC).strftime("%Y%m%dt%H%M%S%f")
        aside = home.with_name(f"{home.name}-before-{moment}") if home.exists() else None
        schema = f"kdcal_before_{moment}" if database and not database.is_empty else ""
        swap = Swap(moment, aside.name if aside else "", database.place if database else "")
        with swapped(home, swap, database) as put:
            if database is None:
                put()
            else:
                with database.replacing(schema, moment) as writing:
                    for project, lines, _ in _projects(path):
                        _append(writing(project.id), lines)
                    with _errors_of_folder(home):
                        put()  # last, so that others wait no longer than for these renames
    return Restored(backup, home, aside, schema, key)


def _is_free(home: Path, database: Database | None) -> bool:
    """Whether there is nothing here that a restored record would replace."""
    if any(one.is_file() for one in (home / "files").rglob("*")):
        return False
    if database is not None:
        return database.is_empty
    if not (home / SQLITE).exists():
        return True
    try:
        with closing(Database(home, "", as_it_is=True)) as there:
            return there.is_empty
    except InputError:
        return False  # what cannot be read may be wanted


@contextmanager
def _errors_of_folder(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"The record cannot be put in place ({error.strerror or error})",
            fix="Free space on the disk, or make the folder above writable for this user.",
            file=str(home),
        ) from error


@contextmanager
def _beside(home: Path) -> Iterator[Path]:
    """An empty folder in which a record is built; what is left of it afterwards is deleted."""
    made = made_beside(home)
    shutil.rmtree(made, ignore_errors=True)  # of a restore that was cut off
    try:
        make_folder(made)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _as_zip(path: Path, home: Path) -> Iterator[Path]:
    """A backup as `back_up` writes it, of a copy of the tables and the files that are here."""
    with zips.errors_of(path, _WHAT), path.open("rb") as file:
        is_copy = file.read(len(_SQLITE)) == _SQLITE
    if not is_copy:
        yield path
        return
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{home.name}.copy") as folder:
        shutil.copyfile(path, Path(folder) / SQLITE)
        record = Record(Path(folder), "")  # with the schema of this kdcal
        with closing(record.database):
            record.files = Files(home / "files")
            back_up(record, Path(folder) / "copy.zip")
        yield Path(folder) / "copy.zip"


def _unpack(path: Path, made: Path, database: Database | None, progress: Progress) -> Backup:
    """Build the record of a backup in a folder, and verify it there."""
    record = Record(made, "")
    pins = Pins(made, "" if database is None else database.place)
    n, n_projects, files = 0, 0, set[str]()
    with closing(record.database):
        for project, lines, archive in _projects(path, progress):
            for name in sorted(zips.files_of(project) - files):
                record.files.put_blocks(name.partition("/")[2], zips.blocks(archive, name))
            with record.database.writing(project.id) as writing:
                _append(writing, lines)
            found = verify(record, project.id)
            if not found.holds:
                said = (*found.altered, *found.newer)[0]
                raise InputError(f"The backup does not hold: {said}", file=path.name)
            pins.put(project.id, Pin(next(iter(project.keys)), project.number, project.head))
            n, n_projects = n + len(lines), n_projects + 1
            files |= zips.files_of(project)
    if database is not None:
        (made / SQLITE).unlink()
    return Backup(n_projects, n, len(files))


def _projects(
    path: Path, progress: Progress = silent
) -> Iterator[tuple[Project, list[Signed], zipfile.ZipFile]]:
    """Each project of a backup and its lines, which hold together with their files in the zip.

    What a caller does with them is not taken for an error of the file.
    """
    with zips.errors_of(path, _WHAT), zips.opened(path) as archive:
        about = zips.about_of(archive, _ABOUT, _KIND, _VERSION)
        ids, known = about["projects"], {_ABOUT, OWN_KEY}
        if not ids or ids != sorted(set(ids)):
            raise ValueError("no list of projects")
        for at, one in enumerate(ids):
            progress(at / len(ids), "Checking and unpacking the backup")
            said, lines = zips.read_lines(archive, _member(one))
            project = zips.checked_project(archive, said, lines)
            if project.id != one:
                raise ValueError("another project")
            known |= {_member(one), *zips.files_of(project)}
            yield project, lines, archive
        if not set(archive.namelist()) <= known:
            raise ValueError("further members")


def _append(writing: Writing, lines: list[Signed]) -> None:
    for number, signed in enumerate(lines, 1):
        writing.append(number, signed)


def _key(path: Path, home: Path, made: Path) -> Literal["backup", "kept", "none"]:
    """Put the key of the backup, else the one that is here, into the folder."""
    with zips.errors_of(path, _WHAT), zips.opened(path) as archive:
        known = {one.filename: one.file_size for one in archive.infolist()}
        if known.get(OWN_KEY, 0) > _MOST_KEY_BYTES:
            raise ValueError("no key")
        key = archive.read(OWN_KEY) if OWN_KEY in known else None
    if key is None and not (home / OWN_KEY).exists():
        return "none"
    write_bytes(made / OWN_KEY, (home / OWN_KEY).read_bytes() if key is None else key, durable=True)
    if key is None:
        return "kept"
    signer_in(made / OWN_KEY)
    return "backup"


def _keep_known_results(home: Path, made: Path) -> None:
    """Copy the list of results that this machine knows: it is of the machine, not of the record."""
    if (home / KNOWN_RESULTS).exists():
        write_bytes(made / KNOWN_RESULTS, (home / KNOWN_RESULTS).read_bytes(), durable=True)
