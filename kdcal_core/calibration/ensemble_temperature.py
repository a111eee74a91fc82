"""Ensemble temperature scaling: a mixture of the model, the model at a temperature, and chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import minimize

from kdcal_core.calibration._temperature_fit import tempered
from kdcal_core.calibration.calibrator_base import ROWS_PER_PARAMETER, VectorCalibrator
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import effective
from kdcal_core.calibration.temperature import best_full_temperature, check_temperature
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes

_POLISH = 30


@storable
class EnsembleTemperature(VectorCalibrator):
    """w_0 p^(1/T) + w_1 p + w_2 / K: the model at a temperature, as it is, and even odds.

    Zhang, Kailkhura and Han, Mix-n-match (2020), with the log loss. T is the temperature with the
    smallest log loss of the whole vector; then the weights, which sum to one, minimise the log loss
    of the mixture. The predicted class stays the model's.

    Attributes
    ----------
    temperature_ : float in [0.05, 20]
    shares_ : (3,) array
        w_0, w_1 and w_2. w_2 is at least 1 / (n + 1) for n rows (the effective number if they have
        weights, of which only the ratios matter), so that nothing is certain.

    Notes
    -----
    Sequential quadratic programming, followed by a few steps of expectation maximisation. The
    mixture is concave in the weights, so the minimum is the only one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 1, 20000)
    >>> y = (rng.random(20000) < 0.1 + 0.8 * p).astype(int)  # a fifth of the answers are chance
    >>> fitted = EnsembleTemperature().fit(np.c_[1 - p, p], y)
    >>> fitted.predict_proba([[0.99, 0.01], [0.5, 0.5]])[:, 1].round(1).tolist()
    [0.1, 0.5]
    """

    keeps_prediction: ClassVar[bool] = True
    _why_no_onnx = None

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * 3

    def _counted(self, weight: FloatArray, effect: float) -> FloatArray:
        return effective(weight) / effect

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self.temperature_ = best_full_temperature(proba, y, weight)
        rows = np.arange(len(y))
        said = np.column_stack(
            [
                tempered(proba, self.temperature_)[rows, y],
                proba[rows, y],
                np.full(len(y), 1.0 / self.n_classes_),
            ]
        )
        self.shares_ = _shares(said, weight / weight.sum(), 1.0 / (float(weight.sum()) + 1.0))

    def _vectors(self, proba: FloatArray) -> FloatArray:
        soft, as_is, even = self.shares_
        mixed = soft * tempered(proba, self.temperature_) + as_is * proba
        found: FloatArray = mixed + even / self.n_classes_
        return found

    def onnx_nodes(self, nodes: Nodes, proba: str) -> str:
        soft, as_is, even = (float(one) for one in self.shares_)
        logs = nodes.node("Div", nodes.log(proba, CLIP), self.temperature_)
        mixed = nodes.mul(nodes.node("Softmax", logs, axis=1), soft)
        return nodes.add(nodes.add(mixed, nodes.mul(proba, as_is)), even / self.n_classes_)

    def check_state(self) -> None:
        super().check_state()
        check_temperature(getattr(self, "temperature_", None))
        shares = check_array(self, "shares_", (3,), low=0.0, high=1.0)
        demand(abs(shares.sum() - 1.0) < 1e-9, "shares_")


def _shares(said: FloatArray, weight: FloatArray, least: float) -> FloatArray:
    """Weights (3,) of answers (n, 3) with the smallest log loss; the last at least ``least``."""
    floor = np.array([0.0, 0.0, least])
    inside = (1.0 - least) * said + least * said[:, [2]]  # answers of mixtures with the floor

    def loss(share: FloatArray) -> tuple[float, FloatArray]:
        mixed = np.maximum(inside @ share, CLIP)
        return -float(weight @ np.log(mixed)), -((weight / mixed) @ inside)

    sum_to_one: Any = {"type": "eq", "fun": lambda w: w.sum() - 1.0, "jac": np.ones_like}
    found = minimize(
        loss,
        np.array([1.0, 1.0, 1.0]) / 3.0,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * 3,
        constraints=sum_to_one,
        options={"ftol": 1e-14, "maxiter": 200},
    )
    share = np.clip(found.x, 0.0, 1.0)
    share /= share.sum()
    for _ in range(_POLISH):
        share = share * ((weight / np.maximum(inside @ share, CLIP)) @ inside)
        share /= share.sum()
    made = (1.0 - least) * share + floor
    whole: FloatArray = made / made.sum()
    return whole


CalibratorEntry(
    "ets",
    "Ensemble temperature scaling",
    "ETS",
    EnsembleTemperature,
    "Zhang, Kailkhura and Han 2020",
    "A mixture of the model at one temperature, the model as it is, and even odds. Good with few "
    "rows, and where some labels are noise.",
    "temperature",
).offer()
