"""Where kdcal keeps what outlives a process: reviews, records of jobs, stored results."""

from __future__ import annotations

import os
from pathlib import Path

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
