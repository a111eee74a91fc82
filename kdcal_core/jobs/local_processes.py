"""An executor of local processes, each served by a thread of this process.

Unlike the standard library's pool, which breaks as a whole, it loses one task with a process, and
can stop a task that runs.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from kdcal_core.forks import find_libraries_without_proc
from kdcal_core.jobs.executors import SCHEDULER, TASK_SECONDS, TRIES, Call, Workers, lost
from kdcal_core.jobs.outcome import Cancelled, too_slow
from kdcal_core.jobs.parcels import Reply, reply_to

_LOOK = 0.05  # seconds between two looks at whether to stop
_START = 600.0  # seconds that a process may take to start
_IMPORTED = ("kdcal_core.evaluation", "kdcal_core.diagnostics")


class LocalProcesses(Workers):
    """``n_workers`` processes, started when the first tasks come; see `Workers`.

    A script that uses it needs ``if __name__ == "__main__":``, as with every pool of processes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as made, LocalProcesses(Path(made), 1) as executor:
    ...     executor.submit(divmod, 7, 2).result()
    (3, 1)
    """

    def __init__(self, folder: Path, n_workers: int, seconds: float = TASK_SECONDS) -> None:
        super().__init__(folder, n_workers, seconds)
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._open = True

    def begin(self, call: Call) -> None:
        if not self._open:
            raise RuntimeError("cannot submit to an executor that was shut down")
        self._calls.put(call)
        if len(self._threads) < self.n_workers:
            thread = threading.Thread(target=self._serve, name="kdcal-process", daemon=True)
            self._threads.append(thread)
            thread.start()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes once the submitted tasks are done, or drop those that wait."""
        self._open = False
        while cancel_futures and not self._calls.empty():
            with contextlib.suppress(Exception):
                if (call := self._calls.get_nowait()) is not None:
                    call.future.cancel()
                    call.future.set_running_or_notify_cancel()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def _serve(self) -> None:
        """Give calls to one process, which is replaced when it ends."""
        process: _Process | None = None
        try:
            while (call := self._calls.get()) is not None:
                if not call.future.set_running_or_notify_cancel():
                    continue
                ended = ""
                while call.tries < TRIES:
                    call.tries += 1
                    process = process or _Process(self.folder)
                    reply = self._reply(process, call)
                    if reply is not None:
                        break
                    ended = process.end()
                    process = None
                else:
                    reply = lost(ended)
                if process is not None and isinstance(reply, BaseException):
                    process.end()  # it still computes what nobody waits for
                    process = None
                self.settle(call, reply)
        finally:
            if process is not None:
                process.end()

    def _reply(self, process: _Process, call: Call) -> Reply | BaseException | None:
        """What the process answers; None if it ended, an error if it has to be stopped."""
        sent, limit = False, _START
        begun = time.monotonic()
        try:
            while True:
                if process.ready and not sent:
                    process.pipe.send(call.parcel)
                    sent, limit, begun = True, self.seconds, time.monotonic()
                ready = wait([process.pipe, process.sentinel], _LOOK)
                if process.pipe in ready and sent:
                    reply: Reply = process.pipe.recv()
                    return reply
                if process.pipe in ready:
                    process.pipe.recv()
                    process.ready = True
                elif ready:
                    return None
                if call.future.asked.is_set():
                    return Cancelled()
                if time.monotonic() - begun > limit:
                    return too_slow("A task" if sent else "The start of a process", limit)
        except (OSError, EOFError):
            return None


class _Process:
    """One process and the pipe to it."""

    def __init__(self, folder: Path) -> None:
        context: Any = _context()
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, str(folder)), daemon=True)
        self._process.start()
        theirs.close()  # so that its end is seen
        self.sentinel: int = self._process.sentinel
        self.ready = False

    def end(self) -> str:
        """Kill it, and say how it had ended."""
        self._process.join(0.2)
        code = self._process.exitcode
        self._process.kill()
        self._process.join()
        self._process.close()
        self.pipe.close()
        return f"killed by signal {-code}" if code is not None and code < 0 else f"code {code}"


def _context() -> Any:
    """Processes are forked from one that has imported the libraries, where the system can."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_IMPORTED])
    return context


def _work(pipe: Connection, folder: str) -> None:
    """Run in the process: answer calls until the pipe ends."""
    os.environ.pop(SCHEDULER, None)  # a worker has no workers
    find_libraries_without_proc()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(EOFError, OSError):
        pipe.send(None)
        while True:
            pipe.send(reply_to(pipe.recv(), Path(folder), lambda: False))
