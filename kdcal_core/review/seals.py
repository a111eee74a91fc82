"""Digests beside the files of a review, so that a file that was changed later is refused.

Whoever writes a table or an array seals it: its SHA-256 goes into a small file beside it. Whoever
reads it checks the seal, once for each state of the file that the system can distinguish.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from kdcal_core.errors import InputError
from kdcal_core.store.disk import digest_of, write_text

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
        The file was changed after it was sealed.
    OSError
        Where it cannot be read.
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
        Where it was changed.
    OSError
        Where it cannot be read.
    """
    if digest_of(path) != digest:
        raise changed(path)


def check_folder(folder: Path) -> bool:
    """Whether every file in the folder matches its seal. False if one has no seal.

    Files that kdcal does not write there, and files that are being written, do not count. Files
    that have not changed since the last check are not read again.

    Raises
    ------
    InputError
        Where a file was changed.
    OSError
        A file cannot be read, or is missing while its seal exists.
    """
    files = _files_of(folder)
    for path in folder.rglob(f"*{SEAL}"):
        if path.with_suffix("") not in files and _is_ours(path.with_suffix("")):
            raise FileNotFoundError(path.with_suffix(""))
    sealed = [check_seal(path) for path in files]  # check all, even after one without a seal
    return bool(sealed) and all(sealed)


def seal_folder(folder: Path) -> None:
    """Seal every file in the folder that is not sealed yet."""
    seal(*(path for path in _files_of(folder) if _sealed(path) is None))


def copy_sealed(source: Path, to: Path) -> None:
    """Copy a sealed file with its seal."""
    shutil.copyfile(source, to)
    shutil.copyfile(_seal_of(source), _seal_of(to))


def remove_seal(path: Path) -> None:
    """Delete the seal of a deleted file; nothing happens if it has no seal."""
    _seal_of(path).unlink(missing_ok=True)


def changed(path: Path) -> InputError:
    """The error of a file that was changed after kdcal wrote it; names file and review."""
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


def _files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and _is_ours(path))


def _is_ours(path: Path) -> bool:
    """Whether kdcal wrote it: systems leave files too (.DS_Store, ._y.npy, .nfs0001)."""
    return path.suffix in _SEALED and not path.name.startswith(".")


def _seal_of(path: Path) -> Path:
    return path.with_name(path.name + SEAL)
