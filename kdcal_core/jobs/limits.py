"""What jobs may take of this machine, in one place: how many run at once, memory, and time.

Of memory the workers together get three quarters of what the machine has, or the container around
this process; each gets an equal share. The app's own process and the page cache keep the rest.

A job whose review nobody has open is stopped after `GRACE_SECONDS`. A quarter of an hour is longer
than a reload, a change of network or a tab that the browser put to sleep, and lets a job of ten
minutes end for somebody who closed the laptop over it; it is half of what a job may take
(`SECONDS`), so that a long one does not keep its place from others for nobody's sake.

Three of these can be set in the environment of the server: ``KDCAL_JOBS`` (long jobs at once),
``KDCAL_WORKER_GIB`` (memory of each worker) and ``KDCAL_GRACE_MINUTES`` (0 for no end).
"""

from __future__ import annotations

import os
from math import inf

from kdcal_core.memory import total_bytes

SHORT_PLACES = 1  # kept for short work, such as reading an upload, beside the long jobs
SECONDS = 1800.0  # that a job may take
TRIAL_SECONDS = 20.0  # that the first few rows may take
GRACE_SECONDS = 900.0
_MEMORY_SHARE = 0.75
_LEAST_BYTES = 1 << 30  # the libraries alone take a third of this


def long_places() -> int:
    """How many long jobs run at once: ``KDCAL_JOBS``, else 2.

    Examples
    --------
    >>> long_places() >= 1
    True
    """
    return max(1, int(_set("KDCAL_JOBS", 2)))


def worker_bytes() -> int:
    """Memory that one worker may take: ``KDCAL_WORKER_GIB``, else its share of the machine's.

    Examples
    --------
    >>> worker_bytes() >= 2**30
    True
    """
    share = _MEMORY_SHARE * total_bytes() / (long_places() + SHORT_PLACES)
    return max(_LEAST_BYTES, int(_set("KDCAL_WORKER_GIB", share / 2**30) * 2**30))


def grace_seconds() -> float:
    """How long a job goes on while nobody has its review open.

    Examples
    --------
    >>> grace_seconds() > 0
    True
    """
    return 60 * _set("KDCAL_GRACE_MINUTES", GRACE_SECONDS / 60) or inf


def _set(name: str, default: float) -> float:
    """A number from the environment; the default where there is none that makes sense."""
    try:
        value = float(os.environ[name])
    except (KeyError, ValueError):
        return default
    return value if 0 <= value < inf else default
