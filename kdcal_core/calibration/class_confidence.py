"""Confidence given the predicted class alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kdcal_core.calibration.base import ROWS_PER_PARAMETER, top_label
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import SHRINKAGE, Answers, ShrunkConfidence
from kdcal_core.calibration.state import check_array
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.store import storable

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


@storable
class TopLabelConfidence(ShrunkConfidence):
    """Conf1: the share of a class's predictions that are right (Salamon et al., Eq. 1).

    It ignores the score. Salamon et al. recommend it if a class has too few errors, or too few low
    scores, to show how confidence depends on the score (section XIII.D). A class that is never
    predicted in the calibration set gets the overall accuracy, with an :class:`InputWarning`.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        Number of rows added to each class, with outcomes as a safe temperature for all classes
        states (:mod:`kdcal_core.calibration.shrinkage`); the confidence then grows slightly with
        the score. "auto" chooses by held-out log loss; None adds none, as in the paper, where a
        class of three right rows has confidence 1.

    Attributes
    ----------
    confidence_ : (K,) array in [0, 1]
        Conf1 of every class: the diagonal of the reverse confusion matrix (Fig. 1).
    rows_ : (K,) array
        Weight of the rows that predict each class.
    shrinkage_, anchor_temperature_ : float
        The rows added, and the safe temperature. With shrinkage only.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.2, 0.8]]
    >>> calibrator = TopLabelConfidence(shrinkage=None).fit(proba, [0, 0, 1, 1])
    >>> calibrator.confidence_.round(3).tolist()
    [0.667, 1.0]
    >>> calibrator.predict_confidence([[0.51, 0.49]]).round(3).tolist()
    [0.667]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"shrinkage": SHRINKAGE}

    def __init__(self, shrinkage: Any = "auto") -> None:
        self.shrinkage = shrinkage

    _why_no_onnx = None

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * n_classes

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        predicted, _ = top_label(proba)
        correct = (predicted == y).astype(np.float64)
        self.confidence_ = self._class_confidence(predicted, correct, weight)
        self.rows_ = np.bincount(predicted, weights=weight, minlength=self.n_classes_)

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "confidence_", (self.n_classes_,), low=0.0, high=1.0)
        if self._shrunk:
            check_array(self, "rows_", (self.n_classes_,), low=0.0)

    def _answers(self, proba: FloatArray) -> Answers:
        predicted, _ = top_label(proba)
        # files from before shrinkage lack the rows
        rows = getattr(self, "rows_", np.zeros(self.n_classes_))
        return self.confidence_[predicted], rows[predicted]

    def _class_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        return nodes.constant_like(score, float(self.confidence_[j]))

    def _class_rows_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        return nodes.constant_like(score, float(self.rows_[j]))


CalibratorEntry(
    "confidence",
    "Confidence given the class",
    "Conf1",
    TopLabelConfidence,
    "Salamon et al. 2024, Eq. 1",
    "How often predictions of this class are right, whatever the score.",
    "top-label",
).offer()
