"""Vector and Dirichlet scaling: a linear map of the log probabilities before the softmax.

The fitted map is softmax(W z + b) of log probabilities z, with W full or diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration.calibrator_base import ROWS_PER_PARAMETER, log_proba, softmax_in_place
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import SHRINKAGE, Answers, ShrunkVectors
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.splits import fit_and_held, random_folds
from kdcal_core.statistics import CLIP, Dependence, only, units
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


_BLOCK = 8192
_SUBSAMPLE = 20_000
_MOST_SCALED = 1000  # with more weights the second derivatives take longer than the search
_EXACT: dict[str, Any] = {"ftol": 1e-12, "gtol": 1e-7, "maxiter": 1000, "maxcor": 30}
# With more weights, each step is too slow to search for the last digits.
_ROUGH: dict[str, Any] = {"ftol": 1e-7, "gtol": 1e-6, "maxiter": 60, "maxcor": 15}
_ROUGHEST: dict[str, Any] = {"ftol": 1e-5, "gtol": 1e-5, "maxiter": 25, "maxcor": 15}


@dataclass(frozen=True, eq=False)
class SoftmaxMap:
    """``weights`` W, (K, K) or its diagonal (K,), and ``offsets`` b, (K,)."""

    weights: FloatArray
    offsets: FloatArray

    @classmethod
    def identity(cls, n_classes: int, *, whole: bool) -> SoftmaxMap:
        """The map that does not change any row."""
        return cls(np.eye(n_classes) if whole else np.ones(n_classes), np.zeros(n_classes))

    def logits(self, z: FloatArray) -> FloatArray:
        """W z + b of each row, (n, K)."""
        product = z @ self.weights.T if self.weights.ndim == 2 else z * self.weights
        product += self.offsets
        return product

    def vector(self) -> FloatArray:
        """All parameters in one array, the offsets last."""
        return np.concatenate([self.weights.ravel(), self.offsets])

    def like(self, parameters: FloatArray) -> SoftmaxMap:
        """A map of this shape with these parameters."""
        k = len(self.offsets)
        return SoftmaxMap(parameters[:-k].reshape(self.weights.shape), parameters[-k:])


@dataclass(frozen=True, eq=False)
class Pull:
    """Strength of the penalty towards the identity, in units of one row's log loss.

    Added to the sum of the rows' losses are half the ``diagonal`` times the squared distances of
    diagonal weights from one, half the ``between`` times the squares of the weights between
    classes, and half the ``offsets`` times the squares of the offsets.
    """

    diagonal: float
    between: float
    offsets: float

    def times(self, share: float) -> Pull:
        """The same penalty for a share of the rows."""
        return Pull(self.diagonal * share, self.between * share, self.offsets * share)

    def strengths(self, shape: SoftmaxMap) -> FloatArray:
        """One strength for each parameter of a map of this shape."""
        k = len(shape.offsets)
        weights = np.full(shape.weights.shape, self.between)
        if weights.ndim == 1:
            weights[:] = self.diagonal
        else:
            np.fill_diagonal(weights, self.diagonal)
        return np.concatenate([weights.ravel(), np.full(k, self.offsets)])


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """Log probabilities (n, K), true classes (n,) and weights (n,) of fit rows."""

    z: FloatArray
    y: IntArray
    weight: FloatArray

    def take(self, rows: slice | IntArray) -> SoftmaxRows:
        return SoftmaxRows(self.z[rows], self.y[rows], self.weight[rows])

    def log_loss(self, by: SoftmaxMap) -> float:
        """Mean log loss of a map."""
        value, _ = self._loss_and_slope(by)
        return value / float(self.weight.sum())

    def fit(self, start: SoftmaxMap, pull: Pull, *, trial: bool = False) -> SoftmaxMap:
        """The map with the smallest loss, searched first on an even subsample of many rows.

        A ``trial`` with very many weights stops at an approximate minimum.
        """
        stride = len(self.y) // _SUBSAMPLE
        scale = None
        if stride > 1:
            few = self.take(slice(None, None, stride))
            share = float(few.weight.sum() / self.weight.sum())
            less = pull.times(share)
            start = few.fit(start, less)
            scale = few._scale(start, less)
        elif start.weights.size > _MOST_SCALED:
            scale = self._diagonal_scale(start, pull)
        strengths = pull.strengths(start)
        centre = SoftmaxMap.identity(len(start.offsets), whole=start.weights.ndim == 2).vector()
        total = float(self.weight.sum())

        scale = np.ones_like(strengths) if scale is None else scale
        whole = scale.ndim == 2
        rough = _ROUGHEST if trial else _ROUGH

        def moved(steps: FloatArray) -> FloatArray:
            ahead: FloatArray = scale @ steps if whole else scale * steps
            return ahead

        def objective(steps: FloatArray) -> tuple[float, FloatArray]:
            parameters = start.vector() + moved(steps)
            value, slope = self._loss_and_slope(start.like(parameters))
            away = parameters - centre
            value += 0.5 * float(strengths @ away**2)
            slope += strengths * away
            return value / total, (slope @ scale if whole else slope * scale) / total

        options: Any = rough if start.weights.size > _MOST_SCALED else _EXACT
        found = minimize(
            objective,
            np.zeros_like(strengths),
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
        return start.like(start.vector() + moved(found.x))

    def _scale(self, at: SoftmaxMap, pull: Pull) -> FloatArray | None:
        """Steps with the same curvature of the loss in all directions, as columns, (p, p).

        Log probabilities are correlated, so the curvature of the loss is a thousand times larger in
        some directions of W than in others, which makes the search slow. None for a diagonal map,
        which does not need it, and for too many parameters.
        """
        if at.weights.ndim == 1 or at.weights.size > _MOST_SCALED:
            return None
        proba = softmax_in_place(at.logits(self.z))
        share = proba * (self.weight / self.weight.sum())[:, None]
        with_one = np.column_stack([self.z, np.ones(len(self.z))])
        k = len(at.offsets)
        bends = np.empty((k, k + 1, k, k + 1))
        for a in range(k):
            for b in range(a, k):
                by = share[:, a] * ((a == b) - proba[:, b])
                bends[a, :, b] = with_one.T @ (with_one * by[:, None])
                bends[b, :, a] = bends[a, :, b].T
        # parameters are ordered row by row in W, followed by the offsets
        order = np.arange(k * (k + 1)).reshape(k, k + 1)
        place = np.concatenate([order[:, :k].ravel(), order[:, k]])
        matrix = bends.reshape(k * (k + 1), -1)[np.ix_(place, place)]
        matrix += np.diag(pull.strengths(at)) / float(self.weight.sum())
        return np.linalg.inv(np.linalg.cholesky(matrix)).T

    def _diagonal_scale(self, at: SoftmaxMap, pull: Pull) -> FloatArray:
        """Steps with the same curvature of the loss for every parameter, (p,)."""
        bends, of_offsets = np.zeros_like(at.weights), np.zeros_like(at.offsets)
        for start in range(0, len(self.y), _BLOCK):
            part = slice(start, start + _BLOCK)
            proba = softmax_in_place(at.logits(self.z[part]))
            bend = proba * (1.0 - proba) * self.weight[part][:, None]
            bends += bend.T @ self.z[part] ** 2
            of_offsets += bend.sum(axis=0)
        found = np.concatenate([bends.ravel(), of_offsets]) + pull.strengths(at)
        scale: FloatArray = np.sqrt(float(self.weight.sum()) / found)
        return scale

    def _loss_and_slope(self, by: SoftmaxMap) -> tuple[float, FloatArray]:
        """Sum of the weighted log losses, and its gradient by all parameters."""
        value = 0.0
        weights, offsets = np.zeros_like(by.weights), np.zeros_like(by.offsets)
        for at in range(0, len(self.y), _BLOCK):
            part = slice(at, at + _BLOCK)
            z, y, weight = self.z[part], self.y[part], self.weight[part]
            rows = np.arange(len(y))
            logits = by.logits(z)
            logits -= logits.max(axis=1, keepdims=True)
            true = logits[rows, y]
            np.exp(logits, out=logits)
            total = logits.sum(axis=1)
            value += float(weight @ (np.log(total) - true))
            logits *= (weight / total)[:, None]
            logits[rows, y] -= weight
            if weights.ndim == 2:
                weights += logits.T @ z
            else:
                weights += np.einsum("ij,ij->j", logits, z)
            offsets += logits.sum(axis=0)
        return value, np.concatenate([weights.ravel(), offsets])


_STRENGTHS = (1e4, 1e3, 1e2, 1e1, 1e0, 1e-1)
_FOLDS = 3
_TRIAL_ROWS = 10_000


class _SoftmaxMaps(ShrunkVectors):
    """softmax(W log p + b), with W diagonal or full; every answer is based on all rows."""

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

    Vector scaling is by Guo, Pleiss, Sun and Weinberger (2017); w = 1 and b = 0 do not change the
    model. Unlike the class-specific temperature of Salamon et al., the weight belongs to the class
    of the entry and not to the predicted class, and the largest entry may change.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        Number of rows added to those of the fit, with the outcomes that a safe temperature for all
        classes predicts (:mod:`kdcal_core.calibration.shrinkage`). "auto" chooses it by held-out
        log loss; None uses only the map, as in Guo et al.

    Attributes
    ----------
    weights_, offsets_ : (K,) arrays
        w and b.
    rows_ : float
        Number of fit rows, or the effective number if they have weights.
    shrinkage_, anchor_temperature_ : float
        The number of rows added, and the safe temperature. Only with shrinkage.

    Notes
    -----
    Maximum likelihood by L-BFGS. Parameters are shrunk towards 1 and 0 with the strength of one
    row, which keeps them finite for separated or absent classes and is negligible with many rows.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).dirichlet([1, 1, 1], 4000)
    >>> honest = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    >>> y = (np.random.default_rng(1).random((4000, 1)) > honest.cumsum(axis=1)).sum(axis=1)
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
        self._keep(rows.fit(start, Pull(1.0, 1.0, 1.0)), weight)

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "weights_", (self.n_classes_,))
        check_array(self, "offsets_", (self.n_classes_,))


@storable
class DirichletScaling(_SoftmaxMaps):
    """softmax(W log p + b) with a full matrix W, shrunk towards a diagonal one (Kull et al., 2019).

    This map is right if the probabilities of each class's rows are Dirichlet distributed. W = 1 and
    b = 0 do not change the model.

    Parameters
    ----------
    strength : "auto" or float, default="auto"
        Strength of the penalty on W's off-diagonal entries and b (ODIR), in rows: half of it times
        their squares is added to the sum of the log losses of all rows. "auto" chooses among 0.1,
        1, ... 10,000 the one with the smallest log loss in three-fold cross-validation on at most
        10,000 rows, and the largest with fewer than 30 rows.
    shrinkage : "auto", float or None, default="auto"
        As in :class:`VectorScaling`; None as in Kull et al.

    Attributes
    ----------
    weights_ : (K, K) array
    offsets_ : (K,) array
    strength_ : float
        The strength in use.
    rows_, shrinkage_, anchor_temperature_ : float
        As in :class:`VectorScaling`.

    Notes
    -----
    The diagonal is shrunk towards one with the strength of one row, which keeps everything finite.
    Strengths are tried from the largest down, until two in a row are worse than the best. With more
    than 1,000 weights (31 classes) the search stops when a step gains less than 1e-7 of the loss;
    214 classes and 3,000 rows then take about ten seconds instead of minutes. The trials that
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

    def _trial_settings(self) -> dict[str, Any]:
        return {**super()._trial_settings(), "strength": self.strength_}

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        k = self.n_classes_
        rows = SoftmaxRows(log_proba(proba), y, weight)
        start = SoftmaxMap.identity(k, whole=True)
        if isinstance(self.strength, str):
            self.strength_, start = _chosen(rows, start, self._dependence)
        else:
            self.strength_ = float(self.strength)
        self._keep(rows.fit(start, Pull(1.0, self.strength_, self.strength_)), weight)

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "weights_", (self.n_classes_, self.n_classes_))
        check_array(self, "offsets_", (self.n_classes_,))


def _chosen(
    rows: SoftmaxRows, start: SoftmaxMap, dependence: Dependence | None
) -> tuple[float, SoftmaxMap]:
    """The strength with the smallest cross-validated loss, the largest of equal ones."""
    some = slice(None, None, -(-len(rows.y) // _TRIAL_ROWS))
    few, dependence = rows.take(some), only(dependence, some)
    if len(few.y) < 10 * _FOLDS or len(units(few.weight, dependence)) < 2:
        return _STRENGTHS[0], start
    fold = random_folds(len(few.y), _FOLDS, 0, dependence, fewer=True)
    parts = [(few.take(fit), few.take(held)) for fit, held in fit_and_held(fold)]
    found = [start] * len(parts)
    loss: list[float] = []
    for strength in _STRENGTHS:
        found = [
            fit.fit(at, Pull(1.0, strength, strength), trial=True)
            for (fit, _), at in zip(parts, found, strict=True)
        ]
        loss.append(sum(judge.log_loss(at) for (_, judge), at in zip(parts, found, strict=True)))
        # weaker ones are then worse and slower to fit
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
    "Each class's new log probability is a weighted sum of all old ones; weights between "
    "classes are kept small.",
    "standard",
    compared=False,
).offer()
