"""What a process that reads a stranger's files may still do, where the system can limit it.

Linux has Landlock: a process gives up, for ever, every file but those that it names, and every
connection over TCP. A filter of system calls refuses all other sockets too (`no_sockets.py`). A
fault in a parser can then read the file in question and the installed libraries, write to the
review's own folder, and do no more. The process of a job, which runs the model, reads the folders
of its reviews and the stored results that it starts from, and writes its own result and temporary
files.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from kdcal_core.jobs.no_sockets import can_refuse_sockets, refuse_sockets
from kdcal_core.jobs.records import default_root
from kdcal_core.store.disk import make_folder

_KEYS = ("path", "paths", "frame_path", "folder")
_LIBRARIES = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system")
_SYSTEM = (
    *("/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/vmstat"),
    *("/proc/sys/vm", "/sys/fs/cgroup"),
)
_NETWORK = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf")
_CORE = Path(__file__).parents[1]
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")


@dataclass(frozen=True)
class Confinement:
    """How far this machine can limit a process.

    Attributes
    ----------
    files, network : bool
        Whether a process can give up all files that it does not need, and all connections.
    why : str
        What is missing, in words that follow a colon; empty where nothing is.
    """

    files: bool
    network: bool
    why: str = ""

    @property
    def sentence(self) -> str:
        """What it means for processes that read uploaded files or run jobs.

        Examples
        --------
        >>> Confinement(False, False, "only Linux has Landlock").sentence.partition("jobs ")[2]
        'reach all that this account does: only Linux has Landlock.'
        """
        who = "Processes that read uploaded files or run jobs"
        if not self.files:
            return f"{who} reach all that this account does: {self.why}."
        if not self.network:
            return f"{who} reach only the files that they need, but any network: {self.why}."
        return f"{who} reach only the files that they need, and no network."


def confinement() -> Confinement:
    """How far processes can be limited on this machine."""
    try:
        landlock = import_module("py_landlock")
    except ImportError:
        on_linux = sys.platform == "linux"
        why = "py-landlock is not installed" if on_linux else "only Linux has Landlock"
        return Confinement(False, False, why)
    try:
        landlock.get_abi_version()
    except landlock.LandlockDisabledError:
        return Confinement(False, False, "Landlock is switched off in this kernel")
    except (landlock.LandlockError, OSError):
        return Confinement(False, False, "this kernel has no Landlock, which Linux has from 5.13")
    if not can_refuse_sockets():
        return Confinement(True, False, "this kernel cannot filter system calls (seccomp)")
    return Confinement(True, True)


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
    read, write = named_paths(request)
    if folder is not None:
        write.add(Path(folder))
    if not _confine(read, write):
        return False
    if write:  # what a library writes for itself, it writes there
        tempfile.tempdir = str(min(write))
    return True


def confine_job(reads: Iterable[str], folder: str, temporary: str) -> bool:
    """Limit this process to what a job needs.

    Where ``KDCAL_SCHEDULER`` spreads the parts of jobs over processes, it may also start programs,
    which are limited as it is. Where it names a cluster, it may also connect to the scheduler's
    port and use the shared folder.

    Parameters
    ----------
    reads : iterable of str
        Files and folders that it reads.
    folder, temporary : str
        Folders for its result and for temporary files.

    Returns
    -------
    bool
        As of `confine`.
    """
    read, write = {*map(Path, reads), *_compiled()}, {Path(folder), Path(temporary)}
    kind = ""
    ports: list[int] = []
    if "KDCAL_SCHEDULER" in os.environ:
        from kdcal_core.jobs.dask_workers import CA, CERTIFICATE, KEY
        from kdcal_core.jobs.executors import SCHEDULER, SHARED

        kind, _, address = os.environ[SCHEDULER].strip().partition(":")
        shared = os.environ.get(SHARED)
        if kind in ("tcp", "tls"):
            files = (os.environ.get(name, "") for name in (CA, CERTIFICATE, KEY))
            read |= {Path(one) for one in (*_NETWORK, *files) if one}
            shared = shared or str(default_root() / "shared")
            ports = [int(one) for one in (address.rpartition(":")[2],) if one.isdecimal()]
        if shared:
            with suppress(OSError):  # whoever opens the executor reports it
                make_folder(Path(shared))
            write.add(Path(shared))
    if not _confine(read, write, ports=ports, programs=kind == "processes"):
        return False
    tempfile.tempdir = temporary
    return True


def _compiled() -> tuple[Path, ...]:
    """Where numba keeps compiled code, if not beside its source."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    own = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(caches) / "numba", *([Path(own)] if own else []))


def _confine(
    read: Iterable[Path],
    write: Iterable[Path],
    *,
    ports: Sequence[int] = (),
    programs: bool = False,
) -> bool:
    try:
        landlock = import_module("py_landlock")
    except ImportError:
        return False
    rules = landlock.Landlock(strict=False)
    may = landlock.AccessFs
    into = may.READ_DIR | may.READ_FILE
    change = may.WRITE_FILE | may.TRUNCATE
    make = may.MAKE_REG | may.MAKE_DIR | may.REMOVE_FILE | may.REMOVE_DIR | may.REFER
    libraries: list[str | Path] = [*_imported_from(), sys.prefix, sys.base_prefix, *_LIBRARIES]
    try:
        for path in _there([*libraries, *_SYSTEM, *read]):
            rules.add_path_rule(path, access=into if path.is_dir() else may.READ_FILE)
        if _is_checkout(_CORE.parent):  # a new process finds the core by listing the folder
            rules.add_path_rule(_CORE.parent, access=may.READ_DIR)
        for path in _there(_DEVICES):
            rules.add_path_rule(path, access=may.READ_FILE | change)
        for path in _there(write):
            rules.add_path_rule(path, access=into | change | make)
        if programs:
            for path in _there(libraries):
                rules.add_path_rule(path, access=may.EXECUTE)
            for path in _there(write):
                rules.add_path_rule(path, access=may.MAKE_SOCK)
        if ports:
            rules.add_net_rule(*ports, access=landlock.AccessNet.CONNECT_TCP)
        rules.apply()
    except (landlock.LandlockError, OSError):
        return False
    refuse_sockets(local=programs, internet=bool(ports))
    return True


def _imported_from() -> Iterator[Path]:
    """Where libraries are imported from; of a checkout of kdcal only the core's own folder.

    People work in a checkout, and keep their tables and models there.
    """
    for path in map(Path, filter(None, sys.path)):
        yield _CORE if path == _CORE.parent and _is_checkout(path) else path


def _is_checkout(folder: Path) -> bool:
    return (folder / "pyproject.toml").exists()


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
