"""Jobs: long work outside the page, a few at a time, the rest in a queue.

Each owner, for example a review, gets its share of the places, however many jobs it asks for
(`Line`). One more place is kept for short work, so that a file can be read while long jobs run.
Jobs of an owner whose pages nobody has open any more are stopped (`JobManager.seen`).
"""

from __future__ import annotations

import atexit
import logging
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs.carrier import Carrier
from kdcal_core.jobs.limits import SHORT_PLACES, grace_seconds, long_places
from kdcal_core.jobs.outcome import Cancelled, failure, unwatched
from kdcal_core.jobs.records import JobSnapshot, Records, Results, default_root, new_id
from kdcal_core.progress import Progress
from kdcal_core.quotas import JOB_TIME, JOBS_OF_USER, Quota


@dataclass(frozen=True)
class Place:
    """A job that is queued or running: its owners, and whether it is short work."""

    job_id: str
    owners: tuple[str, ...]
    short: bool = False


class Line:
    """The jobs that are queued and that run.

    Parameters
    ----------
    long_places : int
        How many long jobs may run at once.
    short_places : int
        How many places there are beside them for short jobs, which may take those of long jobs
        too.

    Examples
    --------
    >>> line = Line(1, 1)
    >>> for place in (Place("a", ("me",)), Place("b", ("me",)), Place("c", ("me",), short=True)):
    ...     line.add(place)
    >>> line.next(), line.next(), line.next(), line.position("b")
    ('c', 'a', None, 1)
    """

    def __init__(self, long_places: int, short_places: int) -> None:
        self._long_places = long_places
        self._all_places = long_places + short_places
        self._queued: dict[str, Place] = {}  # in order of arrival
        self._running: dict[str, Place] = {}
        self._last_turn: dict[str, int] = {}  # of each owner, counted in started jobs
        self._turn = 0
        self._orders: dict[bool, list[Place]] = {}  # of short and of long jobs, while they hold

    def add(self, place: Place) -> None:
        """Add a job to the queue."""
        self._orders.clear()
        self._queued[place.job_id] = place

    def belong(self, job_id: str, owners: tuple[str, ...]) -> None:
        """Replace a job's owners: another one asked for it, or one no longer wants it."""
        self._orders.clear()
        for places in (self._queued, self._running):
            if job_id in places:
                places[job_id] = replace(places[job_id], owners=owners)

    def leave(self, job_id: str) -> None:
        """Remove a job that has ended, or was stopped before it started."""
        self._orders.clear()
        self._queued.pop(job_id, None)
        self._running.pop(job_id, None)

    def next(self) -> str | None:
        """The job that starts now and counts as running from here on; None if there is none.

        Short jobs come first while fewer of them run than there are places kept for them. Each
        owner gets a share of the other places, so that long jobs start even during many uploads.
        """
        if len(self._running) >= self._all_places:
            return None
        n_short = sum(place.short for place in self._running.values())
        order = self._order(short=True)
        if len(self._running) - n_short < self._long_places:
            if not order:
                order = self._order(short=False)
            elif n_short >= self._all_places - self._long_places:
                order = in_turn([*self._queued.values()], self._running.values(), self._last_turn)
        if not order:
            return None
        place = order[0]
        self._orders.clear()
        self._running[place.job_id] = self._queued.pop(place.job_id)
        self._turn += 1
        self._last_turn.update(dict.fromkeys(place.owners, self._turn))
        return place.job_id

    def position(self, job_id: str) -> int:
        """1 for the queued job that starts next of its kind."""
        order = self._order(short=self._queued[job_id].short)
        return [place.job_id for place in order].index(job_id) + 1

    def _order(self, *, short: bool) -> list[Place]:
        if short not in self._orders:  # every waiting page asks for it twice a second
            queued, running = (
                [place for place in places.values() if place.short == short]
                for places in (self._queued, self._running)
            )
            self._orders[short] = in_turn(queued, running, self._last_turn)
        return self._orders[short]


def in_turn(
    queued: Sequence[Place], running: Iterable[Place], last_turn: Mapping[str, int]
) -> list[Place]:
    """The queued jobs in the order in which they start.

    First comes the job of the owner with the fewest running jobs, then of the owner whose last job
    started longest ago, then the job that was queued first. So the second job of a review waits
    while another review has none running, and two reviews with many jobs take turns.

    Parameters
    ----------
    queued : sequence of Place
        In order of arrival.
    running : iterable of Place
        The running jobs.
    last_turn : mapping
        For each owner a number that grows with the time at which a job of theirs last started.

    Examples
    --------
    >>> mine = [Place("a1", ("a",)), Place("a2", ("a",)), Place("a3", ("a",))]
    >>> yours = [Place("b1", ("b",)), Place("b2", ("b",))]
    >>> [place.job_id for place in in_turn([*mine, *yours], [], {})]
    ['a1', 'b1', 'a2', 'b2', 'a3']
    """
    load = Counter(owner for place in running for owner in place.owners)
    turns = dict(last_turn)
    left = list(queued)
    order = []
    while left:
        # a job of several owners starts when the first of them has a turn
        chosen = min(
            left,
            key=lambda place: min((load[one], turns.get(one, -1)) for one in place.owners),
        )
        left.remove(chosen)
        order.append(chosen)
        load.update(chosen.owners)
        now = max(turns.values(), default=0) + 1
        turns.update(dict.fromkeys(chosen.owners, now))
    return order


Work = Callable[[Progress, Callable[[], bool]], Any]

RESULT_BYTES = 4 * 1024**3
_LOOK_EVERY = 10.0  # seconds between searches for jobs that nobody watches
_log = logging.getLogger(__name__)


class JobManager:
    """Runs at most ``concurrent`` long jobs at once, by turns of their owners, and short jobs.

    Parameters
    ----------
    folder : Path, optional
        Where unfinished jobs are recorded and results are stored; a temporary folder by
        default, deleted with the process. Several processes may share one.
    executor : concurrent.futures.Executor, optional
        Runs what is submitted; by default every job gets a process of its own with a limit of
        time and memory. Its workers must see ``folder``.
    concurrent : int, optional
        How many long jobs may run at once; by default `kdcal_core.jobs.limits` says. Short ones
        may take those places too, and one more.
    grace : float, optional
        Seconds that a job goes on after its owner was last seen; by default as there.
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
    >>> rows = {"n": 3, "noun": "row"}
    >>> job = manager.submit("kdcal_core.text:counted", rows, title="Count", key="k")
    >>> manager.wait(job).state, manager.find("k").result
    ('done', '3 rows')
    """

    def __init__(
        self,
        *,
        folder: Path | None = None,
        executor: Executor | None = None,
        concurrent: int | None = None,
        grace: float | None = None,
        keep: int = 100,
        result_bytes: int = RESULT_BYTES,
    ) -> None:
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="kdcal-jobs-")
            folder = Path(self._temporary.name)
        self._records = Records(folder)
        self._results = Results(folder / "results", result_bytes)
        self._carrier = Carrier(self._records, self._results, executor)
        self._grace = grace_seconds() if grace is None else grace
        self._keep = keep
        self._jobs: dict[str, JobSnapshot] = {}
        self._line = Line(long_places() if concurrent is None else concurrent, SHORT_PLACES)
        self._work: dict[str, Work] = {}  # of queued jobs
        self._seen: dict[str, float] = {}  # when each owner was last there
        self._watching = False
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
        seconds: float | Quota = JOB_TIME,
        memory_bytes: int | None = None,
        short: bool = False,
        about: str = "",
        user: str = "",
        prepared: str = "",
        reads: Sequence[str] | None = None,
    ) -> str:
        """Queue a function of the core for a worker; see `run_limited`.

        Parameters
        ----------
        target, kwargs, seconds, memory_bytes
            As for `run_limited`; an executor's workers have no limit of memory.
        title : str
            What is done, for users.
        owner : str
            Whose job it is, for `active`, for example a review's id.
        key : str
            Digest of all that the result depends on (`job_key` makes one). The result is then
            stored under it, with the files that the function leaves in its argument
            ``folder``. Where it is stored already the job is done at once; where it is on its
            way, that job becomes this owner's too.
        short : bool
            Whether somebody waits for it at the page and it takes seconds, as reading a file
            does: then it does not wait for long jobs to end.
        about, user : str
            As of `JobSnapshot`.
        prepared, reads
            As for `run_limited`. The process of a job with ``reads`` and a key reaches no other
            files, and no network; without them, or on an executor, it reaches what the server does.

        Returns
        -------
        str
            The job's id, unguessable.

        Raises
        ------
        InputError
            If the user has as many unfinished jobs as a user may have (`JOBS_OF_USER`).
        """
        with self._changed:
            if known := self._join(key, owner):
                return known
            job = JobSnapshot(
                new_id(), title, owner, submitted=time.time(), key=key, about=about, user=user
            )
            arguments = dict(kwargs)

            def work(progress: Progress, cancelled: Callable[[], bool]) -> Any:
                result = self._carrier.carry_out(
                    job.id, target, arguments, what=title, key=key, seconds=seconds,
                    memory_bytes=memory_bytes, prepared=prepared, reads=reads,
                    progress=progress, cancelled=cancelled,
                )  # fmt: skip
                if key:
                    self._set(job.id, folder=self._results.files(key))
                return result

            return self._add(job, work, short)

    def start(
        self,
        work: Work,
        *,
        title: str,
        owner: str = "",
        key: str = "",
        short: bool = False,
        user: str = "",
    ) -> str:
        """Queue ``work(progress, cancelled)``, a callable that itself runs worker processes.

        Parameters
        ----------
        work : callable
            Runs in a thread here and hands its two arguments on to `run_limited`, or to a step
            of `kdcal_core.review`.
        title, owner, short, user
            As for `submit`.
        key : str
            As for `submit`, but the result may be any object, so that it is remembered in this
            process only, and there are no files.

        Raises
        ------
        InputError
            As for `submit`.
        """
        with self._changed:
            if known := self._join(key, owner):
                return known
            job = JobSnapshot(new_id(), title, owner, submitted=time.time(), key=key, user=user)
            return self._add(job, work, short)

    def get(self, job_id: str) -> JobSnapshot | None:
        """The job as it is now; None if it is unknown, for example because it finished long ago."""
        with self._changed:
            job = self._jobs.get(job_id)
            if job is not None and job.state == "queued":
                return replace(job, queue_position=self._line.position(job_id))
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
        """Delete the stored result of this key, for example a damaged one.

        The next request computes it again. Queued and running jobs continue.
        """
        with self._changed:
            ended = [job.id for job in self._jobs.values() if job.key == key and job.finished]
            for job_id in ended:
                del self._jobs[job_id]
            self._results.delete(key)

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

    def join(self, job_id: str, owner: str) -> None:
        """Make the job this owner's too, if it is queued or running.

        It then continues as long as one of its owners watches it and wants it.
        """
        with self._changed:
            self._arrive(owner)
            job = self._jobs.get(job_id)
            if job is not None and job.state in ("queued", "running"):
                self._belong(job, tuple(dict.fromkeys((*job.owners, owner))))

    def cancel(self, job_id: str, owners: Iterable[str] | None = None) -> None:
        """Stop the job. Nothing happens if it has ended or is unknown.

        Parameters
        ----------
        job_id : str
            The job.
        owners : iterable of str, optional
            Who no longer wants it: a job that somebody else asked for too goes on for them. By
            default it is stopped for all.
        """
        with self._changed:
            job = self._jobs.get(job_id)
            if job is None or job.finished:
                return
            leaving = set(job.owners if owners is None else owners)
            left = tuple(one for one in job.owners if one not in leaving)
            if left:
                self._belong(job, left)
            else:
                self._stop(job_id, None)

    def seen(self, owners: Iterable[str]) -> None:
        """Record that somebody is watching these owners' jobs now.

        Jobs of an owner who was seen once are stopped if the owner is not seen for `grace` seconds;
        a job of several owners continues while one of them is seen. Jobs of an owner who was never
        seen, such as those of a script, continue.
        """
        now = time.monotonic()
        with self._changed:
            self._seen.update(dict.fromkeys(owners, now))
            self._watch()

    def wait(self, job_id: str, seconds: float | None = None) -> JobSnapshot:
        """Block until the job has finished, or ``seconds`` have passed.

        Raises
        ------
        KeyError
            If the job is unknown.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._jobs[job_id].finished, seconds)
            return self._jobs[job_id]

    def _add(self, job: JobSnapshot, work: Work, short: bool) -> str:
        if job.user:
            mine = [one for one in self._jobs.values() if one.user == job.user]
            JOBS_OF_USER.refuse_beyond(
                1 + sum(not one.finished for one in mine),
                "With this one you",
                verb="have",
                where=" that wait or run",
                fix="Wait until one has ended, or stop one.",
            )
        for old in self._records.interrupted():
            if old.belongs_to(job.owner):  # its owner has read it and asks for the next
                self._records.forget(old.id)
        with self._changed:
            self._prune()
            self._arrive(job.owner)
            self._jobs[job.id] = job
            self._work[job.id] = work
            self._line.add(Place(job.id, (job.owner,), short))
            self._record(job)
            self._start_next()
            self._watch()
        return job.id

    def _join(self, key: str, owner: str) -> str:
        """The job of this key that is done or unfinished, now this owner's too; otherwise ""."""
        job = self.find(key) if key else None
        if job is None or job.state not in ("queued", "running", "done"):
            return ""
        self.join(job.id, owner)
        return job.id

    def _belong(self, job: JobSnapshot, owners: tuple[str, ...]) -> None:
        if owners != job.owners:
            self._set(job.id, owner=owners[0], others=owners[1:])
            self._line.belong(job.id, owners)
            self._record(self._jobs[job.id])

    def _arrive(self, owner: str) -> None:
        """Count an owner who asks for a job as seen now."""
        if owner in self._seen:
            self._seen[owner] = time.monotonic()

    def _record(self, job: JobSnapshot) -> None:
        try:
            self._records.begin(job)
        except OSError as error:  # the work matters more than its record
            _log.warning("%s goes on without a record: %s", job.title, error)

    def _set(self, job_id: str, **changes: Any) -> None:
        with self._changed:
            self._jobs[job_id] = replace(self._jobs[job_id], **changes)
            self._changed.notify_all()

    def _end(self, job_id: str, **changes: Any) -> None:
        with self._changed:
            if self._closing:  # it ends with the server, so its record has to stay
                return
            error = self._jobs[job_id].error if changes["state"] == "cancelled" else None
            self._set(job_id, **{"ended": time.time(), "error": error, **changes})
            self._line.leave(job_id)
            self._records.end(job_id)

    def _prune(self) -> None:
        finished = [job_id for job_id, job in self._jobs.items() if job.finished]
        for job_id in finished[: max(0, len(finished) - self._keep)]:
            del self._jobs[job_id]

    def _start_next(self) -> None:
        with self._changed:
            while job_id := self._line.next():
                work = self._work.pop(job_id)
                self._set(job_id, state="running", started=time.time())
                threading.Thread(target=self._run, args=(job_id, work), daemon=True).start()

    def _stop(self, job_id: str, reason: InputError | None) -> None:
        with self._changed:
            job = self._jobs.get(job_id)
            if job is None:
                return
            if job.state == "queued":
                del self._work[job_id]
                self._end(job_id, state="cancelled", error=reason)
            elif job.state == "running":
                self._set(job_id, state="cancelling", error=reason)

    def _watch(self) -> None:
        """Start the thread that stops jobs that nobody watches, if there are unfinished jobs."""
        with self._changed:
            ended = all(job.finished for job in self._jobs.values())
            if self._watching or self._grace == inf or ended:
                return
            self._watching = True
        threading.Thread(target=self._stop_unwatched, daemon=True).start()

    def _stop_unwatched(self) -> None:
        with self._changed:
            while active := [job for job in self._jobs.values() if not job.finished]:
                now = time.monotonic()
                for job in active:
                    last = max(self._seen.get(one, now) for one in job.owners)
                    if now - last > self._grace:
                        self._stop(job.id, unwatched(job.title, self._grace))
                self._changed.wait(min(self._grace / 4, _LOOK_EVERY))
            self._watching = False

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
    """The one job manager of this process, for the current home (`default_root`)."""
    folder = default_root() / "jobs"
    with _making:
        if folder not in _managers:
            _managers[folder] = JobManager(folder=folder)
        return _managers[folder]
