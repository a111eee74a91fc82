"""Spline calibration: a smooth curve of each class's log odds against the rest."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration.calibrator_base import ROWS_PER_PARAMETER, n_maps
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.log_odds_maps import LogOddsCurves, log_odds
from kdcal_core.calibration.one_vs_rest import Ridge, fit_logistic
from kdcal_core.calibration.shrinkage import SHRINKAGE
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.splits import random_folds
from kdcal_core.statistics import only, surprisal, units
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes

_STRENGTHS = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
_FOLDS = 3
_FEWEST_ROWS = 10 * _FOLDS
_MOST_ROWS = 20_000
_NARROW = 1e-6  # log odds within it count as equal
_WIDEST = 30.0  # log odds of probabilities clipped at 1e-12 are smaller
_LARGEST = 1e6
_NO_OFFSET = 1e9


def natural_pieces(corners: FloatArray, values: FloatArray) -> FloatArray:
    """Cubic coefficients of the natural spline through (g, ...) values, (4, g - 1, ...).

    The highest power comes first, in the distance from the corner where the piece begins.

    Examples
    --------
    >>> natural_pieces(np.array([0.0, 1.0]), np.array([2.0, 5.0]))[:, 0].round(6).tolist()
    [0.0, 0.0, 3.0, 2.0]
    """
    from scipy.interpolate import CubicSpline

    pieces: FloatArray = CubicSpline(corners, values, bc_type="natural").c
    return np.concatenate([np.zeros((4 - len(pieces), *pieces.shape[1:])), pieces])


@storable
@dataclass(frozen=True, eq=False)
class SplineCurve:
    """A natural cubic spline of log odds, constant beyond its corners.

    ``corners`` (g,) ascend, and ``values`` (g,) are the new log odds there.
    """

    corners: FloatArray
    values: FloatArray

    def __call__(self, odds: FloatArray) -> FloatArray:
        """New log odds, (n,)."""
        if len(self.corners) == 1:
            return np.full(len(odds), self.values[0])
        return _at(odds, self.corners, natural_pieces(self.corners, self.values))

    def nodes(self, nodes: Nodes, odds: str) -> str:
        """Nodes of the new log odds, (n, 1)."""
        if len(self.corners) == 1:
            return nodes.constant_like(odds, float(self.values[0]))
        return nodes.cubic(odds, self.corners, natural_pieces(self.corners, self.values))

    def check(self) -> None:
        """Refuse corners and values that no fit gives."""
        at = check_array(self, "corners", (None,), low=-_WIDEST, high=_WIDEST)
        demand(len(at) > 0 and bool((np.diff(at) > 0.1 * _NARROW**2).all()), "corners")
        check_array(self, "values", (len(at),), low=-_LARGEST, high=_LARGEST)


def _at(odds: FloatArray, corners: FloatArray, pieces: FloatArray) -> FloatArray:
    """The spline with these pieces, constant beyond its corners, (n, ...)."""
    inside = np.clip(odds, corners[0], corners[-1])
    place = np.clip(np.searchsorted(corners, inside, side="right") - 1, 0, len(corners) - 2)
    distance = (inside - corners[place]).reshape(-1, *(1,) * (pieces.ndim - 2))
    found: FloatArray = pieces[0][place]
    for power in pieces[1:]:
        found = found * distance + power[place]
    return found


def roughness(corners: FloatArray) -> FloatArray:
    """The matrix R with v . R v = integral of s''^2 for the natural spline s through v, (g, g).

    The corners are measured in units of their range.

    Examples
    --------
    >>> R = roughness(np.array([0.0, 5.0, 10.0]))
    >>> straight, bent = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0])
    >>> round(float(straight @ R @ straight), 6), round(float(bent @ R @ bent), 6)
    (0.0, 48.0)
    """
    unit = (corners - corners[0]) / (corners[-1] - corners[0])
    pieces = natural_pieces(unit, np.eye(len(unit)))
    width = np.diff(unit)
    left = 2.0 * pieces[1]  # second derivatives at both ends of each piece, (g - 1, g)
    right = left + 6.0 * pieces[0] * width[:, None]
    third = (width / 6.0)[:, None, None]
    cross = left[:, :, None] * right[:, None, :]
    square = left[:, :, None] * left[:, None, :] + right[:, :, None] * right[:, None, :]
    found: FloatArray = (third * (2.0 * square + cross + cross.transpose(0, 2, 1))).sum(axis=0)
    return found


@storable
class SplineCalibration(LogOddsCurves):
    """expit(s(odds)) with a natural cubic spline s of the log odds of each class against the rest.

    Smoothing splines for calibration are by Lucena, Spline-based probability calibration (2018).
    The spline has corners at quantiles of the different log odds of the calibration rows. It is
    pulled towards a straight line, which is Platt's scaling, and that line weakly towards the
    identity, which does not change a model of two classes. Beyond the log odds of the calibration
    rows the answer stays that of the nearest one. With more than two classes rows are scaled to sum
    to one afterwards.

    Parameters
    ----------
    n_corners : int, default=8
        Largest number of corners; equal log odds may leave fewer.
    strength : "auto" or float, default="auto"
        Strength of the penalty on bends: half of it times the integral of s''^2, with the log odds
        in units of their range, is added to the sum of the rows' log losses. "auto" chooses among
        0.0001, 0.001, ... 10 the one with the smallest log loss in three-fold cross-validation, one
        for all classes, and the largest with fewer than 30 rows.
    shrinkage : "auto", float or None, default="auto"
        As in :class:`~kdcal_core.calibration.one_vs_rest.OneVersusRest`.

    Attributes
    ----------
    curves_ : tuple of SplineCurve
        Each class's curve, with its ``corners`` and ``values``; with two classes only the second's.
    strength_ : float
        The strength in use.

    Notes
    -----
    Newton's method on the penalised log loss. The pull towards the identity is half of
    (a - 1)^2 + b^2, in units of one row's log loss, where a s + b is the straight line nearest to
    the curve at its corners. Lucena draws thirty corners
    at random and adds twenty rows on the identity instead. Nothing keeps the curve from falling.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> odds = 2 * rng.normal(size=2000)
    >>> p = expit(odds)
    >>> y = (rng.random(2000) < 0.1 + 0.8 * p).astype(int)  # a tenth is noise
    >>> fitted = SplineCalibration().fit(np.c_[1 - p, p], y)
    >>> fitted.predict_proba([[0.99, 0.01], [0.5, 0.5]])[:, 1].round(1).tolist()
    [0.1, 0.5]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_corners": [Interval(Integral, 2, 50, closed="both")],
        "strength": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "shrinkage": SHRINKAGE,
    }

    def __init__(self, n_corners: int = 8, strength: Any = "auto", shrinkage: Any = "auto") -> None:
        super().__init__(shrinkage)
        self.n_corners = n_corners
        self.strength = strength

    def rows_needed(self, n_classes: int) -> int:
        # the penalty leaves a straight line and a bend or two of few rows
        return ROWS_PER_PARAMETER * 5 * n_maps(n_classes)

    def _trial_settings(self) -> dict[str, Any]:
        return {**super()._trial_settings(), "strength": self.strength_}

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._count(proba, y, weight)
        odds = log_odds(proba)
        if isinstance(self.strength, str):
            self.strength_ = self._chosen(odds, y, weight)
        else:
            self.strength_ = float(self.strength)
        self.curves_ = tuple(
            self._curve(odds[:, label], (y == label).astype(np.float64), weight, self.strength_)
            for label in self._mapped
        )

    def _chosen(self, odds: FloatArray, y: IntArray, weight: FloatArray) -> float:
        """The strength with the smallest cross-validated loss, the largest of equal ones."""
        stride = -(-len(y) // _MOST_ROWS)
        odds, y, weight = odds[::stride], y[::stride], weight[::stride]
        dependence = only(self._dependence, slice(None, None, stride))
        if len(y) < _FEWEST_ROWS or len(units(weight, dependence)) < 2:
            return _STRENGTHS[0]
        fold = random_folds(len(y), _FOLDS, 0, dependence, fewer=True)
        loss: list[float] = []
        for strength in _STRENGTHS:
            total = 0.0
            for held in (fold == at for at in range(int(fold.max()) + 1)):
                for label in self._mapped:
                    column, target = odds[:, label], (y == label).astype(np.float64)
                    kept = ~held
                    curve = self._curve(column[kept], target[kept], weight[kept], strength)
                    said = expit(np.where(target[held] > 0, 1.0, -1.0) * curve(column[held]))
                    total += float(weight[held] @ surprisal(said))
            loss.append(total)
            if len(loss) > 1 and loss[-1] > loss[-2] > min(loss):
                break  # weaker ones are then worse
        return _STRENGTHS[int(np.argmin(loss))]

    def _curve(
        self, odds: FloatArray, target: FloatArray, weight: FloatArray, strength: float
    ) -> SplineCurve:
        # of the different ones, so that a repeated row moves no corner
        corners = np.quantile(np.unique(odds), np.linspace(0.0, 1.0, int(self.n_corners)))
        if corners[-1] - corners[0] < _NARROW:
            ridge = Ridge.of([1.0], [corners[0]])
            constant, _ = fit_logistic([], target, weight, ridge)
            return SplineCurve(corners[:1], constant)
        apart = np.diff(corners, prepend=-np.inf) > _NARROW * (corners[-1] - corners[0])
        corners = corners[apart]
        g = len(corners)
        basis = _at(odds, corners, natural_pieces(corners, np.eye(g)))
        matrix = np.zeros((g + 1, g + 1))
        line = np.linalg.pinv(np.column_stack([corners, np.ones(g)]))
        matrix[:g, :g] = strength * roughness(corners) + line.T @ line
        matrix[g, g] = _NO_OFFSET  # the curve can do what an offset would
        ridge = Ridge(matrix, np.append(corners, 0.0))
        found, _ = fit_logistic(list(basis.T), target, weight, ridge)
        return SplineCurve(corners, found[:g] + found[g])

    def check_state(self) -> None:
        super().check_state()
        curves = getattr(self, "curves_", None)
        demand(isinstance(curves, tuple) and len(curves) == len(self._mapped), "curves_")
        for curve in self.curves_:
            demand(isinstance(curve, SplineCurve), "curves_")
            curve.check()

    def _new_odds(self, odds: FloatArray) -> FloatArray:
        return np.column_stack([curve(odds[:, at]) for at, curve in enumerate(self.curves_)])

    def _new_odds_nodes(self, nodes: Nodes, odds: str) -> str:
        return nodes.columns(
            [curve.nodes(nodes, nodes.column(odds, at)) for at, curve in enumerate(self.curves_)]
        )


CalibratorEntry(
    "spline",
    "Spline calibration, one class against the rest",
    "Spline",
    SplineCalibration,
    "Lucena 2018",
    "A smooth curve of each class's log odds, as straight as the rows allow. Good with two "
    "classes and many rows, where Platt's sigmoid is too stiff.",
    "standard",
    compared=False,
).offer()
