"""Forked workers: what they share with each other, and what becomes of them and of their server."""

import contextlib
import gc
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kdcal_core.errors import InputError
from kdcal_core.jobs import prepare_workers, run_limited, runner
from kdcal_core.jobs.fork_server import ForkServer, can_fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="workers cannot be forked on this system")
PROBES = "job_probes:"


@pytest.fixture
def server(monkeypatch):
    """The fork server of this test."""
    monkeypatch.setattr(runner, "_fork_server", None)
    monkeypatch.setenv("A_SECRET", "of this process")
    assert prepare_workers(["numpy"], seconds=60)
    yield runner._fork_server
    runner._fork_server.close()


def environment():
    return runner.worker_environment(concurrent=2)


def state(pid):
    """The letter that the system gives a process; None when its number is free."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return None


def open_in(pid):
    """What the process has open, by its number; a file that it closes meanwhile is not open."""
    found = {}
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[int(one.name)] = os.readlink(one)  # noqa: PTH115
    return found


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_worker_finds_the_libraries_imported(server):
    assert run_limited(PROBES + "imported", {"name": "numpy"})
    started = subprocess.run(
        [sys.executable, "-c", "import kdcal_core.jobs, sys; print('numpy' in sys.modules)"],
        capture_output=True,
        check=True,
    )
    assert started.stdout.strip() == b"False"


def test_a_worker_is_a_process_of_its_own_without_files_of_others(server):
    first, second = server.start(environment()), server.start(environment())
    try:
        for worker in (first, second):
            assert os.getsid(worker.pid) == worker.pid
            opened = open_in(worker.pid)
            assert sorted(opened)[:3] == [0, 1, 2]
            # what is open besides: the pipe that was standard output, and nothing of the others
            targets = set(opened.values())
            importing = {one for one in targets if one.endswith((".so", ".py", ".pyc"))}
            assert len(targets - importing) <= 3
            assert not [one for one in targets if one.startswith(("socket:", "anon_inode:"))]
            assert b"A_SECRET" not in Path(f"/proc/{worker.pid}/environ").read_bytes()
        assert first.pid != second.pid
    finally:
        for worker in (first, second):
            worker.kill()
            assert worker.wait(30) == -9
            worker.release()


def test_the_number_of_an_ended_worker_is_kept_until_it_is_released(server):
    worker = server.start(environment())
    worker.stdin.close()  # it ends when its owner is gone
    assert worker.wait(30) != 0
    assert state(worker.pid) == "Z"
    worker.release()
    until(lambda: state(worker.pid) is None)


def test_many_at_once_leave_nothing_behind(server):
    def children():
        return Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()

    gc.collect()  # what earlier tests left open would be closed later, and counted as ours
    open_here = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    workers = [server.start(environment()) for _ in range(20)]
    assert len({worker.pid for worker in workers}) == 20
    for worker in workers:
        worker.kill()
        worker.wait(30)
        for pipe in (worker.stdin, worker.stdout, worker.stderr):
            pipe.close()
        worker.release()
    until(lambda: not children())
    assert len(os.listdir("/proc/self/fd")) == open_here  # noqa: PTH208


def test_workers_start_from_nothing_where_the_fork_server_died(server):
    server.process.kill()
    server.process.wait()
    assert run_limited(PROBES + "echo", {"value": 1}) == 1


def test_a_job_ends_with_an_error_where_the_fork_server_dies_over_it(server):
    def end_both(share, note):
        server.process.kill()
        for process in runner._alive:
            process.kill()

    with pytest.raises(InputError, match="ended from outside"):
        run_limited(PROBES + "count", {"n": 50, "pause": 0.1}, progress=end_both)


def test_a_module_that_cannot_be_imported_leaves_workers_as_they_were(capfd):
    server = ForkServer(["no_such_module"], environment())
    assert not server.wait(60)
    assert server.start(environment()) is None
    server.process.wait(30)
    assert "no_such_module" in capfd.readouterr().err


def test_the_fork_server_ends_with_its_owner(server):
    server._socket.shutdown(socket.SHUT_RDWR)
    until(lambda: server.process.poll() is not None)
