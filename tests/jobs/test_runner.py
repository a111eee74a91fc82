"""A function in a process of its own: what comes back, and what every way of dying turns into."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled, prepare_workers, run_limited, runner
from kdcal_core.jobs.fork_server import can_fork
from kdcal_core.jobs.outcome import find_target
from kdcal_core.jobs.runner import MAX_BYTES, Malformed, parse

PROBES = "job_probes:"
GIB = 1024**3


@pytest.fixture(params=["started", "forked"], autouse=True, scope="module")
def way(request):
    """Each test is made twice: with workers that start from nothing, and with forked ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_fork_server", None)
        patch.setattr(runner, "prepare_workers", lambda modules: False)
        if request.param == "started":
            yield request.param
        elif not can_fork():
            pytest.skip("workers cannot be forked on this system")
        else:
            assert prepare_workers(["numpy"], seconds=60)
            yield request.param
            runner._fork_server.close()


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not yet reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(condition, seconds=60.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("value", [None, 3, 0.1 + 0.2, "ä\n\0", [1, [2.5, None]], {"a": {}}])
def test_json_comes_back_as_it_went_whatever_libraries_print(value):
    assert run_limited(PROBES + "echo", {"value": value}) == value


def test_start_to_answer_is_quick():
    start = time.monotonic()
    run_limited(PROBES + "echo", {"value": 1})
    assert time.monotonic() - start < 2.0


def test_progress_arrives_in_order_and_ends_at_one():
    seen = []
    run_limited(PROBES + "count", {"n": 5, "pause": 0.15}, progress=lambda *news: seen.append(news))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert len(seen) >= 4
    assert all(note == f"step {round(share * 5)}" for share, note in seen)


def test_cancel_is_obeyed_within_two_seconds_and_kills_the_whole_family(tmp_path):
    pid_file = tmp_path / "pid"
    asked = []

    def cancelled():
        if pid_file.exists() and pid_file.read_text():
            asked.append(time.monotonic())
            return True
        return False

    with pytest.raises(Cancelled):
        run_limited(
            PROBES + "sleep", {"seconds": 60, "pid_file": str(pid_file)}, cancelled=cancelled
        )
    assert time.monotonic() - asked[0] < 2
    assert wait_for(lambda: not alive(int(pid_file.read_text())))


def test_a_raising_progress_ends_the_work_and_is_raised_here():
    class StopRun(BaseException):
        pass

    def stop(share, note):
        raise StopRun(note)

    start = time.monotonic()
    with pytest.raises(StopRun, match="step 1"):
        run_limited(PROBES + "count", {"n": 100, "pause": 0.3}, progress=stop)
    assert time.monotonic() - start < 20  # of 30 that it would take


def test_time_limit():
    start = time.monotonic()
    with pytest.raises(InputError, match=r"^Reading it took longer than 1 second and") as caught:
        run_limited(PROBES + "sleep", {"seconds": 60}, seconds=1, what="Reading it")
    assert time.monotonic() - start < 20  # of 60 that it would take
    assert caught.value.fix


def test_memory_limit():
    with pytest.raises(InputError, match=r"more memory than the 1\.0 GiB"):
        run_limited(PROBES + "allocate", {"n_bytes": 2 * GIB}, memory_bytes=GIB)
    assert run_limited(PROBES + "allocate", {"n_bytes": 2**20}, memory_bytes=GIB) == 2**20


def test_a_crash_is_reported_by_its_name():
    with pytest.raises(InputError, match=r"Reading it crashed \(segmentation fault\)"):
        run_limited(PROBES + "crash", {}, what="Reading it")


def end_workers(how):
    """A progress that ends the workers of this test's process by a signal, and whom it ended."""
    pids = []

    def end(share, note):
        for process in runner._alive:
            pids.append(process.pid)
            os.kill(process.pid, how)

    return end, pids


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_who_ends_a_worker_from_outside_is_not_taken_for_a_lack_of_memory(how):
    end, pids = end_workers(how)
    with pytest.raises(InputError, match=f"ended from outside .*signal {how.value}") as caught:
        run_limited(PROBES + "count", {"n": 50, "pause": 0.1}, progress=end)
    assert len(pids) == 1
    assert "more memory" not in str(caught.value)
    assert re.search(r"held \d+ MiB of the \d", caught.value.fix)


def test_the_system_ends_a_worker_when_memory_runs_out(monkeypatch):
    end, pids = end_workers(signal.SIGKILL)
    monkeypatch.setattr(runner, "ended_for_memory", lambda: len(pids))
    with pytest.raises(InputError, match="ended by the system, which ran out of memory; it held"):
        run_limited(PROBES + "count", {"n": 50, "pause": 0.1}, progress=end)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV])
def test_a_worker_that_dies_at_its_limit_died_of_memory(monkeypatch, how):
    end, _ = end_workers(how)
    monkeypatch.setattr(runner, "peak_bytes", lambda pid: GIB)
    with pytest.raises(InputError, match=r"more memory than the 1\.0 GiB"):
        run_limited(PROBES + "count", {"n": 50, "pause": 0.1}, progress=end, memory_bytes=GIB)


def test_memory_is_what_a_worker_may_write_to_not_the_files_it_maps(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(4 * GIB)
    assert run_limited(PROBES + "map_file", {"path": str(path)}, memory_bytes=GIB) == 4 * GIB


def test_a_trial_ends_what_takes_too_long_or_too_much():
    start = time.monotonic()
    for how, says in (
        ({"busy": 60.0}, r"^The model, tried on 8 rows, took longer than 1 second"),
        ({"n_bytes": GIB}, r"^The model, tried on 8 rows, needed more than 256 MiB of memory"),
    ):
        with pytest.raises(InputError, match=says) as caught:
            run_limited(PROBES + "trial_of", how)
        assert caught.value.fix == "Choose another."
    assert run_limited(PROBES + "trial_of", {"n_bytes": 2**20}) == 2**20
    assert run_limited(PROBES + "trial_of", {"after": GIB}) == GIB  # its limits end with it
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("code", [0, 3])
def test_an_end_without_an_answer(code):
    with pytest.raises(InputError, match=f"ended with code {code}"):
        run_limited(PROBES + "end", {"code": code})


def test_other_exceptions_keep_their_type_and_text():
    with pytest.raises(InputError, match="failed: RuntimeError: boom"):
        run_limited(PROBES + "fail", {"text": "boom"})


@pytest.mark.parametrize(
    "fields",
    [
        {"what": "Wrong", "fix": "Mend it."},
        {"what": "Wrong", "fix": "", "file": "a'<b>.csv", "column": "ä", "row": 7},
    ],
)
def test_input_error_round_trip(fields):
    with pytest.raises(InputError) as caught:
        run_limited(PROBES + "refuse", {"fields": fields})
    assert str(caught.value) == str(InputError(**fields))
    for key, value in fields.items():
        assert getattr(caught.value, key) == value


@pytest.mark.parametrize(
    "line",
    [
        "hello\n",
        "[1]\n",
        '{"result": NaN}\n',
        '{"progress": "x"}\n',
        '{"input_error": {"what": 1}}\n',
        "[" * 100_000 + "\n",
        "9" * 10_000 + "\n",
        "\x00\xff\n",
    ],
)
def test_hostile_output_is_refused(line):
    with pytest.raises(InputError, match=r"gave an (answer|error)"):
        run_limited(PROBES + "shout", {"line": line}, seconds=120)


@pytest.mark.parametrize("line", ["x" * 2**20, '{"progress": 1, "note": "' + "y" * 2**20 + '"}\n'])
def test_too_much_output_is_refused(line):
    times = MAX_BYTES // len(line) + 2
    with pytest.raises(InputError, match="too large"):
        run_limited(PROBES + "shout", {"line": line, "times": times}, seconds=120)


def test_secrets_and_proxies_stay_behind(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("KDCAL_HOME", "/somewhere")
    passwords = ("DATABASE_URL", "SMTP_URL", "WEBHOOK_SECRET", "WEBHOOK_URL")
    for name in passwords:
        monkeypatch.setenv(f"KDCAL_{name}", "secret")
    given_ = run_limited(PROBES + "environment", {})
    assert "secret" not in given_.values()
    assert given_["KDCAL_HOME"] == "/somewhere"
    assert "PATH" in given_
    assert not {"HTTPS_PROXY", "AWS_SECRET_ACCESS_KEY"} & set(given_)
    assert int(given_["OMP_NUM_THREADS"]) >= 1


@pytest.mark.parametrize(
    "target",
    [
        "os:system",
        "kdcal_core:InputError",
        "kdcal_core.jobs.worker:os.system",
        "kdcal_core.jobs.worker:import_module",
        "kdcal_core.jobs.worker:nothing",
        "kdcal_core.jobs.runner:Listener",
        "kdcal_core_evil.x:y",
    ],
)
def test_only_functions_of_the_core_run(target):
    with pytest.raises(ValueError, match="not a function of kdcal_core"):
        find_target(target)


def test_further_modules_run_only_where_the_environment_names_them(monkeypatch):
    assert find_target(PROBES + "add")(1, 2) == 3
    monkeypatch.setenv("KDCAL_TARGETS", "job_probe,probes")
    with pytest.raises(ValueError, match="not a function of kdcal_core"):
        find_target(PROBES + "add")
    monkeypatch.delenv("KDCAL_TARGETS")
    with pytest.raises(ValueError, match="not a function of kdcal_core"):
        find_target(PROBES + "add")


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_malformed(line):
    try:
        message = parse(line)
    except Malformed:
        return
    assert len(set(message) & {"progress", "result", "input_error", "error"}) == 1


@given(st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=400))
def test_progress_is_clamped_and_notes_are_cut(share, note):
    message = parse(json.dumps({"progress": share, "note": note}).encode())
    assert 0 <= message["progress"] <= 1
    assert note.startswith(message["note"])
    assert len(message["note"]) <= 200
