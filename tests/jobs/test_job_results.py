"""Results by key: stored once, whole, found at once, shared while on their way, deleted by age."""

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.jobs import JobManager, job_key
from kdcal_core.jobs.records import Results

PROBES = "job_probes:"


def leave(manager, text="text", *, key="k", pause=0.0, **more):
    return manager.submit(
        PROBES + "leave", {"text": text, "pause": pause}, title="Leave", key=key, **more
    )


def test_asking_again_is_instant_also_for_another_process(tmp_path):
    manager = JobManager(folder=tmp_path)
    assert manager.find("k") is None
    first = manager.wait(leave(manager), 10)
    assert (first.state, first.result) == ("done", "TEXT")
    assert (first.folder / "a.txt").read_text() == "text"
    for again in (manager, JobManager(folder=tmp_path)):
        start = time.monotonic()
        job = again.get(leave(again))
        assert time.monotonic() - start < 0.1
        assert (job.state, job.result, job.folder) == ("done", "TEXT", first.folder)
        assert again.find("k") == job
        assert again.active() == ()
    assert list(tmp_path.glob("servers/*/work/*")) == []


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "a.txt").unlink(),
        lambda folder: (folder / "a.txt").write_text("tex"),
        lambda folder: shutil.rmtree(folder),
        lambda folder: (folder.parent / "result.json").write_text("[" * 200_000),
        lambda folder: (folder.parent / "result.json").write_text('{"result": "TEXT"}'),
    ],
)
def test_a_result_with_files_that_are_gone_or_cut_off_is_computed_again(tmp_path, harm):
    manager = JobManager(folder=tmp_path)
    before = manager.wait(leave(manager), 20)
    harm(before.folder)
    assert manager.find("k") is None
    after = manager.wait(leave(manager), 20)
    assert after.id != before.id
    assert (after.state, (after.folder / "a.txt").read_text()) == ("done", "text")
    assert manager.find("k") == after
    assert len(list((tmp_path / "results").iterdir())) == 1


def test_a_result_is_forgotten_when_asked_and_what_runs_goes_on(tmp_path):
    manager = JobManager(folder=tmp_path)
    manager.forget("k")
    before = manager.wait(leave(manager), 20)
    (before.folder / "a.txt").write_text("evil")  # as long as it was: nobody sees it from outside
    assert manager.find("k") == before
    for server in (manager, JobManager(folder=tmp_path)):
        server.forget("k")
        assert server.find("k") is None
    running = leave(manager, pause=0.5)
    manager.forget("k")
    after = manager.wait(running, 60)
    assert (after.state, (after.folder / "a.txt").read_text()) == ("done", "text")


def test_a_result_is_of_its_key_alone(tmp_path):
    manager = JobManager(folder=tmp_path)
    jobs = [manager.wait(leave(manager, key, key=key), 10) for key in ("a", "../../b", "c\0")]
    assert [job.result for job in jobs] == ["A", "../../B", "C\0"]
    assert len({job.folder for job in jobs}) == 3
    assert all(job.folder.is_relative_to(tmp_path / "results") for job in jobs)


def test_the_same_key_on_its_way_is_one_job_with_several_owners(tmp_path):
    manager = JobManager(folder=tmp_path, concurrent=1)
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda n: leave(manager, pause=0.5, owner=str(n % 3)), range(16)))
    assert len(set(ids)) == 1
    for owner in "012":
        assert [job.id for job in manager.active(owner)] == ids[:1]
    job = manager.wait(ids[0], 60)
    assert job.state == "done"
    assert sorted([job.owner, *job.others]) == ["0", "1", "2"]
    assert manager.last_ended(["1"]).id == job.id


def test_two_servers_that_compute_the_same_keep_one_result(tmp_path):
    one, two = JobManager(folder=tmp_path), JobManager(folder=tmp_path)
    a, b = leave(one, pause=0.3), leave(two, pause=0.3)
    assert a != b
    for manager, job in ((one, a), (two, b)):
        ended = manager.wait(job, 60)
        assert (ended.state, (ended.folder / "a.txt").read_text()) == ("done", "text")
    assert len(list((tmp_path / "results").iterdir())) == 1
    assert list(tmp_path.glob("servers/*/work/*")) == []


def test_work_of_this_process_is_joined_by_its_key_and_remembered(tmp_path):
    manager = JobManager(folder=tmp_path)
    opened, result = threading.Event(), object()

    def work(progress, cancelled):
        opened.wait(10)
        return result

    ids = {manager.start(work, title="Work", owner=owner, key="w") for owner in "ab"}
    assert len(ids) == 1
    opened.set()
    job = manager.wait(ids.pop(), 10)
    assert (job.result, job.folder, job.others) == (result, None, ("b",))
    assert manager.find("w") == job
    assert manager.start(work, title="Work", key="w") == job.id
    assert JobManager(folder=tmp_path).find("w") is None


def test_a_half_written_result_never_counts(tmp_path):
    manager = JobManager(folder=tmp_path)
    job = leave(manager, pause=30)
    while not list(tmp_path.glob("servers/*/work/*/draft/files/a.txt")):
        time.sleep(0.01)
    manager.cancel(job)
    assert manager.wait(job, 60).state == "cancelled"
    assert manager.find("k").state == "cancelled"
    assert JobManager(folder=tmp_path).find("k") is None
    assert not list(tmp_path.rglob("a.txt"))
    # and the next of this key starts again
    assert manager.wait(leave(manager), 10).result == "TEXT"


def test_failures_are_not_stored(tmp_path):
    manager = JobManager(folder=tmp_path)
    kwargs = {"text": "boom"}
    first = manager.submit(PROBES + "fail", kwargs, title="Fail", key="k")
    assert manager.wait(first, 60).state == "failed"
    assert manager.find("k").id == first
    assert manager.submit(PROBES + "fail", kwargs, title="Fail", key="k") != first


def test_a_job_that_is_being_stopped_is_not_joined(tmp_path):
    manager = JobManager(folder=tmp_path)
    first = manager.submit(PROBES + "ignore", {"seconds": 30}, title="Deaf", key="k")
    while not manager.get(first).note:
        time.sleep(0.01)
    manager.cancel(first)
    second = leave(manager)
    assert second != first
    assert manager.wait(second, 60).state == "done"
    assert manager.wait(first, 60).state == "cancelled"
    assert manager.find("k").result == "TEXT"


def kept(results, key, n_bytes):
    draft = results._root.parent / f"draft-{threading.get_ident()}-{key}"
    results.begin(draft).joinpath("a").write_bytes(b"x" * n_bytes)
    results.keep(key, draft, None)


def test_the_least_recently_used_go_first(tmp_path):
    results = Results(tmp_path / "results", max_bytes=20_000)
    for age, key in enumerate("abc"):
        kept(results, key, 4_000)
        path = results.files(key).parent / "result.json"
        os.utime(path, (time.time() - 1000 + age,) * 2)
    assert results.read("a") is not None  # used again: now the youngest
    kept(results, "d", 15_000)
    assert [key for key in "abcd" if results.read(key)] == ["a", "d"]
    kept(results, "huge", 50_000)  # too large for any limit, but it was asked for
    assert [key for key in ("a", "d", "huge") if results.read(key)] == ["huge"]


def test_a_deleted_result_is_not_found_and_is_computed_again(tmp_path):
    manager = JobManager(folder=tmp_path, result_bytes=1)
    assert manager.wait(leave(manager, key="a"), 10).state == "done"
    assert manager.wait(leave(manager, key="b"), 10).state == "done"
    assert manager.find("a") is None
    assert manager.wait(leave(manager, key="a"), 10).result == "TEXT"


@pytest.mark.parametrize("content", [b"", b"{", b"3", b'{"a": 1}'])
def test_a_damaged_result_is_computed_again(tmp_path, content):
    manager = JobManager(folder=tmp_path)
    folder = manager.wait(leave(manager), 10).folder
    (folder.parent / "result.json").write_bytes(content)
    assert manager.find("k") is None
    job = manager.wait(leave(manager), 10)
    assert (job.state, job.result) == ("done", "TEXT")
    assert (job.folder / "a.txt").read_text() == "text"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)  # fmt: skip
settings = st.dictionaries(st.text(max_size=5), json_values, max_size=4)


@given(settings, st.lists(st.text(), max_size=3))
def test_a_key_depends_on_content_and_not_on_order(kwargs, digests):
    backwards = dict(reversed(kwargs.items()))
    assert job_key("m:f", kwargs, *digests) == job_key("m:f", backwards, *digests)
    assert job_key("m:f", kwargs, *digests) != job_key("m:g", kwargs, *digests)
    assert job_key("m:f", kwargs, *digests) != job_key("m:f", kwargs, *digests, "more")
    assert job_key("m:f", {**kwargs, "another": 1}, *digests) != job_key("m:f", kwargs, *digests)


def test_no_key_of_what_json_cannot_carry():
    with pytest.raises((TypeError, ValueError)):
        job_key("m:f", {"x": float("nan")})
    with pytest.raises(TypeError):
        job_key("m:f", {"x": object()})
