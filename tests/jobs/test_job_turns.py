"""Whose turn it is: shares of the places, room for short work, and jobs that nobody watches."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from texts.snapshot import Texts

from kdcal_core import memory
from kdcal_core.jobs import Cancelled, JobManager, limits
from kdcal_core.jobs.manager import Line, Place


class Gate:
    """Work that waits until it is let through, and obeys cancel."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def __call__(self, progress: object, cancelled: object) -> None:
        while not self.open.wait(0.01):
            if cancelled():  # type: ignore[operator]
                raise Cancelled


@pytest.fixture
def gates() -> Iterator[list[Gate]]:
    made = [Gate() for _ in range(6)]
    yield made
    for gate in made:
        gate.open.set()


def test_the_second_job_of_a_review_waits_while_another_has_none_running(
    gates: list[Gate],
) -> None:
    manager = JobManager(concurrent=2)
    mine = [manager.start(gate, title="Mine", owner="a") for gate in gates[:4]]
    yours = manager.start(gates[4], title="Yours", owner="b")
    assert [manager.get(one).state for one in mine[:2]] == ["running", "running"]
    # before jobs that came earlier, and said so
    assert [manager.get(one).queue_position for one in (yours, *mine[2:])] == [1, 2, 3]
    gates[0].open.set()
    manager.wait(mine[0], 60)
    assert wait_until(lambda: manager.get(yours).state == "running")
    assert [manager.get(one).state for one in mine[1:]] == ["running", "queued", "queued"]


def test_an_upload_is_read_while_long_jobs_run_and_wait(gates: list[Gate]) -> None:
    manager = JobManager(concurrent=2)
    long = [manager.start(gate, title="Fit", owner="a") for gate in gates[:3]]
    read = manager.start(gates[3], title="Read", owner="b", short=True)
    assert manager.get(read).state == "running"
    second = manager.start(gates[4], title="Read", owner="b", short=True)
    # of its own kind it is the next
    assert (manager.get(second).state, manager.get(second).queue_position) == ("queued", 1)
    gates[3].open.set()
    manager.wait(read, 60)
    assert wait_until(lambda: manager.get(second).state == "running")
    assert manager.get(long[2]).state == "queued"


def test_short_jobs_take_every_place_that_is_free_and_long_ones_leave_theirs() -> None:
    line = Line(2, 1)
    for number in range(4):
        line.add(Place(f"short{number}", ("a",), short=True))
    assert [line.next() for _ in range(4)] == ["short0", "short1", "short2", None]
    line.leave("short0")
    line.add(Place("long", ("a",)))
    assert line.next() == "short3"
    line.leave("short1")
    assert line.next() == "long"


def test_a_job_of_two_owners_comes_when_the_first_of_them_has_a_turn() -> None:
    line = Line(1, 0)
    for name, owner in (("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")):
        line.add(Place(name, (owner,)))
    assert line.next() == "a1"
    line.belong("a3", ("a", "c"))
    started = []
    for running in ("a1", "a3", "b1"):
        line.leave(running)
        started.append(line.next())
    assert started == ["a3", "b1", "a2"]


def test_an_endless_row_of_uploads_holds_up_no_long_job() -> None:
    line = Line(2, 1)
    for number in range(50):
        line.add(Place(f"short{number}", ("uploads",), short=True))
    line.add(Place("long", ("a",)))
    running, started = [], []
    for _ in range(10):
        while job := line.next():
            running.append(job)
            started.append(job)
        line.leave(running.pop(0))
    assert "long" in started


def test_many_waiting_jobs_are_listed_at_once() -> None:
    """Every page that waits asks for them twice a second: it took 2.6 seconds for 120."""
    go_on = threading.Event()
    manager = JobManager(concurrent=1)
    for number in range(150):
        manager.start(lambda *_: go_on.wait(), title="Fit", owner=str(number % 30))
    start = time.perf_counter()
    listed = manager.active()
    seconds = time.perf_counter() - start
    for job in listed:
        manager.cancel(job.id)
    go_on.set()
    assert [job.queue_position for job in listed[:3]] == [0, 1, 2]
    assert seconds < 1.0


def test_who_stops_a_shared_job_stops_it_for_nobody_else(gates: list[Gate]) -> None:
    manager = JobManager(concurrent=1)
    first = manager.start(gates[0], title="Fit", owner="a", key="k")
    queued = manager.start(gates[1], title="Map", owner="a", key="m")
    for key, job in (("k", first), ("m", queued)):
        assert manager.start(gates[0], title="", owner="b", key=key) == job
        manager.cancel(job, ["a"])
        assert manager.get(job).owners == ("b",)
        manager.cancel(job, ["a"])  # whose it no longer is
    assert [manager.get(job).state for job in (first, queued)] == ["running", "queued"]
    manager.cancel(queued, ["b"])
    assert manager.get(queued).state == "cancelled"
    manager.cancel(first, ["", "b"])
    assert manager.wait(first, 60).state == "cancelled"


def test_who_follows_a_job_has_it_too(gates: list[Gate]) -> None:
    manager = JobManager()
    job = manager.start(gates[0], title="Fit", owner="a", key="k")
    for _ in range(2):
        manager.join(job, "b")
    assert manager.get(job).owners == ("a", "b")
    gates[0].open.set()
    manager.wait(job, 60)
    manager.join(job, "late")
    manager.join("unknown", "b")
    assert manager.get(job).owners == ("a", "b")


def test_who_comes_back_and_starts_a_job_is_there(gates: list[Gate]) -> None:
    manager = JobManager(grace=1.0)
    manager.seen(["a", "b"])
    time.sleep(1.1)
    job = manager.start(gates[0], title="Fit", owner="a", key="k")
    time.sleep(0.6)
    assert manager.get(job).state == "running"
    manager.start(gates[0], title="Fit", owner="b", key="k")
    time.sleep(0.6)
    assert manager.get(job).state == "running"


def wait_until(condition, seconds: float = 60.0) -> bool:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_jobs_that_nobody_watches_are_stopped_and_say_why(gates: list[Gate], texts: Texts) -> None:
    manager = JobManager(concurrent=1, grace=0.2)
    manager.seen(["gone", "there"])
    running = manager.start(gates[0], title="Fit", owner="gone")
    queued = manager.start(gates[1], title="Map", owner="gone")
    watched = manager.start(gates[2], title="Compare", owner="there")

    def still_there() -> bool:
        manager.seen(["there"])
        return manager.get(running).finished and manager.get(queued).finished

    assert wait_until(still_there)
    for job, title in ((running, "Fit"), (queued, "Map")):
        ended = manager.get(job)
        assert ended.state == "cancelled"
        assert ended.error is not None
        texts(ended.error.what, title)
        assert "Start it again" in ended.error.fix
    for _ in range(20):
        manager.seen(["there"])
        time.sleep(0.02)
    assert manager.get(watched).state == "running"
    assert manager.last_ended(["gone"]).error is not None


def test_a_job_goes_on_while_one_of_its_owners_is_there(gates: list[Gate]) -> None:
    manager = JobManager(grace=0.2)
    manager.seen(["gone", "there"])
    job = manager.start(gates[0], title="Fit", owner="gone", key="k")
    assert manager.start(gates[0], title="Fit", owner="there", key="k") == job
    for _ in range(30):
        manager.seen(["there"])
        time.sleep(0.02)
    assert manager.get(job).state == "running"
    assert wait_until(lambda: manager.get(job).finished)


def test_what_a_script_starts_needs_nobody_to_watch_it(gates: list[Gate]) -> None:
    manager = JobManager(grace=0.05)
    manager.seen(["somebody"])
    job = manager.start(gates[0], title="Fit", owner="script")
    time.sleep(0.3)
    assert manager.get(job).state == "running"


def test_who_presses_stop_needs_no_reason(gates: list[Gate]) -> None:
    manager = JobManager(grace=60)
    manager.seen(["a"])
    job = manager.start(gates[0], title="Fit", owner="a")
    manager.cancel(job)
    assert manager.wait(job, 60).error is None


def test_limits_follow_the_machine_and_its_container(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("machine")
    proc, groups = root / "proc", root / "groups"
    (proc / "self").mkdir(parents=True)
    (groups / "memory" / "box").mkdir(parents=True)
    (proc / "meminfo").write_text(f"MemTotal: {32 << 20} kB\nMemAvailable: {30 << 20} kB\n")
    (proc / "vmstat").write_text("oom_kill 2\n")
    (proc / "self" / "cgroup").write_text("4:memory:/box\n0::/\n")
    (groups / "memory" / "memory.limit_in_bytes").write_text(str(2**63 - 4096))
    monkeypatch.setattr(memory, "_PROC", proc)
    monkeypatch.setattr(memory, "_GROUPS", groups)
    assert memory.total_bytes() == 32 << 30
    assert limits.worker_bytes() == 8 << 30  # three quarters for three places
    box = groups / "memory" / "box"
    (box / "memory.limit_in_bytes").write_text(str(8 << 30))
    (box / "memory.usage_in_bytes").write_text(str(3 << 30))
    (box / "memory.stat").write_text(f"cache 7\ntotal_inactive_file {1 << 30}\n")
    (box / "memory.oom_control").write_text("under_oom 0\noom_kill 3\n")
    assert memory.total_bytes() == 8 << 30
    assert memory.available_bytes() == 6 << 30
    assert memory.ended_for_memory() == 5
    assert limits.worker_bytes() == 2 << 30
    (proc / "self" / "cgroup").write_text("0::/box\n")  # the second version of control groups
    (groups / "box").mkdir()
    (groups / "memory.max").write_text("max\n")
    (groups / "box" / "memory.max").write_text(str(4 << 30))
    (groups / "box" / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert memory.total_bytes() == 4 << 30
    assert memory.ended_for_memory() == 3
    assert limits.worker_bytes() == 1 << 30


@pytest.mark.parametrize(
    ("name", "value", "ask", "expected"),
    [
        ("KDCAL_JOBS", "5", limits.long_places, 5),
        ("KDCAL_WORKER_GIB", "3.5", limits.worker_bytes, int(3.5 * 2**30)),
        ("KDCAL_GRACE_MINUTES", "2", limits.grace_seconds, 120),
        ("KDCAL_GRACE_MINUTES", "0", limits.grace_seconds, float("inf")),
    ],
)
def test_limits_can_be_set(monkeypatch: pytest.MonkeyPatch, name, value, ask, expected) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv(name, value)
    assert ask() == expected
