"""Speed of the top-label calibrators at a million rows and ten classes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from kdcal_core.calibration import (
    CALIBRATORS,
    TopLabelCalibrator,
)
from kdcal_core.errors import InputWarning

N_ROWS, N_CLASSES = 1_000_000, 10
FIT_GOAL = {"kde_mon2": 2.0}
PREDICT_GOAL = {"kde_mon2": 1.0}


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
        reference, reference_seconds = references.get(key, (None, None))
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


def _references(proba: np.ndarray, y: np.ndarray) -> dict[str, tuple[str, float]]:
    from scipy.stats import gaussian_kde
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.isotonic import IsotonicRegression

    def all_classes(make: Callable[[], Any]) -> float:
        return _seconds(
            lambda: [make().fit(proba[:, k], (y == k).astype(float)) for k in range(N_CLASSES)]
        )

    top, score = proba.argmax(axis=1), proba.max(axis=1)
    grid = np.linspace(1 / N_CLASSES, 1.0, 1000)

    def densities() -> None:
        """Eqs. 7 and 8 at one bandwidth; the search for b_mon2 needs dozens."""
        for k in range(N_CLASSES):
            for right in (True, False):
                gaussian_kde(score[(top == k) & ((y == top) == right)], bw_method=0.1)(grid)

    return {
        "kde_mon2": ("scipy gaussian_kde, one bandwidth, no search", _seconds(densities)),
        "isotonic": ("scikit-learn isotonic, K times", all_classes(IsotonicRegression)),
        "sigmoid": ("scikit-learn sigmoid, K times", all_classes(_SigmoidCalibration)),
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
    what: str, seconds: float, goal: float | None, reference: str | None, other: float | None
) -> dict[str, Any]:
    return {
        "name": "calibration",
        "what": f"{what}, {N_CLASSES} classes",
        "n": N_ROWS,
        "seconds": seconds,
        "reference": reference,
        "reference_seconds": other,
        "ratio": None if other is None else other / seconds,
        "goal": goal,
    }
