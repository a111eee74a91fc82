"""Calibration of one class against the rest: isotonic, sigmoid and histogram binning.

Isotonic and sigmoid calibration are baselines as in scikit-learn. The sigmoid is a logistic
regression on soft targets, fitted by Newton's method on all rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration.calibrator_base import CORNERS_AT_SCORES, ROWS_PER_PARAMETER, n_maps
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import SHRINKAGE, Answers, ShrunkVectors
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges, uniform_edges
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, check_arrays, demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


_SUBSAMPLE = 20_000


@dataclass(frozen=True, eq=False)
class Ridge:
    """A penalty on the parameters of a logistic fit, in units of one row's log loss.

    Half of ``(t - centre) . matrix (t - centre)`` is added to the sum of the rows' losses, for all
    parameters t with the offset last: ``matrix`` (p + 1, p + 1), ``centre`` (p + 1,).
    """

    matrix: FloatArray
    centre: FloatArray

    @classmethod
    def of(cls, strengths: Sequence[float], centre: Sequence[float]) -> Ridge:
        """One strength for each parameter."""
        return cls(np.diag(np.asarray(strengths, float)), np.asarray(centre, float))


def fit_logistic(
    columns: Sequence[FloatArray],
    target: FloatArray,
    weight: FloatArray,
    ridge: Ridge | None = None,
) -> tuple[FloatArray, float]:
    """Slopes and offset of expit(slopes . columns + offset), and the mean log loss.

    The targets are Platt's, (n1 + 1) / (n1 + 2) for a yes and 1 / (n0 + 2) for a no. They keep the
    minimum finite even if the classes are separated or one is absent. With a ridge, which does the
    same, they are 1 and 0.

    Parameters
    ----------
    columns : p arrays (n,)
        p may be zero.
    target : (n,) array of 0 and 1
    weight : (n,) array of positive weights
    ridge : Ridge, optional

    Returns
    -------
    (p + 1,) array
        Slopes, and the offset last.
    float
        The mean log loss against the soft targets, or with a ridge the mean penalised loss.

    Notes
    -----
    The search starts from the result on an even subsample, which saves full passes.
    """
    n_yes = float(weight @ target)
    n_no = float(weight.sum()) - n_yes
    if ridge is None:
        soft = np.where(target > 0, (n_yes + 1) / (n_yes + 2), 1 / (n_no + 2))
        at = np.zeros(len(columns) + 1)
        at[-1] = np.log((n_yes + 1) / (n_no + 1))
        ridge = Ridge(np.zeros((len(at), len(at))), at)
    else:
        soft, at = target, ridge.centre
    rows = np.empty((len(columns), len(soft)))  # each column's numbers lie side by side
    for j, column in enumerate(columns):
        rows[j] = column
    stride = len(soft) // _SUBSAMPLE
    if stride > 1:
        few = np.ascontiguousarray(rows[:, ::stride])
        light = Ridge(ridge.matrix / stride, ridge.centre)
        at, _ = _newton(at, few, soft[::stride], weight[::stride], light)
    return _newton(at, rows, soft, weight, ridge)


def _newton(
    at: FloatArray,
    columns: FloatArray,
    soft: FloatArray,
    weight: FloatArray,
    ridge: Ridge,
) -> tuple[FloatArray, float]:
    """Newton's method with step halving on the weighted log loss of the columns (p, n)."""
    share = weight / weight.sum()
    pull = ridge.matrix / weight.sum()
    linear = np.append(columns @ (share * soft), share @ soft)

    def odds(at: FloatArray) -> FloatArray:
        total: FloatArray = at[:-1] @ columns + at[-1]
        return total

    def loss(at: FloatArray) -> float:
        away = at - ridge.centre
        penalty = 0.5 * away @ pull @ away
        return float(share @ np.logaddexp(0.0, odds(at)) - linear @ at + penalty)

    value = loss(at)
    for _ in range(100):
        fitted = expit(odds(at))
        mass = share * fitted
        gradient = np.append(columns @ mass, mass.sum()) - linear
        gradient += pull @ (at - ridge.centre)
        step = np.linalg.solve(_curvature(columns, mass * (1 - fitted)) + pull, gradient)
        size = 1.0
        while (new := loss(at - size * step)) > value and size > 1e-6:
            size /= 2
        if new >= value:
            break
        at, gain, value = at - size * step, value - new, new
        if gain < 1e-14:
            break
    return at, value


def _curvature(columns: FloatArray, bend: FloatArray) -> FloatArray:
    """Second derivatives, with a very small ridge for constant columns."""
    p = len(columns)
    found = 1e-12 * np.eye(p + 1)
    found[p, p] += bend.sum()
    bent = columns * bend
    found[:p, :p] += bent @ columns.T
    found[p, :p] = found[:p, p] = bent.sum(axis=1)
    return found


class RarerRows(ShrunkVectors):
    """Maps of each class against the rest, whose evidence is the number of rows of the rarer side.

    Attributes
    ----------
    rows_ : (K,) array
        Weight of the rows of each class, or of all others if that is less. Each side counts its
        observed or its expected rows, whichever is more, because the absence of a class that the
        model expected often is strong evidence.
    """

    rows_: FloatArray

    def _count(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        found = np.bincount(y, weights=weight, minlength=self.n_classes_)
        sides = np.sort([found, weight @ proba], axis=0)
        self.rows_ = np.minimum(sides[1], np.maximum(weight.sum() - sides[0], 0.0))

    def check_state(self) -> None:
        super().check_state()
        if self._shrunk:
            check_array(self, "rows_", (self.n_classes_,), low=0.0)

    def _answers(self, proba: FloatArray) -> Answers:
        return self._columns(proba), self.rows_[None, :]

    @abstractmethod
    def _columns(self, proba: FloatArray) -> FloatArray:
        """The values of each class's map, (n, K), before rows are scaled to sum to one."""

    def _drawn_nodes(self, nodes: Nodes, columns: str, proba: str) -> str:
        """Nodes of the maps shrunk towards the shared temperature; rows sum to one."""
        if self._shrunk:
            anchor = self._anchor_nodes(nodes, proba)
            columns = self._pooled_nodes(nodes, columns, self.rows_[None, :], anchor)
        elif self.n_classes_ == 2:
            return columns
        return nodes.shares(columns, self.n_classes_)


class OneVersusRest(RarerRows):
    """Calibrates each probability column against the rest, then scales rows to sum to one.

    As in scikit-learn's ``CalibratedClassifierCV``, with two classes only the second column is
    calibrated and the first is its complement; a row of zeros becomes uniform. Subclasses fit the
    map of one column, store it and apply it to scores.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        Number of rows added to each class, with the outcomes that a safe temperature for all
        classes predicts (:mod:`kdcal_core.calibration.shrinkage`). "auto" chooses it by held-out
        log loss; None uses only each class's own map.
    """

    _rows_per_map: ClassVar[int]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"shrinkage": SHRINKAGE}

    def __init__(self, shrinkage: Any = "auto") -> None:
        self.shrinkage = shrinkage

    def rows_needed(self, n_classes: int) -> int:
        return self._rows_per_map * n_maps(n_classes)

    @property
    def _n_maps(self) -> int:
        return n_maps(self.n_classes_)

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._count(proba, y, weight)
        columns = [1] if self.n_classes_ == 2 else range(self.n_classes_)
        self._keep(
            [self._fit_column(proba[:, j], (y == j).astype(np.float64), weight) for j in columns]
        )

    @abstractmethod
    def _fit_column(
        self, score: FloatArray, target: FloatArray, weight: FloatArray
    ) -> tuple[Any, ...]:
        """The fitted map of one column."""

    @abstractmethod
    def _keep(self, maps: list[Any]) -> None:
        """Store the maps of all columns."""

    @abstractmethod
    def _map(self, j: int, score: FloatArray) -> FloatArray:
        """Calibrated probabilities from the map with index ``j``."""

    def _columns(self, proba: FloatArray) -> FloatArray:
        if self.n_classes_ == 2:
            second = self._map(0, proba[:, 1])
            return np.column_stack([1.0 - second, second])
        return np.column_stack([self._map(j, proba[:, j]) for j in range(self.n_classes_)])

    def _own_vectors(self, proba: FloatArray) -> FloatArray:
        mapped = self._columns(proba)
        if self.n_classes_ == 2:
            return mapped
        total = mapped.sum(axis=1, keepdims=True)
        uniform = np.full_like(mapped, 1.0 / self.n_classes_)
        np.divide(mapped, total, out=uniform, where=total > 0)
        return uniform

    def _own_nodes(self, nodes: Nodes, proba: str) -> str:
        if self.n_classes_ == 2:
            second = self._map_nodes(nodes, 0, nodes.column(proba, 1))
            parts = [nodes.less(1.0, second), second]
        else:
            parts = [
                self._map_nodes(nodes, j, nodes.column(proba, j)) for j in range(self.n_classes_)
            ]
        return self._drawn_nodes(nodes, nodes.columns(parts), proba)

    def _map_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        """Nodes of the map with index ``j`` for a column of scores, (n, 1)."""
        raise NotImplementedError(self._why_no_onnx)


@storable
class IsotonicConfidence(OneVersusRest):
    """Isotonic regression of each class against the rest, as in scikit-learn.

    A baseline that does not look at which class was predicted. ``predict_proba`` returns the
    rescaled vector itself, the confidence is its entry at the model's predicted class.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        As in :class:`OneVersusRest`; None as in scikit-learn.

    Attributes
    ----------
    corners_, values_ : tuple of (g,) arrays
        Corners of each class's map and its values there, with linear interpolation; with two
        classes only the second's map.

    Examples
    --------
    >>> proba = [[0.6, 0.4], [0.3, 0.7], [0.2, 0.8], [0.1, 0.9]]
    >>> calibrator = IsotonicConfidence(shrinkage=None).fit(proba, [0, 1, 0, 1])
    >>> calibrator.predict_confidence([[0.25, 0.75]]).tolist()
    [0.5]
    """

    _rows_per_map = 60
    _why_no_onnx = None

    def _fit_column(
        self, score: FloatArray, target: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        regression = IsotonicRegression(out_of_bounds="clip").fit(score, target, weight)
        return regression.X_thresholds_, regression.y_thresholds_

    def _keep(self, maps: list[tuple[FloatArray, FloatArray]]) -> None:
        self.corners_ = tuple(corners for corners, _ in maps)
        self.values_ = tuple(values for _, values in maps)

    def check_state(self) -> None:
        super().check_state()
        corners = check_arrays(self, "corners_", self._n_maps, low=0.0, high=1.0)
        values = check_arrays(self, "values_", self._n_maps, low=0.0, high=1.0)
        for at, value in zip(corners, values, strict=True):
            demand(len(at) == len(value) > 0 and bool((np.diff(at) > 0).all()), "corners_")

    def _map(self, j: int, score: FloatArray) -> FloatArray:
        return np.interp(score, self.corners_[j], self.values_[j])

    def _map_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        at, value = self.corners_[j], self.values_[j]
        if len(at) == 1:
            return nodes.constant_like(score, float(value[0]))
        return nodes.cubic(score, at, np.stack([np.diff(value) / np.diff(at), value[:-1]]))


@storable
class SigmoidConfidence(OneVersusRest):
    """Platt's sigmoid of each class's probability against the rest, as in scikit-learn.

    Targets are Platt's (n1 + 1) / (n1 + 2) and 1 / (n0 + 2). A baseline that does not look at
    which class was predicted. ``predict_proba`` returns the rescaled vector itself, the
    confidence is its entry at the model's predicted class.

    The sigmoid is applied to the probability, ``expit(a p + b)``, so it always changes the model;
    :class:`PlattScaling` is applied to the log odds.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        As in :class:`OneVersusRest`; None as in scikit-learn.

    Attributes
    ----------
    slopes_, offsets_ : (K,) arrays, or (1,) for two classes
        a and b of each class's sigmoid; with two classes, of the second.

    Examples
    --------
    >>> proba = [[0.6, 0.4], [0.3, 0.7], [0.2, 0.8], [0.1, 0.9]]
    >>> calibrator = SigmoidConfidence(shrinkage=None).fit(proba, [0, 1, 0, 1])
    >>> calibrator.predict_confidence([[0.25, 0.75]]).round(3).tolist()
    [0.535]
    """

    _rows_per_map = 20
    _why_no_onnx = None

    def _fit_column(
        self, score: FloatArray, target: FloatArray, weight: FloatArray
    ) -> tuple[float, float]:
        (slope, offset), _ = fit_logistic([score], target, weight)
        return float(slope), float(offset)

    def _keep(self, maps: list[tuple[float, float]]) -> None:
        self.slopes_ = np.array([slope for slope, _ in maps])
        self.offsets_ = np.array([offset for _, offset in maps])

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "slopes_", (self._n_maps,))
        check_array(self, "offsets_", (self._n_maps,))

    def _map(self, j: int, score: FloatArray) -> FloatArray:
        probability: FloatArray = expit(self.slopes_[j] * score + self.offsets_[j])
        return probability

    def _map_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        scaled = nodes.mul(score, float(self.slopes_[j]))
        return nodes.node("Sigmoid", nodes.add(scaled, float(self.offsets_[j])))


CalibratorEntry(
    "isotonic",
    "Isotonic regression, one class against the rest",
    "Isotonic",
    IsotonicConfidence,
    "scikit-learn, CalibratedClassifierCV",
    "A rising step function for each class's probability, whichever class was predicted.",
    "standard",
    offered=True,
).offer()

CalibratorEntry(
    "sigmoid",
    "Sigmoid, one class against the rest",
    "Sigmoid",
    SigmoidConfidence,
    "scikit-learn, CalibratedClassifierCV",
    "Platt's sigmoid of each class's probability, whichever class was predicted; unlike Platt "
    "scaling on the log odds, it changes even a calibrated model.",
    "standard",
).offer()


@storable
class ClasswiseHistogram(OneVersusRest):
    """The share of a class among rows whose probability of it lies in the same bin.

    Histogram binning (Zadrozny and Elkan, 2001) of each class against the rest, after which rows
    are scaled to sum to one; with two classes only the second is binned.
    :class:`TopLabelHistogram` bins only the predicted class.

    Parameters
    ----------
    n_bins : int, default=15
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass, or of equal width on [0, 1]. Equal scores stay in one bin, so there may
        be fewer bins of equal mass.

    Attributes
    ----------
    edges_ : tuple of (B + 1,) arrays
        Bin edges of each class, or of the second of two. Bins are (a, b], the first closed at 0.
    values_ : tuple of (B,) arrays
        Probability of each bin.

    Notes
    -----
    A bin with r rows of the class among m has the value (r + q) / (m + 1), where q is the share of
    the class among all rows, with one row of each class added. A bin without rows thus has the
    value q, and no bin has 0 or 1, which could make the log loss infinite.

    Examples
    --------
    >>> p = [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]
    >>> calibrator = ClasswiseHistogram(n_bins=2, shrinkage=None)
    >>> calibrator = calibrator.fit([[1 - v, v] for v in p], [0, 0, 1, 1, 1, 1])
    >>> calibrator.predict_proba([[0.75, 0.25]]).round(3).tolist()
    [[0.594, 0.406]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"quantile", "uniform"})],
        "shrinkage": SHRINKAGE,
    }

    def __init__(
        self, n_bins: int = 15, strategy: str = "quantile", shrinkage: Any = "auto"
    ) -> None:
        super().__init__(shrinkage)
        self.n_bins = n_bins
        self.strategy = strategy

    def why_no_onnx(self) -> str | None:
        return CORNERS_AT_SCORES if self.strategy == "quantile" else None

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * int(self.n_bins) * n_maps(n_classes)

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._note_absent(y)
        super()._fit(proba, y, weight)

    def _fit_column(
        self, score: FloatArray, target: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        if self.strategy == "quantile":
            edges = _equal_mass(score, int(self.n_bins), weight)
        else:
            edges = uniform_edges(int(self.n_bins))
        index = bin_index(score, edges)
        mass = bin_sums(index, len(edges) - 1, weight)
        right = bin_sums(index, len(edges) - 1, weight * target)
        share = (right.sum() + 1) / (mass.sum() + self.n_classes_)
        return edges, (right + share) / (mass + 1)

    def _keep(self, maps: list[tuple[FloatArray, FloatArray]]) -> None:
        self.edges_ = tuple(edges for edges, _ in maps)
        self.values_ = tuple(values for _, values in maps)

    def check_state(self) -> None:
        super().check_state()
        edges = check_arrays(self, "edges_", self._n_maps, low=0.0, high=1.0)
        values = check_arrays(self, "values_", self._n_maps, low=0.0, high=1.0)
        for at, value in zip(edges, values, strict=True):
            demand(len(at) == len(value) + 1 > 1 and bool((np.diff(at) > 0).all()), "edges_")
            demand(at[0] == 0.0 and at[-1] == 1.0, "edges_")

    def _map(self, j: int, score: FloatArray) -> FloatArray:
        found: FloatArray = self.values_[j][bin_index(score, self.edges_[j])]
        return found

    def _map_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        above = nodes.count_above(score, self.edges_[j], inclusive=False)
        return nodes.step(above, self.values_[j])


def _equal_mass(score: FloatArray, n_bins: int, weight: FloatArray) -> FloatArray:
    """Edges of equal mass, halfway between scores, so that rounding moves no row.

    Scores of exactly 0 that would fill a bin get a separate bin.
    """
    edges = quantile_edges(score, n_bins, weight)
    known = np.append(np.unique(score), 1.0)
    zero = score == 0
    if not zero.all() and weight[zero].sum() * n_bins >= weight.sum():
        edges = np.insert(edges, 1, 0.0)
    inner = edges[1:-1]
    edges[1:-1] = 0.5 * (inner + known[np.searchsorted(known, inner, side="right")])
    return np.unique(edges)  # the midpoint of adjacent doubles is one of them


CalibratorEntry(
    "histogram_classes",
    "Histogram of each class's probability, 15 bins of equal mass",
    "Histogram by class",
    ClasswiseHistogram,
    "Zadrozny and Elkan 2001",
    "The share of each class among rows with a probability like this row's, whichever class "
    "was predicted.",
    "standard",
    compared=False,
).offer()
