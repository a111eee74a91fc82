"""The same work in this process, on local processes and on a Dask cluster of this machine.

Three kinds of work: empty tasks, which show what a task costs; fits of a comparison, whose rows
travel to the workers; and the summary of a folder, whose files the workers read themselves.
Workers are started, and have imported the libraries, before the clock runs. In this process one
core is used where the work is fits, and both where it is a folder.

    EXECUTORS_ROWS=20000000 python -m tests.benchmarks executors
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core.data import Roles, ScoredSet
from kdcal_core.evaluation import held_out_answers, methods_of
from kdcal_core.jobs.executors import Workers, chosen_executor
from kdcal_core.review import ReviewData
from kdcal_core.review.folder_summary import FolderSize, summary_of_folder
from tests.benchmarks.bench_summaries import _FILE, _make

ROWS = int(float(os.environ.get("EXECUTORS_ROWS", 10_000_000)))
FITTED = int(float(os.environ.get("EXECUTORS_FITTED", 200_000)))
TASKS = 100
METHODS = ("isotonic", "beta", "sts", "platt", "histogram")
BACKENDS = ("processes:1", "processes:2", "processes:4", "dask:1", "dask:2", "dask:4")


def run() -> list[dict[str, Any]]:
    """Seconds of each kind of work on each backend, beside this process, with equal results."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "table"
        folder.mkdir()
        _make(folder, ROWS)
        whole, rest = divmod(ROWS, _FILE)
        size = FolderSize(0, (_FILE,) * whole + ((rest,) if rest else ()))
        rng = np.random.default_rng(0)
        p = rng.random(FITTED)
        y = (rng.random(FITTED) < p**2).astype(int)
        rows = ScoredSet(np.column_stack([1 - p, p]), y, ("0", "1"), "digest", "calibration")
        review = ReviewData(rows, None, rows.classes, {})

        def fits(executor: Executor | None) -> bytes:
            held = held_out_answers(methods_of(METHODS), review, folds=5, executor=executor)
            return b"".join(one.proba.tobytes() for one in held.said)

        def summary(executor: Executor | None) -> bytes:
            roles = Roles(target="y", outputs=(("1", "p"),))
            with tempfile.TemporaryDirectory() as into:
                found = summary_of_folder(
                    folder, roles, ("0", "1"), Path(into), size=size, executor=executor
                )
            return found.digest.encode()

        work = {
            f"{len(METHODS) + 1} methods, 6 fits each": (fits, FITTED),
            "summary of a folder": (summary, ROWS),
        }
        here = {name: _timed(one, None) for name, (one, _) in work.items()}
        made = []
        for backend in BACKENDS:
            with _opened(backend, Path(place)) as executor:
                _warm(executor)
                empty = _timed(_empty, executor)[1]
                made.append(
                    {
                        "name": "executors",
                        "what": f"{backend}: empty tasks",
                        "n": TASKS,
                        "seconds": empty,
                    }
                )
                for name, (one, n) in work.items():
                    found, seconds = _timed(one, executor)
                    assert found == here[name][0], f"other bytes: {backend}, {name}"
                    made.append(
                        {
                            "name": "executors",
                            "what": f"{backend}: {name}",
                            "n": n,
                            "seconds": seconds,
                            "reference": "this process",
                            "reference_seconds": here[name][1],
                            "ratio": here[name][1] / seconds,
                        }
                    )
        return made


def _timed(
    work: Callable[[Executor | None], bytes], executor: Executor | None
) -> tuple[bytes, float]:
    begun = time.perf_counter()
    found = work(executor)
    return found, time.perf_counter() - begun


def _empty(executor: Executor | None) -> bytes:
    assert executor is not None
    for future in [executor.submit(len, "task") for _ in range(TASKS)]:
        future.result()
    return b""


def _warm(executor: Workers) -> None:
    """Let every worker import what the work needs, and compile or load the kernels."""
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    rows = ScoredSet(
        np.column_stack([1 - p, p]), (p > 0.4).astype(int), ("0", "1"), "digest", "calibration"
    )
    held_out_answers(methods_of(METHODS), ReviewData(rows, None, rows.classes, {}),
                     folds=5, executor=executor)  # fmt: skip


@contextmanager
def _opened(backend: str, place: Path) -> Iterator[Workers]:
    kind, _, n = backend.partition(":")
    if kind == "processes":
        with chosen_executor(backend) as executor:
            assert executor is not None
            yield executor
        return
    file = place / f"scheduler-{n}.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
    begun = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *words, *common], start_new_session=True, **quiet
        )
        for words in (
            ["scheduler", "--port", "0"],
            ["worker", "--nthreads", "1", "--nworkers", n, "--local-directory", str(place / "d")],
        )
    ]
    try:
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        _wait_for_workers(address, int(n))
        with chosen_executor(address, place / "shared") as executor:
            assert executor is not None
            yield executor
    finally:
        for process in begun:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for_workers(address: str, n: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(n, timeout=120)
