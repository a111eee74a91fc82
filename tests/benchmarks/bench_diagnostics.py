"""Diagnostics of one million rows and ten classes, beside a plain reference."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    all_estimates,
    auroc,
    calibration_error,
    reliability,
    smooth_calibration_error,
    summary,
)

ROWS, CLASSES, BINS = 1_000_000, 10, 15
NAIVE_DRAWS = 5  # the reference's draws are timed and scaled to 1,000


def run() -> list[dict[str, Any]]:
    """Rows of the benchmark table; a missing reference is None."""
    proba, y = _model()
    scored = ScoredSet(proba, y, tuple(map(str, range(CLASSES))), "digest", "evaluation")
    naive = _seconds(lambda: _naive_bootstrap(proba, y, NAIVE_DRAWS)) * 1000 / NAIVE_DRAWS
    smooth = _seconds(lambda: _probcal(proba, y))
    ranked = _seconds(lambda: _sklearn_auroc(proba, y))
    jobs: list[tuple[str, Callable[[], Any], str | None, float | None, str]] = [
        ("reliability, confidence", lambda: reliability(proba, y), None, None, 1.0),
        ("reliability, top-label", lambda: _by_kind(proba, y, "top-label"), None, None, 1.0),
        ("reliability, class", lambda: _by_kind(proba, y, "class"), None, None, 1.0),
        (
            "calibration_error with 1,000 bootstrap draws",
            lambda: calibration_error(proba, y),
            "numpy row bootstrap, 1,000 draws",
            naive,
            2.0,
        ),
        (
            "calibration_error, class",
            lambda: calibration_error(proba, y, kind="class"),
            None,
            None,
            2.0,
        ),
        (
            "smooth_calibration_error with 200 draws",
            lambda: smooth_calibration_error(proba, y),
            "probcal smooth_ece, value alone",
            smooth,
            2.0,
        ),
        ("auroc with interval", lambda: auroc(proba, y), "sklearn, value alone", ranked, 5.0),
        ("summary: four tiles", lambda: summary(scored), None, None, 2.0),
        ("all_estimates: 23 numbers", lambda: all_estimates(scored), None, None, 10.0),
    ]
    return [_row(*job) for job in jobs]


def _row(
    what: str, job: Callable[[], Any], reference: str | None, other: float | None, goal: float
) -> dict[str, Any]:
    seconds = _seconds(job)
    return {
        "name": "diagnostics",
        "what": what,
        "n": ROWS,
        "seconds": seconds,
        "reference": reference,
        "reference_seconds": other,
        "ratio": None if other is None else other / seconds,
        "goal": goal,
    }


def _seconds(job: Callable[[], Any]) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start


def _model() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    odds = np.exp(2.0 * rng.normal(size=(ROWS, CLASSES)))
    proba = odds / odds.sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) > rng.random((ROWS, 1))).argmax(axis=1)
    sharp = proba**1.5
    return sharp / sharp.sum(axis=1, keepdims=True), y


def _by_kind(proba: Any, y: Any, kind: Any) -> Any:
    return reliability(proba, y, kind=kind)


def _naive_bootstrap(proba: Any, y: Any, n_draws: int) -> list[float]:
    rng = np.random.default_rng(0)
    score, hit = proba.max(axis=1), proba.argmax(axis=1) == y
    values = []
    for _ in range(n_draws):
        rows = rng.integers(0, ROWS, ROWS)
        place = np.digitize(score[rows], np.linspace(0, 1, BINS + 1)[1:-1], right=True)
        gap = np.bincount(place, hit[rows] - score[rows], BINS)
        values.append(float(np.abs(gap).sum() / ROWS))
    return values


def _probcal(proba: Any, y: Any) -> float:
    from probcal.metrics import smooth_ece

    return float(smooth_ece((proba.argmax(axis=1) == y).astype(int), proba.max(axis=1)))


def _sklearn_auroc(proba: Any, y: Any) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, proba, multi_class="ovr", average="weighted"))
