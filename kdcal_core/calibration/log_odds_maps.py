"""Platt, beta and quadratic scaling: curves of each class's log odds against the rest."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval

from kdcal_core.calibration.calibrator_base import (
    ROWS_PER_PARAMETER,
    log_proba,
    n_maps,
    softmax_in_place,
    top_label,
)
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.one_vs_rest import RarerRows, Ridge, fit_logistic
from kdcal_core.calibration.shrinkage import SHRINKAGE
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand
from kdcal_core.text import formatted

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes

Columns = list[FloatArray]


def log_odds(proba: FloatArray) -> FloatArray:
    """log p_j / (1 - p_j) of every entry, (n, K), finite because both sides are at least 1e-12.

    1 - p of the largest entry is the sum of the others, which avoids rounding in the difference.

    Examples
    --------
    >>> import numpy as np
    >>> log_odds(np.array([[1.0, 1e-10], [0.5, 0.5]])).round(2).tolist()
    [[23.03, -23.03], [0.0, 0.0]]
    """
    predicted, _ = top_label(proba)
    rows = np.arange(len(proba))
    rest = 1.0 - proba
    others = proba.copy()
    others[rows, predicted] = 0.0
    rest[rows, predicted] = others.sum(axis=1)
    odds: FloatArray = log_proba(proba) - log_proba(rest)
    return odds


def _log_odds_nodes(nodes: Nodes, proba: str, n_classes: int) -> str:
    """Nodes of :func:`log_odds`."""
    top = nodes.largest(proba, n_classes)
    others = nodes.mul(proba, nodes.less(1.0, top))
    rest = nodes.add(
        nodes.mul(nodes.less(1.0, proba), nodes.less(1.0, top)),
        nodes.mul(top, nodes.row_sum(others)),
    )
    return nodes.node("Sub", nodes.log(proba, CLIP), nodes.log(rest, CLIP))


class LogOddsCurves(RarerRows):
    """Maps the log odds of each class against the rest, then scales rows to sum to one.

    With two classes only the second is mapped and the first is its complement.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"shrinkage": SHRINKAGE}

    def __init__(self, shrinkage: Any = "auto") -> None:
        self.shrinkage = shrinkage

    @property
    def _mapped(self) -> tuple[int, ...]:
        return (1,) if self.n_classes_ == 2 else tuple(range(self.n_classes_))

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._note_absent(y)
        super()._fit(proba, y, weight)

    @abstractmethod
    def _new_odds(self, odds: FloatArray) -> FloatArray:
        """(n, C) new log odds from the old ones of the mapped classes."""

    def _columns(self, proba: FloatArray) -> FloatArray:
        odds = self._new_odds(log_odds(proba)[:, self._mapped])
        if self.n_classes_ == 2:
            return np.column_stack([expit(-odds[:, 0]), expit(odds[:, 0])])
        found: FloatArray = expit(odds)
        return found

    def _own_vectors(self, proba: FloatArray) -> FloatArray:
        if self.n_classes_ == 2:
            return self._columns(proba)
        odds = self._new_odds(log_odds(proba)[:, self._mapped])
        return softmax_in_place(-np.logaddexp(0.0, -odds))

    _why_no_onnx = None

    def _own_nodes(self, nodes: Nodes, proba: str) -> str:
        k = self.n_classes_
        odds = _log_odds_nodes(nodes, proba, k)
        if k == 2:
            odds = self._new_odds_nodes(nodes, nodes.column(odds, 1))
            own = nodes.node("Sigmoid", nodes.columns([nodes.node("Neg", odds), odds]))
            return self._drawn_nodes(nodes, own, proba)
        odds = self._new_odds_nodes(nodes, odds)
        if self._shrunk:
            return self._drawn_nodes(nodes, nodes.node("Sigmoid", odds), proba)
        logs = nodes.node("Neg", nodes.softplus(nodes.node("Neg", odds)))
        return nodes.node("Softmax", logs, axis=1)

    @abstractmethod
    def _new_odds_nodes(self, nodes: Nodes, odds: str) -> str:
        """Nodes of the new log odds, (n, C)."""


class _LogOddsMaps(LogOddsCurves):
    """Curves with a few parameters, the same number for each class."""

    _n_parameters: int

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * self._n_parameters * n_maps(n_classes)

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._count(proba, y, weight)
        odds = log_odds(proba)
        self._keep(
            np.stack(
                [
                    self._fit_class(odds[:, label], (y == label).astype(np.float64), weight)
                    for label in self._mapped
                ]
            )
        )

    @abstractmethod
    def _fit_class(
        self, odds: FloatArray, target: FloatArray, weight: FloatArray
    ) -> FloatArray: ...

    @abstractmethod
    def _keep(self, parameters: FloatArray) -> None: ...


@storable
class PlattScaling(_LogOddsMaps):
    """expit(a s + b) of the log odds s of each class against the rest (Durfee et al., section 2.1).

    With two classes it is Platt's scaling of the logit: a = 1 and b = 0 do not change the model.
    With more, each class is scaled against the rest and the rows are scaled to sum to one; then a =
    1 and b = 0 give nearly, but not exactly, the model. :class:`SigmoidConfidence` is
    scikit-learn's, on the probability instead of its log odds.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        As in :class:`~kdcal_core.calibration.one_vs_rest.OneVersusRest`.

    Attributes
    ----------
    slopes_, offsets_ : (K,) arrays, or (1,) for two classes
        a and b of each class; with two classes, of the second.

    Notes
    -----
    Maximum likelihood by Newton's method on Platt's soft targets, (n1 + 1) / (n1 + 2) and 1 / (n0 +
    2), which keep it finite for separated classes. A negative slope, with which a higher score
    means a lower probability, is kept and noted.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> logit = 2 * rng.normal(size=4000)  # twice as sure as it should be
    >>> y = (rng.random(4000) < 1 / (1 + np.exp(-logit / 2))).astype(int)
    >>> p = 1 / (1 + np.exp(-logit))
    >>> PlattScaling().fit(np.c_[1 - p, p], y).slopes_.round(1).tolist()
    [0.5]
    """

    _n_parameters = 2

    def _fit_class(self, odds: FloatArray, target: FloatArray, weight: FloatArray) -> FloatArray:
        found, _ = fit_logistic([odds], target, weight)
        return found

    def _keep(self, parameters: FloatArray) -> None:
        self.slopes_ = np.ascontiguousarray(parameters[:, 0])
        self.offsets_ = np.ascontiguousarray(parameters[:, 1])
        for at, label in enumerate(self._mapped):
            if self.slopes_[at] < -1e-6:  # less is rounding at the 0 of a class without rows
                self._note(
                    f"{self._class(label)}: the slope is negative "
                    f"({formatted(self.slopes_[at], '.3g')}), so a higher score means a lower "
                    "probability.",
                    warns=True,
                )

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "slopes_", (len(self._mapped),))
        check_array(self, "offsets_", (len(self._mapped),))

    def _new_odds(self, odds: FloatArray) -> FloatArray:
        return odds * self.slopes_ + self.offsets_

    def _new_odds_nodes(self, nodes: Nodes, odds: str) -> str:
        return nodes.add(nodes.mul(odds, self.slopes_[None, :]), self.offsets_[None, :])


@storable
class BetaCalibration(_LogOddsMaps):
    """expit(a log p - b log(1 - p) + c) of each class against the rest, with a, b >= 0.

    This curve is right for scores that are beta distributed in each class (Kull, Silva Filho and
    Flach, 2017). Unlike Platt's, its two ends can bend differently; a = b = 1 and c = 0 do not
    change the model. With more than two classes the rows are scaled to sum to one afterwards.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        As in :class:`~kdcal_core.calibration.one_vs_rest.OneVersusRest`.

    Attributes
    ----------
    a_, b_, c_ : (K,) arrays, or (1,) for two classes
        a and b are at least zero, so the curve never falls.

    Notes
    -----
    Maximum likelihood on Platt's soft targets. If the free optimum has a negative a or b, the
    constrained optimum has one of the two at zero: both cases are tried, and the better one is
    kept.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.linspace(0.01, 0.99, 20000)
    >>> y = (np.random.default_rng(0).random(20000) < p**2).astype(int)
    >>> BetaCalibration().fit(np.c_[1 - p, p], y).predict_proba([[0.5, 0.5]]).round(2).tolist()
    [[0.76, 0.24]]
    """

    _n_parameters = 3

    def _fit_class(self, odds: FloatArray, target: FloatArray, weight: FloatArray) -> FloatArray:
        log_p, log_q = _sides(odds)
        free, _ = fit_logistic([log_p, log_q], target, weight)
        if (free[:2] >= 0).all():
            return free
        bound = [
            _one_sided([log_p], 0, target, weight),
            _one_sided([log_q], 1, target, weight),
        ]
        return min(bound, key=lambda one: one[1])[0]

    def _keep(self, parameters: FloatArray) -> None:
        self.a_, self.b_, self.c_ = (np.ascontiguousarray(column) for column in parameters.T)
        for at, label in enumerate(self._mapped):
            if self.a_[at] == self.b_[at] == 0:
                self._note(
                    f"{self._class(label)}: no rising curve fits, so its probability is the same "
                    "for all scores.",
                    warns=True,
                )

    def check_state(self) -> None:
        super().check_state()
        for name in ("a_", "b_"):
            check_array(self, name, (len(self._mapped),), low=0.0)
        check_array(self, "c_", (len(self._mapped),))

    def _new_odds(self, odds: FloatArray) -> FloatArray:
        log_p, log_q = _sides(odds)
        new: FloatArray = self.a_ * log_p + self.b_ * log_q + self.c_
        return new

    def _new_odds_nodes(self, nodes: Nodes, odds: str) -> str:
        log_p = nodes.node("Neg", nodes.softplus(nodes.node("Neg", odds)))
        low = nodes.mul(log_p, self.a_[None, :])
        high = nodes.mul(nodes.softplus(odds), self.b_[None, :])
        return nodes.add(nodes.add(low, high), self.c_[None, :])


@storable
class QuadraticScaling(_LogOddsMaps):
    """expit(a s + c s^2 + b) of the log odds s of each class against the rest.

    Platt's scaling with a bend: one end of the scale can be sharpened while the other is softened.
    a = 1, b = c = 0 do not change a model of two classes. With more, rows are scaled to sum to one
    afterwards. Beyond the log odds of the calibration rows the answer stays that of the nearest
    one, because a parabola turns.

    Parameters
    ----------
    strength : float, default=1.0
        Strength of the penalty, in rows: half of it times (a - 1)^2 + b^2 + c^2 is added to the sum
        of the rows' log losses. It keeps everything finite where classes are separated; a tiny one
        gives the maximum of the likelihood.
    shrinkage : "auto", float or None, default="auto"
        As in :class:`~kdcal_core.calibration.one_vs_rest.OneVersusRest`.

    Attributes
    ----------
    slopes_, bends_, offsets_ : (K,) arrays, or (1,) for two classes
        a, c and b of each class; with two classes, of the second.
    lowest_, highest_ : (K,) arrays, or (1,) for two classes
        Range of the log odds of the calibration rows.

    Notes
    -----
    Newton's method. Nothing keeps the curve from falling; where it falls, a note says so.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = 2 * rng.normal(size=4000)
    >>> y = (rng.random(4000) < 1 / (1 + np.exp(-(0.5 * s - 0.1 * s**2)))).astype(int)
    >>> p = 1 / (1 + np.exp(-s))
    >>> fitted = QuadraticScaling().fit(np.c_[1 - p, p], y)
    >>> fitted.slopes_.round(1).tolist(), fitted.bends_.round(1).tolist()
    ([0.5], [-0.1])
    """

    _n_parameters = 3
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "strength": [Interval(Real, 0, None, closed="neither")],
        "shrinkage": SHRINKAGE,
    }

    def __init__(self, strength: float = 1.0, shrinkage: Any = "auto") -> None:
        super().__init__(shrinkage)
        self.strength = strength

    def _fit_class(self, odds: FloatArray, target: FloatArray, weight: FloatArray) -> FloatArray:
        ridge = Ridge.of([float(self.strength)] * 3, [1.0, 0.0, 0.0])
        found, _ = fit_logistic([odds, odds**2], target, weight, ridge)
        return np.append(found, [odds.min(), odds.max()])

    def _keep(self, parameters: FloatArray) -> None:
        columns = (np.ascontiguousarray(column) for column in parameters.T)
        self.slopes_, self.bends_, self.offsets_, self.lowest_, self.highest_ = columns
        for at, label in enumerate(self._mapped):
            ends = np.array([self.lowest_[at], self.highest_[at]])
            if (self.slopes_[at] + 2 * self.bends_[at] * ends < -1e-6).any():
                self._note(
                    f"{self._class(label)}: the curve falls at one end, where a higher score means "
                    "a lower probability."
                )

    def check_state(self) -> None:
        super().check_state()
        for name in ("slopes_", "bends_", "offsets_", "lowest_", "highest_"):
            check_array(self, name, (len(self._mapped),))
        demand(bool((self.lowest_ <= self.highest_).all()), "lowest_")

    def _new_odds(self, odds: FloatArray) -> FloatArray:
        inside = np.clip(odds, self.lowest_, self.highest_)
        new: FloatArray = inside * (self.slopes_ + inside * self.bends_) + self.offsets_
        return new

    def _new_odds_nodes(self, nodes: Nodes, odds: str) -> str:
        inside = nodes.node("Min", odds, self.highest_[None, :])
        inside = nodes.node("Max", inside, self.lowest_[None, :])
        bent = nodes.add(nodes.mul(inside, self.bends_[None, :]), self.slopes_[None, :])
        return nodes.add(nodes.mul(inside, bent), self.offsets_[None, :])


def _sides(odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log p and -log(1 - p)."""
    return -np.logaddexp(0.0, -odds), np.logaddexp(0.0, odds)


def _one_sided(
    columns: Columns, position: int, target: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """The optimum with one of a and b at zero and the other at least zero, and its loss."""
    slopes, loss = fit_logistic(columns, target, weight)
    if slopes[0] < 0:
        constant, loss = fit_logistic([], target, weight)
        return np.array([0.0, 0.0, constant[-1]]), loss
    found = np.zeros(3)
    found[position], found[2] = slopes
    return found, loss


CalibratorEntry(
    "platt",
    "Platt scaling of the log odds, one class against the rest",
    "Platt",
    PlattScaling,
    "Platt 1999; Durfee et al. 2022, section 2.1",
    "A sigmoid of each class's log odds. It can leave a calibrated model unchanged; Sigmoid, "
    "which works on the probability, cannot.",
    "standard",
    compared=False,
    offered=True,
).offer()

CalibratorEntry(
    "beta",
    "Beta calibration, one class against the rest",
    "Beta",
    BetaCalibration,
    "Kull, Silva Filho and Flach 2017",
    "Like Platt's, with one slope for each end of the scale; it never falls.",
    "standard",
    compared=False,
    offered=True,
).offer()

CalibratorEntry(
    "quadratic",
    "Quadratic logistic scaling, one class against the rest",
    "Quadratic",
    QuadraticScaling,
    "Berta, Holzmüller, Jordan and Bach 2026",
    "Like Platt's, with a bend, so that one end of the scale can be sharpened while the other is "
    "softened. Good with two classes and some hundred rows.",
    "standard",
    compared=False,
).offer()
