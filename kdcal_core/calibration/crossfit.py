"""Confidences that were not fitted on the rows they are given for."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from kdcal_core.calibration.base import TopLabelCalibrator
from kdcal_core.data import FloatArray, check_labels, check_proba, check_weight
from kdcal_core.data.splits import stratified_folds
from kdcal_core.errors import InputWarning
from kdcal_core.progress import Progress


def cross_fit_confidence(
    calibrator: TopLabelCalibrator,
    proba: Any,
    y: Any,
    *,
    n_folds: int = 5,
    seed: int = 0,
    sample_weight: Any = None,
    progress: Progress | None = None,
) -> FloatArray:
    """Confidence of each row from a calibrator fitted on the other folds, (n,).

    Parameters
    ----------
    calibrator : TopLabelCalibrator
        Cloned for each fold; the given object is not changed.
    proba : (n, K) array
    y : (n,) array of int
    n_folds : int, default=5
        Folds are stratified by true class.
    seed : int, default=0
    sample_weight : (n,) array, optional
    progress : callable, optional
        Called with the share done in [0, 1] and a sentence; may raise to cancel.

    Notes
    -----
    Warnings of single folds are not repeated: the notes of a fit on all rows hold them.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.calibration import TopLabelConfidence
    >>> proba, y = np.tile([0.8, 0.2], (20, 1)), np.arange(20) % 2
    >>> conf1 = TopLabelConfidence(shrinkage=None)
    >>> cross_fit_confidence(conf1, proba, y, n_folds=2)[:3].tolist()
    [0.5, 0.5, 0.5]
    """
    proba = check_proba(proba)
    y = check_labels(y, proba.shape[1], n_rows=len(proba))
    weight = check_weight(sample_weight, len(proba))
    fold = stratified_folds(y, n_folds, seed)
    confidence = np.empty(len(proba))
    for i in range(n_folds):
        if progress is not None:
            progress(i / n_folds, f"Fold {i + 1} of {n_folds}")
        held_out = fold == i
        if not held_out.any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            fitted = clone(calibrator).fit(proba[~held_out], y[~held_out], weight[~held_out])
        confidence[held_out] = fitted.predict_confidence(proba[held_out])
    if progress is not None:
        progress(1.0, "Cross-fitting done")
    return confidence
