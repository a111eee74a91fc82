"""Versioned files of arrays and JSON, without pickle, and hardened against hostile ones."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from kdcal_core.calibration.kernel_density.memory import refuse_beyond_memory
from kdcal_core.errors import InputError

VERSION = 1
_ABOUT = "about.json"
_MOST_ABOUT_BYTES = 1 << 24
_BROKEN_FIX = "It may have been cut off on its way; copy or save it again."
# A fixed time, so that the same content gives the same bytes.
_WHEN = (1980, 1, 1, 0, 0, 0)


def write_archive(
    path: str | Path, kind: str, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write JSON and arrays into one zip file; the same content gives the same bytes."""
    record = {"kind": kind, "version": VERSION, **about}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(zipfile.ZipInfo(_ABOUT, _WHEN), json.dumps(record, sort_keys=True))
        for name, array in sorted(arrays.items()):
            info = zipfile.ZipInfo(f"{name}.npy", _WHEN)
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as file:
                npy.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


def read_archive(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what :func:`write_archive` wrote.

    Raises
    ------
    InputError
        The file is missing, broken, of another kind or version, or larger than memory.
    """
    name = Path(path).name
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_beyond_memory(
                sum(info.file_size for info in archive.infolist()),
                "The file's content",
                "Open it on a machine with more memory, if you trust it.",
            )
            about = _read_about(archive, kind)
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
    except Exception as error:  # parsers of hostile bytes raise all sorts
        raise InputError("The saved file is broken", fix=_BROKEN_FIX, file=name) from error
    return about, arrays


@contextmanager
def telling_contradictions(path: str | Path) -> Iterator[None]:
    """Tell whatever goes wrong with a file's parts as an error of that file."""
    name = Path(path).name
    try:
        yield
    except InputError as error:
        raise error.at(file=name) from error
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            "The saved file contradicts itself",
            fix="It may be damaged; save what was fitted again.",
            file=name,
        ) from error


def _read_about(archive: zipfile.ZipFile, kind: str) -> dict[str, Any]:
    if archive.getinfo(_ABOUT).file_size > _MOST_ABOUT_BYTES:
        raise InputError("The saved file's description is too long", fix=_BROKEN_FIX)
    about = json.loads(archive.read(_ABOUT))
    if about["kind"] != kind:
        raise InputError(
            f"The file holds a {str(about['kind'])[:60]}, not a {kind}",
            fix="Load it with the class that saved it.",
        )
    if about["version"] != VERSION:
        raise InputError(
            f"The file is of version {str(about['version'])[:20]}, and this kdcal reads {VERSION}",
            fix="Save it again with this version of kdcal.",
        )
    return dict(about)


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as file:
        shape, dtype = _header(file)
        cells = int(np.prod(shape, dtype=object)) if shape else 1
        if dtype.kind not in "biuf" or cells * dtype.itemsize > info.file_size:
            raise InputError("An array of the saved file is not as long as it says")
    with archive.open(info) as file:
        return np.asarray(npy.read_array(file, allow_pickle=False))


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype
