"""Opening a PyTorch exported program (``.pt2``) by hand: JSON and raw numbers, never a pickle."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.store.claims import read_json

_EXTRA = frozenset(
    f"extra/{key}.json" for key in ("classes", "feature_names", "task", "family", "outputs")
)
_EXPORT = (
    "Export it with PyTorch 2.9 or later: torch.export.save(torch.export.export(model.eval(), "
    "(example,), dynamic_shapes=({0: torch.export.Dim.AUTO},)), path)."
)
_SCHEMA_MAJOR = 8
_MOST_JSON_BYTES = 64 << 20
_MOST_JSON_VALUES = 5_000_000  # a node of the graph has some 50
_MOST_BYTES = 4 << 30
# Raw weights hardly shrink; JSON shrinks about tenfold.
_MOST_RATIO = 200
_MOST_MEMBERS = 100_000
# Code for other machines: kdcal neither runs it nor needs it.
_COMPILED = ("data/aotinductor/", "executorch/", "data/mtia/", "mtia/")
_EXPECTED = (
    "data/weights/",
    "data/constants/",
    "data/sample_inputs/",
    "models/model.json",
    "extra/",
    "archive_format",
    "archive_version",
    "byteorder",
    ".data/",
    "version",
)


@dataclass(frozen=True, eq=False)
class Payload:
    """A tensor as the archive stores it: bytes and how to read them."""

    data: bytes
    meta: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Archive:
    """The safe part of an exported program.

    Attributes
    ----------
    program : dict
        The graph's JSON.
    weights, constants : dict
        Tensor name to payload.
    extra : dict
        Text of the archive's extra files.
    """

    program: dict[str, Any]
    weights: dict[str, Payload]
    constants: dict[str, Payload]
    extra: dict[str, str]


def read_archive(path: Path) -> Archive:
    """Read a ``.pt2`` file.

    Sample inputs, which are stored as a pickle, are never read. A program that stores weights
    or constants as pickles, custom objects or compiled code is refused.

    Parameters
    ----------
    path : Path

    Returns
    -------
    Archive

    Raises
    ------
    InputError
    """
    with _opened(path) as archive:
        members = _members(archive)
        version = _text(archive, members, "archive_format").strip()
        if version != "pt2" or "models/model.json" not in members:
            raise InputError("The archive holds no exported program of one model", fix=_EXPORT)
        if _text(archive, members, "byteorder", "little").strip() != "little":
            raise InputError("The archive was written on a big-endian machine", fix=_EXPORT)
        program = _json(archive, members, "models/model.json")
        schema = program.get("schema_version")
        major = schema.get("major") if isinstance(schema, dict) else None
        if major != _SCHEMA_MAJOR:
            raise InputError(
                f"The exported program has schema version {major}, expected {_SCHEMA_MAJOR}",
                fix=_EXPORT,
            )
        return Archive(
            program=program,
            weights=_payloads(archive, members, "data/weights/", "model_weights_config.json"),
            constants=_payloads(archive, members, "data/constants/", "model_constants_config.json"),
            extra={
                name.removeprefix("extra/"): _text(archive, members, name)
                for name in members
                if name in _EXTRA
            },
        )


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
        raise InputError(
            "The file is no whole exported program",
            fix="It may have been cut off on its way; copy or export it again.",
        ) from error


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The archive's files by their name inside its one folder, all of them expected ones."""
    infos = [info for info in archive.infolist() if not info.is_dir()]
    unpacked = sum(info.file_size for info in infos)
    packed = sum(info.compress_size for info in infos)
    if len(infos) > _MOST_MEMBERS or unpacked > min(_MOST_BYTES, _MOST_RATIO * max(packed, 1)):
        raise InputError(
            f"The archive of {packed:,} bytes claims {unpacked:,} bytes in {len(infos):,} files",
            fix="Such an archive is damaged or made to fill the memory.",
        )
    members: dict[str, zipfile.ZipInfo] = {}
    folders = set()
    for info in infos:
        folder, _, name = info.filename.partition("/")
        folders.add(folder)
        if name in members:
            raise InputError(f"The archive holds the file {name!r} twice", fix=_EXPORT)
        members[name] = info
    if len(folders) != 1:
        raise InputError("The archive holds no exported program of one model", fix=_EXPORT)
    for name in members:
        if name.startswith(_COMPILED) or name.endswith((".so", ".dll", ".dylib", ".cubin")):
            raise InputError(
                f"The archive carries compiled code ({name!r}), which kdcal never runs",
                fix=_EXPORT,
            )
        if not name.startswith(_EXPECTED):
            raise InputError(
                f"The archive holds the file {name!r}, which no exported program has",
                fix=_EXPORT,
            )
    return members


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    # zipfile stops at the claimed size, which has been limited above.
    return archive.read(info)


def _text(
    archive: zipfile.ZipFile,
    members: dict[str, zipfile.ZipInfo],
    name: str,
    default: str | None = None,
) -> str:
    if name not in members:
        if default is not None:
            return default
        raise InputError(f"The archive lacks {name!r}", fix=_EXPORT)
    if members[name].file_size > _MOST_JSON_BYTES:
        raise InputError(f"The archive's {name!r} is too large", fix=_EXPORT)
    return _read(archive, members[name]).decode("utf-8")


def _json(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str
) -> dict[str, Any]:
    try:
        value = read_json(_text(archive, members, name).encode(), most_values=_MOST_JSON_VALUES)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"The archive's {name!r} is no JSON", fix=_EXPORT) from error
    if not isinstance(value, dict):
        raise InputError(f"The archive's {name!r} is not what it should be", fix=_EXPORT)
    return value


def _payloads(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], folder: str, config: str
) -> dict[str, Payload]:
    """Tensors of a folder. Anything pickled is refused unread."""
    if folder + config not in members:
        return {}
    entries = _json(archive, members, folder + config).get("config")
    payloads: dict[str, Payload] = {}
    cache: dict[str, bytes] = {}
    for name, entry in (entries or {}).items():
        meta = entry.get("tensor_meta")
        if entry.get("use_pickle") is not False or not isinstance(meta, dict):
            raise InputError(
                f"The exported program needs {name!r}, which is stored as a pickle, and opening "
                "one runs whatever code its author put into it",
                fix="Export a model of plain tensors, without custom objects.",
            )
        file = folder + str(entry.get("path_name"))
        if file not in members:
            raise InputError(f"The archive lacks {file!r}", fix=_EXPORT)
        if file not in cache:
            cache[file] = _read(archive, members[file])
        payloads[name] = Payload(cache[file], meta)
    return payloads
