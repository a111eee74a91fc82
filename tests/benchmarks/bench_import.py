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
    os.environ["KDCAL_HOME"] = tempfile.mkdtemp()
    from kdcal_core.review import Workspace, samples, start_sample

    rows = []
    for sample in samples():
        times = []
        for _ in range(3):
            start = time.perf_counter()
            start_sample(Workspace(), sample.name)
            times.append(time.perf_counter() - start)
        rows.append(
            {
                "name": "open a sample",
                "what": sample.name,
                "n": sum(sample.rows.values()),
                "seconds": float(np.median(times)),
                "reference": None,
                "reference_seconds": None,
                "ratio": None,
                "goal": None,
            }
        )
    return rows
