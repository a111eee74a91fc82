"""Memory that is free for a fit, so that one which cannot succeed is refused beforehand."""

from __future__ import annotations

import os
from pathlib import Path

from kdcal_core.errors import InputError

_BOUNDLESS = 2**62
_GROUP = Path("/sys/fs/cgroup")
# Limit and use of a control group, in its second and in its first version.
_GROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)


def available_bytes() -> int:
    """Memory that this process may still take: the machine's, its container's, its own limit's."""
    return min(_machine(), _own(), *(_group(*files) for files in _GROUP_FILES))


def refuse_beyond_memory(needed: int, what: str, fix: str) -> None:
    """Raise an :class:`InputError` with the estimate where ``needed`` bytes are not there.

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


def _machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _own() -> int:
    """What the limit of this process's address space leaves; a worker has one."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError, IndexError):  # no such limit on this system
        return _BOUNDLESS
    if limit == resource.RLIM_INFINITY:
        return _BOUNDLESS
    return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def _group(limit: str, use: str, stat: str, reclaimable: str) -> int:
    """What the container's limit leaves; boundless where there is no limit to be read."""
    try:
        total = int((_GROUP / limit).read_text())
        used = int((_GROUP / use).read_text())
        for line in (_GROUP / stat).read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == reclaimable:  # the page cache gives way
                used -= int(value)
    except (OSError, ValueError):
        return _BOUNDLESS
    return min(_BOUNDLESS, max(0, total - used))
