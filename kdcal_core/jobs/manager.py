"""Jobs: long work in threads of this process, a few at a time, the rest in a queue."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

from kdcal_core.errors import InputError
from kdcal_core.jobs.runner import (
    CONCURRENT,
    DEFAULT_MEMORY_BYTES,
    Cancelled,
    Progress,
    run_limited,
)

JobState = Literal["queued", "running", "cancelling", "cancelled", "failed", "done"]
Work = Callable[[Progress, Callable[[], bool]], Any]

_FINISHED = ("cancelled", "failed", "done")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobSnapshot:
    """A job as it was at one moment.

    Attributes
    ----------
    id, title, owner : str
    state : str
        "queued", "running", "cancelling", "cancelled", "failed" or "done".
    progress : float
        Share done, 0 to 1.
    note : str
        What is being done now.
    result : Any
        What the work returned, once done.
    error : InputError or None
        Why it failed.
    queue_position : int
        1 for the job that starts next; 0 once started.
    submitted, started, ended : float or None
        Seconds since the epoch.
    """

    id: str
    title: str
    owner: str
    submitted: float
    state: JobState = "queued"
    progress: float = 0.0
    note: str = ""
    result: Any = None
    error: InputError | None = None
    queue_position: int = 0
    started: float | None = None
    ended: float | None = None

    @property
    def finished(self) -> bool:
        """Whether it will not change any more."""
        return self.state in _FINISHED


class JobManager:
    """Runs at most ``concurrent`` jobs at once, in the order they came.

    Examples
    --------
    >>> manager = JobManager()
    >>> job = manager.start(lambda progress, cancelled: 6 * 7, title="Multiply")
    >>> manager.wait(job).result
    42
    """

    def __init__(self, *, concurrent: int = CONCURRENT, keep: int = 100) -> None:
        self._concurrent = concurrent
        self._keep = keep
        self._jobs: dict[str, JobSnapshot] = {}
        self._queue: dict[str, Work] = {}  # in the order they came
        self._changed = threading.Condition(threading.RLock())

    def submit(
        self,
        target: str,
        kwargs: Mapping[str, Any],
        *,
        title: str,
        owner: str = "",
        seconds: float = 1800,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> str:
        """Queue a function of the core for a process of its own; see `run_limited`.

        Returns
        -------
        str
            The job's id, unguessable.
        """
        work = partial(
            _run, target, dict(kwargs), seconds=seconds, memory_bytes=memory_bytes, what=title
        )
        return self.start(work, title=title, owner=owner)

    def start(self, work: Work, *, title: str, owner: str = "") -> str:
        """Queue ``work(progress, cancelled)``, a callable that itself runs worker processes.

        Parameters
        ----------
        work : callable
            Hands its two arguments on to `run_limited`, or to a step of
            `kdcal_core.review`.
        title : str
            What is done, for people.
        owner : str
            Whose job it is, for `active`: a review's id, say.
        """
        job_id = secrets.token_urlsafe(16)
        with self._changed:
            self._prune()
            self._jobs[job_id] = JobSnapshot(job_id, title, owner, submitted=time.time())
            self._queue[job_id] = work
            self._start_next()
        return job_id

    def get(self, job_id: str) -> JobSnapshot | None:
        """The job as it is now; None where it is unknown: long finished, or of another run."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None and job.state == "queued":
                job = replace(job, queue_position=list(self._queue).index(job_id) + 1)
            return job

    def active(self, owner: str | None = None) -> tuple[JobSnapshot, ...]:
        """The unfinished jobs, of one owner or of all, oldest first."""
        with self._changed:
            found = [self.get(job_id) for job_id in self._jobs]
        return tuple(
            job for job in found if job and not job.finished and owner in (None, job.owner)
        )

    def cancel(self, job_id: str) -> None:
        """Stop the job. Nothing happens where it has ended already or is unknown."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is None:
                return
            if job.state == "queued":
                del self._queue[job_id]
                self._set(job_id, state="cancelled", ended=time.time())
            elif job.state == "running":
                self._set(job_id, state="cancelling")

    def wait(self, job_id: str, seconds: float | None = None) -> JobSnapshot:
        """Block until the job has finished, or ``seconds`` have passed.

        Raises
        ------
        KeyError
            Where the job is unknown.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._jobs[job_id].finished, seconds)
            return self._jobs[job_id]

    def _set(self, job_id: str, **changes: Any) -> None:
        with self._changed:
            self._jobs[job_id] = replace(self._jobs[job_id], **changes)
            self._changed.notify_all()

    def _prune(self) -> None:
        finished = [job_id for job_id, job in self._jobs.items() if job.finished]
        for job_id in finished[: max(0, len(finished) - self._keep)]:
            del self._jobs[job_id]

    def _start_next(self) -> None:
        with self._changed:
            running = sum(job.state in ("running", "cancelling") for job in self._jobs.values())
            if running >= self._concurrent or not self._queue:
                return
            job_id = next(iter(self._queue))
            work = self._queue.pop(job_id)
            self._set(job_id, state="running", started=time.time())
        threading.Thread(target=self._run, args=(job_id, work), daemon=True).start()

    def _run(self, job_id: str, work: Work) -> None:
        def progress(share: float, note: str) -> None:
            self._set(job_id, progress=share, note=note)

        def cancelled() -> bool:
            return self._jobs[job_id].state == "cancelling"

        end: dict[str, Any]
        try:
            end = {"result": work(progress, cancelled), "state": "done", "progress": 1.0}
        except Cancelled:
            end = {"state": "cancelled"}
        except InputError as error:
            end = {"state": "failed", "error": error}
        except Exception as error:
            title = self._jobs[job_id].title
            _log.exception("%s failed", title)
            text = f"{title} failed: {type(error).__name__}: {error}"
            end = {"state": "failed", "error": InputError(text)}
        self._set(job_id, ended=time.time(), **end)
        self._start_next()


def _run(
    target: str,
    kwargs: dict[str, Any],
    progress: Progress,
    cancelled: Callable[[], bool],
    **limits: Any,
) -> Any:
    return run_limited(target, kwargs, progress=progress, cancelled=cancelled, **limits)


@cache
def jobs() -> JobManager:
    """The one job manager of this process."""
    return JobManager()
