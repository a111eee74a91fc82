"""Every calibrator of scores on 100 to 5,000 rows, with shrinkage and without, on the same rows."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from kdcal_core.calibration import TopLabelCalibrator, score_calibrator
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputWarning
from tests.benchmarks.studies.small_samples import tables

ROWS = (100, 300, 1000, 5000)
SEEDS = {100: 3, 300: 3, 1000: 2, 5000: 1}
KEYS = (
    *("uncalibrated", "sts", "kde_mon2", "histogram", "confidence", "cwoc", "tswa", "cstswa"),
    *("platt", "isotonic", "beta", "venn_abers", "histogram_classes", "vector", "dirichlet"),
    *("ets", "centred_isotonic", "quadratic", "spline", "svs", "sms"),
)
MOST_JUDGED, FEWEST_JUDGED = 3000, 150
MOST_CLASSES = {"dirichlet": 12}  # beyond them one fit takes longer than all others
_CLIP = 1e-15


def tasks(quick: bool, data: Path | None, cache: Path | None) -> list[dict[str, Any]]:
    """One task a table, number of rows and seed; small ones first."""
    found = tables.names(data)
    return [
        {"table": name, "rows": rows, "seed": seed, "data": data, "cache": cache}
        for rows in (ROWS[:2] if quick else ROWS)
        for seed in range(1 if quick else SEEDS[rows])
        for name in (found[::3] if quick else found)
    ]


def run(task: dict[str, Any]) -> list[dict[str, Any]]:
    """Losses of every method, as it is by default and without shrinkage; none with too few rows."""
    proba, y = tables.scored(task["table"], task["data"], task["cache"])
    n = task["rows"]
    if len(y) < n + FEWEST_JUDGED:
        return []
    order = np.random.default_rng([task["seed"], n]).permutation(len(y))
    fit, judge = order[:n], order[n : n + MOST_JUDGED]
    made = []
    for key in KEYS:
        if proba.shape[1] > MOST_CLASSES.get(key, proba.shape[1]):
            continue
        default = score_calibrator(key)
        versions = {"default": default}
        if getattr(default, "shrinkage", None) is not None:
            versions["alone"] = clone(default).set_params(shrinkage=None)
        for version, calibrator in versions.items():
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InputWarning)
                calibrator.fit(proba[fit], y[fit])
            taken = time.process_time() - began
            made.append(
                {
                    **{name: task[name] for name in ("table", "rows", "seed")},
                    "n_classes": proba.shape[1],
                    "method": key,
                    "version": version,
                    "seconds": taken,
                    **_losses(calibrator, proba[judge], y[judge]),
                }
            )
    return made


def _losses(calibrator: TopLabelCalibrator, proba: FloatArray, y: IntArray) -> dict[str, float]:
    right = proba.argmax(axis=1) == y
    confidence = calibrator.predict_confidence(proba)
    happened = np.where(right, confidence, 1.0 - confidence)
    vectors = calibrator.predict_proba(proba)[np.arange(len(y)), y]
    return {
        "top_label": float(-np.log(np.maximum(happened, _CLIP)).mean()),
        "full": float(-np.log(np.maximum(vectors, _CLIP)).mean()),
        "sure_and_wrong": float((happened < 1e-6).mean()),
    }
