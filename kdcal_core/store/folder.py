"""The stored result of a run: one frozen dataclass, as a JSON record and plain arrays.

``record.json`` is written last and contains a digest of its own result and of every other file. A
result is therefore complete or does not exist, and lost or changed files are detected on reading.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.store.disk import digest_of, write_json
from kdcal_core.store.values import decode, encode

T = TypeVar("T")

_RECORD = "record.json"
_VERSION = 3
_INLINE_BYTES = 1024  # smaller arrays are stored in the record
_MAPPED_BYTES = 1024**2  # larger arrays are mapped, which takes one file descriptor each


class NpyFolder:
    """Arrays as ``.npy`` files, named by their content, so that equal arrays are stored once.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # arrays that are still in use
        self._read: WeakValueDictionary[str, NDArray[Any]] = WeakValueDictionary()

    def put(self, array: NDArray[Any]) -> str | None:
        if array.nbytes < _INLINE_BYTES:
            return None
        array = np.ascontiguousarray(array)
        digest = hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
        name = digest.hexdigest()[:16]
        path = self.folder / f"{name}.npy"
        if not path.exists():
            write_arrays(self.folder, {name: array})
        return name

    def get(self, at: Any) -> NDArray[Any]:
        if not isinstance(at, str) or not at.isalnum():
            raise ValueError(f"{at!r} is not the name of an array")
        array = self._read.get(at)
        if array is None:
            try:
                array = read_array(self.folder / f"{at}.npy")
            except _DAMAGE as error:
                raise damaged() from error
            self._read[at] = array
        return array


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any] | None]) -> None:
    """Write arrays of numbers as ``.npy`` files of their names; None is left out.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_arrays(folder, {"y": np.array([0, 1]), "weight": None})
    >>> [path.name for path in folder.iterdir()]
    ['y.npy']
    """
    for name, array in arrays.items():
        if array is not None:
            np.save(folder / f"{name}.npy", array, allow_pickle=False)


def read_array(path: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file, read-only; a large one is mapped and read on use.

    Raises
    ------
    OSError, ValueError, EOFError, OverflowError, MemoryError
        If it is missing or damaged.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_arrays(folder, {"radii": np.array([0.0, 1.0])})
    >>> read_array(folder / "radii.npy")
    array([0., 1.])
    """
    # np.load would read a zip file or a pickle if the first bytes look like one
    if path.stat().st_size > _MAPPED_BYTES:
        return np.asarray(npy.open_memmap(path, mode="r"))
    with path.open("rb") as file:
        array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    array.flags.writeable = False
    return array


def keep_array(folder: Path, array: NDArray[Any]) -> NDArray[Any]:
    """Write an array of a result before `save`; return it as stored on disk.

    A run with many large arrays then need not hold all of them in memory until its end.
    """
    arrays = NpyFolder(folder)
    name = arrays.put(array)
    return array if name is None else arrays.get(name)


def save(folder: Path, result: Any) -> None:
    """Write a frozen dataclass, its arrays, and the digests of all files in the folder.

    Other files of the result, such as that of a model, must already be in the folder. Paths are
    stored relative to the folder, which may be moved.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Circle:
    ...     radius: float
    ...     points: NDArray[np.float64]
    >>> folder = Path(tempfile.mkdtemp())
    >>> save(folder, Circle(2.0, np.zeros((500, 2))))
    >>> load(folder, Circle).points.shape
    (500, 2)
    """
    encoded = encode(result, NpyFolder(folder))
    content = {
        "version": _VERSION,
        "result": encoded,
        "digest": _digest(encoded),
        "files": _digests(folder),
    }
    write_json(folder / _RECORD, content)


def load(folder: str | Path, kind: type[T]) -> T:
    """The result that `save` wrote, after every file is checked against its digest.

    Its arrays are read-only, and large ones are mapped. Callers may rely on the parts to match;
    this is the only check of our own files. Values of a field that is declared as a Mapping are
    read on access.

    Raises
    ------
    InputError
        If the result is missing, of another kind or version, or damaged.
    """
    path = Path(folder)
    try:
        return decode(kind, _checked(path), NpyFolder(path))
    except _DAMAGE as error:
        raise damaged() from error


def load_part(folder: str | Path, field: str, kind: type[T]) -> T:
    """One field of a result, without decoding its other fields, after the same checks.

    Raises
    ------
    InputError
        As `load`, also if the record itself was changed.
    """
    path = Path(folder)
    try:
        return decode(kind, _checked(path)[field], NpyFolder(path))
    except _DAMAGE as error:
        raise damaged() from error


def _checked(path: Path) -> Any:
    """The result as JSON, after every file is checked against its digest."""
    content = _content(path)
    if _digests(path) != content["files"]:
        raise ValueError("other files")
    return content["result"]


_DAMAGE = (
    *(OSError, ValueError, TypeError, LookupError),
    *(EOFError, OverflowError, RecursionError, MemoryError),
)


def _content(folder: Path) -> Any:
    content = json.loads((folder / _RECORD).read_bytes())
    if content["version"] != _VERSION or content["digest"] != _digest(content["result"]):
        raise ValueError("another record")
    return content


def _digest(encoded: Any) -> str:
    return hashlib.sha256(json.dumps(encoded).encode()).hexdigest()


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a result except its record, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): digest_of(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / _RECORD
    }


def damaged() -> InputError:
    """The error for a result whose files are missing or were changed."""
    return InputError("This result is no longer kept in full", fix="Compute it again.")
