"""A review's files with their digests beside them, so that a file changed later is refused.

A table or an array is sealed when it is written: its SHA-256 is stored in a small file beside it.
The seal is checked on reading, once for each state of the file that the system can distinguish. A
scored set's arrays are also checked against the set's digest in the review.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray, ScoredSet, digest_arrays
from kdcal_core.errors import InputError
from kdcal_core.review.review import TableInfo
from kdcal_core.statistics import Dependence, DependenceKind
from kdcal_core.store import read_array
from kdcal_core.store.disk import digest_of, write_text

if TYPE_CHECKING:
    from kdcal_core.distributions import PredictiveDistribution, RegressionSet


SEAL = ".sha256"
_SEALED = (".arrow", ".json", ".npy")  # what kdcal writes into a folder
_REVIEW = re.compile(r"[A-Za-z0-9_-]{16}")


def seal(*paths: Path) -> None:
    """Write the digest of each file beside it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "y.npy"
    >>> path.write_bytes(b"content"), seal(path), check_seal(path)
    (7, None, True)
    """
    for path in paths:
        write_text(_seal_of(path), digest_of(path))


def check_seal(path: Path) -> bool:
    """Whether the file matches its seal. False if it has no seal.

    Raises
    ------
    InputError
        If the file was changed after it was sealed.
    OSError
        If it cannot be read.
    """
    sealed = _sealed(path)
    if sealed is None:
        return False
    if digest_of(path) != sealed:
        raise changed(path)
    return True


def check_digest(path: Path, digest: str) -> None:
    """Refuse a file whose SHA-256 is not this one.

    Raises
    ------
    InputError
        If it was changed.
    OSError
        If it cannot be read.
    """
    if digest_of(path) != digest:
        raise changed(path)


def check_folder(folder: Path, *, arrays: bool = True) -> bool:
    """Whether every file in the folder matches its seal. False if one has no seal.

    Files that kdcal does not write there, and files that are being written, are ignored. Files
    that have not changed since the last check are not read again. Without ``arrays``, those of the
    set itself are only looked for: their content has a digest of its own.

    Raises
    ------
    InputError
        If a file was changed.
    OSError
        If a file cannot be read, or is missing although its seal exists.
    """
    paths = _paths_in(folder)
    files = _files_of(paths)
    for path in paths:
        sealed_file = path.with_suffix("")
        if path.suffix == SEAL and _is_ours(sealed_file) and sealed_file not in files:
            raise FileNotFoundError(sealed_file)
    left = set() if arrays else {*folder.glob("*.npy"), *(folder / DISTRIBUTION).glob("*.npy")}
    # check all, even after one without a seal
    sealed = [_sealed(path) is not None if path in left else check_seal(path) for path in files]
    return bool(sealed) and all(sealed)


def seal_folder(folder: Path) -> None:
    """Seal every file in the folder that is not sealed yet."""
    seal(*(path for path in _files_of(_paths_in(folder)) if _sealed(path) is None))


def copy_sealed(source: Path, to: Path) -> None:
    """Copy a sealed file with its seal."""
    shutil.copyfile(source, to)
    shutil.copyfile(_seal_of(source), _seal_of(to))


def remove_seal(path: Path) -> None:
    """Delete the seal of a deleted file; nothing happens if it has no seal."""
    _seal_of(path).unlink(missing_ok=True)


def changed(path: Path) -> InputError:
    """The error for a file that was changed after kdcal wrote it; names file and review."""
    parts = path.parts
    at = next((i for i in range(len(parts) - 2, -1, -1) if _REVIEW.fullmatch(parts[i])), None)
    name = "/".join(parts[(-1 if at is None else at + 1) :])
    review = "" if at is None else f" of the review {parts[at]}"
    return InputError(
        f"The file {name}{review} is damaged: it was changed after kdcal wrote it",
        fix="Load the file again on the Load page, or put the file back from a backup.",
    )


def _sealed(path: Path) -> str | None:
    """The digest in the file's seal; None without a seal (an earlier version, a lost write)."""
    try:
        return _seal_of(path).read_bytes().decode("ascii", errors="replace") or None
    except FileNotFoundError:
        return None
    except (IsADirectoryError, PermissionError) as error:
        if _seal_of(path).is_dir():  # Windows denies permission
            raise changed(path) from error
        raise


def _paths_in(folder: Path) -> list[Path]:
    """All that the folder holds; every page asks for it, and a search by pattern takes longer."""
    return [
        Path(place, name)
        for place, folders, files in os.walk(folder)
        for name in (*folders, *files)
    ]


def _files_of(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if _is_ours(path) and path.is_file())


def _is_ours(path: Path) -> bool:
    """Whether kdcal wrote it; systems also leave files (.DS_Store, ._y.npy, .nfs0001)."""
    return path.suffix in _SEALED and not path.name.startswith(".")


def _seal_of(path: Path) -> Path:
    return path.with_name(path.name + SEAL)


DISTRIBUTION = "distribution"  # the subfolder of a regression set that holds its distributions


def table_path(folder: Path, table: TableInfo) -> Path:
    """The file of a table, after a check that it is the one that was added to the review.

    A seal only shows that a file is unchanged. This check shows that it belongs to this table, even
    if the seal is missing.

    Raises
    ------
    InputError
        If the file is missing, was changed, or belongs to another table.
    """
    path = folder / table.file
    if table.sha256:
        with kept(table.name):
            check_digest(path, table.sha256)
    return path


def scored_arrays(
    folder: Path, classes: tuple[str, ...], digest: str | None, name: str, column: str = ""
) -> ScoredSet:
    """The scored set in ``folder``, its arrays memory-mapped and read-only.

    ``column`` names the column of clusters or times. Untrusted text. Drawn rows have no ``digest``;
    their seals are checked alone.

    Raises
    ------
    InputError
        If an array is missing, damaged, or has another length than the others.
    """
    weighted = (folder / "weight.npy").exists()
    with kept(name), _naming_files(folder):
        sealed = check_folder(folder, arrays=digest is None)
        proba, y = read_array(folder / "proba.npy"), read_array(folder / "y.npy")
        weight = read_array(folder / "weight.npy") if weighted else None
        dependence = _dependence(folder, len(y), column)
        if proba.dtype != np.float64 or proba.shape != (*y.shape, len(classes)):
            raise ValueError("probabilities of another shape")
        if y.dtype != np.int64 or y.min(initial=0) < 0 or y.max(initial=0) >= len(classes):
            raise ValueError("classes that do not exist")
        if weight is not None and (weight.dtype, weight.shape) != (np.dtype(np.float64), y.shape):
            raise ValueError("weights of another shape")
        found = scored_digest(proba, y, weight, dependence, classes)
        _check_content(folder, sealed, digest, found)
    return ScoredSet(proba, y, classes, digest or "", name, weight, dependence)


def scored_digest(
    proba: FloatArray,
    y: IntArray,
    weight: FloatArray | None,
    dependence: Dependence | None,
    classes: tuple[str, ...],
) -> str:
    """The content digest of a set of a classification."""
    return digest_arrays(proba, y, weight, *_units(dependence), *classes)


def _units(dependence: Dependence | None) -> tuple[str, IntArray] | tuple[()]:
    return () if dependence is None else (dependence.kind, dependence.unit)


def dependence_arrays(dependence: Dependence | None) -> dict[str, IntArray]:
    """The unit of each row, named by the kind of dependence; nothing for independent rows."""
    return {} if dependence is None else {dependence.kind: dependence.unit}


def _dependence(folder: Path, n_rows: int, column: str) -> Dependence | None:
    for kind in get_args(DependenceKind):
        if (path := folder / f"{kind}.npy").exists():
            unit = read_array(path)
            if unit.dtype != np.int64 or unit.shape != (n_rows,) or unit.min(initial=0) < 0:
                raise ValueError("clusters or times of another shape")
            if unit.max(initial=0) >= n_rows:
                raise ValueError("more clusters or times than rows")
            return Dependence.of_units(kind, unit, column)
    return None


def regression_arrays(
    folder: Path, digest: str | None, name: str, column: str = ""
) -> RegressionSet:
    """The regression set in ``folder``, its arrays memory-mapped and read-only.

    ``digest`` and ``column`` are as in `scored_arrays`.

    Raises
    ------
    InputError
        If an array is missing, damaged, or has another length than the others.
    """
    from kdcal_core.distributions import RegressionSet, load_distribution

    with kept(name), _naming_files(folder):
        sealed = check_folder(folder, arrays=digest is None)
        y = _numbers(folder / "y.npy")
        distribution = load_distribution(folder / DISTRIBUTION, n_rows=len(y))
        weight, true_mean = (
            _numbers(path, len(y)) if path.exists() else None
            for path in (folder / "weight.npy", folder / "true_mean.npy")
        )
        if weight is not None and weight.min(initial=1) <= 0:
            raise ValueError("weights that are not above zero")
        dependence = _dependence(folder, len(y), column)
        found = regression_digest(y, weight, true_mean, distribution, dependence)
        _check_content(folder, sealed, digest, found)
    return RegressionSet(distribution, y, digest or "", name, weight, true_mean, dependence)


def regression_digest(
    y: FloatArray,
    weight: FloatArray | None,
    true_mean: FloatArray | None,
    distribution: PredictiveDistribution,
    dependence: Dependence | None = None,
) -> str:
    """The content digest of a regression set."""
    named = (part for pair in distribution.arrays().items() for part in pair)
    return digest_arrays(y, weight, true_mean, distribution.family, *named, *_units(dependence))


@contextmanager
def _naming_files(folder: Path) -> Iterator[None]:
    """Where reading fails, raise the error of a changed file first, if a seal shows which."""
    try:
        yield
    except (OSError, ValueError, EOFError, OverflowError, MemoryError):
        check_folder(folder)
        raise


@contextmanager
def kept(name: str) -> Iterator[None]:
    """Report a missing or damaged file of the review as an input error."""
    try:
        yield
    except InputError as error:
        raise error.at(file=name) from error
    except (OSError, ValueError, EOFError, OverflowError) as error:
        raise gone(name) from error


def gone(name: str) -> InputError:
    """The error for a table or set whose rows can no longer be read."""
    return InputError(
        "The rows are no longer kept on this machine, or their file is damaged",
        fix="Load the file again on the Load page.",
        file=name,
    )


def _check_content(folder: Path, sealed: bool, digest: str | None, found: str) -> None:
    """Refuse files that do not belong to this set, sealed or not; seal those of earlier versions.

    Seals alone would accept another set's files that were copied here with their seals.
    """
    if found != digest if digest is not None else not sealed:
        raise changed(folder)
    if not sealed:
        with suppress(OSError):  # the home may be read-only
            seal_folder(folder)


def _numbers(path: Path, n_rows: int | None = None) -> NDArray[Any]:
    values = read_array(path)
    if values.dtype != np.float64 or values.ndim != 1 or n_rows not in (None, len(values)):
        raise ValueError("numbers of another shape")
    if not np.isfinite(values).all():
        raise ValueError("numbers that are not finite")
    return values
