"""The model's own score, for comparison."""

from __future__ import annotations

from kdcal_core.calibration.base import TopLabelCalibrator, top_label
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.store import storable


@storable
class UncalibratedConfidence(TopLabelCalibrator):
    """The model's probability of the predicted class, unchanged (paper 002 section XIV).

    Examples
    --------
    >>> calibrator = UncalibratedConfidence().fit([[0.6, 0.4], [0.1, 0.9]], [0, 0])
    >>> calibrator.predict_confidence([[0.3, 0.7]]).tolist()
    [0.7]
    """

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Nothing to learn."""

    def _confidence(self, proba: FloatArray) -> FloatArray:
        return top_label(proba)[1]

    def _vectors(self, proba: FloatArray) -> FloatArray:
        return proba.copy()
