"""Temperature scaling, shared or by class, with or without awards (Salamon et al., IX to XI)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from kdcal_core.calibration._temperature_fit import (
    HIGHEST,
    LARGEST_AWARD,
    LOWEST,
    TemperatureRows,
    best_temperature,
    safe_temperature,
)
from kdcal_core.calibration.calibrator_base import (
    ROWS_PER_PARAMETER,
    log_proba,
    rows_by_class,
    softmax_in_place,
    top_label,
)
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import SHRINKAGE, Answers, ShrunkVectors
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


def best_full_temperature(proba: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """The temperature in [0.05, 20] with the smallest log loss of the whole vector.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    >>> round(best_full_temperature(proba, np.array([0, 0, 1, 1]), np.ones(4)), 3)
    2.0
    """
    rows = TemperatureRows.of(proba, y, top_label(proba)[0], weight)
    found, _ = best_temperature(rows, 1, False, "full")
    return found


def check_temperature(value: object) -> None:
    """Refuse a stored temperature that no fit gives."""
    demand(type(value) is float and LOWEST * 0.999 <= value <= HIGHEST * 1.001, "temperature_")


@storable
class TemperatureScaling(ShrunkVectors):
    """Softmax of (log y_j + [j is predicted] A_j) / T (Salamon et al., Eqs. 16 to 18).

    ======== ===== ====================================================== ==============
    scope    award name                                                   parameters
    ======== ===== ====================================================== ==============
    shared   no    STS, one temperature for all                           1
    class    no    CSTS, a temperature for each predicted class           K
    shared   yes   TSwA, one temperature and K awards, fitted jointly     K + 1
    class    yes   CSTSwA, a temperature and an award for each class      2 K
    ======== ===== ====================================================== ==============

    Parameters
    ----------
    scope : {"shared", "class"}, default="shared"
    awards : bool, default=False
        Whether the predicted class's log probability gets an additive award, which may be negative.
        The predicted class stays the model's even if an award makes another entry the largest
        (section XI).
    loss : {"top-label", "brier", "full"}, default="top-label"
        The loss to minimise on the calibration set: Eq. 14 on whether the predicted class is right
        (the paper's choice), Eq. 15 on the same, or the log loss of the whole vector (the usual
        temperature scaling).
    shrinkage : "auto", float or None, default="auto"
        Shrinkage of each class towards one safe temperature for all
        (:mod:`kdcal_core.calibration.shrinkage`), as if this many further rows of the class had the
        outcomes that it predicts. "auto" chooses it by held-out log loss; None as in the paper. In
        the shared scope without awards there is nothing to shrink, and any value gives the safe
        temperature, the one nearest to 1 that explains the rows nearly as well as the best.

    Attributes
    ----------
    temperatures_ : (K,) array in [0.05, 20]
        In the shared scope all are equal. A class that is never predicted has award 0 and, in the
        class scope, temperature 1.
    awards_ : (K,) array
        The A_k of Eq. 18; |A / T| is at most 30.
    rows_ : (K,) array
        Weight of the calibration rows that predict each class.
    shrinkage_, anchor_temperature_ : float
        The number of rows in use, and the safe temperature. Only with shrinkage.

    Notes
    -----
    ``predict_proba`` returns the scaled vector. Probabilities are clipped at 1e-12 before the
    logarithm. Without awards T is the root of the loss's slope with the lowest loss, among those
    between neighbours of 17 temperatures from 0.05 to 20. With awards L-BFGS with exact gradients
    on (log T, A / T) starts from the best of five temperatures. For Eq. 15, which can have several
    minima, it starts from all five, and the best result is kept, which may still be a local
    minimum. Minima are first searched on an even subsample of 20,000 rows and then refined on all
    rows. T = 1 and A = 0 are kept if the result is not better (with awards: if it is worse).

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]
    >>> calibrator = TemperatureScaling(shrinkage=None).fit(proba, [0, 0, 1, 1])
    >>> calibrator.temperatures_.round(3).tolist()
    [2.0, 2.0]
    >>> calibrator.predict_confidence([[0.9, 0.1]]).round(3).tolist()
    [0.75]
    """

    keeps_prediction: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scope": [StrOptions({"shared", "class"})],
        "awards": ["boolean"],
        "loss": [StrOptions({"top-label", "brier", "full"})],
        "shrinkage": SHRINKAGE,
    }

    def __init__(
        self,
        scope: str = "shared",
        awards: bool = False,
        loss: str = "top-label",
        shrinkage: Any = "auto",
    ) -> None:
        self.scope = scope
        self.awards = awards
        self.loss = loss
        self.shrinkage = shrinkage

    _why_no_onnx = None

    def rows_needed(self, n_classes: int) -> int:
        temperatures = 1 if self.scope == "shared" else n_classes
        return ROWS_PER_PARAMETER * (temperatures + self.awards * n_classes)

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        if self.shrinkage is None or self.scope == "class" or self.awards:
            super()._fit(proba, y, weight)
            return
        found = safe_temperature(proba, y, weight, loss=self.loss, thinned=False)
        self._keep(np.full(self.n_classes_, found), np.zeros(self.n_classes_), proba, weight)
        self.anchor_temperature_, self.shrinkage_ = found, float("inf")

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        predicted, _ = top_label(proba)
        n = self.n_classes_
        temperatures, award_of = np.ones(n), np.zeros(n)
        problem = TemperatureRows.of(proba, y, predicted, weight)
        if self.scope == "shared":
            temperature, awards = best_temperature(problem, n, self.awards, self.loss)
            temperatures[:] = temperature
            award_of[:] = awards * temperature
        else:
            for label, rows in rows_by_class(predicted, n):
                alone = problem.take(rows, group=0)
                temperature, awards = best_temperature(alone, 1, self.awards, self.loss)
                temperatures[label] = temperature
                award_of[label] = awards[0] * temperature
        self._keep(temperatures, award_of, proba, weight)

    def _keep(
        self, temperatures: FloatArray, awards: FloatArray, proba: FloatArray, weight: FloatArray
    ) -> None:
        predicted, _ = top_label(proba)
        self.temperatures_, self.awards_ = temperatures, awards
        rows = np.bincount(predicted, weights=weight, minlength=self.n_classes_)
        self.rows_: FloatArray = rows.astype(np.float64)
        self._note_bounds(np.unique(predicted))

    def check_state(self) -> None:
        super().check_state()
        check_array(
            self, "temperatures_", (self.n_classes_,), low=LOWEST * 0.999, high=HIGHEST * 1.001
        )
        largest = LARGEST_AWARD * HIGHEST * 1.001
        check_array(self, "awards_", (self.n_classes_,), low=-largest, high=largest)
        if self._shrunk:
            check_array(self, "rows_", (self.n_classes_,), low=0.0)

    def _note_bounds(self, seen: IntArray) -> None:
        for label in seen:
            if not LOWEST * 1.001 < self.temperatures_[label] < HIGHEST * 0.999:
                self._note(
                    f"{self._class(label)}: the temperature is at its bound "
                    f"{self.temperatures_[label]:.3g}."
                )
            if abs(self.awards_[label]) > 0.999 * LARGEST_AWARD * self.temperatures_[label]:
                self._note(f"{self._class(label)}: the award is at its bound.")

    def _answers(self, proba: FloatArray) -> Answers:
        predicted, _ = top_label(proba)
        rows: FloatArray = self.rows_[predicted]
        return self._own_vectors(proba), rows[:, None]

    def _own_vectors(self, proba: FloatArray) -> FloatArray:
        predicted, _ = top_label(proba)
        logit = log_proba(proba)
        logit[np.arange(len(proba)), predicted] += self.awards_[predicted]
        logit /= self.temperatures_[predicted][:, None]
        return softmax_in_place(logit)

    def _own_nodes(self, nodes: Nodes, proba: str) -> str:
        top = nodes.largest(proba, self.n_classes_)
        logs = nodes.add(nodes.log(proba, CLIP), nodes.mul(top, self.awards_[None, :]))
        temperature = nodes.node("MatMul", top, self.temperatures_[:, None])
        own = nodes.node("Softmax", nodes.node("Div", logs, temperature), axis=1)
        if not self._shrunk:
            return own
        rows = nodes.node("MatMul", top, self.rows_[:, None])
        return self._pooled_nodes(nodes, own, rows, self._anchor_nodes(nodes, proba))


CalibratorEntry(
    "sts",
    "Shared temperature scaling",
    "STS",
    TemperatureScaling,
    "Salamon et al. 2024, Eqs. 16 and 17",
    "One temperature softens or sharpens the probabilities of all classes.",
    "temperature",
    offered=True,
).offer()

CalibratorEntry(
    "csts",
    "Class-specific temperature scaling",
    "CSTS",
    partial(TemperatureScaling, "class"),
    "Salamon et al. 2024, section X",
    "Each predicted class has its own temperature.",
    "temperature",
).offer()

CalibratorEntry(
    "tswa",
    "Temperature scaling with awards",
    "TSwA",
    partial(TemperatureScaling, "shared", awards=True),
    "Salamon et al. 2024, Eq. 18",
    "One temperature for all, and an award for each class that applies when it is predicted.",
    "temperature",
    offered=True,
).offer()

CalibratorEntry(
    "cstswa",
    "Class-specific temperature scaling with awards",
    "CSTSwA",
    partial(TemperatureScaling, "class", awards=True),
    "Salamon et al. 2024, section XI and appendix",
    "Each predicted class has its own temperature and award.",
    "temperature",
).offer()
