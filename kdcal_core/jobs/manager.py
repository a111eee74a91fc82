"""Jobs: long work outside the page, a few at a time, the rest in a queue."""

from __future__ import annotations

import atexit
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs.cancel import Cancelled
from kdcal_core.jobs.carrier import Carrier
from kdcal_core.jobs.home import default_root
from kdcal_core.jobs.outcome import failure
from kdcal_core.jobs.records import Records, new_id
from kdcal_core.jobs.results import Results
from kdcal_core.jobs.runner import CONCURRENT, DEFAULT_MEMORY_BYTES, Progress
from kdcal_core.jobs.snapshot import JobSnapshot

Work = Callable[[Progress, Callable[[], bool]], Any]

RESULT_BYTES = 4 * 1024**3
_log = logging.getLogger(__name__)


class JobManager:
    """Runs at most ``concurrent`` jobs at once, in the order they came.

    Parameters
    ----------
    folder : Path, optional
        Where unfinished jobs are recorded and results are stored; a temporary folder by
        default, gone with the process. Several processes may share one.
    executor : concurrent.futures.Executor, optional
        Runs what is submitted; by default every job gets a process of its own with a limit of
        time and memory. Its workers must see ``folder``.
    concurrent : int
        How many jobs may run at once.
    keep : int
        How many finished jobs are remembered.
    result_bytes : int
        How much disk stored results may take before the least recently used are deleted.

    Examples
    --------
    >>> manager = JobManager()
    >>> job = manager.start(lambda progress, cancelled: 6 * 7, title="Multiply")
    >>> manager.wait(job).result
    42
    >>> job = manager.submit("kdcal_core.jobs._probes:echo", {"value": 3}, title="Echo", key="k")
    >>> manager.wait(job).state, manager.find("k").result
    ('done', 3)
    """

    def __init__(
        self,
        *,
        folder: Path | None = None,
        executor: Executor | None = None,
        concurrent: int = CONCURRENT,
        keep: int = 100,
        result_bytes: int = RESULT_BYTES,
    ) -> None:
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="kdcal-jobs-")
            folder = Path(self._temporary.name)
        self._records = Records(folder)
        self._results = Results(folder / "results", result_bytes)
        self._carrier = Carrier(self._records, self._results, executor)
        self._concurrent = concurrent
        self._keep = keep
        self._jobs: dict[str, JobSnapshot] = {}
        self._queue: dict[str, Work] = {}  # in the order they came
        self._changed = threading.Condition(threading.RLock())
        self._closing = False
        atexit.register(self._close)

    def submit(
        self,
        target: str,
        kwargs: Mapping[str, Any],
        *,
        title: str,
        owner: str = "",
        key: str = "",
        seconds: float = 1800,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
    ) -> str:
        """Queue a function of the core for a worker; see `run_limited`.

        Parameters
        ----------
        target, kwargs, seconds, memory_bytes
            As for `run_limited`; an executor's workers have no limit of memory.
        title : str
            What is done, for people.
        owner : str
            Whose job it is, for `active`: a review's id, say.
        key : str
            Digest of all that the result depends on (`job_key` makes one). The result is then
            stored under it, with the files that the function leaves in its argument
            ``folder``. Where it is stored already the job is done at once; where it is on its
            way, that job becomes this owner's too.

        Returns
        -------
        str
            The job's id, unguessable.
        """
        with self._changed:
            if known := self._join(key, owner):
                return known
            job = JobSnapshot(new_id(), title, owner, submitted=time.time(), key=key)
            arguments = dict(kwargs)

            def work(progress: Progress, cancelled: Callable[[], bool]) -> Any:
                result = self._carrier.carry_out(
                    job.id, target, arguments, what=title, key=key, seconds=seconds,
                    memory_bytes=memory_bytes, progress=progress, cancelled=cancelled,
                )  # fmt: skip
                if key:
                    self._set(job.id, folder=self._results.files(key))
                return result

            return self._add(job, work)

    def start(self, work: Work, *, title: str, owner: str = "", key: str = "") -> str:
        """Queue ``work(progress, cancelled)``, a callable that itself runs worker processes.

        Parameters
        ----------
        work : callable
            Runs in a thread here and hands its two arguments on to `run_limited`, or to a step
            of `kdcal_core.review`.
        title, owner : str
            As for `submit`.
        key : str
            As for `submit`, but the result may be any object, so that it is remembered in this
            process only, and there are no files.
        """
        with self._changed:
            if known := self._join(key, owner):
                return known
            job = JobSnapshot(new_id(), title, owner, submitted=time.time(), key=key)
            return self._add(job, work)

    def get(self, job_id: str) -> JobSnapshot | None:
        """The job as it is now; None where it is unknown, because it finished long ago, say."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None and job.state == "queued":
                return replace(job, queue_position=list(self._queue).index(job_id) + 1)
        return job or next((j for j in self._records.interrupted() if j.id == job_id), None)

    def find(self, key: str) -> JobSnapshot | None:
        """The newest job of this key, or its stored result as a job that is done.

        Starts nothing. None where nothing is known of it: it was never asked for, or its result
        was deleted to make room.
        """
        with self._changed:
            job = next((j for j in reversed(self._jobs.values()) if j.key == key), None)
            if job is not None and (job.state != "done" or job.folder is None):
                return self.get(job.id)
            stored = self._results.read(key)
            if stored is None:
                interrupted = reversed(self._records.interrupted())
                return next((j for j in interrupted if j.key == key), None)
            if job is None:
                job = JobSnapshot(
                    new_id(), "", "", time.time(), state="done", progress=1.0, key=key,
                    result=stored["result"], folder=self._results.files(key), ended=time.time(),
                )  # fmt: skip
                self._jobs[job.id] = job
            return job

    def forget(self, key: str) -> None:
        """Delete the stored result of this key, because it is damaged, say; to ask computes anew.

        What is queued or running goes on.
        """
        with self._changed:
            ended = [job.id for job in self._jobs.values() if job.key == key and job.finished]
            for job_id in ended:
                del self._jobs[job_id]
            self._results.delete(key)

    def result_folder(self, key: str) -> Path:
        """Where the files of the result stored under this key are.

        Raises
        ------
        InputError
            Where nothing is stored under it (any more).
        """
        return self._results.folder(key)

    def active(self, owner: str | None = None) -> tuple[JobSnapshot, ...]:
        """The unfinished jobs, of one owner or of all, oldest first."""
        with self._changed:
            found = [self.get(job.id) for job in self._jobs.values() if not job.finished]
        return tuple(job for job in found if job and (owner is None or job.belongs_to(owner)))

    def last_ended(self, owners: Iterable[str]) -> JobSnapshot | None:
        """The job of these owners that ended last, interrupted ones included."""
        chosen = tuple(owners)
        with self._changed:
            ended = [job for job in self._jobs.values() if job.finished and job.started]
        ended += self._records.interrupted()
        mine = [job for job in ended if any(map(job.belongs_to, chosen))]
        return max(mine, key=lambda job: job.ended or 0.0, default=None)

    def cancel(self, job_id: str) -> None:
        """Stop the job. Nothing happens where it has ended already or is unknown."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is None:
                return
            if job.state == "queued":
                del self._queue[job_id]
                self._end(job_id, state="cancelled")
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

    def _add(self, job: JobSnapshot, work: Work) -> str:
        for old in self._records.interrupted():
            if old.belongs_to(job.owner):  # they have read it, and go on
                self._records.forget(old.id)
        with self._changed:
            self._prune()
            self._jobs[job.id] = job
            self._queue[job.id] = work
            self._record(job)
            self._start_next()
        return job.id

    def _join(self, key: str, owner: str) -> str:
        """The job of this key that is done or on its way, now this owner's too; else ""."""
        job = self.find(key) if key else None
        if job is None or job.state not in ("queued", "running", "done"):
            return ""
        if not job.finished and not job.belongs_to(owner):
            self._set(job.id, others=(*job.others, owner))
            self._record(self._jobs[job.id])
        return job.id

    def _record(self, job: JobSnapshot) -> None:
        try:
            self._records.begin(job)
        except OSError as error:  # the work matters more than the note of it
            _log.warning("%s goes on without a record: %s", job.title, error)

    def _set(self, job_id: str, **changes: Any) -> None:
        with self._changed:
            self._jobs[job_id] = replace(self._jobs[job_id], **changes)
            self._changed.notify_all()

    def _end(self, job_id: str, **changes: Any) -> None:
        with self._changed:
            if self._closing:  # killed with the server: its record has to stay
                return
            self._set(job_id, ended=time.time(), **changes)
            self._records.end(job_id)

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

        title = self._jobs[job_id].title
        end: dict[str, Any]
        try:
            end = {"result": work(progress, cancelled), "state": "done", "progress": 1.0}
        except Cancelled:
            end = {"state": "cancelled"}
        except InputError as error:
            end = {"state": "failed", "error": error}
        except Exception as error:
            _log.exception("%s failed", title)
            reason = f"{type(error).__name__}: {error}"
            end = {"state": "failed", "error": failure(title, reason)}
        self._end(job_id, **end)
        self._start_next()

    def _close(self) -> None:
        with self._changed:
            self._closing = True


_managers: dict[Path, JobManager] = {}
_making = threading.Lock()


def jobs() -> JobManager:
    """The one job manager of this process, for the home that is in force (`default_root`)."""
    folder = default_root() / "jobs"
    with _making:
        if folder not in _managers:
            _managers[folder] = JobManager(folder=folder)
        return _managers[folder]
