"""Speed of forests, boosted partitions and splits by AUC at a million rows and twenty features."""

from __future__ import annotations

import time
from typing import Any

from kdcal_core.calibration.regions import HeterogeneousCalibrator
from tests.benchmarks.bench_heterogeneous import rows

N_ROWS = 1_000_000
CASES = (
    ("forest", "100 partitions of depth 6, Platt", 60.0),
    ("boosted", "up to 100 stages of depth 2, Platt", None),
    ("auc", "five trees of depth 3 split for AUC, Platt", None),
)


def run() -> list[dict[str, Any]]:
    """Fit and predict of each kind with its defaults."""
    proba, y, frame = rows(N_ROWS)
    HeterogeneousCalibrator("forest", n_trees=2).fit(proba[:5000], y[:5000], frame[:5000])
    return [_row(partition, what, goal, proba, y, frame) for partition, what, goal in CASES]


def _row(
    partition: str, what: str, goal: float | None, proba: Any, y: Any, frame: Any
) -> dict[str, Any]:
    start = time.perf_counter()
    fitted = HeterogeneousCalibrator(partition).fit(proba, y, frame)
    fit = time.perf_counter() - start
    fitted.predict_proba(proba, frame)
    seconds = time.perf_counter() - start
    return {
        "name": "calibration by regions",
        "what": f"{what}: fit and predict (fit alone {fit:.1f} s, {len(fitted.layers_)} layers)",
        "n": N_ROWS,
        "seconds": seconds,
        "reference": None,
        "reference_seconds": None,
        "ratio": None,
        "goal": goal,
    }
