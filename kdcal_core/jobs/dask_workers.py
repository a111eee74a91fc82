"""An executor on a Dask cluster. The library is imported here only.

Tasks can get lost between scheduler and workers without an error, and their futures then never end.
So every task that runs sends a sign of life every few seconds; a task whose signs stop, or that no
worker begins, is submitted once more, to another worker if there is one.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as finished
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs.builds import build, require_same_build
from kdcal_core.jobs.executors import SCHEDULER, SHARED, TASK_SECONDS, TRIES, Call, Workers, lost
from kdcal_core.jobs.outcome import Cancelled, too_slow
from kdcal_core.jobs.parcels import Parcel, Reply, pack, reply_to
from kdcal_core.text import listed, printable

CA, CERTIFICATE, KEY = "KDCAL_CLUSTER_CA", "KDCAL_CLUSTER_CERT", "KDCAL_CLUSTER_KEY"
TOPIC = "kdcal"
BEAT = 2.0  # seconds between two signs of life
SILENCE = 300.0  # seconds without one after which a task counts as lost; compilers hold threads up
UNBEGUN = 900.0  # seconds in which no task of this run begins or lives
_CONNECT = 20.0
_LOOK = 0.05


@dataclass(eq=False)
class _Away:
    """A call on the cluster: Dask's future, and what its worker was last heard to do."""

    call: Call
    number: int
    remote: Any = None
    sent: int = 0
    worker: str = ""
    begun: float | None = None
    beaten: float | None = None


class DaskWorkers(Workers):
    """The workers of a Dask scheduler; see `Workers`.

    One thread follows the tasks, and nothing else changes what is known of them.

    Parameters
    ----------
    address : str
        ``tcp://HOST:PORT``, or ``tls://HOST:PORT`` with the files that ``KDCAL_CLUSTER_CA``,
        ``KDCAL_CLUSTER_CERT`` and ``KDCAL_CLUSTER_KEY`` name.
    folder : Path
        Of this run, which every worker sees under the same name.
    seconds : float
        That a task may take from when it begins.
    silence, unbegun : float
        Seconds without a sign of life of a task, or of any task, after which it counts as lost.

    Raises
    ------
    InputError
        If Dask is not installed, the scheduler cannot be reached or has no worker, or workers have
        other versions or do not see the folder.
    """

    def __init__(
        self,
        address: str,
        folder: Path,
        seconds: float = TASK_SECONDS,
        *,
        silence: float = SILENCE,
        unbegun: float = UNBEGUN,
    ) -> None:
        self._client = _client(address)
        try:
            threads = _checked(self._client, folder)
            super().__init__(folder, sum(threads.values()), seconds)
            self._known = set(threads)  # addresses of workers
            self._silence, self._unbegun = silence, unbegun
            self._run = secrets.token_hex(8)
            self._news: SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = SimpleQueue()
            self._away: dict[int, _Away] = {}
            self._futures: set[Future[Any]] = set()
            self._last_news = time.monotonic()
            self._client.subscribe_topic(
                TOPIC, lambda event: self._news.put((self._heard, (event,)))
            )
        except BaseException:
            self._client.close(timeout=_CONNECT)
            raise
        self._submitted = itertools.count(1)
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="kdcal-dask", daemon=True)
        self._watcher.start()

    def begin(self, call: Call) -> None:
        if self._closed.is_set():
            raise RuntimeError("cannot submit to an executor that was shut down")
        self._futures.add(call.future)
        call.future.add_done_callback(self._futures.discard)
        self._news.put((self._begin, (call,)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the submitted tasks, or drop them, and leave the cluster."""
        if self._closed.is_set():
            return
        for future in list(self._futures) if cancel_futures or not wait else ():
            future.cancel()
        finished(list(self._futures))
        self._closed.set()
        self._watcher.join()
        with contextlib.suppress(Exception):
            self._client.unsubscribe_topic(TOPIC)
        self._client.close(timeout=_CONNECT)

    def _watch(self) -> None:
        """The thread that follows the tasks."""
        looked = 0.0
        while not self._closed.is_set():
            try:
                with contextlib.suppress(Empty):
                    act, given = self._news.get(timeout=_LOOK)
                    act(*given)
                if (now := time.monotonic()) - looked > _LOOK:
                    looked = now
                    for away in list(self._away.values()):
                        self._look_at(away, now)
            except Exception as error:  # the folder is gone, say: nobody may wait for ever
                for away in list(self._away.values()):
                    self._away.pop(away.number)
                    self._drop(away)
                    away.call.future.running() or away.call.future.set_running_or_notify_cancel()
                    self.settle(away.call, error)

    def _begin(self, call: Call) -> None:
        away = _Away(call, next(self._submitted))
        if not self._away:
            self._last_news = time.monotonic()
        self._away[away.number] = away
        try:
            self._marker(away).touch()
            self._send(away)
        except Exception as error:
            self._end(away, _failed(error))

    def _marker(self, away: _Away) -> Path:
        """A file that is there as long as somebody waits for the task."""
        return self.folder / f"wanted-{away.number}"

    def _send(self, away: _Away) -> None:
        """Submit the task, after the first time to another worker if there is one."""
        elsewhere = {}
        if away.worker and (others := sorted(self._known - {away.worker})):
            elsewhere = {"workers": others, "allow_other_workers": True}
        away.call.tries += 1
        away.sent += 1
        away.begun = away.beaten = None
        away.remote = self._client.submit(
            run_on_worker,
            away.call.parcel,
            str(self.folder),
            self._marker(away).name,
            (self._run, away.number, away.sent),
            build(),
            key=f"kdcal-{self._run}-{away.number}-{away.sent}",
            pure=False,
            **elsewhere,
        )
        away.remote.add_done_callback(
            lambda remote: self._news.put((self._answered, (away, remote)))
        )

    def _heard(self, event: tuple[float, Any]) -> None:
        """A sign of life of some task, mostly ours."""
        _, sign = event
        if not isinstance(sign, dict) or sign.get("run") != self._run:
            return
        now = self._last_news = time.monotonic()
        away = self._away.get(sign["number"])
        if away is None or away.sent != sign["sent"]:
            return
        if sign["first"]:
            if away.begun is not None:  # its worker died, and Dask gave it to another
                away.call.tries += 1
                if away.call.tries > TRIES:
                    self._end(away, lost(f"the last was {away.worker}"))
                    return
            away.begun = now
            if not away.call.future.running():
                away.call.future.set_running_or_notify_cancel()
        away.beaten, away.worker = now, sign["worker"]
        self._known.add(away.worker)

    def _answered(self, away: _Away, remote: Any) -> None:
        """Dask's future has ended."""
        if remote is not away.remote:
            return
        self._last_news = time.monotonic()
        try:
            if remote.status == "finished":
                self._end(away, remote.result(timeout=_CONNECT))
            elif remote.status == "error":
                self._end(away, _failed(remote.exception(timeout=_CONNECT)))
            else:
                self._again(away, "the scheduler forgot it")
        except Exception as error:  # the answer cannot be fetched
            self._end(away, _failed(error))

    def _look_at(self, away: _Away, now: float) -> None:
        """End a task that nobody wants or that takes too long; send a lost one again."""
        if away.call.future.asked.is_set():
            self._end(away, Cancelled())
        elif self._client.status != "running":
            self._end(away, _no_scheduler("The scheduler ended, and its tasks with it"))
        elif away.begun is not None and now - away.begun > self.seconds:
            self._end(away, too_slow("A task", self.seconds))
        elif away.beaten is not None and now - away.beaten > self._silence:
            self._again(away, f"nothing was heard of {away.worker}")
        elif away.beaten is None and now - self._last_news > self._unbegun:
            self._again(away, "no worker began it")

    def _again(self, away: _Away, words: str) -> None:
        self._drop(away)
        if away.call.tries >= TRIES:
            self._end(away, lost(words))
            return
        self._last_news = time.monotonic()
        try:
            self._send(away)
        except Exception as error:
            self._end(away, _failed(error))

    def _end(self, away: _Away, reply: Reply | BaseException) -> None:
        self._away.pop(away.number, None)
        self._marker(away).unlink(missing_ok=True)
        self._drop(away)
        future = away.call.future
        if future.running() or future.set_running_or_notify_cancel():
            self.settle(away.call, reply)

    def _drop(self, away: _Away) -> None:
        """Forget Dask's future; a task that runs sees that its marker is gone."""
        remote, away.remote = away.remote, None
        if remote is not None:
            remote.release()  # unlike `cancel`, it waits for no answer of the scheduler


def run_on_worker(
    parcel: Parcel,
    folder: str,
    marker: str,
    mark: tuple[str, int, int],
    wanted: Mapping[str, str],
) -> Reply:
    """Run in a worker: a call, with signs of life. It stops once its marker is gone."""
    dask: Any = import_module("distributed")
    os.environ.pop(SCHEDULER, None)  # a worker has no workers
    worker, place = dask.get_worker(), Path(folder)
    run, number, sent = mark
    here = build()
    if here != dict(wanted):  # a worker that came later; the others were asked
        refused: Any = (require_same_build, (dict(wanted), {str(worker.address): here}), {})
        return reply_to(pack(refused, place), place, lambda: False)
    sign = {"run": run, "number": number, "sent": sent, "worker": str(worker.address)}
    with _signs(worker, sign):
        return reply_to(parcel, place, lambda: not (place / marker).exists())


@contextlib.contextmanager
def _signs(worker: Any, sign: Mapping[str, Any]) -> Iterator[None]:
    """Send a sign of life at once and every `BEAT` seconds."""
    over = threading.Event()
    worker.log_event(TOPIC, {**sign, "first": True})

    def beat() -> None:
        while not over.wait(BEAT):
            worker.log_event(TOPIC, {**sign, "first": False})

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def look_around(path: str) -> tuple[dict[str, str], bool]:
    """Run in a worker: its build, and whether it sees a file of the shared folder."""
    return build(), Path(path).is_file()


def _client(address: str) -> Any:
    try:
        dask: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise InputError(
            f"{SCHEDULER} names a cluster, and Dask is not installed ({error.name})",
            fix="Install it: pip install 'kdcal[cluster]'",
        ) from error
    for name in ("distributed", "distributed.client"):  # the second has a level of its own
        logging.getLogger(name).setLevel(logging.CRITICAL)  # our errors say the same
    given: dict[str, Any] = {}
    if address.startswith("tls://"):
        files = {name: os.environ.get(name, "") for name in (CA, CERTIFICATE, KEY)}
        absent = [name for name, path in files.items() if not Path(path).is_file()]
        if absent:
            raise InputError(
                f"The scheduler wants TLS, and {listed(absent)} "
                f"{'name' if len(absent) > 1 else 'names'} no file",
                fix="Let them name the cluster's CA, this client's certificate and its key.",
            )
        given["security"] = dask.Security(
            tls_ca_file=files[CA],
            tls_client_cert=files[CERTIFICATE],
            tls_client_key=files[KEY],
            require_encryption=True,
        )
    try:
        return dask.Client(address, timeout=_CONNECT, set_as_default=False, **given)
    except Exception as error:  # also TLS, a port of something else, another protocol
        raise _no_scheduler(
            f"The scheduler {printable(address, 80)} cannot be reached ({type(error).__name__})",
            f"with a certificate of the authority in {CA}"
            if "security" in given
            else "without TLS, which needs an address that begins with tls://",
        ) from error


def _no_scheduler(what: str, how: str = "") -> InputError:
    runs = "runs there" + (f", {how}" if how else "")
    return InputError(
        what,
        fix=f"Check that 'dask scheduler' {runs}, or leave {SCHEDULER} out to compute here.",
    )


def _checked(client: Any, folder: Path) -> dict[str, int]:
    """How many tasks each worker takes at once; all of them are found fit."""
    threads: dict[str, int] = client.nthreads()
    if not threads:
        raise InputError(
            "The scheduler has no workers", fix="Start some: dask worker ADDRESS --nthreads 1"
        )
    token = folder / "seen"
    token.touch()
    try:
        found = client.run(
            look_around, str(token), on_error="return", callback_timeout=3 * _CONNECT
        )
    except Exception as error:
        raise InputError(
            f"The workers do not answer ({type(error).__name__})", fix="Start them again."
        ) from error
    broken = {name: one for name, one in found.items() if isinstance(one, BaseException)}
    if broken:
        name, fault = next(iter(broken.items()))
        raise InputError(
            f"{len(broken):,} of {len(found):,} workers cannot run kdcal, such as {name} "
            f"({type(fault).__name__}: {printable(str(fault), 200)})",
            fix="Install kdcal there, and start them again.",
        )
    require_same_build(build(), {name: one[0] for name, one in found.items()})
    blind = sorted(name for name, (_, sees) in found.items() if not sees)
    if blind:
        raise InputError(
            f"The workers {listed(blind, 5)} do not see the shared folder",
            fix=f"Let {SHARED} name a folder that every machine sees under that name.",
            file=str(folder),
        )
    return threads


def _failed(error: BaseException | None) -> BaseException:
    """Dask's error for a task, as the house's where a worker or the connection is gone."""
    kind = type(error).__name__
    if kind == "KilledWorker":
        return lost("each died of it")
    if error is None or kind in ("CommClosedError", "CancelledError", "FutureCancelledError"):
        return lost(kind)
    return error
