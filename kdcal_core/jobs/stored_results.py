"""Finished results on disk, by the digest of what they were computed from, and where they stand."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kdcal_core
from kdcal_core.store.disk import make_folder, make_private, read_json, write_json

OWN = "kdcal"


def default_root() -> Path:
    """The folder ``kdcal`` in ``$KDCAL_HOME``, else in the user's cache folder.

    It is a folder of our own, because ``KDCAL_HOME`` may name one that others use too.

    Examples
    --------
    >>> default_root().is_absolute(), default_root().name
    (True, 'kdcal')
    """
    if home := os.environ.get("KDCAL_HOME"):
        return Path(home).absolute() / OWN
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(cache) if cache else Path.home() / ".cache") / OWN


_FILES = "files"
_RESULT = "result.json"


def job_key(target: str, kwargs: Mapping[str, Any], *digests: str) -> str:
    """Digest of a function's name and arguments, and of the contents of the files they name.

    Raises
    ------
    TypeError, ValueError
        For arguments that JSON cannot carry.

    Examples
    --------
    >>> job_key("kdcal_core.a:b", {"n": 1, "m": 2}) == job_key("kdcal_core.a:b", {"m": 2, "n": 1})
    True
    """
    text = json.dumps([target, dict(kwargs), digests], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Results:
    """Results in ``root``; the least recently used go when they take more than ``max_bytes``.

    Examples
    --------
    >>> import tempfile
    >>> base = Path(tempfile.mkdtemp())
    >>> results = Results(base / "results", max_bytes=1000)
    >>> draft = base / "draft"
    >>> results.begin(draft).joinpath("a.txt").write_text("text")
    4
    >>> results.keep("key", draft, {"n": 1})
    >>> results.read("key"), (results.files("key") / "a.txt").read_text()
    ({'result': {'n': 1}}, 'text')
    """

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._changing = threading.Lock()

    def begin(self, draft: Path) -> Path:
        """Make the folder ``draft``. Returns the folder inside it that the work may fill."""
        files = draft / _FILES
        make_folder(files)
        return files

    def keep(self, key: str, draft: Path, result: Any) -> None:
        """Take over what lies in ``draft``, with the result, all at once.

        Raises
        ------
        OSError
            Where the disk does not take it.
        """
        write_json(draft / _RESULT, {"result": result, _FILES: _sizes(draft / _FILES)})
        make_private(draft)
        make_folder(self._root)
        with self._changing:
            place = self._place(key)
            if self.read(key) is None:
                shutil.rmtree(place, ignore_errors=True)  # it is damaged, if it is there
            try:
                draft.rename(place)
            except OSError:
                if self.read(key) is None:
                    raise
                # another server kept the same meanwhile, and ours is its equal
            self._make_room(place)

    def read(self, key: str) -> dict[str, Any] | None:
        """``{"result": ...}`` of what is stored under this key, which is now in use; or None.

        A result with a file that is gone, or of another size than it was, is not stored.
        """
        path = self._place(key) / _RESULT
        found = read_json(path)
        if found is None or "result" not in found or found.get(_FILES) != _sizes(self.files(key)):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return {"result": found["result"]}

    def delete(self, key: str) -> None:
        """Delete what is stored under this key, if anything is."""
        place = self._place(key)
        with self._changing:
            with contextlib.suppress(OSError):
                (place / _RESULT).unlink()  # from here on it does not count
            shutil.rmtree(place, ignore_errors=True)

    def files(self, key: str) -> Path:
        """Where the files of a result with this key stand, or would."""
        return self._place(key) / _FILES

    def _place(self, key: str) -> Path:
        # a digest of the key, because a key may hold anything; another version's code may give
        # another result
        name = hashlib.sha256(f"{kdcal_core.__version__}\n{key}".encode()).hexdigest()
        return self._root / name

    def _make_room(self, newest: Path) -> None:
        """Delete what was not used for longest, except the one that was just kept."""
        folders = sorted(self._root.iterdir(), key=_last_used)
        sizes = {folder: _size(folder) for folder in folders}
        total = sum(sizes.values())
        for folder in folders:
            if total <= self._max_bytes:
                return
            if folder != newest:
                (folder / _RESULT).unlink(missing_ok=True)  # from here on it does not count
                shutil.rmtree(folder, ignore_errors=True)
                total -= sizes[folder]


def _last_used(folder: Path) -> float:
    try:
        return (folder / _RESULT).stat().st_mtime
    except OSError:
        return 0.0


def _size(folder: Path) -> int:
    return sum(_sizes(folder).values())


def _sizes(folder: Path) -> dict[str, int]:
    """Bytes of each file in the folder, by its path in it."""
    sizes = {}
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # another server deletes too
            if path.is_file():
                sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
    return sizes
