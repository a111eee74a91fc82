"""Files of jobs: written whole or not at all, and a lock that ends with its process."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write ``content`` so that a reader sees the old file or the new one, never half of it.

    Raises
    ------
    OSError
        Where the folder cannot be written or the disk is full; nothing is left behind.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None where there is no file, or no object in it."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def try_lock(path: Path) -> IO[bytes] | None:
    """The open, locked file; None where a living process holds the lock.

    The system gives the lock back when the process ends, however it ends, so neither a process
    id that was given again nor a file left behind can mislead. Close the file to give it back.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> held = try_lock(path)
    >>> held is not None, try_lock(path) is None
    (True, True)
    >>> held.close()
    """
    file = path.open("ab")
    try:
        _lock(file)
    except OSError:
        file.close()
        return None
    return file


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
