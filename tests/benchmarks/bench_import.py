"""How long it takes to import the core, and to open each shipped sample from click to result."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

REPEATS = 5


def run() -> list[dict[str, Any]]:
    return [*_imports(), *_samples()]


def _imports() -> list[dict[str, Any]]:
    bare = _median_start("pass")
    rows = []
    for what, statement, goal in [
        ("import kdcal_core", "import kdcal_core", 1.5),
        (
            "and its names",
            "from kdcal_core import read_table, load_model, reliability, TopLabelKDE",
            1.5,
        ),
    ]:
        seconds = _median_start(statement)
        rows.append(
            {
                "name": "import",
                "what": what,
                "n": None,
                "seconds": seconds,
                "reference": "an empty Python program",
                "reference_seconds": bare,
                "ratio": bare / seconds,
                "goal": goal,
            }
        )
    return rows


def _median_start(statement: str) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _samples() -> list[dict[str, Any]]:
    """The first opening of each; later ones find it stored. Goals are the app's, breast cancer's
    too, whose file takes scikit-learn and the library that opens it."""
    from app.shared.server_process import WORKERS_IMPORT
    from kdcal_core.jobs import prepare_workers
    from kdcal_core.review import samples

    started = {sample.name: _first_opening(sample.name) for sample in samples()}
    prepare_workers(WORKERS_IMPORT, seconds=120)
    return [
        {
            "name": "open a sample",
            "what": f"{sample.name}, for the first time, workers forked as in the app",
            "n": sum(sample.rows.values()),
            "seconds": (seconds := _first_opening(sample.name)),
            "reference": "workers that start from nothing",
            "reference_seconds": started[sample.name],
            "ratio": started[sample.name] / seconds,
            "goal": 2,
        }
        for sample in samples()
    ]


def _first_opening(sample: str) -> float:
    from kdcal_core.review import Workspace, start_sample

    times = []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as home:
            os.environ["KDCAL_HOME"] = home
            start = time.perf_counter()
            start_sample(Workspace(), sample)
            times.append(time.perf_counter() - start)
    return float(np.median(times))
