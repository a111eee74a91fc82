"""Structured vector and matrix scaling: softmax maps that are pulled towards one temperature.

A temperature for all classes comes first. Then a softmax map (:mod:`softmax_maps`) corrects it,
pulled towards the identity by a penalty that grows with the number of classes and not with the
number of rows: with few rows the result is close to the temperature, with many it is free.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from kdcal_core.calibration._temperature_fit import tempered
from kdcal_core.calibration.calibrator_base import (
    ROWS_PER_PARAMETER,
    VectorCalibrator,
    log_proba,
    softmax_in_place,
)
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import effective
from kdcal_core.calibration.softmax_maps import Pull, SoftmaxMap, SoftmaxRows
from kdcal_core.calibration.temperature import best_full_temperature, check_temperature
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


class _StructuredScaling(VectorCalibrator):
    """softmax(W log q + b) of the tempered probabilities q.

    Parameters
    ----------
    strength : float, default=1.0
        Factor on all strengths of the penalty.
    """

    _whole: ClassVar[bool]
    _why_no_onnx = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "strength": [Interval(Real, 0, None, closed="neither")]
    }

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def _counted(self, weight: FloatArray, effect: float) -> FloatArray:
        return effective(weight) / effect

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._note_absent(y)
        k = self.n_classes_
        self.temperature_ = best_full_temperature(proba, y, weight)
        self.rows_ = float(weight.sum())
        pull = Pull(2.0 * k, 2.0 * k * (k - 1), 2.0 * k).times(float(self.strength))
        rows = SoftmaxRows(log_proba(self._softened(proba)), y, weight)
        found = rows.fit(SoftmaxMap.identity(k, whole=self._whole), pull)
        self.weights_, self.offsets_ = found.weights, found.offsets

    def _softened(self, proba: FloatArray) -> FloatArray:
        """q: the tempered probabilities, with one row in n + 1 spread evenly over the classes."""
        even = 1.0 / (self.rows_ + 1.0)
        return (1.0 - even) * tempered(proba, self.temperature_) + even / self.n_classes_

    def _vectors(self, proba: FloatArray) -> FloatArray:
        found = SoftmaxMap(self.weights_, self.offsets_)
        return softmax_in_place(found.logits(log_proba(self._softened(proba))))

    def onnx_nodes(self, nodes: Nodes, proba: str) -> str:
        even = 1.0 / (self.rows_ + 1.0)
        logs = nodes.node("Div", nodes.log(proba, CLIP), self.temperature_)
        soft = nodes.mul(nodes.node("Softmax", logs, axis=1), 1.0 - even)
        logs = nodes.log(nodes.add(soft, even / self.n_classes_), CLIP)
        if self._whole:
            logs = nodes.node("MatMul", logs, self.weights_.T)
        else:
            logs = nodes.mul(logs, self.weights_[None, :])
        return nodes.node("Softmax", nodes.add(logs, self.offsets_[None, :]), axis=1)

    def check_state(self) -> None:
        super().check_state()
        k = self.n_classes_
        check_temperature(getattr(self, "temperature_", None))
        rows = getattr(self, "rows_", None)
        demand(type(rows) is float and 0 < rows < np.inf, "rows_")
        check_array(self, "weights_", (k, k) if self._whole else (k,))
        check_array(self, "offsets_", (k,))


@storable
class StructuredVectorScaling(_StructuredScaling):
    """softmax of (v_j log q_j + b_j) of tempered probabilities q, with v pulled to 1 and b to 0.

    Structured vector scaling (SVS) is by Berta, Holzmüller, Jordan and Bach, Structured matrix
    scaling for multi-class calibration (2026). First one temperature T for all classes minimises
    the log loss of the whole vector, and one row in n + 1 is spread evenly over the K classes,
    which gives q. Then v and b minimise the sum of the rows' log losses plus
    K (sum (v_j - 1)^2 + sum b_j^2).

    Parameters
    ----------
    strength : float, default=1.0
        Factor on the penalty.

    Attributes
    ----------
    temperature_ : float in [0.05, 20]
    weights_, offsets_ : (K,) arrays
        v and b.
    rows_ : float
        Number of fit rows, or the effective number if they have weights; only the ratios of
        weights matter.

    Notes
    -----
    By default the fit is that of ``SVSCalibrator`` in probmetrics, with probabilities clipped at
    1e-12 instead of 1e-38 and the temperature within [0.05, 20].

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], 20000)
    >>> honest = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    >>> y = (np.random.default_rng(1).random((20000, 1)) > honest.cumsum(axis=1)).sum(axis=1)
    >>> calibrator = StructuredVectorScaling().fit(p, y)
    >>> round(calibrator.temperature_, 1), calibrator.weights_.round(1).tolist()
    (2.1, [1.0, 1.0, 1.0])
    """

    _whole = False

    def rows_needed(self, n_classes: int) -> int:
        # the temperature, and a class's two numbers once the penalty lets them go
        return ROWS_PER_PARAMETER * (1 + n_classes)


@storable
class StructuredMatrixScaling(_StructuredScaling):
    """softmax(W log q + b) of tempered probabilities q, with W pulled to 1 and b to 0.

    Structured matrix scaling (SMS) is by Berta, Holzmüller, Jordan and Bach, Structured matrix
    scaling for multi-class calibration (2026). As in :class:`StructuredVectorScaling`, a
    temperature comes first. Then W and b minimise the sum of the rows' log losses plus
    K (sum (W_jj - 1)^2 + sum b_j^2) + K (K - 1) (sum of W_ij^2 between different classes).

    Parameters
    ----------
    strength : float, default=1.0
        Factor on the penalty.

    Attributes
    ----------
    temperature_ : float in [0.05, 20]
    weights_ : (K, K) array
        W.
    offsets_ : (K,) array
        b.
    rows_ : float
        As in :class:`StructuredVectorScaling`.

    Notes
    -----
    By default the fit is that of ``SMSCalibrator`` in probmetrics, with probabilities clipped at
    1e-12 instead of 1e-38 and the temperature within [0.05, 20].

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], 20000)
    >>> said = p @ np.array([[0.8, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # 0 as 1
    >>> y = (np.random.default_rng(1).random((20000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> calibrator = StructuredMatrixScaling().fit(said, y)
    >>> calibrator.predict_proba([[0.4, 0.4, 0.2]]).round(1).tolist()
    [[0.5, 0.3, 0.2]]
    """

    _whole = True

    def rows_needed(self, n_classes: int) -> int:
        # the penalty keeps the weights between classes near zero until there are many rows
        return ROWS_PER_PARAMETER * (1 + 2 * n_classes)


CalibratorEntry(
    "svs",
    "Structured vector scaling",
    "SVS",
    StructuredVectorScaling,
    "Berta, Holzmüller, Jordan and Bach 2026",
    "One temperature for all, then a factor and an offset for each class, which stay small with "
    "few rows. Good with two classes and with many, also on few rows.",
    "standard",
    compared=False,
    offered=True,
).offer()

CalibratorEntry(
    "sms",
    "Structured matrix scaling",
    "SMS",
    StructuredMatrixScaling,
    "Berta, Holzmüller, Jordan and Bach 2026",
    "Like structured vector scaling, and each class's probability may also depend on the other "
    "classes'. Good where the model confuses some classes with each other.",
    "standard",
    compared=False,
    offered=True,
).offer()
