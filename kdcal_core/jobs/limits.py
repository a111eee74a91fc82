"""Limits of jobs on this machine: how many run at once, memory, time, and trials of first rows.

All workers together get three quarters of the memory of the machine, or of the container around
this process, in equal shares. The rest is for the app's own process and the page cache. While a
job shares its work with copies of its process (`kdcal_core.forks`), each copy may take half of a
share beside it.

A job whose review nobody has open is stopped after a quarter of an hour. That is longer than a
reload, a change of network or a tab that the browser suspends, and a job of ten minutes
finishes even if its user closes the laptop. It is half of the time that a job may take, so that a
long job that nobody waits for does not block others.

Whoever runs the server can set all of these (`kdcal_core.quotas`).

The time and memory that a model needs are not known before it runs. So it is first tried on a few
rows; a model that never ends or takes too much memory is then stopped after seconds, not after the
half hour of the job.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from math import inf

from kdcal_core import memory
from kdcal_core.errors import InputError
from kdcal_core.jobs.outcome import lack_of_memory
from kdcal_core.memory import total_bytes
from kdcal_core.quotas import GRACE, JOBS, WORKER
from kdcal_core.text import bytes_text, counted

SHORT_PLACES = 1  # kept for short work, such as reading an upload, beside the long jobs
TRIAL_SECONDS = 20.0  # that the first few rows may take
_MEMORY_SHARE = 0.75
_LEAST_BYTES = 1 << 30  # the libraries alone take a third of this


def long_places() -> int:
    """How many long jobs run at once.

    Examples
    --------
    >>> long_places() >= 1
    True
    """
    return JOBS.amount


def worker_bytes() -> int:
    """Memory that one worker may take: as it is set, else its share of the machine's.

    Examples
    --------
    >>> worker_bytes() >= 2**30
    True
    """
    if WORKER.is_set:
        return WORKER.amount
    share = _MEMORY_SHARE * total_bytes() / (long_places() + SHORT_PLACES)
    return max(_LEAST_BYTES, int(share))


def grace_seconds() -> float:
    """How long a job goes on while nobody has its review open.

    Examples
    --------
    >>> grace_seconds() > 0
    True
    """
    return GRACE.amount or inf


_leave: Callable[[InputError], None] | None = None


def allow_leaving(leave: Callable[[InputError], None]) -> None:
    """Set how this worker process ends at once with an error; other processes set nothing."""
    global _leave
    _leave = leave


@contextlib.contextmanager
def trial(
    what: str, *, fix: str, seconds: float = TRIAL_SECONDS, more_bytes: int | None = None
) -> Iterator[None]:
    """Run the body under limits if this process is a worker, otherwise without limits.

    Parameters
    ----------
    what : str
        The trial as the beginning of a sentence: ``"The model, tried on 8 rows,"``.
    fix : str
        What to do if it fails.
    seconds : float
        Time limit by the clock. It ends the process, since compiled code cannot be stopped.
    more_bytes : int, optional
        Memory that the body may take beyond what this process takes already.

    Raises
    ------
    InputError
        The body ran out of that memory.

    Examples
    --------
    >>> with trial("The model, tried on 8 rows,", fix="Choose another."):
    ...     1 + 1
    2
    """
    if _leave is None:
        yield
        return
    longest = counted(round(seconds), "second")
    slow = InputError(f"{what} took longer than {longest} and was stopped", fix=fix)
    timer = threading.Timer(seconds, _leave, [slow])
    timer.daemon = True
    timer.start()
    try:
        with _limited(more_bytes):
            yield
    except InputError:
        raise
    except Exception as error:
        if more_bytes is None or not _for_memory(error):
            raise
        raise InputError(
            f"{what} needed more than {bytes_text(more_bytes)} of memory", fix=fix
        ) from error
    finally:
        timer.cancel()


def _for_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or lack_of_memory(str(error))


@contextlib.contextmanager
def _limited(more_bytes: int | None) -> Iterator[None]:
    if more_bytes is None:
        yield
        return
    import resource

    kind = memory.memory_limit()
    soft, hard = resource.getrlimit(kind)
    limit = memory.used_bytes() + more_bytes
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(kind, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))
