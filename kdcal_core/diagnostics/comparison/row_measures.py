"""Losses of each row."""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration import Calibrated
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.scores import CLIP


def log_losses(found: Calibrated, y: IntArray) -> FloatArray:
    """-log of the true class's probability (decision D48), (n,)."""
    true = found.proba[np.arange(len(y)), y]
    return np.asarray(-np.log(np.clip(true, CLIP, 1.0)))


def brier_losses(found: Calibrated, y: IntArray) -> FloatArray:
    """Squared distance of the vector from the true class's indicator, (n,)."""
    true = found.proba[np.arange(len(y)), y]
    return np.asarray(np.maximum(np.square(found.proba).sum(axis=1) - 2.0 * true + 1.0, 0.0))


def hits(found: Calibrated, y: IntArray) -> FloatArray:
    """1 where the predicted class is the true one, else 0, (n,)."""
    return np.asarray(found.predicted == y, dtype=np.float64)
