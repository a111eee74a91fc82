"""Our files: private to their owner, written completely or not at all, identified by digest.

Also a lock that ends with its process.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

T = TypeVar("T")

PART = ".tmp"
"""How the name of a file ends that is being written, or whose writing was cut off."""
_FIRST_WAIT, _LAST_WAIT = 0.002, 0.1  # seconds between attempts at a lock that is held
_SETTLED = 0.1  # seconds; clocks of file systems tick about every 0.01
_HELD = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)  # errors of a lock that is held


def private(path: str, flags: int) -> int:
    """An ``opener`` for `open`: only the owner can read a new file."""
    return os.open(path, flags, 0o600)


def make_folder(folder: Path) -> None:
    """Create the folder and missing folders above it, private to their owner.

    An existing folder keeps its permissions, because it may belong to another user.

    Raises
    ------
    OSError
        If one cannot be created.
    """
    for place in reversed((folder, *folder.parents)):
        if not place.exists():
            place.mkdir(mode=0o700, exist_ok=True)


def make_private(folder: Path) -> None:
    """Make the folder and everything in it private to its owner.

    Files deleted meanwhile are skipped, and so is the target of a symbolic link.
    """
    folder.chmod(0o700)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            with suppress(FileNotFoundError):
                path.chmod(0o700 if path.is_dir() else 0o600)


def write_json(path: Path, content: Mapping[str, Any], *, allow_nan: bool = False) -> None:
    """Write ``content`` so that a reader sees the old file or the new one, never a part of it.

    With ``allow_nan`` it may contain NaN and infinity.

    Raises
    ------
    OSError
        If the folder cannot be written or the disk is full; no partial file remains.
    """
    write_text(path, json.dumps(content, allow_nan=allow_nan))


def write_text(path: Path, text: str) -> None:
    """As `write_json`, for any text."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes, *, durable: bool = False) -> None:
    """As `write_json`, for any bytes.

    With ``durable`` the file also survives a machine that loses its power after the call.
    """
    write_blocks(path, (content,), durable=durable)


def write_blocks(path: Path, blocks: Iterable[bytes], *, durable: bool = False) -> None:
    """As `write_bytes`, for bytes that come in blocks; an error of theirs leaves no file."""
    temporary = path.with_name(f".{secrets.token_hex(8)}{PART}")
    try:
        with open(temporary, "xb", opener=private) as file:
            for block in blocks:
                file.write(block)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        flush(path.parent)


def flush(path: Path) -> None:
    """Write a file, or a folder's list of names, to the disk, where the system has such a call."""
    if sys.platform == "win32":
        return
    at = os.open(path, os.O_RDONLY)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None without a file, or if it does not contain an object."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


@dataclass(frozen=True)
class Identity:
    """What distinguishes one state of a file from another without reading it.

    Attributes
    ----------
    device, inode, size, modified_ns, changed_ns : int
    settled : bool
        Whether the file is old enough that a further change would change its times.
    """

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int
    settled: bool

    @property
    def modified(self) -> float:
        """Seconds since the epoch."""
        return self.modified_ns / 1e9


def identity_of(path: Path) -> Identity:
    """The identity of the file as it is now.

    Raises
    ------
    OSError
        If the file does not exist or cannot be inspected.
    """
    found = path.stat()
    age = time.time() - max(found.st_mtime, found.st_ctime)
    return Identity(
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        age > _SETTLED,
    )


class KnownFiles(Generic[T]):
    """What was read from files, as long as they are in the state in which they were read.

    Parameters
    ----------
    most : int
        Files above which the least recently used is forgotten.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = path.write_text("one")
    >>> state = replace(identity_of(path), settled=True)
    >>> known = KnownFiles(10)
    >>> known.keep(path, state, "what it says")
    >>> known.find(path, state), known.find(path, replace(state, size=4))
    ('what it says', None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[Path, tuple[Identity, T]] = OrderedDict()
        self._lock = threading.Lock()

    def hold(self, least: int) -> None:
        """Keep at least this many files from now on: all of a list that is read again and again."""
        with self._lock:
            self._most = max(self._most, least)

    def find(self, path: Path, identity: Identity) -> T | None:
        """What was read from the file in this state; None if that is not known."""
        with self._lock:
            known = self._found.get(path)
            if known is None or known[0] != identity:
                return None
            self._found.move_to_end(path)
            return known[1]

    def keep(self, path: Path, identity: Identity, value: T) -> None:
        """Keep what was read from the file, if it is old enough to have a reliable identity."""
        if not identity.settled:
            return
        with self._lock:
            self._found[path] = identity, value
            self._found.move_to_end(path)
            while len(self._found) > self._most:
                self._found.popitem(last=False)


_digests: KnownFiles[str] = KnownFiles(4096)


def digest_of(path: Path) -> str:
    """SHA-256 of the file's bytes, computed once for each identity.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    identity = identity_of(path)
    digest = _digests.find(path, identity)
    if digest is None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        _digests.keep(path, identity, digest)
    return digest


def try_lock(path: Path) -> IO[bytes] | None:
    """The open, locked file; None if a running process holds the lock.

    The system releases the lock when the process ends in any way, so a reused process id or an old
    file cannot mislead. Close the file to release the lock.

    Raises
    ------
    OSError
        If the file cannot be opened, or its file system has no locks, as on some network drives.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> held = try_lock(path)
    >>> held is not None, try_lock(path) is None
    (True, True)
    >>> held.close()
    """
    file = open(path, "ab", opener=private)  # noqa: SIM115 (it is open for as long as it is held)
    try:
        _lock(file)
    except OSError as error:
        file.close()
        if error.errno in _HELD:
            return None
        raise OSError(error.errno, "its file system cannot lock files", str(path)) from error
    return file


@contextmanager
def locked(
    path: Path, *, seconds: float | None = None, waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock during the body, against all threads and processes; wait until it is free.

    Parameters
    ----------
    path : Path
        The lock's file. It is never deleted, because then two processes could hold the lock.
    seconds : float, optional
        How long to wait.
    waiting : callable, optional
        Called between attempts; it may raise to stop waiting.

    Raises
    ------
    TimeoutError
        If the lock was held all the time.
    OSError
        If the lock's file cannot be opened or locked.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> with locked(path):
    ...     try_lock(path) is None
    True
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    wait = _FIRST_WAIT
    while (held := try_lock(path)) is None:
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError(f"Another process has held {path.name} for {seconds:.0f} seconds")
        if waiting is not None:
            waiting()
        time.sleep(wait)
        wait = min(2 * wait, _LAST_WAIT)
    with held:
        yield


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
