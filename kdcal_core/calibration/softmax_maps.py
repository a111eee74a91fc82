"""Vector and Dirichlet scaling: a linear map of the log probabilities before the softmax."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration._softmax_fit import (
    Pull,
    SoftmaxMap,
    SoftmaxRows,
    log_proba,
    softmax_in_place,
)
from kdcal_core.calibration.base import ROWS_PER_PARAMETER
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import SHRINKAGE, Answers, ShrunkVectors
from kdcal_core.calibration.state import check_array, demand
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.splits import stratified_folds
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes

_STRENGTHS = (1e4, 1e3, 1e2, 1e1, 1e0, 1e-1)
_FOLDS = 3
_TRIAL_ROWS = 10_000


class _SoftmaxMaps(ShrunkVectors):
    """softmax(W log p + b), W diagonal or whole; every answer is based on all rows."""

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._note_absent(y)
        super()._fit(proba, y, weight)

    def _keep(self, found: SoftmaxMap, weight: FloatArray) -> None:
        self.weights_, self.offsets_ = found.weights, found.offsets
        self.rows_ = float(weight.sum())

    def check_state(self) -> None:
        super().check_state()
        if self._shrunk:
            rows = getattr(self, "rows_", None)
            demand(type(rows) is float and 0 < rows < np.inf, "rows_")

    def _answers(self, proba: FloatArray) -> Answers:
        return self._own_vectors(proba), np.array(self.rows_)

    def _own_vectors(self, proba: FloatArray) -> FloatArray:
        return softmax_in_place(SoftmaxMap(self.weights_, self.offsets_).logits(log_proba(proba)))

    _why_no_onnx = None

    def _own_nodes(self, nodes: Nodes, proba: str) -> str:
        logs = nodes.log(proba, CLIP)
        if self.weights_.ndim == 2:
            logs = nodes.node("MatMul", logs, self.weights_.T)
        else:
            logs = nodes.mul(logs, self.weights_[None, :])
        own = nodes.node("Softmax", nodes.add(logs, self.offsets_[None, :]), axis=1)
        if not self._shrunk:
            return own
        return self._pooled_nodes(nodes, own, self.rows_, self._anchor_nodes(nodes, proba))


@storable
class VectorScaling(_SoftmaxMaps):
    """softmax of (w_j log p_j + b_j): a temperature and an offset for each class.

    Vector scaling (Guo, Pleiss, Sun and Weinberger, 2017); w = 1 and b = 0 leave the model as it
    is. Unlike Salamon et al.'s class-specific temperature, the weight belongs to the class of
    the entry, not to the class that is predicted, and the largest entry may change.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        Number of rows added to those of the fit, with outcomes as a safe temperature for all
        classes states (:mod:`kdcal_core.calibration.shrinkage`). "auto" chooses by held-out log
        loss; None uses the map alone, as Guo et al. do.

    Attributes
    ----------
    weights_, offsets_ : (K,) arrays
        w and b.
    rows_ : float
        Rows of the fit, the effective number where they have weights.
    shrinkage_, anchor_temperature_ : float
        The rows added, and the safe temperature. With shrinkage only.

    Notes
    -----
    Maximum likelihood by L-BFGS. Parameters are drawn to 1 and 0 as strongly as one row would,
    which keeps them finite where classes are parted or absent and is nothing where rows are many.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], 20000)
    >>> honest = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    >>> y = (np.random.default_rng(1).random((20000, 1)) > honest.cumsum(axis=1)).sum(axis=1)
    >>> VectorScaling().fit(p, y).weights_.round(1).tolist()
    [0.5, 0.5, 0.5]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"shrinkage": SHRINKAGE}

    def __init__(self, shrinkage: Any = "auto") -> None:
        self.shrinkage = shrinkage

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * 2 * n_classes

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        rows = SoftmaxRows(log_proba(proba), y, weight)
        start = SoftmaxMap.identity(self.n_classes_, whole=False)
        self._keep(rows.fit(start, Pull(1.0, 1.0)), weight)

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "weights_", (self.n_classes_,))
        check_array(self, "offsets_", (self.n_classes_,))


@storable
class DirichletScaling(_SoftmaxMaps):
    """softmax(W log p + b) with a whole matrix W, drawn to a diagonal one (Kull et al., 2019).

    The map that is right where the probabilities of each class's rows are Dirichlet distributed.
    W = 1 and b = 0 leave the model as it is.

    Parameters
    ----------
    strength : "auto" or float, default="auto"
        How strongly W's entries off the diagonal and b are drawn to zero (ODIR): half of it times
        their squares is added to the sum of the log losses of all rows, so it counts in rows.
        "auto" takes the one of 0.1, 1, ... 10,000 with the smallest log loss in three-fold
        cross-validation on at most 10,000 rows; with fewer than 30 rows the largest.
    shrinkage : "auto", float or None, default="auto"
        As in :class:`VectorScaling`; None is as Kull et al. have it.

    Attributes
    ----------
    weights_ : (K, K) array
    offsets_ : (K,) array
    strength_ : float
        The one in force.
    rows_, shrinkage_, anchor_temperature_ : float
        As in :class:`VectorScaling`.

    Notes
    -----
    The diagonal is drawn to one as strongly as one row would, so that all stays finite. Strengths
    are tried from the largest down, until two in a row are worse than the best. With more than
    1,000 weights (31 classes) the search ends where a step gains less than 1e-7 of the loss; 214
    classes and 3,000 rows then take some ten seconds, where they took minutes. The trials that
    choose the shrinkage use the strength of the whole fit.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], 6000)
    >>> honest = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    >>> y = (np.random.default_rng(1).random((6000, 1)) > honest.cumsum(axis=1)).sum(axis=1)
    >>> calibrator = DirichletScaling().fit(p, y)
    >>> np.diag(calibrator.weights_).round(1).tolist()
    [0.5, 0.5, 0.5]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "strength": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "shrinkage": SHRINKAGE,
    }

    def __init__(self, strength: Any = "auto", shrinkage: Any = "auto") -> None:
        self.strength = strength
        self.shrinkage = shrinkage

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * n_classes * (n_classes + 1)

    def _trial(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> Self:
        known = clone(self).set_params(strength=self.strength_)
        known.n_classes_ = self.n_classes_
        trial: Self = super(DirichletScaling, known)._trial(proba, y, weight)
        return trial

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        k = self.n_classes_
        rows = SoftmaxRows(log_proba(proba), y, weight)
        start = SoftmaxMap.identity(k, whole=True)
        if isinstance(self.strength, str):
            self.strength_, start = _chosen(rows, start)
        else:
            self.strength_ = float(self.strength)
        self._keep(rows.fit(start, Pull(1.0, self.strength_)), weight)

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "weights_", (self.n_classes_, self.n_classes_))
        check_array(self, "offsets_", (self.n_classes_,))


def _chosen(rows: SoftmaxRows, start: SoftmaxMap) -> tuple[float, SoftmaxMap]:
    """The strength of the smallest cross-validated loss, the largest of equal ones."""
    few = rows.take(slice(None, None, -(-len(rows.y) // _TRIAL_ROWS)))
    if len(few.y) < 10 * _FOLDS:
        return _STRENGTHS[0], start
    fold = stratified_folds(few.y, _FOLDS)
    parts = [(few.take(fold != held), few.take(fold == held)) for held in range(_FOLDS)]
    found = [start] * _FOLDS
    loss: list[float] = []
    for strength in _STRENGTHS:
        found = [
            fit.fit(at, Pull(1.0, strength), trial=True)
            for (fit, _), at in zip(parts, found, strict=True)
        ]
        loss.append(sum(judge.log_loss(at) for (_, judge), at in zip(parts, found, strict=True)))
        # weaker ones are then worse, and slower to fit
        if len(loss) > 1 and loss[-1] > loss[-2] > min(loss):
            break
    return _STRENGTHS[int(np.argmin(loss))], start


CalibratorEntry(
    "vector",
    "Vector scaling",
    "Vector",
    VectorScaling,
    "Guo, Pleiss, Sun and Weinberger 2017",
    "A temperature and an offset for each class.",
    "standard",
    compared=False,
).offer()

CalibratorEntry(
    "dirichlet",
    "Dirichlet calibration, off-diagonal and intercept regularised",
    "Dirichlet",
    DirichletScaling,
    "Kull et al. 2019",
    "Each class's new log probability is a weighted sum of all the old ones; weights between "
    "classes are held small.",
    "standard",
    compared=False,
    offered=True,
).offer()
