"""A call and its result as they travel between processes: words by pipe, arrays through a folder.

A parcel's body holds the structure, a few thousand bytes. The content of its arrays lies in files
named by their SHA-256 in a folder that both sides see, once however often it is sent. A reader maps
the file, so that workers of one machine share one copy in memory.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import mmap
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core.blocks import on_one_core
from kdcal_core.errors import InputError
from kdcal_core.jobs.outcome import EVERY, Cancelled
from kdcal_core.store.disk import write_bytes
from kdcal_core.text import bytes_text

SMALL = 2048  # bytes of an array that travels in the body
MOST = 4 << 20  # bytes of a body: what is larger holds rows as objects


@dataclass(frozen=True)
class Parcel:
    """A value on its way.

    Attributes
    ----------
    body : bytes
        The pickled structure, without the arrays.
    files : tuple of str
        The names of the arrays' files, in order.
    """

    body: bytes
    files: tuple[str, ...]


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Arrays with gaps are copied first: only whole ones leave the body."""
        if type(value) is np.ndarray and value.nbytes > SMALL and value.dtype != object:
            flags = value.flags
            if not (flags.c_contiguous or flags.f_contiguous):
                return np.ascontiguousarray(value).__reduce_ex__(5)
        return NotImplemented


def pack(value: Any, folder: Path) -> Parcel:
    """Put the arrays of a value into the folder, and return the rest.

    Raises
    ------
    InputError
        If it holds so much without arrays that it must be rows.
    OSError
        If the folder cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made:
    ...     sent = pack({"n": 3, "x": np.arange(1000.0)}, Path(made))
    ...     len(sent.body) < SMALL, len(sent.files), unpack(sent, Path(made))["x"].sum()
    (True, 1, np.float64(499500.0))
    """
    names: list[str] = []

    def out(buffer: pickle.PickleBuffer) -> bool:
        with buffer.raw() as raw:
            if raw.nbytes <= SMALL:
                return True  # stays in the body
            name = hashlib.sha256(raw).hexdigest()
            path = folder / name
            if not path.exists():
                write_bytes(path, raw)  # type: ignore[arg-type]  # any buffer can be written
            names.append(name)
        return False

    body = io.BytesIO()
    _Pickler(body, 5, buffer_callback=out).dump(value)
    if body.tell() > MOST:
        raise InputError(
            f"A task holds {bytes_text(body.tell())} of objects that are no arrays",
            fix="Compute it in one process: leave KDCAL_SCHEDULER out.",
        )
    return Parcel(body.getvalue(), tuple(names))


def unpack(parcel: Parcel, folder: Path) -> Any:
    """The value. Its arrays may be written to, and a change reaches nobody else.

    Raises
    ------
    InputError
        If a file is missing or is not what its name says.
    """
    return pickle.loads(parcel.body, buffers=[_mapped(folder / name) for name in parcel.files])


def _mapped(path: Path) -> mmap.mmap:
    try:
        size = _checked(str(path))
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise InputError(
            f"A worker cannot read the shared folder ({error.strerror or error})",
            fix="Let KDCAL_SHARED_FOLDER name a folder that every machine sees under that name.",
            file=str(path.parent),
        ) from error


@lru_cache(maxsize=4096)
def _checked(path: str) -> int:
    """The size of the file, whose content is what its name says; looked at once in a process."""
    with Path(path).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    if found != Path(path).name:
        raise InputError(
            "A file of the shared folder is not what was written there",
            fix="Check that folder's disk or network, and start again.",
            file=path,
        )
    return size


Reply = tuple[bool, Parcel]
"""Whether the call ended well; its result, or the error that it raised."""


def reply_to(parcel: Parcel, folder: Path, stopped: Callable[[], bool]) -> Reply:
    """Run the function in a parcel, ``(function, arguments, keywords)``, on one core.

    Where it has a parameter ``progress`` that is not given, it gets a callable that raises
    `Cancelled` once ``stopped()``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made:
    ...     sent = pack((divmod, (7, 2), {}), Path(made))
    ...     value_of_reply(reply_to(sent, Path(made), lambda: False), Path(made))
    (3, 1)
    """
    try:
        function, arguments, keywords = unpack(parcel, folder)
        if _takes_progress(function) and "progress" not in keywords:
            keywords = {**keywords, "progress": _Stopping(stopped)}
        with on_one_core():
            return True, pack(function(*arguments, **keywords), folder)
    except Exception as error:
        return False, pack(_sendable(error), folder)


def value_of_reply(reply: Reply, folder: Path) -> Any:
    """The result of a call; an error that it raised is raised here."""
    well, parcel = reply
    value = unpack(parcel, folder)
    if not well:
        raise value
    return value


class _Stopping:
    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped, self._next = stopped, 0.0

    def __call__(self, share: float, note: str = "") -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        if self._stopped():
            raise Cancelled


def _takes_progress(function: Callable[..., Any]) -> bool:
    try:
        return "progress" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin
        return False


def _sendable(error: Exception) -> Exception:
    """The error, or its words where it cannot be pickled and read back."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}"[:2000])
    return error
