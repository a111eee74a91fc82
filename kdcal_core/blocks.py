"""Rows cut into blocks, and blocks or whole items spread over threads or another executor.

Each row's result is computed whole and in one fixed order inside its block, so the number of
threads, blocks or processes changes no byte of it.
"""

from __future__ import annotations

import mmap
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from kdcal_core.progress import Progress, silent

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[Any, int, int], Any]
Write = Callable[[int, int, Any], None]

THREAD_BLOCKS = 2  # for each thread: one running, one waiting
EXECUTOR_BLOCKS = 64  # for an executor whose number of workers is unknown


@dataclass(frozen=True)
class Blocks:
    """How blocks are computed: the work, and the rows it takes at once."""

    work: Work
    rows: int


def run_blocks(
    blocks: Blocks,
    prepare: Callable[[], Any],
    n_rows: int,
    write: Write,
    *,
    note: str,
    progress: Progress | None = None,
    executor: Executor | None = None,
    threads: int | None = None,
) -> None:
    """Call ``write(start, stop, work(prepared, start, stop))`` for every block of the rows.

    Parameters
    ----------
    blocks : Blocks
        Its work is a function of a module, so that another process can find it, and releases
        the GIL.
    prepare : makes what the work needs, mostly arrays; called once, after the first report
    n_rows : int
        Rows to cut into blocks, which may end in any order.
    write : called in this thread
    note : str
        What is being done, in plain words, for ``progress``.
    progress : callable (share, note), optional
        Called in this thread, before the first block and after each; what it raises stops the
        work at once.
    executor : Executor, optional
        Runs the blocks in place of threads. What is prepared goes to its workers through a file,
        in the folder that they share with this process if it has an attribute ``folder``.
    threads : int, optional
        Threads where there is no executor; by default all cores of this process.
    """
    report = progress if progress is not None else silent
    report(0.0 if n_rows else 1.0, note)
    if not n_rows:
        return
    starts = range(0, n_rows, blocks.rows)
    spans = [(start, min(start + blocks.rows, n_rows)) for start in starts]
    done = 0
    with closing(_results(blocks.work, prepare(), spans, executor, threads)) as results:
        for (start, stop), result in results:
            write(start, stop, result)
            done += stop - start
            report(done / n_rows, note)


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """The libraries with threads of their own, found anew once further modules are imported."""
    return ThreadpoolController()


def one_thread(api: Literal["blas", "openmp"]) -> AbstractContextManager[Any]:
    """Let the loaded libraries of this kind use one thread in the body, as `threadpool_limits`.

    Looking for them takes some milliseconds, which a search in few rows would pay each time.

    Examples
    --------
    >>> with one_thread("blas"):
    ...     float(np.ones(3) @ np.ones(3))
    3.0
    """
    libraries = _libraries(len(sys.modules))
    limit: AbstractContextManager[Any] = libraries.limit(limits=1, user_api=api)
    return limit


_here = threading.local()


def cores() -> int:
    """Cores that this thread may use: those of the process, or one if others work beside it."""
    if getattr(_here, "shared", False):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def on_one_core() -> Iterator[None]:
    """Use one core in the body, because other processes use the others.

    Examples
    --------
    >>> with on_one_core():
    ...     cores()
    1
    """
    before = getattr(_here, "shared", False)
    _here.shared = True
    try:
        with one_thread("blas"):
            yield
    finally:
        _here.shared = before


def on_all_cores(
    work: Callable[[T], R],
    items: Sequence[T],
    *,
    note: Callable[[int], str],
    progress: Progress | None = None,
    most: int | None = None,
) -> list[R]:
    """``[work(item) for item in items]``, as many at a time as there are cores.

    Parameters
    ----------
    work : callable
        Releases the GIL most of the time, as NumPy's and compiled functions do.
    items : sequence
    note : callable
        ``(number of the item) -> what is being done``, in plain words, for ``progress``.
    progress : callable (share, note), optional
        Called in this thread; what it raises stops the work after the items under way.
    most : int, optional
        At most so many at a time.

    Examples
    --------
    >>> on_all_cores(abs, [-1, 2, -3], note=str)
    [1, 2, 3]
    """
    report = progress if progress is not None else silent
    found, n = [], most or cores()
    shared = n > 1 or getattr(_here, "shared", False)
    # BLAS has one number of threads for the whole process: who sets it inside restores this one
    with (
        one_thread("blas"),
        ThreadPoolExecutor(
            n, "kdcal-cores", initializer=setattr, initargs=(_here, "shared", shared)
        ) as pool,
    ):
        try:
            here = [copy_context() for _ in items]  # who is quiet here is so there
            results = pool.map(lambda context, item: context.run(work, item), here, items)
            for at in range(len(items)):
                report(at / len(items), note(at))
                found.append(next(results))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def in_flight(executor: Executor, least: int) -> int:
    """How many tasks to have submitted at once: enough for every worker to have one waiting."""
    return max(least, 2 * int(getattr(executor, "n_workers", 0)))


def _results(
    work: Work,
    prepared: Any,
    spans: list[tuple[int, int]],
    executor: Executor | None,
    threads: int | None,
) -> Generator[tuple[tuple[int, int], Any], None, None]:
    if executor is not None:
        shared = getattr(executor, "folder", None)  # that workers on other machines see
        with tempfile.TemporaryDirectory(prefix="kdcal-blocks-", dir=shared) as folder:
            path = Path(folder) / "arrays"
            far = partial(_in_worker, work, str(path), _lay_out(prepared, path))
            yield from _stream(executor, far, spans, in_flight(executor, EXECUTOR_BLOCKS))
        return
    workers = min(threads or cores(), len(spans))
    if workers == 1:
        for span in spans:
            yield span, work(prepared, *span)
        return
    with ThreadPoolExecutor(workers, thread_name_prefix="kdcal-blocks") as pool:
        yield from _stream(pool, partial(work, prepared), spans, THREAD_BLOCKS * workers)


def _stream(
    executor: Executor,
    call: Callable[[int, int], Any],
    spans: list[tuple[int, int]],
    in_flight: int,
) -> Generator[tuple[tuple[int, int], Any], None, None]:
    """Results as they come, with a bounded number of blocks under way."""
    waiting = iter(spans)
    running: dict[Future[Any], tuple[int, int]] = {}
    try:
        while True:
            while len(running) < in_flight and (span := next(waiting, None)) is not None:
                running[executor.submit(call, *span)] = span
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    finally:
        # Reached early when the caller has to stop: nothing may run on after that.
        for future in running:
            future.cancel()
        wait(running)


@dataclass(frozen=True)
class _Place:
    """Where an array lies in the file."""

    start: int
    dtype: str
    shape: tuple[int, ...]
    order: Literal["C", "F"]


def _lay_out(prepared: Any, path: Path) -> Any:
    """Write the arrays of ``prepared`` to one file; return it with their places instead."""
    with path.open("wb") as file:

        def place(array: NDArray[Any]) -> _Place:
            flags = array.flags
            order: Literal["C", "F"] = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
            file.write(bytes(-file.tell() % 64))
            start = file.tell()
            file.write(array.tobytes(order))
            return _Place(start, array.dtype.str, array.shape, order)

        frame = _with(prepared, np.ndarray, place)
        file.write(b"\0")  # a file of no bytes cannot be mapped
    return frame


def _with(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """The same with every part of a kind changed, in dataclasses and tuples however deep."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_with(part, kind, change) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        return replace(value, **{name: _with(part, kind, change) for name, part in parts.items()})
    return value


@lru_cache(maxsize=1)
def _mapped(path: str) -> mmap.mmap:
    """What :func:`_lay_out` wrote: all workers share one copy in memory."""
    with Path(path).open("rb") as file:
        # Private pages, so that the arrays count as writable: read-only ones would make numba
        # compile the kernels a second time.
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _in_worker(work: Work, path: str, frame: Any, start: int, stop: int) -> Any:
    whole = _mapped(path)

    def array(place: _Place) -> NDArray[Any]:
        return np.ndarray(
            place.shape, np.dtype(place.dtype), whole, offset=place.start, order=place.order
        )

    return work(_with(frame, _Place, array), start, stop)
