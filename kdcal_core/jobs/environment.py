"""What a worker process is given of our environment: little, and nothing secret."""

from __future__ import annotations

import os
from pathlib import Path

import kdcal_core

_KEPT = frozenset(
    {
        "HOME",
        "LANG",
        "LD_LIBRARY_PATH",
        "NUMBA_CACHE_DIR",
        "PATH",
        "PYTHONPATH",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "TMPDIR",
        "TZ",
        "USERPROFILE",
        "XDG_CACHE_HOME",
    }
)
_KEPT_PREFIXES = ("KDCAL_", "LC_")
_THREAD_COUNTS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def worker_environment(*, concurrent: int) -> dict[str, str]:
    """Environment of one worker, when ``concurrent`` of them share this machine's cores.

    Proxies, tokens and the like stay behind: a hostile file must not find them.

    Examples
    --------
    >>> "PATH" in worker_environment(concurrent=2)
    True
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in _KEPT or key.startswith(_KEPT_PREFIXES)
    }
    threads = str(max(1, (os.cpu_count() or 1) // concurrent))
    for key in _THREAD_COUNTS:
        kept[key] = os.environ.get(key, threads)
    # glibc keeps what is freed in one arena a thread otherwise
    kept["MALLOC_ARENA_MAX"] = "2"
    # the app may run from a checkout that is not installed
    root = str(Path(kdcal_core.__file__).parent.parent)
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, [root, kept.get("PYTHONPATH")]))
    return kept
