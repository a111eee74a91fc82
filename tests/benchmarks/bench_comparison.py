"""Comparing every offered calibrator, with all measures, differences and intervals."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.data import ScoredSet
from kdcal_core.evaluation import compare
from kdcal_core.review import ReviewData

SIZES = ((1_797, 10, 30.0), (100_000, 2, 300.0))  # rows, classes, goal in seconds
FEATURES = 5


def run() -> list[dict[str, Any]]:
    """Rows of the benchmark table. The kernel density graph asks its model and is left out."""
    keys = [key for key, one in CALIBRATORS.items() if one.offered and "model" not in one.needs]
    compare(keys, _review(500, 2))  # compiles
    return [_row(keys, *size) for size in SIZES]


def _row(keys: list[str], n: int, n_classes: int, goal: float) -> dict[str, Any]:
    review = _review(n, n_classes)
    start = perf_counter()
    found = compare(keys, review)
    seconds = perf_counter() - start
    return {
        "name": "comparison",
        "what": f"{len(found.methods)} calibrators on {n_classes} classes, 5 folds, one process",
        "n": n,
        "seconds": seconds,
        "reference": None,
        "reference_seconds": None,
        "ratio": None,
        "goal": goal,
    }


def _review(n: int, n_classes: int) -> ReviewData:
    rng = np.random.default_rng(0)
    odds = np.exp(1.5 * rng.normal(size=(n, n_classes)))
    p = odds / odds.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    sharp = p**2
    proba = sharp / sharp.sum(axis=1, keepdims=True)
    names = tuple(str(k) for k in range(n_classes))
    rows = ScoredSet(proba, y, names, "digest", "calibration")
    X = pd.DataFrame(rng.normal(size=(n, FEATURES)), columns=[f"x{j}" for j in range(FEATURES)])
    return ReviewData(rows, None, names, {"calibration": X})
