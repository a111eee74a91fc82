"""One submitted function carried out: a folder to work in, a worker, a stored result.

The worker is a limited process of its own, or one of any ``concurrent.futures`` executor: a pool
of threads or processes, or a cluster.

A worker of an executor has no pipe to this process, only a shared folder: one file in it reports
progress, another asks the worker to stop.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs.outcome import (
    EVERY,
    Cancelled,
    Reporter,
    answer,
    not_kept,
    seconds_of,
    too_slow,
    value_of,
)
from kdcal_core.jobs.records import Records, Results
from kdcal_core.jobs.runner import ASK_GRACE, Malformed, parse, run_limited
from kdcal_core.progress import Progress
from kdcal_core.quotas import Quota
from kdcal_core.store.disk import make_folder, write_json


@dataclass(frozen=True)
class Carrier:
    """Where work is done and where its results go.

    Attributes
    ----------
    records, results
        Folder of this process; store.
    executor : Executor or None
        Whose workers do it; None for a limited process of its own.
    """

    records: Records
    results: Results
    executor: Executor | None

    def carry_out(
        self,
        job_id: str,
        target: str,
        kwargs: Mapping[str, Any],
        *,
        what: str,
        key: str,
        seconds: float | Quota,
        memory_bytes: int | None,
        prepared: str,
        reads: Sequence[str] | None,
        progress: Progress,
        cancelled: Callable[[], bool],
    ) -> Any:
        """The function's result, stored if there is a key.

        Raises
        ------
        InputError, Cancelled
            As `run_limited`, and if the files cannot be written.
        """
        if self.executor is None and not key:  # needs no files, so it works with a full disk
            return run_limited(
                target, kwargs, seconds=seconds, memory_bytes=memory_bytes, progress=progress,
                cancelled=cancelled, what=what,
            )  # fmt: skip
        with self._work_folder(job_id, what) as place:
            draft = place / "draft"
            folder = self.results.begin(draft) if key else None
            if self.executor is None:
                with _temporary(limited=reads is not None) as temporary:
                    result = run_limited(
                        target, kwargs, seconds=seconds, memory_bytes=memory_bytes, folder=folder,
                        progress=progress, cancelled=cancelled, what=what, prepared=prepared,
                        reads=reads or (), temporary=temporary,
                    )  # fmt: skip
            else:
                result = run_on(
                    self.executor, target, kwargs, mailbox=place / "mail", seconds=seconds,
                    folder=folder, progress=progress, cancelled=cancelled, what=what,
                )  # fmt: skip
            if key:
                self.results.keep(key, draft, result)
            return result

    @contextlib.contextmanager
    def _work_folder(self, job_id: str, what: str) -> Iterator[Path]:
        """A path for the files of a running job; the caller creates the folder if it needs it."""
        try:
            folder = self.records.folder() / "work" / job_id
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError as error:
            raise not_kept(what, error.strerror or type(error).__name__) from error


@contextlib.contextmanager
def _temporary(*, limited: bool) -> Iterator[Path | None]:
    """A folder for temporary files of a limited process, with a path short enough for sockets."""
    if not limited:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="kdcal-", ignore_cleanup_errors=True) as made:
        yield Path(made)


_PROGRESS = "progress.json"
_CANCEL = "cancel"
_MAX_BYTES = 64 * 1024


def run_in_worker(target: str, kwargs: Mapping[str, Any], mailbox: str, folder: str | None) -> str:
    """What an executor runs: one function of the core, with a folder for messages.

    Parameters
    ----------
    target, kwargs
        As for `kdcal_core.jobs.run_limited`.
    mailbox : str
        A folder that both processes can access.
    folder : str or None
        Where the function may leave files.

    Returns
    -------
    str
        See `kdcal_core.jobs.outcome.answer`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> run_in_worker("kdcal_core.text:counted", {"n": 3, "noun": "row"}, folder, None)
    '{"result": "3 rows"}'
    """
    box = Path(mailbox)

    def report(share: float, note: str) -> None:
        write_json(box / _PROGRESS, {"progress": share, "note": note})

    with Reporter(report, _Asked(box / _CANCEL)) as progress:
        return answer(target, kwargs, folder, progress)


class _Asked:
    """Whether the file is there, looked up ten times a second at most."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next = 0.0
        self._found = False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self._found and now >= self._next:
            self._next = now + EVERY
            self._found = self._path.exists()
        return self._found


def run_on(
    executor: Executor,
    target: str,
    kwargs: Mapping[str, Any],
    *,
    mailbox: Path,
    folder: Path | None,
    progress: Progress,
    cancelled: Callable[[], bool],
    seconds: float | Quota,
    what: str,
) -> Any:
    """As `kdcal_core.jobs.run_limited`, on this executor.

    A worker of an executor cannot be killed from here: one that does not stop within a second of
    being asked is left running, and its result is discarded.

    Raises
    ------
    InputError, Cancelled
        As `kdcal_core.jobs.run_limited`.
    """
    make_folder(mailbox)
    place = None if folder is None else str(folder)
    try:
        future = executor.submit(run_in_worker, target, dict(kwargs), str(mailbox), place)
        _follow(future, mailbox, progress, cancelled, time.monotonic() + seconds_of(seconds))
        if not future.done():
            raise too_slow(what, seconds)
        message = parse(future.result().encode())
        if "progress" in message:
            raise Malformed("an answer that is not the last")
    except (Cancelled, InputError):
        raise
    except Malformed as fault:
        raise InputError(f"{what} gave {fault}", fix="Start it again.") from fault
    except Exception as error:  # the pool is shut down or broken
        raise InputError(
            f"{what} failed, because its worker is gone ({type(error).__name__})",
            fix="Start it again; if that does not help, check that the workers are running.",
        ) from error
    return value_of(message, what)


def _follow(
    future: Future[str],
    mailbox: Path,
    progress: Progress,
    cancelled: Callable[[], bool],
    deadline: float,
) -> None:
    """Pass progress on until the job is done or out of time. Raises `Cancelled` when asked to."""
    last = b""
    done = False
    while not done and time.monotonic() < deadline:
        done = future.done()  # before the last look at the progress
        if not done and cancelled():
            _stop(future, mailbox)
            raise Cancelled
        news = _read(mailbox / _PROGRESS)
        if news != last:
            last = news
            message = parse(news)
            progress(message["progress"], message["note"])
        if not done:
            time.sleep(EVERY / 2)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES)
    except FileNotFoundError:
        return b""


def _stop(future: Future[str], mailbox: Path) -> None:
    (mailbox / _CANCEL).touch()
    deadline = time.monotonic() + ASK_GRACE
    while not future.cancel() and not future.done() and time.monotonic() < deadline:
        time.sleep(EVERY / 2)
