"""Shrinkage of the answers of each class's own rows towards a map that all classes share.

A curve for each predicted class, or for each class against the rest, is 0 or 1 where a few rows
were all wrong or all right. With the setting ``shrinkage`` its answer f is pooled with the answer c
of a safe temperature for all classes (:func:`safe_temperature`),

    ``(n f + m c) / (n + m)``,

as if m further rows had the outcomes that c predicts, which corresponds to a Beta prior worth m
rows. n is the number of rows on which f is based. Each method defines it: the kernel-weighted rows
at the score (kernel 1 at its peak), the rows of the bin, or those of the class. With many rows the
result is close to f, and without rows it is c.

m is the same for all classes. "auto" chooses the largest of :data:`AMOUNTS` whose total held-out
log loss in five-fold cross-validation is within two nats of the smallest. One of them is infinity,
which uses only the safe temperature. Among so many amounts, chance alone gives differences of two
nats, and where such a difference is real, this caution costs little.

Rows with weights are counted by :func:`effective`, so only the ratios of weights matter.

Measured on 23 tables (15 real ones) with 100 and 300 calibration rows and kernel densities with
b_mon2, as the mean change of the top-label log loss from that of the safe temperature: the amount
with the smallest held-out loss gave +0.0015 and -0.0038 (at worst +0.017 and +0.010), the largest
within one standard error -0.0004 and -0.0037 (at worst +0.0053 and +0.0045), and the largest within
two nats -0.0014 and -0.0042 (at worst +0.0028 and +0.0024). The best amount of the grid, chosen on
the test rows, would have given -0.0048 and -0.0063.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration._temperature_fit import HIGHEST, LOWEST, safe_temperature, tempered
from kdcal_core.calibration.calibrator_base import (
    TopLabelCalibrator,
    VectorCalibrator,
    spread,
    top_label,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.splits import random_folds
from kdcal_core.errors import quiet
from kdcal_core.statistics import CLIP, only, surprisal, units
from kdcal_core.store.estimators import demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes

AMOUNTS: tuple[float, ...] = (
    *(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0),
    *(1e3, 2e3, 5e3, 1e4, np.inf),
)
SHRINKAGE: list[Any] = [
    StrOptions({"auto"}),
    Interval(Real, 0, np.inf, closed="right"),
    None,
]
"""The allowed values of the parameter."""
_TOLERATED_NATS = 2.0
_FOLDS = 5
_FEWEST_ROWS = 30
MOST_ROWS = 20_000
"""Rows by which an amount is chosen, at most."""

# A method's answers for some rows, and the number of rows on which each is based.
Answers = tuple[FloatArray, FloatArray]


def pooled(own: FloatArray, rows: FloatArray, shared: FloatArray, amount: float) -> FloatArray:
    """(n f + m c) / (n + m); c itself where m is infinite.

    Examples
    --------
    >>> pooled(np.array([1.0]), np.array([3.0]), np.array([0.8]), 2.0).round(2).tolist()
    [0.92]
    """
    if np.isinf(amount):
        return shared
    found: FloatArray = (rows * own + amount * shared) / (rows + amount)
    return found


def effective(weight: FloatArray) -> FloatArray:
    """The weights scaled to sum to Kish's effective number of rows.

    That number is (sum of w)^2 / (sum of w^2), which is the number of rows if all weights are
    equal.

    Parameters
    ----------
    weight : (n,) array

    Examples
    --------
    >>> effective(np.array([0.1, 0.1, 0.1, 0.1])).round(6).tolist()
    [1.0, 1.0, 1.0, 1.0]
    >>> effective(np.array([3.0, 1.0])).round(6).tolist()
    [1.2, 0.4]
    """
    share = weight / weight.max()  # keeps squares of huge weights finite
    scaled: FloatArray = share * (share.sum() / (share @ share))
    return scaled


class _Shrinkable(TopLabelCalibrator):
    """A calibrator with the parameter ``shrinkage``: "auto", a number m of rows, or None.

    Attributes
    ----------
    shrinkage_ : float
        The value of m in use; infinite where only the shared temperature is used. Only if
        ``shrinkage`` is not None.
    anchor_temperature_ : float
        The shared temperature towards which answers are shrunk; 1 is the model as it is. Only if
        ``shrinkage`` is not None.
    """

    shrinkage: Any
    # Rows by which temperature and amount are chosen, while a fit lasts, if not by all of its own.
    _chosen_by: tuple[FloatArray, IntArray, FloatArray] | None = None

    def fit(self, proba: Any, y: Any, sample_weight: Any = None) -> Self:
        for name in ("shrinkage_", "anchor_temperature_"):
            self.__dict__.pop(name, None)  # from an earlier fit
        return super().fit(proba, y, sample_weight)

    def _counted(self, weight: FloatArray, effect: float) -> FloatArray:
        return weight if self.shrinkage is None else effective(weight) / effect

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._fit_alone(proba, y, weight)
        if self.shrinkage is None:
            return
        rows = self._chosen_by or (proba, y, weight)
        self.anchor_temperature_ = safe_temperature(*rows)
        if isinstance(self.shrinkage, str):
            self._keep_amounts(_cautious(self._held_out_losses(*rows)))
        else:
            self.shrinkage_ = float(self.shrinkage)

    @abstractmethod
    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Fit without shrinkage."""

    @abstractmethod
    def _answers(self, proba: FloatArray) -> Answers:
        """Each row's answer without shrinkage, and the number of rows on which it is based."""

    @abstractmethod
    def _loss(self, answers: Answers, shared: FloatArray, amount: float, y: IntArray) -> FloatArray:
        """Log loss of each row, (n,), with an amount; ``shared`` are the tempered rows."""

    def _trials(self, proba: FloatArray) -> Sequence[Answers]:
        """Answers with each of the settings that share one fit; the first is this one."""
        return (self._answers(proba),)

    def _keep_amounts(self, amounts: list[float]) -> None:
        """Store the amount chosen for each trial."""
        (self.shrinkage_,) = amounts

    @property
    def _shrunk(self) -> bool:
        return hasattr(self, "shrinkage_")

    def _held_out_losses(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> FloatArray:
        """Total held-out log loss for each trial and amount, (T, M)."""
        stride = max(1, -(-len(y) // MOST_ROWS))
        proba, y, weight = proba[::stride], y[::stride], weight[::stride]
        dependence = only(self._dependence, slice(None, None, stride))
        if len(y) < _FEWEST_ROWS or len(units(weight, dependence)) < 2:
            return np.zeros((len(self._trials(proba[:1])), len(AMOUNTS)))
        fold = random_folds(len(y), _FOLDS, 0, dependence, fewer=True)
        total: FloatArray | float = 0.0
        for held in (fold == at for at in range(int(fold.max()) + 1)):
            kept = ~held
            trial = self._trial(proba[kept], y[kept], weight[kept])
            shared = tempered(proba[held], safe_temperature(proba[kept], y[kept], weight[kept]))
            total = total + np.array(
                [
                    [weight[held] @ trial._loss(answers, shared, m, y[held]) for m in AMOUNTS]
                    for answers in trial._trials(proba[held])
                ]
            )
        return np.asarray(total)

    def _trial(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> Self:
        """The same method fitted without shrinkage on some of the rows, without warnings."""
        other: Self = clone(self).set_params(**self._trial_settings())
        other.n_classes_, other.notes_ = self.n_classes_, ()
        with quiet():
            other._fit_alone(proba, y, weight)
        return other

    def _trial_settings(self) -> dict[str, Any]:
        """Settings of a trial: without shrinkage, and with what all rows chose."""
        return {"shrinkage": None}

    def onnx_nodes(self, nodes: Nodes, proba: str) -> str:
        if self._shrunk and np.isinf(self.shrinkage_):
            return nodes.node("Identity", self._anchor_nodes(nodes, proba))
        return self._own_nodes(nodes, proba)

    def _own_nodes(self, nodes: Nodes, proba: str) -> str:
        """Nodes of the answers without shrinkage or with a finite amount, (n, K)."""
        raise NotImplementedError(self._why_no_onnx)

    def _anchor_nodes(self, nodes: Nodes, proba: str) -> str:
        """Nodes of the shared temperature's probabilities, the target of shrinkage, (n, K)."""
        if self.anchor_temperature_ == 1.0:
            return proba
        logs = nodes.node("Div", nodes.log(proba, CLIP), self.anchor_temperature_)
        return nodes.node("Softmax", logs, axis=1)

    def _pooled_nodes(
        self, nodes: Nodes, own: str, rows: str | float | FloatArray, anchor: str
    ) -> str:
        """Nodes of (n f + m c) / (n + m)."""
        share = nodes.node("Div", rows, nodes.node("Add", rows, float(self.shrinkage_)))
        return nodes.add(nodes.mul(share, own), nodes.mul(nodes.less(1.0, share), anchor))

    def check_state(self) -> None:
        super().check_state()
        demand(self._shrunk == (self.shrinkage is not None), "the shrinkage")
        if self._shrunk:
            demand(type(self.shrinkage_) is float and self.shrinkage_ > 0, "the shrinkage")
            anchor = getattr(self, "anchor_temperature_", None)
            demand(
                type(anchor) is float and LOWEST * 0.999 <= anchor <= HIGHEST * 1.001,
                "the shared temperature",
            )


class ShrunkConfidence(_Shrinkable):
    """Shrinkage for methods that give a confidence for the predicted class, (n,).

    With shrinkage the other entries of ``predict_proba`` are those of the shared temperature. With
    more than two classes rows of equal score then differ, unless that temperature is 1.
    """

    @property
    def follows_score(self) -> bool:
        if not self._shrunk or self.n_classes_ == 2:
            return True
        return bool(self.anchor_temperature_ == 1.0)

    def _confidence(self, proba: FloatArray) -> FloatArray:
        if not self._shrunk:
            return self._answers(proba)[0]
        return self._pooled(proba, tempered(proba, self.anchor_temperature_))

    def _vectors(self, proba: FloatArray) -> FloatArray:
        if not self._shrunk:
            return super()._vectors(proba)
        shared = tempered(proba, self.anchor_temperature_)
        return spread(shared, self._pooled(proba, shared), top_label(proba)[0])

    def _pooled(self, proba: FloatArray, shared: FloatArray) -> FloatArray:
        predicted, _ = top_label(proba)
        of_predicted = shared[np.arange(len(proba)), predicted]
        if np.isinf(self.shrinkage_):
            return of_predicted
        found = pooled(*self._answers(proba), of_predicted, self.shrinkage_)
        return np.clip(found, 0.0, 1.0)

    def _loss(self, answers: Answers, shared: FloatArray, amount: float, y: IntArray) -> FloatArray:
        predicted, of_predicted = top_label(shared)
        confidence = pooled(*answers, of_predicted, amount)
        happened = np.where(predicted == y, confidence, 1.0 - confidence)
        return surprisal(happened)

    def _own_nodes(self, nodes: Nodes, proba: str) -> str:
        top = nodes.largest(proba, self.n_classes_)
        score = nodes.row_sum(nodes.mul(proba, top))

        def of_predicted(each: Callable[[Nodes, int, str], str]) -> str:
            parts = nodes.columns([each(nodes, j, score) for j in range(self.n_classes_)])
            return nodes.row_sum(nodes.mul(parts, top))

        said = of_predicted(self._class_nodes)
        if self._shrunk:
            proba = self._anchor_nodes(nodes, proba)
            anchor = nodes.row_sum(nodes.mul(proba, top))
            said = self._pooled_nodes(nodes, said, of_predicted(self._class_rows_nodes), anchor)
        confidence = nodes.node("Max", nodes.node("Min", said, 1.0), 0.0)
        rest = nodes.less(1.0, top)
        others = nodes.mul(proba, rest)
        none = nodes.double(nodes.node("Equal", nodes.row_sum(others), 0.0))
        # where all others are zero, they share the rest equally
        others = nodes.add(others, nodes.mul(rest, none))
        share = nodes.node("Div", nodes.less(1.0, confidence), nodes.row_sum(others))
        return nodes.add(nodes.mul(others, share), nodes.mul(top, confidence))

    def _class_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        """Nodes of the confidence for predictions of class ``j`` with this score, (n, 1)."""
        raise NotImplementedError(self._why_no_onnx)

    def _class_rows_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        """Nodes of the number of rows on which that confidence is based, (n, 1)."""
        raise NotImplementedError(self._why_no_onnx)


class ShrunkVectors(VectorCalibrator, _Shrinkable):
    """Shrinkage for methods that give every class a probability, (n, K), scaled to sum to one.

    The numbers of rows are (n, K), or broadcast to it.
    """

    @abstractmethod
    def _own_vectors(self, proba: FloatArray) -> FloatArray:
        """Probabilities without shrinkage; rows sum to one."""

    def _vectors(self, proba: FloatArray) -> FloatArray:
        if not self._shrunk:
            return self._own_vectors(proba)
        shared = tempered(proba, self.anchor_temperature_)
        if np.isinf(self.shrinkage_):
            return shared.copy()
        found = pooled(*self._answers(proba), shared, self.shrinkage_)
        found /= found.sum(axis=1, keepdims=True)
        return found

    def _loss(self, answers: Answers, shared: FloatArray, amount: float, y: IntArray) -> FloatArray:
        found = pooled(*answers, shared, amount)
        happened = found[np.arange(len(y)), y] / found.sum(axis=1)
        return surprisal(happened)


def _cautious(losses: FloatArray) -> list[float]:
    """For each row of total losses, the largest amount that is nearly as good as the best."""
    near = losses <= losses.min(axis=1, keepdims=True) + _TOLERATED_NATS
    return [max(m for m, good in zip(AMOUNTS, row, strict=True) if good) for row in near]
