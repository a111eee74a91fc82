"""Jobs on other people's executors, and stopping a job on any backend."""

import itertools
import multiprocessing
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from kdcal_core.jobs import JobManager

PROBES = "job_probes:"


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        yield executor


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(4) as executor:
        yield executor


@pytest.fixture(params=[None, "threads", "processes"])
def manager(request, tmp_path):
    executor = request.getfixturevalue(request.param) if request.param else None
    return JobManager(folder=tmp_path / "jobs", executor=executor)


def test_result_files_and_errors_come_back_from_any_backend(manager, texts):
    job = manager.submit(PROBES + "leave", {"text": "ab", "pause": 0.3}, title="Leave", key="k")
    until(lambda: manager.get(job).note == "writing")
    ended = manager.wait(job, 60)
    assert (ended.state, ended.result, ended.progress) == ("done", "AB", 1.0)
    assert (ended.folder / "a.txt").read_text() == "ab"
    plain = manager.wait(manager.submit(PROBES + "add", {"a": 1, "b": 2}, title="Add"), 20)
    assert plain.result == 3
    fields = {"what": "Wrong", "fix": "Mend it.", "row": 3}
    refused = manager.wait(manager.submit(PROBES + "refuse", {"fields": fields}, title="R"), 20)
    assert (refused.state, refused.error.row, refused.error.fix) == ("failed", 3, "Mend it.")
    failed = manager.wait(manager.submit(PROBES + "fail", {"text": "boom"}, title="Fit"), 20)
    assert failed.error.what == "Fit failed: RuntimeError: boom"
    outside = manager.wait(manager.submit("os:system", {"command": "true"}, title="Fit"), 20)
    texts(outside.error.what)


def test_progress_comes_at_most_ten_times_a_second(manager, monkeypatch):
    news = []
    keep = manager._set
    monkeypatch.setattr(
        manager,
        "_set",
        lambda job_id, **changes: (
            news.append((time.monotonic(), changes.get("note"))), keep(job_id, **changes)
        ),
    )  # fmt: skip
    job = manager.submit(PROBES + "hurry", {"n": 500}, title="Hurry")
    assert manager.wait(job, 60).result == 500
    times = [at for at, note in news if note]
    assert 5 <= len(times) <= 3 + 10 * max(1.0, times[-1] - times[0])
    assert news[-2][1] == "step 499"  # the last word is not swallowed


def test_a_job_is_asked_first_and_may_clean_up(manager, tmp_path):
    left = tmp_path / "left"
    job = manager.submit(PROBES + "tidy", {"path": str(left), "pause": 0.3}, title="Tidy")
    until(lambda: manager.get(job).note == "working")
    start = time.monotonic()
    manager.cancel(job)
    manager.cancel(job)
    assert manager.get(job).state == "cancelling"
    assert manager.wait(job, 60).state == "cancelled"
    assert time.monotonic() - start < 1.3
    assert left.read_text() == "clean"
    assert manager.get(job).error is None


def test_a_job_that_does_not_listen_is_stopped_all_the_same(manager):
    job = manager.submit(PROBES + "ignore", {"seconds": 3}, title="Deaf", key="deaf")
    until(lambda: manager.get(job).note == "deaf")
    start = time.monotonic()
    manager.cancel(job)
    assert manager.wait(job, 60).state == "cancelled"
    assert time.monotonic() - start < 2
    assert manager.find("deaf").state == "cancelled"


def test_time_is_limited_on_any_backend(manager, texts):
    job = manager.submit(PROBES + "ignore", {"seconds": 3}, title="Fitting", seconds=1, key="slow")
    ended = manager.wait(job, 60)
    texts(ended.error.what)
    assert "1 second" in ended.error.what


def test_what_waits_inside_an_executor_never_starts_once_cancelled(tmp_path):
    held = threading.Event()
    with ThreadPoolExecutor(1) as executor:
        executor.submit(held.wait, 60)
        manager = JobManager(folder=tmp_path, executor=executor)
        left = tmp_path / "left"
        job = manager.submit(PROBES + "tidy", {"path": str(left), "pause": 0}, title="Tidy")
        until(lambda: manager.get(job).state == "running")
        manager.cancel(job)
        assert manager.wait(job, 60).state == "cancelled"
        held.set()
    assert not left.exists()


class Broken(Executor):
    """An executor without workers, or with bad ones."""

    def __init__(self, how):
        self.how = how

    def submit(self, fn, /, *args, **kwargs):
        if self.how == "shut":
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = Future()
        if self.how == "lost":
            future.set_exception(BrokenProcessPool("a worker died"))
        else:
            future.set_result(self.how)
        return future


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("shut", "its worker is gone"),
        ("lost", "its worker is gone"),
        ("nonsense", "an answer that is not JSON"),
        ('{"result": NaN}', "an answer that is not JSON"),
        ('{"progress": 1}', "an answer that is not the last"),
    ],
)
def test_a_broken_executor_is_an_error_in_words(tmp_path, how, says):
    manager = JobManager(folder=tmp_path, executor=Broken(how))
    job = manager.wait(manager.submit(PROBES + "add", {"a": 1, "b": 2}, title="Add", key="k"), 10)
    assert job.state == "failed"
    assert says in job.error.what
    assert list(tmp_path.glob("servers/*/work/*")) == []


def test_jobs_in_a_row_keep_their_order_on_an_executor(tmp_path, threads):
    manager = JobManager(folder=tmp_path, executor=threads, concurrent=1)
    ids = [
        manager.submit(PROBES + "leave", {"text": str(n), "pause": 0.1}, title=str(n), key=str(n))
        for n in range(4)
    ]
    assert [manager.get(i).queue_position for i in ids] == [0, 1, 2, 3]
    ended = [manager.wait(i, 60) for i in ids]
    assert [job.result for job in ended] == list("0123")
    starts = [job.started for job in ended]
    assert starts == sorted(starts)
    assert all(a.ended <= b.started for a, b in itertools.pairwise(ended))
