"""Memory of this machine: how much there is, how much is free, and whether it ran out.

Inside a container, or under any other control group with a limit, that limit counts as the
machine's memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kdcal_core.errors import InputError

_BOUNDLESS = 2**62
_GROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


@dataclass(frozen=True)
class _Files:
    """Where a version of control groups keeps its numbers, below the folder of a group."""

    limit: str
    used: str
    reclaimable: str
    events: str


_SECOND = _Files("memory.max", "memory.current", "inactive_file", "memory.events")
_FIRST = _Files(
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "memory.oom_control"
)


def total_bytes() -> int:
    """Memory that the machine has, or the container around this process.

    Examples
    --------
    >>> 0 < available_bytes() <= total_bytes()
    True
    """
    machine = _named("meminfo", "MemTotal:", 1024)
    if machine is None:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = (_number(folder / files.limit) for folder, files in _groups())
    return min([machine, *(limit for limit in limits if limit is not None)])


def available_bytes() -> int:
    """Memory that this process may still take: the machine's, its container's, its own limit's."""
    machine = _named("meminfo", "MemAvailable:", 1024)
    if machine is None:
        machine = total_bytes()
    return min([machine, _own(), *(_left(folder, files) for folder, files in _groups())])


def memory_limit() -> int:
    """Which limit of the system bounds the memory that a process takes.

    On Linux it counts what the process may write to. The size of the address space, the only one
    elsewhere, counts libraries and files that are mapped too.
    """
    import resource

    if sys.platform == "linux":
        return resource.RLIMIT_DATA
    return resource.RLIMIT_AS


def used_bytes() -> int:
    """What this process takes, as that limit counts it."""
    pages = (_PROC / "self" / "statm").read_text().split()
    return int(pages[5 if sys.platform == "linux" else 0]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(pid: int) -> int:
    """The most memory that a living process held at once; 0 where the system does not say."""
    return _named(f"{pid}/status", "VmHWM:", 1024) or 0


def ended_for_memory() -> int:
    """How many processes the system has ended so far because its memory, or ours, ran out."""
    counts = [_named(folder / files.events, "oom_kill", 1) for folder, files in _groups()]
    return sum(count or 0 for count in (*counts, _named("vmstat", "oom_kill", 1)))


def _own() -> int:
    """What the limit of this process leaves; a worker has one."""
    try:
        import resource

        limit, _ = resource.getrlimit(memory_limit())
        used = used_bytes()
    except (ImportError, OSError, ValueError, IndexError):  # no such limit on this system
        return _BOUNDLESS
    return _BOUNDLESS if limit == resource.RLIM_INFINITY else max(0, limit - used)


def _left(folder: Path, files: _Files) -> int:
    """What a group's limit leaves; boundless where there is no limit to be read."""
    limit, used = _number(folder / files.limit), _number(folder / files.used)
    if limit is None or used is None:
        return _BOUNDLESS
    reclaimable = _named(folder / "memory.stat", files.reclaimable, 1) or 0
    return min(_BOUNDLESS, max(0, limit - used + reclaimable))  # the page cache gives way


def _groups() -> Iterator[tuple[Path, _Files]]:
    """The control groups around this process, from the outermost in."""
    try:
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        files, folder = (_FIRST, _GROUPS / "memory") if controllers else (_SECOND, _GROUPS)
        yield folder, files
        for part in Path(path).parts[1:]:
            folder = folder / part
            yield folder, files


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # "max" is no limit
        return None


def _named(path: str | Path, name: str, unit: int) -> int | None:
    """The number behind this name in a file of one a line, in ``unit`` bytes."""
    try:
        for line in (_PROC / path).read_text().splitlines():
            words = line.split()
            if words[:1] == [name]:
                return int(words[1]) * unit
    except (OSError, ValueError, IndexError):
        pass
    return None


def refuse_beyond_memory(needed: int, what: str, fix: str) -> None:
    """Raise an :class:`InputError` with the estimate where ``needed`` bytes are not available.

    Examples
    --------
    >>> refuse_beyond_memory(1000, "A small fit", "Nothing needs to be done.")
    """
    available = available_bytes()
    if needed > available:
        raise InputError(
            f"{what} would take about {needed / 1e9:,.1f} GB of memory, and about "
            f"{available / 1e9:,.1f} GB are free",
            fix=fix,
        )
