"""Work that holds the interpreter's lock, shared with forked copies of this process.

Threads gain nothing for such work: growing the trees of a forest takes as long on two cores as on
one. A forked copy has all that this process has read, so that only its results travel.

Only the process of a job does it. There, no other thread holds a lock that a copy needs; in the app
and in a notebook one may. Linux only, as for `kdcal_core.jobs.fork_server`.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeVar

from kdcal_core.memory import memory_limit

T = TypeVar("T")
R = TypeVar("R")

_NUMBER = 4  # bytes of an item's number in the pipe from which all take their next one
_MOST = 4096  # items: their numbers must fit into a pipe at once
_DIE_WITH_PARENT = 1  # of prctl(2)
_allowed = False


def allow_forks() -> None:
    """Let this process fork copies of itself: it has few threads, and they hold no lock."""
    global _allowed
    _allowed = sys.platform == "linux"


def copies_for(n_items: int) -> int:
    """How many copies share so many items with this process; 0 where it may not be forked.

    Examples
    --------
    >>> copies_for(1)
    0
    """
    from kdcal_core.blocks import cores  # a job that needs no arrays starts without NumPy

    return max(0, min(cores(), n_items, _MOST) - 1) if _allowed and n_items <= _MOST else 0


class Shared(Generic[T, R]):
    """Items that copies of this process work through beside it, each by whoever is free first.

    Use it as a context manager, which ends the copies.

    Parameters
    ----------
    work : callable
        What a copy does with an item; its result can be pickled. An error ends the copy.
    items : sequence
        The longest first, so that none is left alone at the end.
    copies : int
        As `copies_for` says.

    Attributes
    ----------
    results : dict of int to result
        Of the copies, by the item's number, as they arrive. An item that neither they nor this
        process took to its end, because a copy was killed or lacked memory, is missing.

    Examples
    --------
    >>> with Shared(abs, [-3, -1], copies=0) as shared:
    ...     list(shared.mine()), shared.wait(1.0), shared.results
    ([0, 1], True, {})
    """

    def __init__(self, work: Callable[[T], R], items: Sequence[T], copies: int) -> None:
        self.results: dict[int, R] = {}
        self._work, self._items = work, items
        self._next, numbers = os.pipe()
        os.write(numbers, b"".join(at.to_bytes(_NUMBER) for at in range(len(items))))
        os.close(numbers)
        self._pids: list[int] = []
        pipes: list[Connection] = []
        with suppress(OSError):  # the system lets no more be forked: fewer share the work
            for _ in range(copies):
                pipes.append(self._fork())  # noqa: PERF401 - those before a failure stay
        # only now, because a thread of this process would not be in a copy
        self._threads = [
            threading.Thread(target=self._hear, args=(pipe,), daemon=True) for pipe in pipes
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pid in self._pids:
            if kind is not None:
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for thread in self._threads:
            thread.join()
        os.close(self._next)

    def mine(self) -> Iterator[int]:
        """The numbers of items that are left to this process."""
        while number := os.read(self._next, _NUMBER):  # whole: no reader gets a part of it
            yield int.from_bytes(number)

    def wait(self, seconds: float) -> bool:
        """Whether the copies have ended, after waiting for each of them for ``seconds`` at most."""
        for thread in self._threads:
            thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def _fork(self) -> Connection:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            self._serve(theirs, parent)
        theirs.close()
        self._pids.append(pid)
        return ours

    def _serve(self, pipe: Connection, parent: int) -> NoReturn:
        """Work through items in this process, just forked, until none is left."""
        with suppress(BaseException):
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
            if os.getppid() != parent:  # it ended before it could be said
                os._exit(1)
            from threadpoolctl import threadpool_limits

            from kdcal_core.blocks import on_one_core

            find_libraries_without_proc()
            _take_half_the_memory()
            with threadpool_limits(1), on_one_core():
                for number in self.mine():
                    result = self._work(self._items[number])
                    pipe.send_bytes(pickle.dumps((number, result), protocol=5))
        os._exit(0)

    def _hear(self, pipe: Connection) -> None:
        with suppress(EOFError, OSError), pipe:
            while True:
                # of this process's own copy, which reads no other file than this process did
                number, result = pickle.loads(pipe.recv_bytes())
                self.results[number] = result


def find_libraries_without_proc() -> None:
    """Let threadpoolctl list libraries in another way where ``/proc/self`` cannot be read.

    A limited process (`kdcal_core.jobs.sandbox`) may read its own entry, which is not that of a
    process that it starts.
    """
    import threadpoolctl

    try:
        Path("/proc/self/maps").open("rb").close()
    except OSError:
        threadpoolctl._HAS_PROCFS = False


def _take_half_the_memory() -> None:
    import resource

    _, hard = resource.getrlimit(memory_limit())
    if hard != resource.RLIM_INFINITY:
        resource.setrlimit(memory_limit(), (hard // 2, hard // 2))
