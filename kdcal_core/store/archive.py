"""Versioned, sealed files of arrays and JSON, without pickle, hardened against hostile files.

A file is a zip archive of ``about.json`` and one ``.npy`` file for each array. Its comment is the
seal: the SHA-256 of all bytes before it. A file that was truncated or altered is thus refused
before anything in it is read. Files from before seals existed have no comment. A file whose content
is more than a hundred times its size is refused before it is unpacked.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.memory import refuse_beyond_memory
from kdcal_core.store.claims import check_ratio, read_json

_ABOUT = "about.json"
_SEAL = b"sha256:"
_SEAL_BYTES = len(_SEAL) + 64
_CHUNK = 1 << 20
_MOST_ABOUT_BYTES = 1 << 24
_MOST_RATIO = 100
_MOST_MEMBERS = 10_000
_BROKEN_FIX = "It may have been truncated while copying; copy or save it again."
# A fixed time, so that the same content gives the same bytes.
_WHEN = (1980, 1, 1, 0, 0, 0)


def write_archive(
    path: str | Path,
    kind: str,
    about: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    version: int = 1,
) -> None:
    """Write JSON and arrays into one sealed zip file; the same content gives the same bytes.

    The file is written completely or not at all, because it is first written under another name.
    """
    record = {"kind": kind, "version": version, **about}
    text = json.dumps(record)
    with new_file(path) as made:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.comment = bytes(_SEAL_BYTES)
            info = zipfile.ZipInfo(_ABOUT, _WHEN)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, text)
            for name, array in sorted(arrays.items()):
                info = zipfile.ZipInfo(f"{name}.npy", _WHEN)
                info.compress_type = zipfile.ZIP_DEFLATED
                with archive.open(info, "w", force_zip64=True) as file:
                    npy.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        with made.open("r+b") as file:
            seal = _seal_of(file)
            file.seek(-_SEAL_BYTES, os.SEEK_END)
            file.write(seal)


def read_archive(
    path: str | Path, kind: str, *, newest: int = 1, sealed: bool = False
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what :func:`write_archive` wrote.

    Parameters
    ----------
    kind : str
        What the file must contain.
    newest : int
        The newest version that can be read.
    sealed : bool
        Whether a file without a seal is refused.

    Raises
    ------
    InputError
        If the file is missing, truncated, altered, broken, of another kind, of a newer version, or
        larger than memory.
    """
    name = Path(path).name
    try:
        with zipfile.ZipFile(path) as archive:
            if sealed or archive.comment:
                _check_seal(Path(path))
            unpacked = sum(info.file_size for info in archive.infolist())
            check_ratio(Path(path).stat().st_size, unpacked, _MOST_RATIO)
            if len(archive.infolist()) > _MOST_MEMBERS:
                raise InputError("The saved file has too many arrays", fix=_BROKEN_FIX)
            refuse_beyond_memory(
                unpacked,
                "The file's content",
                "Open it on a machine with more memory, if you trust it.",
            )
            about = _read_about(archive, kind, newest)
            arrays = {
                info.filename.removesuffix(".npy"): _read_array(archive, info)
                for info in archive.infolist()
                if info.filename.endswith(".npy")
            }
    except InputError as error:
        raise error.at(file=name) from error
    except (OSError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile) as error:
        what = "cannot be opened" if isinstance(error, FileNotFoundError) else "is broken"
        raise InputError(f"The saved file {what}", fix=_BROKEN_FIX, file=name) from error
    except Exception as error:  # parsers of hostile bytes may raise anything
        raise InputError("The saved file is broken", fix=_BROKEN_FIX, file=name) from error
    return about, arrays


def archive_kind(path: str | Path) -> str:
    """What the file at a path contains, as it says itself; "" where it is no such file.

    Nothing else of the file is read: :func:`read_archive` reports what is wrong with it.

    Examples
    --------
    >>> archive_kind("no-such-file.kdcal")
    ''
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_ABOUT).file_size > _MOST_ABOUT_BYTES:
                return ""
            return str(read_json(archive.read(_ABOUT))["kind"])
    except Exception:  # parsers of hostile bytes may raise anything
        return ""


@contextmanager
def new_file(path: str | Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that replaces it after the body succeeds.

    A link is kept, and the file to which it points is written.

    Raises
    ------
    InputError
        If the folder does not exist, the file cannot be written, or the path is a pipe or a device,
        which a file must never replace.
    """
    given, path = str(path), Path(os.path.realpath(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(
            "The file to write is a pipe or a device", fix="Name a regular file.", file=given
        )
    if not path.absolute().parent.is_dir():
        raise InputError(
            "The folder to write into does not exist", fix="Create it first.", file=given
        )
    made = path.with_name(f".{path.name[:40]}.{secrets.token_hex(4)}")
    try:
        yield made
        made.replace(path)
    except OSError as error:
        raise InputError(
            f"The file cannot be written: {error.strerror or error}",
            fix="Choose a writable folder with free space.",
            file=given,
        ) from error
    finally:
        made.unlink(missing_ok=True)


@contextmanager
def errors_name_file(path: str | Path) -> Iterator[None]:
    """Report errors in the parts of a file as errors in that file."""
    name = Path(path).name
    try:
        yield
    except InputError as error:
        raise error.at(file=name) from error
    except (
        *(LookupError, TypeError, ValueError, AttributeError, OverflowError),
        RecursionError,  # endlessly nested values
    ) as error:
        raise InputError(
            "The saved file contradicts itself",
            fix="It may be damaged; save what was fitted again.",
            file=name,
        ) from error


def _check_seal(path: Path) -> None:
    with path.open("rb") as file:
        expected = _seal_of(file)
        found = file.read(_SEAL_BYTES)
    if found != expected:
        raise InputError(
            "The saved file was altered or truncated: its seal does not match its content",
            fix="Copy it again from where it was saved, or save it again.",
        )


def _seal_of(file: IO[bytes]) -> bytes:
    """The seal that matches a file's content; leaves the file positioned at its seal."""
    left = file.seek(0, os.SEEK_END) - _SEAL_BYTES
    file.seek(0)
    digest = hashlib.sha256()
    while left > 0:
        chunk = file.read(min(_CHUNK, left))
        digest.update(chunk)
        left -= len(chunk)
    return _SEAL + digest.hexdigest().encode()


def _read_about(archive: zipfile.ZipFile, kind: str, newest: int) -> dict[str, Any]:
    if archive.getinfo(_ABOUT).file_size > _MOST_ABOUT_BYTES:
        raise InputError("The saved file's description is too long", fix=_BROKEN_FIX)
    about = read_json(archive.read(_ABOUT))
    if about["kind"] != kind:
        raise InputError(
            f"The file contains a {str(about['kind'])[:60]}, not a {kind}",
            fix="Load it with the class that saved it.",
        )
    version = about["version"]
    if type(version) is not int or not 1 <= version <= newest:
        raise InputError(
            f"The file has version {str(version)[:20]}, but this kdcal reads versions up to "
            f"{newest}",
            fix="It was saved by a newer kdcal: install that one, or save it again with this one.",
        )
    return dict(about)


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as file:
        shape, dtype = _header(file)
        cells = int(np.prod(shape, dtype=object)) if shape else 1
        if dtype.kind not in "biuf" or cells * dtype.itemsize > info.file_size:
            raise InputError("An array in the saved file does not have its stated length")
    with archive.open(info) as file:
        return np.asarray(npy.read_array(file, allow_pickle=False))


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype
