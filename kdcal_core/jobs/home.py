"""Where kdcal keeps what outlives a process: reviews, records of jobs, stored results."""

from __future__ import annotations

import os
from pathlib import Path


def default_root() -> Path:
    """``$KDCAL_HOME``, else the user's cache folder.

    Examples
    --------
    >>> default_root().is_absolute()
    True
    """
    if home := os.environ.get("KDCAL_HOME"):
        return Path(home).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(cache) if cache else Path.home() / ".cache") / "kdcal"
