"""What every top-label calibrator shares: checks at the door, and the full vector from one number."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data import FloatArray, IntArray, check_labels, check_proba, check_weight


class TopLabelCalibrator(BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """Learns how often the predicted class is right, given the parent's probabilities.

    Subclasses implement ``_fit(proba, y, weight)`` and ``_confidence(proba)`` on checked
    arrays. Fitted attribute ``n_classes_`` is the number of probability columns K.
    """

    _parameter_constraints: dict[str, list[Any]] = {}

    def fit(self, proba: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on the calibration set.

        Parameters
        ----------
        proba : (n, K) array
            The parent's probabilities; rows sum to one.
        y : (n,) array of int
            True classes as column indices, 0 to K - 1.
        sample_weight : (n,) array, optional
            Positive row weights.

        Raises
        ------
        InputError
            Where an array is not of this form; the message names the row.
        """
        self._validate_params()
        proba = check_proba(proba)
        y = check_labels(y, proba.shape[1], n_rows=proba.shape[0])
        weight = check_weight(sample_weight, proba.shape[0])
        self.n_classes_ = proba.shape[1]
        self._fit(proba, y, weight)
        return self

    def predict_confidence(self, proba: Any) -> FloatArray:
        """Calibrated probability that the predicted (largest) class is right, (n,) in [0, 1]."""
        check_is_fitted(self, "n_classes_")
        proba = check_proba(proba, n_classes=self.n_classes_)
        return np.clip(self._confidence(proba), 0.0, 1.0)

    def predict_proba(self, proba: Any) -> FloatArray:
        """Full vectors: the confidence at the predicted class, the rest scaled to sum to one.

        The predicted class stays where the parent put it, even where its calibrated
        probability is no longer the largest (paper 002 section XI, R39).
        """
        proba = check_proba(proba)
        confidence = self.predict_confidence(proba)
        return spread(proba, confidence)

    @abstractmethod
    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None: ...

    @abstractmethod
    def _confidence(self, proba: FloatArray) -> FloatArray: ...


def top_label(proba: FloatArray) -> tuple[IntArray, FloatArray]:
    """Predicted class (the first of equal largest) and its probability, both (n,)."""
    predicted = np.argmax(proba, axis=1)
    return predicted, proba[np.arange(len(proba)), predicted]


def spread(proba: FloatArray, confidence: FloatArray) -> FloatArray:
    """Put ``confidence`` at the predicted class and scale the other entries to fill up to one.

    Where the others are all zero they share the remainder equally.
    """
    predicted, score = top_label(proba)
    rows = np.arange(len(proba))
    rest = 1.0 - score
    n_others = max(proba.shape[1] - 1, 1)
    some = rest > 0
    scale = np.divide(1.0 - confidence, rest, out=np.zeros_like(rest), where=some)
    full = proba * scale[:, None]
    full[~some] = ((1.0 - confidence[~some]) / n_others)[:, None]
    full[rows, predicted] = confidence
    total: FloatArray = full.sum(axis=1, keepdims=True)
    return full / np.where(total > 0, total, 1.0)
