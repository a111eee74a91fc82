"""The papers' measures as plain numbers, for tables over many seeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray

BINS = 15

Row = dict[str, Any]


def entry(task: Row, method: str, measure: str, value: float, radius: float | None = None) -> Row:
    """One number of one run, in long form."""
    return {**task, "method": method, "measure": measure, "radius": radius, "value": value}


def error(predicted: IntArray, y: IntArray) -> float:
    return float(np.mean(predicted != y))


def log_loss(proba: FloatArray, y: IntArray) -> float:
    return float(-np.log(np.maximum(proba[np.arange(len(y)), y], 1e-12)).mean())


def hellinger(proba: FloatArray, truth: FloatArray) -> float:
    """Mean over rows of the Hellinger distance of two posteriors."""
    gap = np.sqrt(proba) - np.sqrt(truth)
    return float(np.linalg.norm(gap, axis=1).mean() / np.sqrt(2.0))


def ece(proba: FloatArray, y: IntArray) -> float:
    """Top-label expected calibration error, equal-width bins."""
    gap, _ = _bins(proba, y)
    return float(np.abs(gap).sum() / len(y))


def mce(proba: FloatArray, y: IntArray) -> float:
    """Top-label maximum calibration error, over equal-width bins with rows."""
    gap, count = _bins(proba, y)
    return float((np.abs(gap[count > 0]) / count[count > 0]).max())


def _bins(proba: FloatArray, y: IntArray) -> tuple[FloatArray, IntArray]:
    """Right answers less confidence, summed in each bin, and its rows."""
    confidence, right = proba.max(axis=1), proba.argmax(axis=1) == y
    bins = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
    return np.bincount(bins, right - confidence, BINS), np.bincount(bins, minlength=BINS)


def mmc(proba: FloatArray) -> float:
    return float(proba.max(axis=1).mean())


def oce(proba: FloatArray, prior: FloatArray) -> float:
    """Dey et al., Eq. 20."""
    return float(np.abs(proba.max(axis=1) - prior.max()).mean())
