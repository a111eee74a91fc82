"""The search for regions on 100,000 rows of 20 columns, once they are binned, and areas."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from kdcal_core.diagnostics import auc, find_pit_regions, find_regions, paired_auc
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.partition.tree import bin_inputs

ROWS, COLUMNS, AREA_ROWS = 100_000, 20, 1_000_000


def run() -> list[dict[str, Any]]:
    """Rows of the benchmark table; a missing reference is None."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    score = rng.beta(4, 2, ROWS)
    off = 0.1 * ((X[:, 0] < -0.5) & (X[:, 1] > 0.7))
    scored = confidence_target(score, rng.random(ROWS) < np.clip(score - off, 0, 1))
    pit, binned = rng.random(ROWS), bin_inputs(X)
    y = rng.integers(0, 2, AREA_ROWS)
    a, b = rng.normal(size=(2, AREA_ROWS)) + y
    jobs: list[tuple[str, int, Callable[[], Any], str | None, Callable[[], Any] | None, float]] = [
        ("find_regions, binned", ROWS, lambda: find_regions(scored, binned), None, None, 0.3),
        ("find_pit_regions, binned", ROWS, lambda: find_pit_regions(pit, binned), None, None, 0.3),
        ("auc", AREA_ROWS, lambda: auc(a, y), "sklearn, value alone", lambda: _theirs(a, y), 1.0),
        ("paired_auc", AREA_ROWS, lambda: paired_auc(a, b, y), None, None, 3.0),
    ]
    rows = []
    for name, n, job, reference, other, goal in jobs:
        seconds = _seconds(job)
        beside = _seconds(other) if other is not None else None
        rows.append(
            {
                "name": "regions",
                "what": name,
                "n": n,
                "seconds": seconds,
                "reference": reference,
                "reference_seconds": beside,
                "ratio": beside / seconds if beside is not None else None,
                "goal": goal,
            }
        )
    return rows


def _theirs(score: Any, y: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, score))


def _seconds(job: Callable[[], Any], repeats: int = 3) -> float:
    """The fastest of some runs after one that compiles."""
    job()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        job()
        times.append(perf_counter() - start)
    return min(times)
