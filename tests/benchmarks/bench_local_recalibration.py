"""Local recalibration of 10,000 new rows from 100,000: search, intervals, means and CRPS."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from kdcal_core.distributions import Normal
from kdcal_core.regression import LocalRecalibration
from kdcal_core.regression.neighbour_search import SearchKind

ROWS, NEW, NEIGHBOURS = 100_000, 10_000, 1000


def run() -> list[dict[str, Any]]:
    _row(20, "exact", rows=1000)  # compiled code is loaded once
    exact = [_row(columns, "exact") for columns in (2, 8, 20)]
    return [*exact, _row(2, "approximate"), _row(20, "approximate")]


def _row(columns: int, kind: SearchKind, rows: int = ROWS) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    space, points = rng.normal(size=(rows, columns)), rng.normal(size=(NEW, columns))
    y, outcome = space[:, 0] + rng.normal(size=rows), points[:, 0] + rng.normal(size=NEW)
    local = LocalRecalibration(NEIGHBOURS, search=kind, epsilon=1.0)
    start = time.perf_counter()
    local.fit(Normal(space[:, 0], 1.0), y, space)
    repaired = local.predict(Normal(points[:, 0], 1.0), points)
    repaired.interval(0.95), repaired.mean(), repaired.crps(outcome)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    NearestNeighbors(n_neighbors=NEIGHBOURS).fit(space).kneighbors(points)
    reference = time.perf_counter() - start
    found = "" if local.recall_ is None else f", recall {local.recall_:.3f}"
    return {
        "name": "local recalibration",
        "what": f"{kind}, {columns} columns, k = {NEIGHBOURS:,}, intervals, mean, CRPS{found}",
        "n": rows,
        "seconds": seconds,
        "reference": "scikit-learn's NearestNeighbors, the search alone",
        "reference_seconds": reference,
        "ratio": reference / seconds,
        "goal": 15.0,
    }
