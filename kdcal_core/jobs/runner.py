"""Run one function of the core in a fresh process, under a time and a memory limit."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs.channel import Listener
from kdcal_core.jobs.environment import worker_environment

Progress = Callable[[float, str], None]

DEFAULT_MEMORY_BYTES = 8 * 1024**3
CONCURRENT = 2  # workers that share this machine's cores
_POLL = 0.05  # seconds between looks at the clock and at cancelled()
_GRACE = 5.0  # seconds a worker has to end after its answer

_KEPT_SAFE = "Nothing that was loaded before is lost."
_OUT_OF_MEMORY = re.compile(
    r"MemoryError|bad_alloc|bad allocation|[Cc]an(?:'t|not) allocate memory|out of memory"
)
_SIGNALS = {
    "SIGSEGV": "segmentation fault",
    "SIGABRT": "it aborted",
    "SIGBUS": "bus error",
    "SIGFPE": "arithmetic fault",
    "SIGILL": "illegal instruction",
}

_log = logging.getLogger(__name__)
_alive: set[subprocess.Popen[bytes]] = set()
_alive_lock = threading.Lock()


class Cancelled(Exception):  # noqa: N818 - asked for, so not an error
    """The work was cancelled because ``cancelled()`` said so."""


def run_limited(
    target: str,
    kwargs: Mapping[str, Any],
    *,
    seconds: float = 120,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    what: str = "This step",
) -> Any:
    """Run a function of the core in a process of its own and return its JSON result.

    Parameters
    ----------
    target : str
        ``"kdcal_core.x.y:function"``. Where the function has a parameter ``progress``, it gets
        a callable ``(share, note)`` that reports here.
    kwargs : mapping
        Its arguments, JSON. Arrays travel through files named here.
    seconds : float
        Time limit by the clock, the process's start included.
    memory_bytes : int
        Limit of the process's address space, where the system can set one.
    progress : callable, optional
        Called in this thread with a share from 0 to 1 and a note. What it raises ends the
        process and is raised here.
    cancelled : callable, optional
        Asked about twenty times a second; when true, the process is killed.
    what : str
        The step as the beginning of a sentence: ``"Reading the model"``.

    Returns
    -------
    The function's result, as JSON gives it back (tuples become lists).

    Raises
    ------
    InputError
        The function's own, or one that says that the process crashed, ran out of time or
        memory, failed, or answered with what is no answer.
    Cancelled
        When ``cancelled()`` was true.

    Examples
    --------
    >>> run_limited("kdcal_core.jobs._probes:echo", {"value": [1, "a"]})
    [1, 'a']
    """
    request = {"target": target, "kwargs": dict(kwargs), "memory_bytes": int(memory_bytes)}
    line = json.dumps(request, allow_nan=False).encode() + b"\n"
    deadline = time.monotonic() + seconds
    with _worker() as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        listener = Listener(process.stdout, process.stderr)
        with contextlib.suppress(BrokenPipeError):  # it died already: said below
            process.stdin.write(line)
            process.stdin.flush()
        while not listener.ended:
            listener.wait(_POLL)
            news = listener.take_progress()
            if news and progress is not None:
                progress(*news)
            if cancelled is not None and cancelled():
                raise Cancelled(what)
            if time.monotonic() > deadline and not listener.ended:
                raise _too_slow(what, seconds)
        if listener.answer is None and not listener.fault:
            _wait(process)
        else:
            _end(process)
        return _result(listener, process.returncode, what, memory_bytes)


@contextlib.contextmanager
def _worker() -> Iterator[subprocess.Popen[bytes]]:
    """A worker process in a session of its own, dead with all its children on leaving."""
    with _alive_lock:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kdcal_core.jobs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=worker_environment(concurrent=CONCURRENT),
            start_new_session=True,
        )
        _alive.add(process)
    try:
        yield process
    finally:
        _end(process)
        with _alive_lock:
            _alive.discard(process)
        if process.stdin:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children. Its group outlives it, so do this even when it ended."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Let a process that closed its pipe end by itself, so that its exit code tells why."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


@atexit.register
def _end_all() -> None:
    with _alive_lock:
        for process in _alive:
            _end(process)


def _result(listener: Listener, code: int | None, what: str, memory_bytes: int) -> Any:
    match listener.answer:
        case {"result": result}:
            return result
        case {"input_error": fields}:
            raise InputError(fields.pop("what"), **fields)
        case {"error": text}:
            reason = str(text)
        case _:
            reason = ""
    words = listener.last_words()
    # an answer may carry a reason; without one the exit code and the last words have to tell
    no_memory = _OUT_OF_MEMORY.search(reason or words) or (not reason and _was_killed(code))
    if listener.fault:
        error = InputError(
            f"{what} gave {listener.fault}",
            fix=f"The file may be built to do harm: do not use it. {_KEPT_SAFE}",
        )
    elif no_memory:
        error = _too_large(what, memory_bytes)
    elif reason:
        error = InputError(
            f"{what} failed: {reason}",
            fix=f"Check that the file is what its name says. {_KEPT_SAFE}",
        )
    else:
        error = InputError(
            f"{what} crashed ({_cause(code)})",
            fix=f"The file may be damaged: write it again from its source. {_KEPT_SAFE}",
        )
    _log.warning("%s\n%s", error.what, words)
    raise error


def _was_killed(code: int | None) -> bool:
    """Whether the system killed it: we kill only what is too slow, and that raises earlier."""
    return hasattr(signal, "SIGKILL") and code == -signal.SIGKILL


def _cause(code: int | None) -> str:
    if code is None or code >= 0:
        return f"the process ended with code {code}"
    name = signal.Signals(-code).name
    return _SIGNALS.get(name, name)


def _too_slow(what: str, seconds: float) -> InputError:
    return InputError(
        f"{what} took longer than {seconds:,.0f} seconds and was stopped",
        fix=f"Try fewer rows or a smaller model. {_KEPT_SAFE}",
    )


def _too_large(what: str, memory_bytes: int) -> InputError:
    return InputError(
        f"{what} needed more memory than the {memory_bytes / 1024**3:,.1f} GiB it may use",
        fix=f"Try fewer rows or a smaller model. {_KEPT_SAFE}",
    )
