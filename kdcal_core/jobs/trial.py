"""A trial: the first steps with what a file holds, under limits of their own.

What a model does is not known before it is run. So it is tried on a few rows first, where one that
never ends, or grows without bound, ends after seconds and not after the job's half hour.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from kdcal_core import memory
from kdcal_core.errors import InputError
from kdcal_core.jobs.limits import TRIAL_SECONDS
from kdcal_core.jobs.outcome import lack_of_memory
from kdcal_core.text import bytes_text

_leave: Callable[[InputError], None] | None = None


def allow_leaving(leave: Callable[[InputError], None]) -> None:
    """How this process, which is a worker, ends at once with an error. Elsewhere nothing does."""
    global _leave
    _leave = leave


@contextlib.contextmanager
def trial(
    what: str, *, fix: str, seconds: float = TRIAL_SECONDS, more_bytes: int | None = None
) -> Iterator[None]:
    """Run the body under limits, where this process is a worker; elsewhere run it as it is.

    Parameters
    ----------
    what : str
        The trial as the beginning of a sentence: ``"The model, tried on 8 rows,"``.
    fix : str
        What to do where it fails.
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
    slow = InputError(f"{what} took longer than {seconds:,.0f} seconds and was stopped", fix=fix)
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
