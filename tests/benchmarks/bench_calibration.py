"""Speed of the top-label calibrators at a million rows and ten classes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from kdcal_core.calibration import (
    CALIBRATORS,
    IsotonicConfidence,
    SigmoidConfidence,
    TopLabelCalibrator,
)
from kdcal_core.errors import InputWarning

N_ROWS, N_CLASSES = 1_000_000, 10
FIT_GOAL = {"kde_mon2": "fit under 2 s"}
PREDICT_GOAL = {"kde_mon2": "predict under 1 s"}


def run() -> list[dict[str, Any]]:
    """Fit and predict of every method; isotonic and sigmoid beside scikit-learn's own."""
    proba, y = _rows()
    references = _references(proba, y)
    found = []
    for key, entry in CALIBRATORS.items():
        if not entry.compared:
            continue
        calibrator = entry.factory()
        fit = _seconds(lambda c=calibrator: _fit(c, proba, y))
        predict = _seconds(lambda c=calibrator: c.predict_confidence(proba))
        reference, reference_seconds = references.get(type(calibrator), (None, None))
        found.append(
            _row(f"{entry.label} fit", fit, FIT_GOAL.get(key), reference, reference_seconds)
        )
        found.append(_row(f"{entry.label} predict", predict, PREDICT_GOAL.get(key), None, None))
    return found


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(N_ROWS, N_CLASSES))
    y = rng.integers(0, N_CLASSES, N_ROWS)
    logits[np.arange(N_ROWS), y] += 2
    odds = np.exp(1.5 * logits)
    return odds / odds.sum(axis=1, keepdims=True), y


def _references(
    proba: np.ndarray, y: np.ndarray
) -> dict[type[TopLabelCalibrator], tuple[str, float]]:
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.isotonic import IsotonicRegression

    def all_classes(make: Callable[[], Any]) -> float:
        return _seconds(
            lambda: [make().fit(proba[:, k], (y == k).astype(float)) for k in range(N_CLASSES)]
        )

    return {
        IsotonicConfidence: ("scikit-learn isotonic, K times", all_classes(IsotonicRegression)),
        SigmoidConfidence: ("scikit-learn sigmoid, K times", all_classes(_SigmoidCalibration)),
    }


def _fit(calibrator: TopLabelCalibrator, proba: np.ndarray, y: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        calibrator.fit(proba, y)


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _row(
    what: str, seconds: float, goal: str | None, reference: str | None, other: float | None
) -> dict[str, Any]:
    return {
        "name": "calibration",
        "what": f"{what}, {N_CLASSES} classes",
        "n": N_ROWS,
        "seconds": seconds,
        "reference": reference,
        "reference_seconds": other,
        "ratio": None if other is None else seconds / other,
        "goal": goal,
    }


if __name__ == "__main__":
    for row in run():
        print(row["what"], round(row["seconds"], 2), row["reference_seconds"], row["goal"])
