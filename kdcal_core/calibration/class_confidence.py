"""Confidence given the predicted class alone."""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration.base import ROWS_PER_PARAMETER, TopLabelCalibrator, top_label
from kdcal_core.calibration.state import check_array
from kdcal_core.data import FloatArray, IntArray


class TopLabelConfidence(TopLabelCalibrator):
    """Conf1: the share of a class's predictions that are right (paper 002 Eq. 1).

    It ignores the score. The paper's advice where a class has too few errors, or too few low
    scores, to see how confidence depends on the score (section XIII.D). A class that the
    calibration set never predicts gets the overall accuracy, with an :class:`InputWarning`.

    Attributes
    ----------
    confidence_ : (K,) array in [0, 1]
        Conf1 of every class: the diagonal of the reverse confusion matrix (Fig. 1).

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.2, 0.8]]
    >>> calibrator = TopLabelConfidence().fit(proba, [0, 0, 1, 1])
    >>> calibrator.confidence_.round(3).tolist()
    [0.667, 1.0]
    >>> calibrator.predict_confidence([[0.51, 0.49]]).round(3).tolist()
    [0.667]
    """

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * n_classes

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        predicted, _ = top_label(proba)
        correct = (predicted == y).astype(np.float64)
        self.confidence_ = self._class_confidence(predicted, correct, weight)

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "confidence_", (self.n_classes_,), low=0.0, high=1.0)

    def _confidence(self, proba: FloatArray) -> FloatArray:
        return self.confidence_[top_label(proba)[0]]
