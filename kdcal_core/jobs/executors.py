"""Where the parts of a long computation run: in this process, in local processes, or on a cluster.

Long functions of the core take any ``concurrent.futures`` executor, or None for this process.
`chosen_executor` gives the one that ``KDCAL_SCHEDULER`` names:

========================================  =====================================================
not set, or ``none``                      this process
``processes``, ``processes:4``            local processes, one a core, or so many
``tcp://host:8786``, ``tls://host:8786``  a Dask cluster, which ``pip install 'kdcal[cluster]'``
                                          lets this process use
========================================  =====================================================

The parts and the order in which their results are put together do not depend on it, so neither do
the bytes of a result. Arrays reach workers through a shared folder (`kdcal_core.jobs.parcels`).
A worker that is killed costs the task that it computed, which another process computes again once.

Only the process of a job opens an executor, never a thread of the app, because the client of a
cluster has an event loop of its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kdcal_core.blocks import cores
from kdcal_core.errors import InputError
from kdcal_core.jobs.parcels import Parcel, Reply, pack, value_of_reply
from kdcal_core.jobs.records import default_root
from kdcal_core.store.disk import make_folder

SCHEDULER = "KDCAL_SCHEDULER"
SHARED = "KDCAL_SHARED_FOLDER"
TRIES = 2
"""How often a task is computed if its worker is lost."""
TASK_SECONDS = 6 * 3600.0
_MOST = 1024
_LOCAL = "processes"


class Stoppable(Future[Any]):
    """A future whose `cancel` also stops a task that runs: it then ends with `Cancelled`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def cancel(self) -> bool:
        self.asked.set()
        return super().cancel()


@dataclass(eq=False)
class Call:
    """A submitted call: its parcel, its future, and how often it was begun."""

    parcel: Parcel
    future: Stoppable = field(default_factory=Stoppable)
    tries: int = 0


class Workers(Executor):
    """An executor whose workers get arrays through a folder.

    Attributes
    ----------
    folder : Path
        That all workers see, for this run only.
    n_workers : int
        Tasks that run at once.
    seconds : float
        That one task may take.
    """

    def __init__(self, folder: Path, n_workers: int, seconds: float = TASK_SECONDS) -> None:
        self.folder = folder
        self.n_workers = n_workers
        self.seconds = seconds

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a function of a module, with arguments that can be pickled.

        A worker uses one core. If the function has a parameter ``progress``, it gets a callable,
        which raises `Cancelled` when the future is cancelled.

        Raises
        ------
        InputError
            If the arguments hold rows that are no arrays.
        """
        call = Call(pack((fn, args, kwargs), self.folder))
        self.begin(call)
        return call.future

    @abstractmethod
    def begin(self, call: Call) -> None:
        """Queue a call."""

    def settle(self, call: Call, reply: Reply | BaseException) -> None:
        """End a call's future."""
        future = call.future
        if future.done():
            return
        try:
            value = value_of_reply(reply, self.folder) if isinstance(reply, tuple) else None
            error = None if isinstance(reply, tuple) else reply
        except BaseException as raised:
            value, error = None, raised
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def lost(words: str) -> InputError:
    """The error for a task that lost its worker as often as it may.

    Examples
    --------
    >>> str(lost("killed by signal 9"))[:65]
    'A task lost its worker 2 times (killed by signal 9). Check that t'
    """
    return InputError(
        f"A task lost its worker {TRIES} times ({words})",
        fix="Check that the workers have enough memory, and start again.",
    )


@contextmanager
def chosen_executor(
    scheduler: str | None = None, shared: Path | None = None
) -> Iterator[Workers | None]:
    """The executor that ``KDCAL_SCHEDULER`` names; None for this process.

    Parameters
    ----------
    scheduler : str, optional
        In place of the environment's.
    shared : Path, optional
        A folder that all workers see, in place of ``KDCAL_SHARED_FOLDER``, without which it is
        the folder for temporary files for processes, and the one of kdcal's results for a cluster.

    Raises
    ------
    InputError
        For another name, a number of processes out of range, a scheduler that cannot be reached or
        has no workers, and workers that have other versions or do not see the folder.

    Examples
    --------
    >>> with chosen_executor("none") as executor:
    ...     executor is None
    True
    >>> with chosen_executor("slurm"):
    ...     pass
    Traceback (most recent call last):
    kdcal_core.errors.InputError: KDCAL_SCHEDULER is 'slurm'. Write processes, ...
    """
    name = os.environ.get(SCHEDULER, "") if scheduler is None else scheduler
    kind, _, number = name.strip().partition(":")
    if kind in ("", "none"):
        yield None
    elif kind == _LOCAL:
        from kdcal_core.jobs.local_processes import LocalProcesses

        n = _number(number) if number else cores()
        with _run_folder(shared, None) as folder, LocalProcesses(folder, n) as local:
            yield local
    elif number.startswith("//") and kind in ("tcp", "tls"):
        from kdcal_core.jobs.dask_workers import DaskWorkers

        with (
            _run_folder(shared, default_root() / "shared") as folder,
            DaskWorkers(name.strip(), folder) as remote,
        ):
            yield remote
    else:
        raise InputError(
            f"{SCHEDULER} is {name[:80]!r}",
            fix="Write processes, processes:4 or the address of a Dask scheduler, tcp://HOST:8786.",
        )


def _number(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST:
        return int(text)
    raise InputError(
        f"{SCHEDULER} asks for {text[:20]!r} processes", fix=f"Give a number from 1 to {_MOST:,}."
    )


@contextmanager
def _run_folder(shared: Path | None, default: Path | None) -> Iterator[Path]:
    """A new folder for one run, which is deleted at the end."""
    named = os.environ.get(SHARED)
    root = shared or (Path(named).absolute() if named else default)
    try:
        if root is not None:
            make_folder(root)
        folder = Path(tempfile.mkdtemp(prefix="kdcal-run-", dir=root))
    except OSError as error:
        raise InputError(
            f"The shared folder cannot be written ({error.strerror or error})",
            fix=f"Let {SHARED} name a folder that every machine sees under that name.",
            file=str(root),
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
