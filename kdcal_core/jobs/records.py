"""Jobs as users see them, and their files on disk: their records and their results.

Every server process has its own folder under ``servers``, with one small file for each unfinished
job. Beside the folder is a lock file, which the process keeps locked until it ends. If a server
finds a folder whose lock is free, the process of that folder has ended, and the server moves its
records to ``interrupted``, where all servers read them. A result is stored under the digest of
what it was computed from.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import kdcal_core
from kdcal_core.errors import InputError
from kdcal_core.store.disk import make_folder, make_private, read_json, try_lock, write_json

JobState = Literal["queued", "running", "cancelling", "cancelled", "failed", "done", "interrupted"]

_FINISHED = ("cancelled", "failed", "done", "interrupted")


@dataclass(frozen=True)
class JobSnapshot:
    """A job as it was at one moment.

    Attributes
    ----------
    id, title, owner : str
    submitted : float
        Seconds since the epoch, as ``started`` and ``ended``.
    state : str
        "queued", "running", "cancelling", "cancelled", "failed", "done", or "interrupted": the
        server ended before the job did.
    progress : float
        Share done, 0 to 1.
    note : str
        What is being done now.
    result : Any
        What the work returned, once done.
    error : InputError or None
        Why it failed, or that it was interrupted.
    queue_position : int
        1 for the job that starts next; 0 once started.
    started, ended : float or None
        ``started`` is None too for a result that was there already.
    key : str
        What its result is stored under; empty for a result that is not stored.
    folder : Path or None
        Where the files of a stored result are, once done.
    others : tuple of str
        Further owners: those who asked for the same key while the job was unfinished.
    about : str
        The id of the review whose rows it reads, which its owner may only compare with; empty if
        it reads none.
    user : str
        Who asked for it first; empty for a program, whose jobs are not counted.

    Examples
    --------
    >>> job = JobSnapshot("a", "Fit", owner="me", submitted=0.0)
    >>> job.finished, job.belongs_to("me"), job.belongs_to("you")
    (False, True, False)
    """

    id: str
    title: str
    owner: str
    submitted: float
    state: JobState = "queued"
    progress: float = 0.0
    note: str = ""
    result: Any = None
    error: InputError | None = None
    queue_position: int = 0
    started: float | None = None
    ended: float | None = None
    key: str = ""
    folder: Path | None = None
    others: tuple[str, ...] = ()
    about: str = ""
    user: str = ""

    @property
    def finished(self) -> bool:
        """Whether it will not change any more."""
        return self.state in _FINISHED

    @property
    def owners(self) -> tuple[str, ...]:
        """The owner who started it and all who asked for it since."""
        return (self.owner, *self.others)

    def belongs_to(self, owner: str) -> bool:
        """Whether ``owner`` started it or asked for it."""
        return owner in self.owners


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
    """What is stored about an unfinished job."""

    id: str
    title: str
    owners: tuple[str, ...]
    key: str
    submitted: float
    started: float | None


class Records:
    """The records in ``root``, of this process and of processes that have ended.

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
        self._lock: IO[bytes] | None = None  # held open until this process ends
        self._making = threading.Lock()

    def begin(self, job: JobSnapshot) -> None:
        """Record an unfinished job.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        from kdcal_core.store import encode  # not at a worker's start

        stored = _Record(job.id, job.title, job.owners, job.key, job.submitted, job.started)
        write_json(self.folder() / f"{job.id}.json", encode(stored))

    def end(self, job_id: str) -> None:
        """Delete the record of a job of this process that has finished."""
        if self._mine is not None:
            _delete(self._mine / f"{job_id}.json")

    def folder(self) -> Path:
        """This process's folder, created and locked on first use.

        Raises
        ------
        OSError
            If it cannot be created.
        """
        with self._making:
            if self._mine is None:
                servers = self.root / "servers"
                for path in (servers, self._interrupted):
                    make_folder(path)
                mine = servers / secrets.token_hex(8)
                # before the folder: without a lock it would count as that of an ended server
                self._lock = try_lock(_lock_of(mine))
                mine.mkdir(mode=0o700)
                self._mine = mine
            return self._mine

    def interrupted(self) -> tuple[JobSnapshot, ...]:
        """The jobs whose server ended before they did, oldest first."""
        try:
            self._collect_interrupted()
            found = [
                _read(path) for path in _in_folder(self._interrupted) if path.suffix == ".json"
            ]
        except OSError:  # the app must start even if the disk cannot be read
            _log.exception("The records of jobs cannot be read")
            return ()
        return tuple(sorted(filter(None, found), key=lambda job: job.submitted))

    def forget(self, job_id: str) -> None:
        """Delete the record of an interrupted job."""
        if _ID.fullmatch(job_id):
            _delete(self._interrupted / f"{job_id}.json")

    def _collect_interrupted(self) -> None:
        """Move the records of servers that have ended to the interrupted jobs."""
        for folder in _in_folder(self.root / "servers"):
            if folder == self._mine or not folder.is_dir():
                continue
            try:
                lock = try_lock(_lock_of(folder))
            except OSError:  # the home may be read-only
                continue
            if lock is None:
                continue
            with lock:
                for path in folder.glob("*.json"):
                    path.replace(self._interrupted / path.name)
                shutil.rmtree(folder, ignore_errors=True)
            _lock_of(folder).unlink(missing_ok=True)


def _in_folder(folder: Path) -> list[Path]:
    """What a folder holds, which every page asks for; nothing if there is none."""
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _read(path: Path) -> JobSnapshot | None:
    """The interrupted job of this record; a damaged or old record is deleted."""
    job = _decode(path)
    if job is None or job.id != path.stem or time.time() - job.submitted > KEEP_DAYS * 86_400:
        _delete(path)
        return None
    return job


def _delete(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:  # a superfluous record does no harm
        _log.warning("A record of a job cannot be deleted: %s", error)


def _decode(path: Path) -> JobSnapshot | None:
    from kdcal_core.store import decode

    try:
        stored = decode(_Record, read_json(path))
        owner, *others = stored.owners
        if not _ID.fullmatch(stored.id):
            raise ValueError(stored.id)
    except (TypeError, ValueError):
        _log.warning("A damaged record of a job was thrown away: %s", path.name)
        return None
    return JobSnapshot(
        stored.id,
        stored.title,
        owner,
        stored.submitted,
        state="interrupted",
        error=InputError(
            f"{stored.title} was interrupted, because the server stopped before it ended",
            fix="Start it again. Nothing that was loaded before is lost.",
        ),
        started=stored.started,
        ended=path.stat().st_mtime,
        key=stored.key,
        others=tuple(others),
    )


OWN = "kdcal"


def default_root() -> Path:
    """The folder ``kdcal`` in ``$KDCAL_HOME``, else in the user's cache folder.

    It is a separate folder, because other programs may use ``KDCAL_HOME`` too.

    Examples
    --------
    >>> default_root().is_absolute(), default_root().name
    (True, 'kdcal')
    """
    if home := os.environ.get("KDCAL_HOME"):
        return Path(home).absolute() / OWN
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(cache) if cache else Path.home() / ".cache") / OWN


_FILES = "files"
_RESULT = "result.json"


def job_key(target: str, kwargs: Mapping[str, Any], *digests: str) -> str:
    """Digest of a function's name and arguments, and of the contents of the files they name.

    Raises
    ------
    TypeError, ValueError
        For arguments that are not JSON.

    Examples
    --------
    >>> job_key("kdcal_core.a:b", {"n": 1, "m": 2}) == job_key("kdcal_core.a:b", {"m": 2, "n": 1})
    True
    """
    text = json.dumps([target, dict(kwargs), digests], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Results:
    """Results in ``root``; the least recently used are deleted above ``max_bytes``.

    Examples
    --------
    >>> import tempfile
    >>> base = Path(tempfile.mkdtemp())
    >>> results = Results(base / "results", max_bytes=1000)
    >>> draft = base / "draft"
    >>> results.begin(draft).joinpath("a.txt").write_text("text")
    4
    >>> results.keep("key", draft, {"n": 1})
    >>> results.read("key"), (results.files("key") / "a.txt").read_text()
    ({'result': {'n': 1}}, 'text')
    """

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._changing = threading.Lock()

    def begin(self, draft: Path) -> Path:
        """Create the folder ``draft``. Returns the folder inside it for the files of the work."""
        files = draft / _FILES
        make_folder(files)
        return files

    def keep(self, key: str, draft: Path, result: Any) -> None:
        """Store the files of ``draft`` with the result, in one step.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        write_json(draft / _RESULT, {"result": result, _FILES: _sizes(draft / _FILES)})
        make_private(draft)
        make_folder(self._root)
        with self._changing:
            place = self._place(key)
            if self.read(key) is None:
                shutil.rmtree(place, ignore_errors=True)  # if it exists, it is damaged
            try:
                draft.rename(place)
            except OSError:
                if self.read(key) is None:
                    raise
                # another server has stored the same result meanwhile
            self._make_room(place)

    def read(self, key: str) -> dict[str, Any] | None:
        """``{"result": ...}`` of what is stored under this key, or None; it counts as used now.

        A result does not count as stored if one of its files is missing or has another size.
        """
        path = self._place(key) / _RESULT
        found = read_json(path)
        if found is None or "result" not in found or found.get(_FILES) != _sizes(self.files(key)):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return {"result": found["result"]}

    def delete(self, key: str) -> None:
        """Delete what is stored under this key, if anything is."""
        place = self._place(key)
        with self._changing:
            with contextlib.suppress(OSError):
                (place / _RESULT).unlink()  # the rest then counts as not stored
            shutil.rmtree(place, ignore_errors=True)

    def files(self, key: str) -> Path:
        """Where the files of a result with this key are stored, or would be."""
        return self._place(key) / _FILES

    def _place(self, key: str) -> Path:
        # a digest of the key, because a key may hold anything; another version's code may give
        # another result
        name = hashlib.sha256(f"{kdcal_core.__version__}\n{key}".encode()).hexdigest()
        return self._root / name

    def _make_room(self, newest: Path) -> None:
        """Delete the least recently used results, except the newest."""
        folders = sorted(self._root.iterdir(), key=_last_used)
        sizes = {folder: _size(folder) for folder in folders}
        total = sum(sizes.values())
        for folder in folders:
            if total <= self._max_bytes:
                return
            if folder != newest:
                (folder / _RESULT).unlink(missing_ok=True)  # the rest then counts as not stored
                shutil.rmtree(folder, ignore_errors=True)
                total -= sizes[folder]


def _last_used(folder: Path) -> float:
    try:
        return (folder / _RESULT).stat().st_mtime
    except OSError:
        return 0.0


def _size(folder: Path) -> int:
    return sum(_sizes(folder).values())


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file in the folder, by its path in it."""
    sizes = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # another server may delete it meanwhile
            if path.is_file():
                sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
    return sizes
