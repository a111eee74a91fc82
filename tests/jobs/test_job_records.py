"""What the disk knows of jobs: records of the living and the dead, hostile and broken files."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

from kdcal_core.jobs import JobManager
from kdcal_core.jobs.records import JobSnapshot, Records, new_id
from kdcal_core.store.disk import try_lock, write_json

PROBES = "job_probes:"


def begin(manager, **more):
    return manager.submit(
        PROBES + "count", {"n": 600, "pause": 0.05}, **{"title": "Count", "owner": "me", **more}
    )


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


SERVER = """
import sys, time
from pathlib import Path
from kdcal_core.jobs import JobManager
manager = JobManager(folder=Path(sys.argv[1]), concurrent=1)
ids = [
    manager.submit(
        "job_probes:count", {"n": 600, "pause": 0.05}, title=title, owner="me", key=key
    )
    for title, key in (("First", "k1"), ("Second", ""))
]
done = manager.start(lambda progress, cancelled: 1, title="Never starts", owner="you")
manager.cancel(done)
while not manager.get(ids[0]).note:
    time.sleep(0.02)
print(*ids, flush=True)
if sys.argv[2] == "leave":
    sys.exit()
time.sleep(60)
"""


def server(folder, how):
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder), how], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().split()


@pytest.mark.parametrize("how", ["kill", "leave"])
def test_the_next_server_calls_the_jobs_of_a_dead_one_interrupted(tmp_path, how):
    process, ids = server(tmp_path, how)
    manager = JobManager(folder=tmp_path)
    if how == "kill":
        # the other server lives: its jobs are not ours to judge
        assert [manager.get(i) for i in ids] == [None, None]
        assert manager.last_ended(["me"]) is None
        process.send_signal(signal.SIGKILL)
    process.wait(20)
    until(lambda: manager.get(ids[0]) is not None)
    for job_id, title in zip(ids, ("First", "Second"), strict=True):
        job = manager.get(job_id)
        assert (job.state, job.title, job.owner, job.finished) == ("interrupted", title, "me", True)
        assert "interrupted" in job.error.what
        assert job.error.fix.startswith("Start it again.")
    assert manager.last_ended(["me"]).state == "interrupted"
    assert manager.last_ended(["you"]) is None
    assert manager.find("k1").id == ids[0]
    assert manager.active() == ()
    manager.cancel(ids[0])  # nothing to stop
    assert list((tmp_path / "servers").iterdir()) == []

    # a third server reads the same, until the owner goes on
    assert JobManager(folder=tmp_path).get(ids[1]).state == "interrupted"
    manager.wait(manager.start(lambda progress, cancelled: 1, title="New", owner="me"), 5)
    assert manager.get(ids[0]) is None
    assert JobManager(folder=tmp_path).get(ids[1]) is None


def test_two_managers_on_one_folder_leave_each_other_alone(tmp_path):
    one, two = JobManager(folder=tmp_path), JobManager(folder=tmp_path)
    a, b = begin(one), begin(two)
    assert one.get(b) is None
    assert two.get(a) is None
    assert one.last_ended(["me"]) is None
    assert (one.get(a).state, two.get(b).state) == ("running", "running")
    for manager, job in ((one, a), (two, b)):
        manager.cancel(job)
        assert manager.wait(job, 60).state == "cancelled"
    assert list(tmp_path.glob("servers/*/*.json")) == []


def test_a_record_lives_as_long_as_its_job(tmp_path):
    manager = JobManager(folder=tmp_path, concurrent=1)
    running, queued = begin(manager), begin(manager, title="Größe <b>")
    paths = sorted(tmp_path.glob("servers/*/*.json"))
    assert sorted(path.stem for path in paths) == sorted([running, queued])
    titles = {json.loads(path.read_text())["title"] for path in paths}
    assert titles == {"Count", "Größe <b>"}
    for job in (queued, running):
        manager.cancel(job)
        manager.wait(job, 60)
    assert list(tmp_path.glob("servers/*/*.json")) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1]",
        b"\xff\xfe",
        b'{"id": "' + b"a" * 22 + b'"}',
        b"[" * 100_000,
        json.dumps(
            {"id": "../../../../../etc/psw", "title": "x", "owners": ["me"], "key": "",
             "submitted": time.time(), "started": None}
        ).encode(),
        json.dumps(
            {"id": "b" * 22, "title": "x", "owners": ["me"], "key": "", "submitted": time.time(),
             "started": None}
        ).encode(),
    ],
)  # fmt: skip
def test_a_damaged_record_is_thrown_away(tmp_path, content):
    good = JobSnapshot(new_id(), "Good", "me", submitted=time.time())
    bad = "a" * 22
    folder = tmp_path / "servers" / "dead"
    folder.mkdir(parents=True)
    (tmp_path / "interrupted").mkdir()
    Records(tmp_path).begin(good)
    written = next(tmp_path.glob("servers/*/*.json"))
    shutil.copy(written, folder)
    (folder / f"{bad}.json").write_bytes(content)
    manager = JobManager(folder=tmp_path)
    assert manager.get(bad) is None
    assert manager.last_ended(["me"]).title == "Good"
    assert not (tmp_path / "interrupted" / f"{bad}.json").exists()


@pytest.mark.parametrize(
    "job_id", ["", ".", "..", "../../etc/passwd", "/etc/passwd", "a/b", "\0", "é" * 22, "x" * 5000]
)
def test_an_id_from_an_address_never_reaches_the_disk(tmp_path, job_id):
    outside = tmp_path / "secret.json"
    outside.write_text("{}")
    manager = JobManager(folder=tmp_path / "jobs")
    manager.wait(begin_and_cancel(manager), 5)
    assert manager.get(job_id) is None
    manager.cancel(job_id)
    Records(tmp_path / "jobs").forget("../../secret")
    assert outside.exists()


def begin_and_cancel(manager):
    job = begin(manager)
    manager.cancel(job)
    return job


def test_old_records_are_forgotten(tmp_path):
    folder = tmp_path / "interrupted"
    folder.mkdir()
    for age, title in ((1, "Young"), (30, "Old")):
        job_id = new_id()
        record = {"id": job_id, "title": title, "owners": ["me"], "key": "", "started": None}
        submitted = time.time() - age * 86_400
        write_json(folder / f"{job_id}.json", {**record, "submitted": submitted})
    assert [job.title for job in Records(tmp_path).interrupted()] == ["Young"]
    assert len(list(folder.iterdir())) == 1


def test_a_folder_that_is_no_folder_costs_the_record_but_not_the_work(tmp_path, texts):
    (tmp_path / "jobs").write_text("a file stands in the way")
    manager = JobManager(folder=tmp_path / "jobs")
    assert manager.last_ended(["me"]) is None
    assert manager.get("unknown") is None
    job = manager.submit(PROBES + "add", {"a": 1, "b": 2}, title="Add")
    assert manager.wait(job, 60).result == 3
    # a result that is to be stored is another matter
    job = manager.wait(manager.submit(PROBES + "add", {"a": 1, "b": 2}, title="Add", key="k"), 10)
    assert job.state == "failed"
    texts(job.error.what)
    assert "KDCAL_HOME" in job.error.fix
    assert manager.find("k").state == "failed"


def test_a_full_disk_is_called_by_its_name(tmp_path, texts):
    manager = JobManager(folder=tmp_path)
    job = manager.wait(manager.submit(PROBES + "fill", {}, title="Fill", key="k"), 10)
    texts(str(job.error))
    assert list(tmp_path.glob("servers/*/work/*")) == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json(path, {"n": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"n": float("nan")})
    monkeypatch.setattr("pathlib.Path.replace", _full)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"n": 2})
    assert json.loads(path.read_bytes()) == {"n": 1}
    assert [child.name for child in tmp_path.iterdir()] == ["a.json"]


def _full(*_):
    raise OSError(28, "No space left on device")


def test_a_lock_ends_with_its_process(tmp_path):
    path = tmp_path / "lock"
    code = f"""
from pathlib import Path
from kdcal_core.store.disk import try_lock
held = try_lock(Path({str(path)!r}))
print("held", flush=True)
import time; time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    assert try_lock(path) is None
    process.kill()
    process.wait()
    lock = try_lock(path)
    assert lock is not None
    lock.close()
