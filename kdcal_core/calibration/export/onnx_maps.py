"""What each calibrator computes, written as nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.base import Calibrator
from kdcal_core.calibration.export.onnx_columns import Columns
from kdcal_core.calibration.export.onnx_nodes import Nodes
from kdcal_core.calibration.export.onnx_regions import (
    CORNERS_AT_SCORES,
    regional_nodes,
    why_not_regions,
)
from kdcal_core.statistics import CLIP

Writer = Callable[[Nodes, Any, str], str]
# Of one class's column, or of the score of rows that predict it.
ClassWriter = Callable[[Nodes, Any, int, str], str]

_REASONS = {
    "CumulativeConfidence": CORNERS_AT_SCORES,
    "VennAbers": CORNERS_AT_SCORES,
    "KernelDensityCalibrator": "it asks the model for the region of each row",
}


def why_not(calibrator: Calibrator) -> str | None:
    """Why a calibrator cannot be told in ONNX, as half a sentence; None where it can.

    Examples
    --------
    >>> from kdcal_core.calibration import TopLabelHistogram
    >>> why_not(TopLabelHistogram()), why_not(TopLabelHistogram(strategy="quantile"))[:15]
    (None, 'its steps stand')
    """
    name = type(calibrator).__name__
    if getattr(calibrator, "strategy", None) == "quantile":
        return CORNERS_AT_SCORES
    if name == "HeterogeneousCalibrator":
        return why_not_regions(calibrator)
    if name in MAPS:
        return None
    return _REASONS.get(name, "kdcal does not know how to write it")


def calibrated_nodes(nodes: Nodes, calibrator: Any, proba: str, columns: Columns) -> str:
    """Append a calibrator to its model's probabilities, both (n, K) double.

    Parameters
    ----------
    nodes : Nodes
    calibrator : Calibrator
        Fitted, and one that :func:`why_not` has nothing against.
    proba : str
        The tensor of the model's probabilities.
    columns : Columns
        For calibrators that read them.

    Raises
    ------
    InputError
        The model does not take a column that the calibrator reads.
    """
    if calibrator.needs_inputs:
        return regional_nodes(nodes, calibrator, proba, columns)
    return MAPS[type(calibrator).__name__](nodes, calibrator, proba)


def _unchanged(nodes: Nodes, calibrator: Calibrator, proba: str) -> str:
    return nodes.node("Identity", proba)


def _anchor(nodes: Nodes, calibrator: Any, proba: str) -> str:
    """The shared temperature's probabilities, which answers are drawn to; (n, K)."""
    temperature = calibrator.anchor_temperature_
    if temperature == 1.0:
        return proba
    return nodes.node("Softmax", nodes.node("Div", nodes.log(proba, CLIP), temperature), axis=1)


def _pooled(
    nodes: Nodes, calibrator: Any, own: str, rows: str | float | NDArray[Any], anchor: str
) -> str:
    """(n f + m c) / (n + m)."""
    amount = float(calibrator.shrinkage_)
    share = nodes.node("Div", rows, nodes.node("Add", rows, amount))
    return nodes.add(nodes.mul(share, own), nodes.mul(nodes.less(1.0, share), anchor))


def _shrunk(write: Writer) -> Writer:
    """Without shrinkage as written; with an infinite one the shared temperature alone."""

    def either(nodes: Nodes, calibrator: Any, proba: str) -> str:
        if np.isinf(getattr(calibrator, "shrinkage_", 0.0)):
            return nodes.node("Identity", _anchor(nodes, calibrator, proba))
        return write(nodes, calibrator, proba)

    return either


def _is_shrunk(calibrator: Any) -> bool:
    return hasattr(calibrator, "shrinkage_")


@_shrunk
def _temperature(nodes: Nodes, calibrator: Any, proba: str) -> str:
    top = nodes.largest(proba, calibrator.n_classes_)
    logs = nodes.log(proba, CLIP)
    logs = nodes.add(logs, nodes.mul(top, calibrator.awards_[None, :]))
    temperature = nodes.node("MatMul", top, calibrator.temperatures_[:, None])
    own = nodes.node("Softmax", nodes.node("Div", logs, temperature), axis=1)
    if not _is_shrunk(calibrator):
        return own
    rows = nodes.node("MatMul", top, calibrator.rows_[:, None])
    return _pooled(nodes, calibrator, own, rows, _anchor(nodes, calibrator, proba))


@_shrunk
def _vector(nodes: Nodes, calibrator: Any, proba: str) -> str:
    logs = nodes.log(proba, CLIP)
    weights = calibrator.weights_
    if weights.ndim == 2:
        logs = nodes.node("MatMul", logs, weights.T)
    else:
        logs = nodes.mul(logs, weights[None, :])
    own = nodes.node("Softmax", nodes.add(logs, calibrator.offsets_[None, :]), axis=1)
    if not _is_shrunk(calibrator):
        return own
    return _pooled(nodes, calibrator, own, calibrator.rows_, _anchor(nodes, calibrator, proba))


def _log_odds(nodes: Nodes, proba: str, n_classes: int) -> str:
    """log p / (1 - p); 1 - p of the largest entry is the sum of the others."""
    top = nodes.largest(proba, n_classes)
    others = nodes.mul(proba, nodes.less(1.0, top))
    rest = nodes.add(
        nodes.mul(nodes.less(1.0, proba), nodes.less(1.0, top)),
        nodes.mul(top, nodes.row_sum(others)),
    )
    return nodes.node("Sub", nodes.log(proba, CLIP), nodes.log(rest, CLIP))


def _drawn(nodes: Nodes, calibrator: Any, columns: str, proba: str) -> str:
    """Maps of each class against the rest, drawn to the shared temperature, rows of sum one."""
    k = calibrator.n_classes_
    if _is_shrunk(calibrator):
        rows, anchor = calibrator.rows_[None, :], _anchor(nodes, calibrator, proba)
        columns = _pooled(nodes, calibrator, columns, rows, anchor)
    elif k == 2:
        return columns
    return nodes.shares(columns, k)


def _of_odds(new_odds: Writer) -> Writer:
    """A map of the log odds of each class, or of the second of two."""

    @_shrunk
    def write(nodes: Nodes, calibrator: Any, proba: str) -> str:
        k = calibrator.n_classes_
        odds = _log_odds(nodes, proba, k)
        if k == 2:
            odds = new_odds(nodes, calibrator, nodes.column(odds, 1))
            own = nodes.node("Sigmoid", nodes.columns([nodes.node("Neg", odds), odds]))
            return _drawn(nodes, calibrator, own, proba)
        odds = new_odds(nodes, calibrator, odds)
        if _is_shrunk(calibrator):
            return _drawn(nodes, calibrator, nodes.node("Sigmoid", odds), proba)
        logs = nodes.node("Neg", nodes.softplus(nodes.node("Neg", odds)))
        return nodes.node("Softmax", logs, axis=1)

    return write


@_of_odds
def _platt(nodes: Nodes, calibrator: Any, odds: str) -> str:
    scaled = nodes.mul(odds, calibrator.slopes_[None, :])
    return nodes.add(scaled, calibrator.offsets_[None, :])


@_of_odds
def _beta(nodes: Nodes, calibrator: Any, odds: str) -> str:
    log_p = nodes.node("Neg", nodes.softplus(nodes.node("Neg", odds)))
    low = nodes.mul(log_p, calibrator.a_[None, :])
    high = nodes.mul(nodes.softplus(odds), calibrator.b_[None, :])
    return nodes.add(nodes.add(low, high), calibrator.c_[None, :])


def _one_vs_rest(one: ClassWriter) -> Writer:
    """A map of each class's probability, or of the second of two."""

    @_shrunk
    def write(nodes: Nodes, calibrator: Any, proba: str) -> str:
        k = calibrator.n_classes_
        if k == 2:
            second = one(nodes, calibrator, 0, nodes.column(proba, 1))
            parts = [nodes.less(1.0, second), second]
        else:
            parts = [one(nodes, calibrator, j, nodes.column(proba, j)) for j in range(k)]
        return _drawn(nodes, calibrator, nodes.columns(parts), proba)

    return write


@_one_vs_rest
def _isotonic(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    at, value = calibrator.corners_[j], calibrator.values_[j]
    if len(at) == 1:
        return _constant(nodes, float(value[0]), score)
    slopes = np.diff(value) / np.diff(at)
    return nodes.cubic(score, at, np.stack([slopes, value[:-1]]))


@_one_vs_rest
def _sigmoid(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    scaled = nodes.mul(score, float(calibrator.slopes_[j]))
    return nodes.node("Sigmoid", nodes.add(scaled, float(calibrator.offsets_[j])))


@_one_vs_rest
def _class_bins(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    above = nodes.count_above(score, calibrator.edges_[j], inclusive=False)
    return nodes.step(above, calibrator.values_[j])


def _top_label(one: ClassWriter, rows: ClassWriter) -> Writer:
    """A confidence for each predicted class, and the rows behind it; the rest fills up to one."""

    @_shrunk
    def write(nodes: Nodes, calibrator: Any, proba: str) -> str:
        k = calibrator.n_classes_
        top = nodes.largest(proba, k)
        score = nodes.row_sum(nodes.mul(proba, top))

        def of_predicted(each: ClassWriter) -> str:
            parts = nodes.columns([each(nodes, calibrator, j, score) for j in range(k)])
            return nodes.row_sum(nodes.mul(parts, top))

        said = of_predicted(one)
        if _is_shrunk(calibrator):
            proba = _anchor(nodes, calibrator, proba)
            anchor = nodes.row_sum(nodes.mul(proba, top))
            said = _pooled(nodes, calibrator, said, of_predicted(rows), anchor)
        confidence = nodes.node("Max", nodes.node("Min", said, 1.0), 0.0)
        rest = nodes.less(1.0, top)
        others = nodes.mul(proba, rest)
        none = nodes.double(nodes.node("Equal", nodes.row_sum(others), 0.0))
        # where all others are zero they share what is left equally
        others = nodes.add(others, nodes.mul(rest, none))
        share = nodes.node("Div", nodes.less(1.0, confidence), nodes.row_sum(others))
        return nodes.add(nodes.mul(others, share), nodes.mul(top, confidence))

    return write


def _class_confidence(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    return _constant(nodes, float(calibrator.confidence_[j]), score)


def _class_rows(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    return _constant(nodes, float(calibrator.rows_[j]), score)


def _bins(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    above = nodes.count_above(score, calibrator.edges_[j], inclusive=False)
    return nodes.step(above, calibrator.values_[j])


def _bin_rows(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    above = nodes.count_above(score, calibrator.edges_[j], inclusive=False)
    return nodes.step(above, calibrator.rows_[j])


def _densities(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    curve = calibrator._curves_[j]
    if curve is None:
        return _constant(nodes, float(calibrator._conf1_[j]), score)
    return _along(nodes, curve, score)


def _density_rows(nodes: Nodes, calibrator: Any, j: int, score: str) -> str:
    curve = calibrator._rows_[j]
    if curve is None:
        return _constant(nodes, 0.0, score)
    return nodes.node("Exp", _along(nodes, curve, score))


def _along(nodes: Nodes, curve: Any, score: str) -> str:
    from scipy.interpolate import CubicHermiteSpline

    pieces = CubicHermiteSpline(curve.at, curve.value, curve.slope)
    return nodes.cubic(score, curve.at, pieces.c)


def _constant(nodes: Nodes, value: float, like: str) -> str:
    return nodes.add(nodes.mul(like, 0.0), value)


#: How to write a calibrator, by the name of its class.
MAPS: dict[str, Writer] = {
    "UncalibratedConfidence": _unchanged,
    "TopLabelConfidence": _top_label(_class_confidence, _class_rows),
    "TopLabelHistogram": _top_label(_bins, _bin_rows),
    "TopLabelKDE": _top_label(_densities, _density_rows),
    "TemperatureScaling": _temperature,
    "IsotonicConfidence": _isotonic,
    "SigmoidConfidence": _sigmoid,
    "PlattScaling": _platt,
    "BetaCalibration": _beta,
    "ClasswiseHistogram": _class_bins,
    "VectorScaling": _vector,
    "DirichletScaling": _vector,
}
