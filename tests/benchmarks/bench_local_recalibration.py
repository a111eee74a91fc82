"""Local recalibration of 10,000 new rows from 100,000: search, weights and intervals."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from kdcal_core.distributions import Normal
from kdcal_core.regression import LocalRecalibration

ROWS, NEW, NEIGHBOURS = 100_000, 10_000, 1000


def run() -> list[dict[str, Any]]:
    return [_row(columns, kind) for columns in (2, 20) for kind in ("exact", "approximate")]


def _row(columns: int, kind: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    space, points = rng.normal(size=(ROWS, columns)), rng.normal(size=(NEW, columns))
    y = space[:, 0] + rng.normal(size=ROWS)
    local = LocalRecalibration(NEIGHBOURS, search=kind, epsilon=1.0, smoothing="none")
    start = time.perf_counter()
    local.fit(Normal(space[:, 0], 1.0), y, space)
    local.predict(Normal(points[:, 0], 1.0), points).interval(0.95)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    NearestNeighbors(n_neighbors=NEIGHBOURS).fit(space).kneighbors(points)
    reference = time.perf_counter() - start
    found = "" if local.recall_ is None else f", recall {local.recall_:.3f}"
    return {
        "name": "local recalibration",
        "what": f"{kind} search, {columns} columns, k = {NEIGHBOURS:,}, 95% intervals{found}",
        "n": ROWS,
        "seconds": seconds,
        "reference": "scikit-learn's NearestNeighbors, the search alone",
        "reference_seconds": reference,
        "ratio": reference / seconds,
        "goal": 15.0,
    }
