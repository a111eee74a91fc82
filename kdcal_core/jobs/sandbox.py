"""What a process that reads an uploaded file may still do, where the system can limit it.

Linux has Landlock: a process gives up, for ever, every file but those that it names, and every
connection over TCP. A fault in a parser can then read the file in question and the installed
libraries, write to the review's own folder, and do no more.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from glob import escape
from importlib import import_module
from pathlib import Path
from typing import Any

_KEYS = ("path", "paths", "frame_path", "folder")
_LIBRARIES = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system")
_SYSTEM = ("/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/sys/vm")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


def confine(request: Any, folder: str | None) -> bool:
    """Limit this process to the files that a request names, and to no network.

    Parameters
    ----------
    request : JSON value
        Absolute paths under the keys "path", "paths", "frame_path" and "folder" count: an existing
        file may be read, in an existing folder and beside a file that is still to be written
        everything may be read and written.
    folder : str or None
        A folder for results.

    Returns
    -------
    bool
        False where the system, or this installation, cannot do it.
    """
    try:
        landlock = import_module("py_landlock")
    except ImportError:
        return False
    read, write = named_paths(request)
    if folder is not None:
        write.add(Path(folder))
    rules = landlock.Landlock(strict=False)
    may = landlock.AccessFs
    into = may.READ_DIR | may.READ_FILE
    change = may.WRITE_FILE | may.TRUNCATE
    make = may.MAKE_REG | may.MAKE_DIR | may.REMOVE_FILE | may.REMOVE_DIR | may.REFER
    try:
        for path in _there([*sys.path, sys.prefix, sys.base_prefix, *_LIBRARIES, *_SYSTEM, *read]):
            rules.add_path_rule(path, access=into if path.is_dir() else may.READ_FILE)
        for path in _there(_DEVICES):
            rules.add_path_rule(path, access=may.READ_FILE | change)
        for path in _there(write):
            rules.add_path_rule(path, access=into | change | make)
        rules.apply()
    except (landlock.LandlockError, OSError):
        return False
    if write:  # what a library writes for itself, it writes there
        tempfile.tempdir = str(min(write))
    return True


def named_paths(request: Any) -> tuple[set[Path], set[Path]]:
    """Files that a request wants read, and folders that it wants written.

    Examples
    --------
    >>> read, write = named_paths({"path": __file__, "frame_path": "/nowhere/new", "name": "/etc"})
    >>> [one.name for one in read], [str(one) for one in write]
    (['sandbox.py'], ['/nowhere'])
    """
    read, write = set(), set()
    for path in map(Path, _paths(request)):
        if path.is_file():
            read |= {path, *path.parent.glob(f"{escape(path.name)}.*")}  # its digest beside it
        else:
            write.add(path if path.is_dir() else path.parent)
    return read, write


def _paths(value: Any, named: bool = False) -> Iterator[str]:
    """Every text under a key that holds paths: names of columns and classes are a stranger's."""
    if isinstance(value, str):
        if named and Path(value).is_absolute() and "\0" not in value:
            yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _paths(one, named or key in _KEYS)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _paths(one)


def _there(paths: Iterable[str | Path]) -> list[Path]:
    return [one for path in paths if path and (one := Path(path)).exists()]
