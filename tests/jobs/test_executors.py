"""Tasks on local processes and on a Dask cluster: real processes, killed, frozen and cancelled."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import wait
from pathlib import Path

import job_probes as probes
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdcal_core.data import Roles, ScoredSet
from kdcal_core.diagnostics.summaries import summarise
from kdcal_core.errors import InputError
from kdcal_core.evaluation import held_out_answers, methods_of
from kdcal_core.jobs import Cancelled, JobManager, builds, dask_workers, local_processes, parcels
from kdcal_core.jobs.dask_workers import DaskWorkers
from kdcal_core.jobs.executors import SCHEDULER, SHARED, chosen_executor
from kdcal_core.jobs.local_processes import LocalProcesses
from kdcal_core.jobs.parcels import pack, unpack
from kdcal_core.partition import LeafCodes, class_masses, find_polytopes
from kdcal_core.review import ReviewData
from kdcal_core.review.folder_summary import FolderSize, summary_of_folder

LONG = 300.0  # seconds that a loaded machine may take to import the libraries
# `python -m dask`, whose workers are forked from one process that has imported what they need, as
# those of this machine are: tests end workers, and each new one would import everything again.
DASK = f"""
from dask.__main__ import main
from distributed.utils import get_mp_context
context = get_mp_context()
context.set_forkserver_preload(["distributed", *{local_processes._IMPORTED}])
main()
"""
# Dask looks at its own health 50 times a second and at what its workers do 100 times.
QUIET = {
    "DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "forkserver",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}


def until(condition, seconds=LONG):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def until_both_work(executor):
    """Wait until workers that were killed are there again."""
    if isinstance(executor, DaskWorkers):
        until(lambda: len(executor._client.nthreads()) == 2)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a scheduler with two workers, each in a process of its own."""
    place = tmp_path_factory.mktemp("cluster")
    file, local = place / "scheduler.json", ["--host", "127.0.0.1", "--no-dashboard"]
    file_option = ["--scheduler-file", str(file)]
    start = [sys.executable, "-c", DASK]
    one_each = ["--nthreads", "1", "--nworkers", "2", "--local-directory", str(place / "local")]
    begun = [
        subprocess.Popen(
            [*start, *words, *file_option, *local],
            env={**os.environ, **QUIET},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for words in (["scheduler", "--port", "0"], ["worker", *one_each])
    ]
    until(file.exists)
    address = pd.read_json(file, typ="series")["address"]
    client = dask_workers._client(address)
    client.wait_for_workers(2, timeout=LONG)
    client.close()
    yield address
    for process in reversed(begun):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def local():
    with chosen_executor("processes:2") as executor:
        yield executor


@pytest.fixture(scope="module")
def dask(cluster, tmp_path_factory):
    with chosen_executor(cluster, tmp_path_factory.mktemp("shared")) as executor:
        yield executor


@pytest.fixture(params=["local", "dask"])
def executor(request):
    return request.getfixturevalue(request.param)


@pytest.mark.skipif(not probes.can_limit(), reason="this kernel has no Landlock")
@pytest.mark.parametrize("where", ["processes:2", "cluster"])
def test_the_limited_process_of_a_job_uses_its_workers_and_no_other_server(
    where, request, tmp_path, monkeypatch
):
    scheduler = request.getfixturevalue(where) if where == "cluster" else where
    monkeypatch.setenv("KDCAL_SCHEDULER", scheduler)
    monkeypatch.setenv("KDCAL_SHARED_FOLDER", str(tmp_path / "shared"))
    manager = JobManager(folder=tmp_path / "jobs")
    with socket.create_server(("127.0.0.1", 0)) as other:
        kwargs = {"port": other.getsockname()[1]}
        asked = manager.submit("job_probes:spread", kwargs, title="Adding", key="spread", reads=[])
        job = manager.wait(asked, LONG)
    assert job.error is None
    assert job.result == [[0, 2, 4, 6], "PermissionError"]


def test_arrays_and_tables_come_back_as_they_are_in_process(executor):
    rows = 3000
    frame = pd.DataFrame({"x": np.arange(rows) / 7, "s": [f"name {i}" for i in range(rows)]})
    frame["k"] = frame["s"].astype("category")
    by = np.arange(2 * rows, dtype=float)[::2]  # with gaps
    future = executor.submit(probes.scaled, frame, by)
    found, process = future.result(LONG)
    pd.testing.assert_frame_equal(found, probes.scaled(frame, by)[0], check_exact=True)
    assert process != os.getpid()


def test_rows_are_in_files_named_by_their_digest_and_not_in_the_parcel(tmp_path):
    frame = pd.DataFrame({"x": np.arange(20_000.0), "s": [f"name {i}" for i in range(20_000)]})
    parcel = pack((frame, frame["x"].to_numpy()), tmp_path)
    assert len(parcel.body) < 5000
    assert len(parcel.files) > len(set(parcel.files)) == len(list(tmp_path.iterdir()))
    assert pack((frame, frame["x"].to_numpy()), tmp_path) == parcel
    read, _ = unpack(parcel, tmp_path)
    read.loc[0, "x"] = -1.0
    pd.testing.assert_frame_equal(unpack(parcel, tmp_path)[0], frame)
    (tmp_path / parcel.files[0]).unlink()
    with pytest.raises(InputError, match="cannot read the shared folder"):
        unpack(parcel, tmp_path)


def test_a_file_that_was_changed_is_refused(tmp_path):
    parcel = pack(np.arange(1000.0), tmp_path)
    file = tmp_path / parcel.files[0]
    file.write_bytes(bytes(8) + file.read_bytes()[8:-8] + bytes(8))
    with pytest.raises(InputError, match="not what was written there"):
        unpack(parcel, tmp_path)


def test_rows_as_objects_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(parcels, "MOST", 10_000)
    with pytest.raises(InputError, match="objects that are no arrays"):
        pack(np.full(6000, "ab", dtype=object), tmp_path)


def test_results_are_the_same_bytes_wherever_they_are_computed(executor, tmp_path):
    """Fits of a comparison, kernel blocks, and the summary of a folder."""
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p**2).astype(int)
    rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")
    review = ReviewData(rows, None, rows.classes, {})
    shares = []
    held = [
        held_out_answers(
            methods_of(["isotonic", "beta"]), review, folds=2, executor=one, progress=progress
        )
        for one, progress in ((None, None), (executor, lambda share, note: shares.append(share)))
    ]
    for here, there in zip(*(one.said for one in held), strict=True):
        assert here.proba.tobytes() == there.proba.tobytes()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    codes = LeafCodes(rng.integers(0, 3, (700, 6)).astype(np.int32))
    codes = find_polytopes(codes).codes
    counts = rng.integers(0, 3, (len(codes), 2))
    exponents = np.array([1.0, 2.0])
    masses = [class_masses(codes, counts, exponents, executor=one) for one in (None, executor)]
    assert masses[0].tobytes() == masses[1].tobytes()
    folder, into = tmp_path / "folder", tmp_path / "into"
    folder.mkdir()
    into.mkdir()
    for at in range(3):
        part = slice(100 * at, 100 * at + 100)
        table = pa.table({"p": p[part], "y": np.where(y[part], "yes", "no")})
        pq.write_table(table, folder / f"{at}.parquet")
    roles, size = Roles(target="y", outputs=(("yes", "p"),)), FolderSize(3, (100,) * 3)
    found = summary_of_folder(folder, roles, rows.classes, into, size=size, executor=executor)
    assert found.digest == summarise(rows.proba, y, rows.classes).digest
    wrong = FolderSize(3, (100, 100, 99))
    with pytest.raises(InputError, match="changed while they were read"):
        summary_of_folder(folder, roles, rows.classes, into, size=wrong, executor=executor)


def test_errors_come_back_as_they_are(executor):
    fields = {"what": "Wrong", "fix": "Mend it.", "row": 3}
    with pytest.raises(InputError) as raised:
        executor.submit(probes.refuse, fields).result(LONG)
    assert raised.value.row == 3
    with pytest.raises(RuntimeError, match="boom"):
        executor.submit(probes.fail, "boom").result(LONG)


def test_a_killed_worker_costs_its_task_only(executor, tmp_path):
    """The task is computed again, and so it is the second time that ends it."""
    once = executor.submit(probes.die_once, str(tmp_path / "once"), 7)
    others = [executor.submit(probes.add, at, 1) for at in range(3)]
    assert once.result(LONG) == 7
    assert [one.result(LONG) for one in others] == [1, 2, 3]


def test_a_task_that_kills_its_workers_is_an_error_and_the_run_goes_on(executor):
    always = executor.submit(os._exit, 3)
    with pytest.raises(InputError, match="lost its worker 2 times"):
        always.result(LONG)
    assert executor.submit(probes.add, 1, 1).result(LONG) == 2


def test_cancel_stops_what_runs_and_what_waits(executor, tmp_path):
    paths = [str(tmp_path / f"{at}") for at in range(2)]
    until_both_work(executor)
    running = [executor.submit(probes.work_on, path) for path in paths]
    until(lambda: all(map(os.path.exists, paths)))
    until(lambda: all(one.running() for one in running))  # the news of it comes a little later
    waiting = executor.submit(probes.work_on, str(tmp_path / "never"))
    for future in (waiting, *running):
        future.cancel()
    assert not wait([waiting, *running], LONG).not_done
    for future in running:
        with pytest.raises(Cancelled):
            future.result()
    assert waiting.cancelled() or isinstance(waiting.exception(), Cancelled)
    assert not (tmp_path / "never").exists()
    assert executor.submit(probes.add, 1, 1).result(LONG) == 2


def test_on_a_cluster_the_function_itself_ends(dask, tmp_path):
    future = dask.submit(probes.work_on, str(tmp_path / "a"))
    until((tmp_path / "a").exists)
    future.cancel()
    until((tmp_path / "a.ended").exists)


def test_a_deadline_ends_a_task(cluster, tmp_path):
    with (
        LocalProcesses(tmp_path, 1, seconds=1.5) as local,
        DaskWorkers(cluster, tmp_path, seconds=0.5) as dask,
    ):
        futures = [each.submit(probes.nap, 4.0) for each in (local, dask)]
        for future in futures:
            with pytest.raises(InputError, match="took longer than"):
                future.result(LONG)
        assert local.submit(probes.add, 1, 1).result(LONG) == 2


def test_a_frozen_worker_is_lost_and_another_one_computes(cluster, tmp_path, monkeypatch):
    path = tmp_path / "frozen"
    # not begun either, should Dask give it to the frozen worker again
    with DaskWorkers(cluster, tmp_path, silence=8.0, unbegun=30.0) as executor:
        future = executor.submit(probes.freeze_once, str(path))
        try:
            other = future.result(LONG)
        finally:
            Path(f"{path}.go").touch()
            os.kill(int(path.read_text()), signal.SIGCONT)
    assert other != int(path.read_text())


def test_a_task_that_no_worker_begins_is_an_error(cluster, dask, tmp_path):
    paths = [tmp_path / f"{at}" for at in range(2)]
    until_both_work(dask)
    busy = [dask.submit(probes.work_on, str(path)) for path in paths]
    until(lambda: all(path.exists() for path in paths))
    with DaskWorkers(cluster, tmp_path, unbegun=0.3) as late:
        with pytest.raises(InputError, match="no worker began it"):
            late.submit(probes.add, 1, 1).result(LONG)
        for future in busy:
            future.cancel()


def test_workers_of_another_build_are_one_clear_error(cluster, tmp_path, monkeypatch):
    strange = {**builds.build(), "numpy": "1.0"}
    with DaskWorkers(cluster, tmp_path) as executor:
        until_both_work(executor)
        monkeypatch.setattr(dask_workers, "build", lambda: strange)
        with pytest.raises(InputError, match=r"1 worker has other .* in place of 1\.0 \(tcp:"):
            executor.submit(probes.add, 1, 1).result(LONG)  # as on a worker that came later
    with pytest.raises(InputError, match="2 workers have other versions"):
        DaskWorkers(cluster, tmp_path)


class Blind:
    """A client whose workers see nothing, or fail."""

    def __init__(self, found, threads=1):
        self.found, self.threads = found, threads

    def nthreads(self):
        return {"tcp://a:1": self.threads} if self.threads else {}

    def run(self, *given, **more):
        return {"tcp://a:1": self.found}


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (Blind(None, 0), "has no workers"),
        (Blind((builds.build(), False)), "do not see the shared folder"),
        (Blind(ImportError("no kdcal_core")), "1 of 1 workers cannot run kdcal, such as tcp://a:1"),
    ],
)
def test_unfit_workers_are_refused(client, words, tmp_path):
    with pytest.raises(InputError, match=words):
        dask_workers._checked(client, tmp_path)


def test_what_cannot_be_opened_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_workers, "_CONNECT", 0.3)
    for name, words in {
        "tcp://127.0.0.1:1": "cannot be reached.* without TLS, which needs an address that begins",
        "tls://127.0.0.1:1": "KDCAL_CLUSTER_CA, KDCAL_CLUSTER_CERT and KDCAL_CLUSTER_KEY name no",
        "processes:0": "from 1 to 1,024",
        "processes:many": "from 1 to 1,024",
        "slurm": "KDCAL_SCHEDULER is 'slurm'",
    }.items():
        monkeypatch.setenv(SCHEDULER, name)
        with pytest.raises(InputError, match=words), chosen_executor(shared=tmp_path):
            pass
    assert logging.getLogger("distributed.client").level == logging.CRITICAL
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'kdcal\[cluster\]'"):
        dask_workers._client("tcp://127.0.0.1:1")
    (tmp_path / "file").touch()
    monkeypatch.setenv(SHARED, str(tmp_path / "file"))
    with (
        pytest.raises(InputError, match="shared folder cannot be written"),
        chosen_executor("processes"),
    ):
        pass


def test_the_folder_of_a_run_is_gone_with_it(tmp_path):
    with chosen_executor("processes:1", tmp_path) as executor:
        assert list(tmp_path.iterdir()) == [executor.folder]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(probes.add, 1, 1)
