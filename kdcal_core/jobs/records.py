"""Which jobs were under way: kept on disk, so that the next server can say what became of them.

Every server process has a folder of its own under ``servers``, with one small file for each
unfinished job, and beside it a lock that it holds for life. Whoever finds a folder with a free
lock knows that its server is dead, and moves its records to ``interrupted``, where all servers
read them.
"""

from __future__ import annotations

import logging
import re
import secrets
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kdcal_core.errors import InputError
from kdcal_core.jobs.snapshot import JobSnapshot
from kdcal_core.store.disk import make_folder, read_json, try_lock, write_json

KEEP_DAYS = 7
_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_log = logging.getLogger(__name__)


def new_id() -> str:
    """A job's id, unguessable.

    Examples
    --------
    >>> len(new_id())
    22
    """
    return secrets.token_urlsafe(16)


@dataclass(frozen=True)
class _Record:
    """What is kept of an unfinished job."""

    id: str
    title: str
    owners: tuple[str, ...]
    key: str
    submitted: float
    started: float | None


class Records:
    """The records in ``root``, of this process and of dead ones.

    Examples
    --------
    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> records = Records(root)
    >>> records.begin(JobSnapshot(new_id(), "Fit", owner="me", submitted=0.0))
    >>> Records(root).interrupted()
    ()
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._interrupted = root / "interrupted"
        self._mine: Path | None = None
        self._lock: IO[bytes] | None = None  # held open for the life of this process
        self._making = threading.Lock()

    def begin(self, job: JobSnapshot) -> None:
        """Note an unfinished job.

        Raises
        ------
        OSError
            Where the disk does not take it.
        """
        from kdcal_core.store import encode  # not at a worker's start

        told = _Record(job.id, job.title, job.owners, job.key, job.submitted, job.started)
        write_json(self.folder() / f"{job.id}.json", encode(told))

    def end(self, job_id: str) -> None:
        """Strike out a job of this process: it has finished."""
        if self._mine is not None:
            _delete(self._mine / f"{job_id}.json")

    def folder(self) -> Path:
        """This process's folder, made and locked on first use.

        Raises
        ------
        OSError
            Where it cannot be made.
        """
        with self._making:
            if self._mine is None:
                servers = self.root / "servers"
                for path in (servers, self._interrupted):
                    make_folder(path)
                mine = servers / secrets.token_hex(8)
                # before the folder: one without a lock is taken for a dead server's
                self._lock = try_lock(_lock_of(mine))
                mine.mkdir(mode=0o700)
                self._mine = mine
            return self._mine

    def interrupted(self) -> tuple[JobSnapshot, ...]:
        """The jobs whose server died before they ended, oldest first."""
        try:
            self._bury_the_dead()
            found = [_read(path) for path in self._interrupted.glob("*.json")]
        except OSError:  # a disk that does not answer must not keep the app from starting
            _log.exception("The records of jobs cannot be read")
            return ()
        return tuple(sorted(filter(None, found), key=lambda job: job.submitted))

    def forget(self, job_id: str) -> None:
        """Delete the record of an interrupted job."""
        if _ID.fullmatch(job_id):
            _delete(self._interrupted / f"{job_id}.json")

    def _bury_the_dead(self) -> None:
        for folder in (self.root / "servers").glob("*/"):
            if folder == self._mine:
                continue
            try:
                lock = try_lock(_lock_of(folder))
            except OSError:  # a home that can only be read
                continue
            if lock is None:
                continue
            with lock:
                for path in folder.glob("*.json"):
                    path.replace(self._interrupted / path.name)
                shutil.rmtree(folder, ignore_errors=True)
            _lock_of(folder).unlink(missing_ok=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _read(path: Path) -> JobSnapshot | None:
    """The interrupted job of this record; one that is damaged or old is deleted."""
    job = _decode(path)
    if job is None or job.id != path.stem or time.time() - job.submitted > KEEP_DAYS * 86_400:
        _delete(path)
        return None
    return job


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:  # the app goes on with a record too many
        _log.warning("A record of a job cannot be deleted: %s", error)


def _decode(path: Path) -> JobSnapshot | None:
    from kdcal_core.store import decode

    try:
        told = decode(_Record, read_json(path))
        owner, *others = told.owners
        if not _ID.fullmatch(told.id):
            raise ValueError(told.id)
    except (TypeError, ValueError):
        _log.warning("A damaged record of a job was thrown away: %s", path.name)
        return None
    return JobSnapshot(
        told.id,
        told.title,
        owner,
        told.submitted,
        state="interrupted",
        error=InputError(
            f"{told.title} was interrupted, because the server stopped before it ended",
            fix="Start it again. Nothing that was loaded before is lost.",
        ),
        started=told.started,
        ended=path.stat().st_mtime,
        key=told.key,
        others=tuple(others),
    )
