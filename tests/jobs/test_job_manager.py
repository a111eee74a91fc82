"""Jobs in a queue: their states, their order, their end."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled, JobManager, jobs
from kdcal_core.jobs import run_limited as run

PROBES = "job_probes:"


class Gate:
    """Work that waits until it is let through, and obeys cancel."""

    def __init__(self):
        self.open = threading.Event()
        self.entered = threading.Event()

    def __call__(self, progress, cancelled):
        progress(0.5, "halfway")
        self.entered.set()
        while not self.open.wait(0.01):
            if cancelled():
                raise Cancelled
        return "through"


def test_a_submitted_job_runs_and_keeps_its_result():
    manager = JobManager()
    job_id = manager.submit(PROBES + "echo", {"value": {"a": 1}}, title="Echo", owner="me")
    job = manager.wait(job_id, 60)
    assert (job.state, job.result, job.progress, job.error) == ("done", {"a": 1}, 1.0, None)
    assert job.submitted <= job.started <= job.ended
    assert manager.get(job_id) == job


def test_at_most_two_run_and_the_queue_keeps_its_order():
    manager = JobManager()
    gates = [Gate() for _ in range(4)]
    ids = [manager.start(gate, title="Gate", owner="a") for gate in gates]
    for gate in gates[:2]:
        assert gate.entered.wait(60)
    assert [manager.get(i).state for i in ids] == ["running", "running", "queued", "queued"]
    assert [manager.get(i).queue_position for i in ids] == [0, 0, 1, 2]
    assert manager.get(ids[0]).note == "halfway"
    assert [job.id for job in manager.active("a")] == ids
    assert manager.active("b") == ()

    gates[1].open.set()
    assert gates[2].entered.wait(60)
    assert manager.get(ids[3]).queue_position == 1
    assert not gates[3].entered.is_set()
    for gate in gates:
        gate.open.set()
    assert [manager.wait(i, 60).result for i in ids] == ["through"] * 4
    assert manager.active() == ()


def test_cancel_a_running_job_in_under_two_seconds_and_twice():
    manager = JobManager()
    job_id = manager.submit(PROBES + "count", {"n": 600, "pause": 0.1}, title="Count")
    while not manager.get(job_id).note:
        time.sleep(0.02)
    start = time.monotonic()
    manager.cancel(job_id)
    assert manager.get(job_id).state in ("cancelling", "cancelled")
    manager.cancel(job_id)
    assert manager.wait(job_id, 60).state == "cancelled"
    assert time.monotonic() - start < 2
    manager.cancel(job_id)
    manager.cancel("unknown")
    assert manager.get(job_id).state == "cancelled"


def test_cancel_a_queued_job_and_it_never_runs():
    manager = JobManager(concurrent=1)
    first, second = Gate(), Gate()
    a, b = manager.start(first, title="A"), manager.start(second, title="B")
    manager.cancel(b)
    assert manager.get(b).state == "cancelled"
    first.open.set()
    manager.wait(a, 60)
    time.sleep(0.05)
    assert not second.entered.is_set()


def test_failures_are_input_errors():
    manager = JobManager()

    def refuse(progress, cancelled):
        raise InputError("Wrong", fix="Mend it.", row=3)

    def break_(progress, cancelled):
        raise ZeroDivisionError("zero")

    job = manager.wait(manager.start(refuse, title="Refuse"), 5)
    assert (job.state, job.error.row) == ("failed", 3)
    job = manager.wait(manager.start(break_, title="Break"), 5)
    assert (job.state, str(job.error)) == ("failed", "Break failed: ZeroDivisionError: zero.")


def test_only_the_last_finished_jobs_are_kept():
    manager = JobManager(keep=3)
    gate = Gate()
    held = manager.start(gate, title="Held")
    ids = []
    for n in range(6):
        ids.append(manager.start(lambda progress, cancelled, n=n: n, title=str(n)))
        manager.wait(ids[-1], 60)
    known = [i for i in ids if manager.get(i)]
    assert known == ids[-4:]  # three kept when the last one came, and the last one
    assert manager.get(held).state == "running"
    gate.open.set()


def test_one_manager_a_process():
    assert jobs() is jobs()


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_workers_do_not_outlive_the_app(tmp_path, how):
    pid_file = tmp_path / "pid"
    ending = "" if how == "exit" else "os.kill(os.getpid(), 9)"
    script = f"""
import os, time
from kdcal_core.jobs import jobs
job = jobs().submit({PROBES + "count"!r}, {{"n": 600, "pause": 0.1}}, title="Count")
while not jobs().get(job).note:
    time.sleep(0.02)
pid = [d for d in os.listdir("/proc") if d.isdigit() and int(d) != os.getpid()
       and open(f"/proc/{{d}}/stat").read().rsplit(")", 1)[1].split()[1] == str(os.getpid())
       and "kdcal_core.jobs.worker" in open(f"/proc/{{d}}/cmdline").read()]
open({str(pid_file)!r}, "w").write(pid[-1])
{ending}
"""
    subprocess.run([sys.executable, "-c", script], timeout=30, check=how == "exit")
    pid = int(pid_file.read_text())
    end = time.monotonic() + 60
    while _runs(pid):
        assert time.monotonic() < end
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_room_is_quick_to_import():
    start = time.monotonic()
    code = "import kdcal_core.jobs, sys; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert time.monotonic() - start < 1.5
    assert run(PROBES + "echo", {"value": 1}) == 1
