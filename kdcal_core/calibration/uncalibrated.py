"""The model's own score, for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdcal_core.calibration.base import TopLabelCalibrator, top_label
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.store import storable

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


@storable
class UncalibratedConfidence(TopLabelCalibrator):
    """The model's probability of the predicted class, unchanged (Salamon et al., section XIV).

    Examples
    --------
    >>> calibrator = UncalibratedConfidence().fit([[0.6, 0.4], [0.1, 0.9]], [0, 0])
    >>> calibrator.predict_confidence([[0.3, 0.7]]).tolist()
    [0.7]
    """

    _why_no_onnx = None

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Nothing to learn."""

    def _confidence(self, proba: FloatArray) -> FloatArray:
        return top_label(proba)[1]

    def _vectors(self, proba: FloatArray) -> FloatArray:
        return proba.copy()

    def onnx_nodes(self, nodes: Nodes, proba: str) -> str:
        return nodes.node("Identity", proba)


CalibratorEntry(
    "uncalibrated",
    "Uncalibrated score",
    "Uncalibrated",
    UncalibratedConfidence,
    "Salamon et al. 2024, section XIV",
    "The model's own probability of the predicted class, as it is.",
    "model",
    offered=True,
).offer()
