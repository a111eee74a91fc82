"""Run one function of the core in a fresh process, under a time and a memory limit.

The worker gets little of the server's environment, and nothing secret. Its answers are untrusted,
because a hostile file may have taken control of it.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import kdcal_core
from kdcal_core.errors import InputError
from kdcal_core.jobs.fork_server import ForkedWorker, ForkServer, can_fork
from kdcal_core.jobs.limits import long_places, worker_bytes
from kdcal_core.jobs.outcome import (
    KEPT_SAFE,
    Cancelled,
    ended_by_system,
    ended_from_outside,
    lack_of_memory,
    seconds_of,
    too_large,
    too_slow,
    value_of,
)
from kdcal_core.memory import ended_for_memory, peak_bytes
from kdcal_core.progress import Progress
from kdcal_core.quotas import Quota

_POLL = 0.05  # seconds between two checks of the time and of cancelled()
_GRACE = 5.0  # seconds a worker has to end after its answer
ASK_GRACE = 1.0  # seconds a worker has to stop by itself when it is asked to
_TERM_GRACE = 0.3  # seconds it then has to end after the signal
_PREPARATION = 20.0  # seconds a worker waits at most for imports that have begun
_NEARLY = 0.9  # of its memory limit: a process killed above it ran out of memory

_SIGNALS = {
    "SIGSEGV": "segmentation fault",
    "SIGABRT": "it aborted",
    "SIGBUS": "bus error",
    "SIGFPE": "arithmetic fault",
    "SIGILL": "illegal instruction",
}

_log = logging.getLogger(__name__)
WorkerProcess = subprocess.Popen[bytes] | ForkedWorker
_alive: set[WorkerProcess] = set()
_alive_lock = threading.Lock()
_fork_server: ForkServer | None = None
_preparing = threading.Lock()


def prepare_workers(modules: Sequence[str], *, seconds: float = 0.0) -> bool:
    """Import modules once, in a process from which all further workers are forked.

    For programs that start many workers: each then starts in hundredths of a second. Those that are
    asked for earlier wait for the imports, which they would otherwise do beside them. On systems
    that cannot fork, each worker imports the modules itself.

    Parameters
    ----------
    modules : sequence of str
        What the workers will need, own modules and libraries.
    seconds : float
        How long to wait for the imports.

    Returns
    -------
    bool
        Whether workers are forked from now on.

    Examples
    --------
    >>> prepare_workers(["kdcal_core.text"], seconds=30) == can_fork()
    True
    >>> run_limited("kdcal_core.text:counted", {"n": 2, "noun": "row"})
    '2 rows'
    """
    global _fork_server
    if not can_fork():
        return False
    with _preparing:
        if _fork_server is None:
            _fork_server = ForkServer(modules, worker_environment(concurrent=long_places()))
        server = _fork_server
    return server.wait(seconds)


def run_limited(
    target: str,
    kwargs: Mapping[str, Any],
    *,
    seconds: float | Quota = 120,
    memory_bytes: int | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    what: str = "This step",
    confined: bool = False,
    prepared: str = "",
    reads: Sequence[str] = (),
    temporary: Path | None = None,
) -> Any:
    """Run a function of the core in a process of its own and return its JSON result.

    Parameters
    ----------
    target : str
        ``"kdcal_core.x.y:function"``. Where the function has a parameter ``progress``, it gets
        a callable ``(share, note)`` that reports here, and that raises `Cancelled` in the
        function once it is to stop.
    kwargs : mapping
        Its arguments, JSON. Arrays travel through files named here.
    seconds : float or Quota
        Time limit by the clock, the process's start included.
    memory_bytes : int, optional
        Limit of the process's memory, where the system can set one; by default a worker's share
        of this machine (`kdcal_core.jobs.limits`).
    folder : Path, optional
        Where the function may leave files: passed to it as a string if it has a parameter
        ``folder``.
    progress : callable, optional
        Called in this thread with a share from 0 to 1 and a note. What it raises ends the
        process and is raised here.
    cancelled : callable, optional
        Asked about twenty times a second. Once true, the process is asked to stop, after a
        second it is terminated, and then killed.
    what : str
        The step as the beginning of a sentence: ``"Reading the model"``.
    confined : bool
        Whether the process reads a file of a stranger: it then reaches no other file than those
        named in ``kwargs`` and no network, where the system can limit it
        (`kdcal_core.jobs.sandbox`).
    prepared : str
        Another function of the core, without arguments, that runs before the process is confined:
        to load compiled code, which is stored where a confined process may not read or write.
    reads : sequence of str
        Files and folders that a job reads.
    temporary : Path, optional
        A folder for temporary files. With it the process is a job's: it reaches no other files than
        this folder, ``folder`` and ``reads``.

    Returns
    -------
    The function's result, as JSON gives it back (tuples become lists).

    Raises
    ------
    InputError
        The function's own, or one that says that the process crashed, ran out of time or
        memory, failed, or gave an answer that is not valid.
    Cancelled
        When ``cancelled()`` was true.

    Examples
    --------
    >>> run_limited("kdcal_core.text:counted", {"n": 3, "noun": "row"})
    '3 rows'
    """
    limit = worker_bytes() if memory_bytes is None else int(memory_bytes)
    request = {
        "target": target,
        "kwargs": dict(kwargs),
        "memory_bytes": limit,
        "folder": None if folder is None else str(folder),
        "confined": confined,
        "prepared": prepared,
        "reads": list(reads),
        "temporary": None if temporary is None else str(temporary),
    }
    line = json.dumps(request, allow_nan=False).encode() + b"\n"
    deadline = time.monotonic() + seconds_of(seconds)
    with _worker() as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        listener = Listener(process.stdout, process.stderr)
        watch = _Watch(process.pid, limit)
        _send(process, line)
        while not listener.ended:
            listener.wait(_POLL)
            watch.look()
            news = listener.take_progress()
            if news and progress is not None:
                progress(*news)
            if cancelled is not None and cancelled():
                _stop(process, listener)
                raise Cancelled(what)
            if time.monotonic() > deadline and not listener.ended:
                raise too_slow(what, seconds)
        if listener.answer is None and not listener.fault:
            _wait(process)
        else:
            _end(process)
        return _result(listener, process.returncode, what, watch)


@contextlib.contextmanager
def _worker() -> Iterator[WorkerProcess]:
    """A worker process in its own session; it is killed with all its children at the end."""
    if _fork_server is not None:
        _fork_server.wait(_PREPARATION)
    with _alive_lock:
        process = _started(worker_environment(concurrent=long_places()))
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
        if isinstance(process, ForkedWorker):
            process.release()


def _started(environment: Mapping[str, str]) -> WorkerProcess:
    """A new worker: forked if that is prepared, otherwise a new interpreter."""
    forked = None if _fork_server is None else _fork_server.start(environment)
    return forked or subprocess.Popen(
        [sys.executable, "-P", "-m", "kdcal_core.jobs.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def _send(process: WorkerProcess, line: bytes) -> None:
    assert process.stdin
    with contextlib.suppress(BrokenPipeError):  # it has ended already: its exit code says why
        process.stdin.write(line)
        process.stdin.flush()


def _stop(process: WorkerProcess, listener: Listener) -> None:
    """Ask the process to stop, then signal it to end; the caller kills it afterwards."""
    _send(process, b"cancel\n")
    deadline = time.monotonic() + ASK_GRACE
    while not listener.ended and time.monotonic() < deadline:
        listener.wait(_POLL)
        listener.take_progress()
    if not listener.ended:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_TERM_GRACE)


def _end(process: WorkerProcess) -> None:
    """Kill the process and its children. Its group outlives it, so do this even when it ended."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _wait(process: WorkerProcess) -> None:
    """Let a process that closed its pipe end by itself, so that its exit code says why."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


@atexit.register
def _end_all() -> None:
    with _alive_lock:
        for process in _alive:
            _end(process)


class _Watch:
    """The memory that a worker takes, as far as the system reports it."""

    def __init__(self, pid: int, limit: int) -> None:
        self._pid = pid
        self.limit = limit
        self.peak = 0
        self._ended_before = ended_for_memory()

    def look(self) -> None:
        """Record its peak memory, which cannot be read once it has ended."""
        self.peak = max(self.peak, peak_bytes(self._pid))

    def at_its_limit(self) -> bool:
        return self.peak > _NEARLY * self.limit

    def system_ran_out(self) -> bool:
        return ended_for_memory() > self._ended_before


def _result(listener: Listener, code: int | None, what: str, watch: _Watch) -> Any:
    if listener.answer is not None:
        if "error" in listener.answer:
            _log.warning("%s: %s\n%s", what, listener.answer["error"], listener.last_lines())
        return value_of(listener.answer, what, watch.limit)
    words = listener.last_lines()
    if listener.fault:
        error = InputError(
            f"{what} gave {listener.fault}",
            fix=f"The file may be malicious: do not use it. {KEPT_SAFE}",
        )
    else:
        error = _death(code, words, what, watch)
    _log.warning("%s\n%s", error.what, words)
    raise error


def _death(code: int | None, words: str, what: str, watch: _Watch) -> InputError:
    """Why a worker ended without an answer, as far as its exit code and its memory say."""
    if lack_of_memory(words) or (code is not None and code < 0 and watch.at_its_limit()):
        return too_large(what, watch.limit)
    # the server kills only what is too slow, and raises that error earlier
    if hasattr(signal, "SIGKILL") and code == -signal.SIGKILL:
        if watch.system_ran_out():
            return ended_by_system(what, watch.peak)
        return ended_from_outside(what, "SIGKILL, signal 9", watch.peak, watch.limit)
    if hasattr(signal, "SIGTERM") and code == -signal.SIGTERM:
        return ended_from_outside(what, "SIGTERM, signal 15", watch.peak, watch.limit)
    return InputError(
        f"{what} crashed ({_cause(code)})",
        fix=f"The file may be damaged: write it again from its source. {KEPT_SAFE}",
    )


def _cause(code: int | None) -> str:
    if code is None or code >= 0:
        return f"the process ended with code {code}"
    name = signal.Signals(-code).name
    return _SIGNALS.get(name, f"{name}, signal {-code}")


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
_SECRET = frozenset(
    ("KDCAL_DATABASE_URL", "KDCAL_SMTP_URL", "KDCAL_WEBHOOK_SECRET", "KDCAL_WEBHOOK_URL")
)
_THREAD_COUNTS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def worker_environment(*, concurrent: int) -> dict[str, str]:
    """Environment of one worker, when ``concurrent`` of them share this machine's cores.

    Proxies, passwords, tokens and the like are left out, so that a hostile file cannot read them.

    Examples
    --------
    >>> "PATH" in worker_environment(concurrent=2)
    True
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in _KEPT or (key.startswith(_KEPT_PREFIXES) and key not in _SECRET)
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


MAX_BYTES = 32 * 1024**2  # of all messages of a worker
_TAIL_LINES = 40
_MAX_NOTE = 200


class Malformed(Exception):  # noqa: N818
    """The worker sent something that is not an answer."""


def parse(line: bytes) -> dict[str, Any]:
    """One line from the worker as a checked message.

    Returns
    -------
    dict
        Exactly one of the keys ``progress`` (with ``note``), ``result``, ``input_error``,
        ``cancelled`` or ``error``.

    Raises
    ------
    Malformed
        For anything else, strict JSON numbers included: no NaN, no infinity.

    Examples
    --------
    >>> parse(b'{"progress": 2.0}')
    {'progress': 1.0, 'note': ''}
    >>> parse(b'[1]')
    Traceback (most recent call last):
    kdcal_core.jobs.runner.Malformed: an answer of no known kind
    """
    try:
        message = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed("an answer that is not JSON") from error
    match message:
        case {"progress": int() | float() as share}:
            note = str(message.get("note", ""))[:_MAX_NOTE]
            # an integer may be too large for a float: clamp first
            return {"progress": float(min(1, max(0, share))), "note": note}
        case {"result": result}:
            return {"result": result}
        case {"input_error": dict() as fields}:
            return {"input_error": _error_fields(fields)}
        case {"cancelled": True}:
            return {"cancelled": True}
        case {"error": str() as text}:
            return {"error": text}
    raise Malformed("an answer of no known kind")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _error_fields(error: dict[str, Any]) -> dict[str, Any]:
    what, fix = error.get("what"), error.get("fix")
    if not isinstance(what, str) or not isinstance(fix, str):
        raise Malformed("an error without words")
    fields: dict[str, Any] = {"what": what, "fix": fix}
    for key, kind in (("file", str), ("column", str), ("row", int)):
        value = error.get(key)
        if value is not None and not isinstance(value, kind):
            raise Malformed(f"an error with a wrong {key}")
        fields[key] = value
    return fields


class Listener:
    """Reads a worker's output in two threads; keeps newest progress, answer and last lines.

    Its memory is bounded whatever the worker sends: new progress replaces the old, and no more than
    `MAX_BYTES` are read.
    """

    def __init__(self, answers: IO[bytes], errors: IO[bytes]) -> None:
        self.answer: dict[str, Any] | None = None
        self.fault = ""
        self._progress: dict[str, Any] | None = None
        self._news = threading.Condition()
        self._ended = False
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._threads = [
            threading.Thread(target=self._hear_answers, args=(answers,), daemon=True),
            threading.Thread(target=self._hear_errors, args=(errors,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come: the answer is here, or the pipe is closed."""
        return self._ended

    def wait(self, seconds: float) -> None:
        """Return when there is news, after ``seconds`` at the latest."""
        with self._news:
            if self._progress is None and not self._ended:
                self._news.wait(seconds)

    def take_progress(self) -> tuple[float, str] | None:
        """The newest progress not yet taken."""
        with self._news:
            message, self._progress = self._progress, None
        return (message["progress"], message["note"]) if message else None

    def last_lines(self) -> str:
        """The end of what the ended worker wrote to standard output and standard error."""
        for thread in self._threads:
            thread.join(1.0)
        return b"".join(self._tail).decode(errors="replace")

    def _hear_answers(self, stream: IO[bytes]) -> None:
        try:
            self._read_messages(stream)
        except Malformed as fault:
            self.fault = str(fault)
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()

    def _read_messages(self, stream: IO[bytes]) -> None:
        left = MAX_BYTES
        with stream:
            while line := stream.readline(left + 1):
                left -= len(line)
                if left < 0:
                    raise Malformed("a reply that is too large")
                message = parse(line)
                if "progress" not in message:
                    self.answer = message
                    return
                with self._news:
                    self._progress = message
                    self._news.notify_all()

    def _hear_errors(self, stream: IO[bytes]) -> None:
        with stream:
            while line := stream.readline(4096):
                self._tail.append(line)
