"""What a run leaves in its folder: one JSON record and plain arrays, read back as they were."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kdcal_core.calibration import Located
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.store import decode, encode

T = TypeVar("T")

LOCATED_PARTS = ("x", "index", "tied")
_RECORD = "record.json"
_VERSION = 3
_MAPPED_BYTES = 1024**2  # larger arrays are mapped, not read


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with all that a page needs to judge them at any setting of the graph.

    Attributes
    ----------
    proba : (m, K) float64
        The model's probabilities.
    located : Located or None
        Where the rows lie in the graph's partition, with ``proba``; None for a model without
        one.
    y : (m,) int64 or None
        True classes, where they are known.
    """

    proba: FloatArray
    located: Located | None
    y: IntArray | None = None

    def __len__(self) -> int:
        return len(self.proba)

    def part(self, start: int, stop: int) -> Rows:
        """Consecutive rows, as views."""
        rows, at = slice(start, stop), self.located
        proba = self.proba[rows]
        located = None if at is None else Located(at.x[rows], at.index[rows], at.tied[rows], proba)
        return Rows(proba, located, None if self.y is None else self.y[rows])


def save_array(folder: Path, name: str, array: NDArray[Any]) -> None:
    """Write an array under its name."""
    np.save(folder / f"{name}.npy", array, allow_pickle=False)


def load_array(folder: Path, name: str) -> NDArray[Any]:
    """The array of this name, read-only; a large one is mapped and read as it is used.

    Raises
    ------
    InputError
        Where it is not there or damaged.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> save_array(folder, "radii", np.array([0.0, 1.0]))
    >>> load_array(folder, "radii")
    array([0., 1.])
    """
    path = folder / f"{name}.npy"
    try:
        if path.stat().st_size > _MAPPED_BYTES:
            return np.asarray(npy.open_memmap(path, mode="r"))
        with path.open("rb") as file:  # np.load would try a zip file or a pickle as well
            array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, OverflowError, MemoryError) as error:
        raise damaged() from error
    array.flags.writeable = False
    return array


def save_located(folder: Path, name: str, located: Located) -> None:
    """Write rows' places in the partition, without the model's probabilities."""
    for part in LOCATED_PARTS:
        save_array(folder, f"{name}_{part}", getattr(located, part))


def load_located(folder: Path, name: str, proba: FloatArray) -> Located:
    """Places in the partition as `save_located` left them, with the model's probabilities."""
    x, index, tied = (load_array(folder, f"{name}_{part}") for part in LOCATED_PARTS)
    return Located(x, index, tied, proba)


def save_rows(folder: Path, name: str, rows: Rows) -> None:
    """Write rows with the model's answers, their places and, where known, their classes."""
    save_array(folder, f"{name}_proba", rows.proba)
    if rows.located is not None:
        save_located(folder, name, rows.located)
    if rows.y is not None:
        save_array(folder, f"{name}_y", rows.y)


def load_rows(folder: Path, name: str) -> Rows:
    """Rows as `save_rows` left them.

    Raises
    ------
    InputError
        As for `load_array`.
    """
    located = (folder / f"{name}_index.npy").exists()
    labelled = (folder / f"{name}_y.npy").exists()
    proba = load_array(folder, f"{name}_proba")
    return Rows(
        proba,
        load_located(folder, name, proba) if located else None,
        load_array(folder, f"{name}_y") if labelled else None,
    )


def save_record(folder: Path, record: Any) -> None:
    """Write a frozen dataclass of plain values as the run's record, and what tells its files.

    It comes last: it holds a digest of every file that is in the folder already.
    """
    content = {"version": _VERSION, "record": encode(record), "files": _digests(folder)}
    (folder / _RECORD).write_text(json.dumps(content, allow_nan=False), encoding="utf-8")


def load_record(folder: Path, kind: type[T]) -> T:
    """The run's record.

    Raises
    ------
    InputError
        Where there is none, or it is of another kind, of another version, or damaged.
    """
    return _load(folder, kind)[0]


def load_whole(folder: Path, kind: type[T]) -> T:
    """The run's record, once every file of the run is known to be as it was left.

    All that follows may then rely on the arrays to fit each other.

    Raises
    ------
    InputError
        As `load_record`, and where a file is gone or was changed.
    """
    record, files = _load(folder, kind)
    try:
        unchanged = _digests(folder) == files
    except OSError as error:
        raise damaged() from error
    if not unchanged:
        raise damaged()
    return record


def _load(folder: Path, kind: type[T]) -> tuple[T, Any]:
    try:
        content = json.loads((folder / _RECORD).read_bytes())
        if content["version"] != _VERSION:
            raise ValueError(content["version"])
        return decode(kind, content["record"]), content["files"]
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise damaged() from error


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of a run but its record, by name."""
    found = {}
    for path in folder.iterdir():
        if path.is_file() and path.name != _RECORD:
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def damaged() -> InputError:
    """The error of a result whose files are gone or not as they were left."""
    return InputError("This result is no longer kept in full", fix="Compute it again.")
