"""A small disk of a test's own, which really becomes full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

_BLOCK = bytes(1 << 16)


@contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[Path]:
    """A disk of this size, mounted at the folder; skipped where none can be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=700", "kdcal-test", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        said = done.stderr.strip()
    except FileNotFoundError as error:
        said = str(error)
    if said:
        pytest.skip(f"only root can mount a disk, on Linux: {said[:100]}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(disk: Path, *, but: int = 0) -> Iterator[None]:
    """Fill the disk to its last block, or leave about ``but`` bytes; free it afterwards."""
    filler, room = disk / ".filler", disk / ".room"
    room.write_bytes(bytes(but))
    with pytest.raises(OSError, match="No space left"):
        _fill(filler)
    room.unlink()
    try:
        yield
    finally:
        filler.unlink()


def _fill(path: Path) -> NoReturn:
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(_BLOCK)
