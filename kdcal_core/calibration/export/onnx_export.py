"""A calibrator appended to its model's ONNX graph, as one model with calibrated outputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration.calibrator_base import Calibrator
from kdcal_core.calibration.export.card import CalibratorCard
from kdcal_core.calibration.export.onnx_nodes import Nodes, check_opset, name_domains
from kdcal_core.calibration.export.onnx_regions import (
    Columns,
    ModelColumns,
    UnitColumns,
    names_read,
    not_taken,
    regional_nodes,
)
from kdcal_core.calibration.fitting import calibrated, layer_inputs
from kdcal_core.data import FloatArray, as_pandas
from kdcal_core.errors import InputError
from kdcal_core.models import Model, load_model
from kdcal_core.models.onnx_cost import read_model
from kdcal_core.models.onnx_graph import Graph, open_session, read_inputs, run
from kdcal_core.models.onnx_model import OnnxClassifier, WithLayers
from kdcal_core.models.output_meaning import OutputKind
from kdcal_core.models.protocol import Features, ModelInfo
from kdcal_core.store.archive import new_file

OUTPUTS = ("calibrated_probabilities", "predicted_class", "confidence")
LARGEST_DIFFERENCE = 1e-5
_MOST_ROWS = 2000


@dataclass(frozen=True)
class OnnxExport:
    """A written ONNX model.

    Attributes
    ----------
    path : str
    inputs : tuple of str
        Inputs of the model. Untrusted text.
    outputs : tuple of str
        "calibrated_probabilities" (n, K), "predicted_class" (n,), counted from 0, "confidence"
        (n,).
    max_difference : float
        Largest difference from the calibrator in Python, over ``n_rows`` real rows.
    n_rows : int
    """

    path: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    max_difference: float
    n_rows: int


def can_export_onnx(
    calibrator: Calibrator, model: ModelInfo | None, layer: str | None = None
) -> str | None:
    """Why a calibrator cannot be added to its model's ONNX file; None if it can.

    Parameters
    ----------
    calibrator : Calibrator
    model : ModelInfo or None
        The model under review.
    layer : str, optional
        The hidden layer that the calibrator reads instead of columns.

    Examples
    --------
    >>> from kdcal_core.calibration import TemperatureScaling
    >>> can_export_onnx(TemperatureScaling(), None)
    'There is no model, only its predictions.'
    """
    why = calibrator.why_no_onnx()
    if why is not None:
        return f"This calibrator cannot be written in ONNX: {why}."
    if model is None:
        return "There is no model, only its predictions."
    if not model.name.lower().endswith(".onnx"):
        return (
            "The model is not an ONNX file. Export it to ONNX and review that file, or use the "
            "calibrator file with the model as it is."
        )
    if layer is None and model.feature_names is not None:
        why = not_taken(names_read(calibrator), model.feature_names)
    return None if why is None else f"{why}."


def export_onnx(
    calibrator: Calibrator,
    model_path: str | Path,
    out_path: str | Path,
    card: CalibratorCard,
    X: Features,
) -> OnnxExport:
    """Write the model followed by the calibrator as one ONNX model.

    The model's nodes do not change. Its probabilities pass through the calibrator's nodes in double
    precision. The finished model is compared with the calibrator in Python on real rows before the
    file gets its name.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    model_path : str or Path
        The model's ONNX file.
    out_path : str or Path
    card : CalibratorCard
        Its name, version and digests are written to the model's metadata. Its layer, if it has one,
        is read inside the model's graph.
    X : DataFrame or (n, n_features) array
        Real rows with the columns that the calibrator reads; the first 2,000 are used. They also
        show the precision of the numbers that the thresholds of regions must separate.

    Raises
    ------
    InputError
        If the calibrator or the model does not allow it, or the answers differ by more than 1e-5.
    """
    import onnx

    path = Path(model_path)
    why = calibrator.why_no_onnx()
    if why is not None:
        raise InputError(
            f"This calibrator cannot be written in ONNX: {why}", fix="Use the calibrator file."
        )
    opened = load_model(path, task="classification")
    if not isinstance(opened, OnnxClassifier):
        raise InputError("The model is not an ONNX file", fix="Use the calibrator file.")
    if len(opened.classes) != calibrator.n_classes_:
        raise InputError(
            f"The model has {len(opened.classes):,} classes, and the calibrator was fitted for "
            f"{calibrator.n_classes_:,}",
            fix="Give the model that it was fitted for.",
        )
    X = as_pandas(X)
    rows = X[:_MOST_ROWS]
    graph = Graph(read_model(path, name=path.name))
    columns: Columns
    if card.layer is None:
        columns = ModelColumns.of(read_inputs(graph), X)
        inside, inputs = [], columns.frame[:_MOST_ROWS]
    else:
        columns, inputs = _units(opened, rows, card.layer)
        inside = [columns.tensor]
    model = graph.with_outputs([opened.scores.name, *inside])
    check_opset(model)
    width = opened.raw_scores(rows[:1]).shape[1]
    nodes = Nodes()
    proba = _proba(nodes, opened.scores.name, opened.scores.kind, width)
    if calibrator.needs_inputs:
        found = regional_nodes(nodes, calibrator, proba, columns)
    else:
        found = calibrator.onnx_nodes(nodes, proba)
    name_domains(model, nodes)
    _finish(model, nodes, proba if calibrator.keeps_prediction else found, found, card)
    _checked(model)
    expected = calibrated(calibrator, opened.predict_proba(rows), inputs)
    difference = _difference(model, rows, expected.proba, expected.confidence)
    with new_file(out_path) as made:
        onnx.save(model, made)
    taken = tuple(str(value.name) for value in Graph(model).inputs)
    return OnnxExport(str(out_path), taken, OUTPUTS, difference, len(expected.proba))


def _units(model: Model, rows: Features, layer: str) -> tuple[UnitColumns, pd.DataFrame]:
    """A hidden layer inside the model's graph, and its activations for rows."""
    activations = layer_inputs(model, rows, layer)
    if not isinstance(model, WithLayers):
        raise InputError(
            "The model's file does not show its hidden layers", fix="Use the calibrator file."
        )
    return UnitColumns(model.layer_tensor(layer), activations.shape[1]), activations


def _proba(nodes: Nodes, raw: str, kind: OutputKind, width: int) -> str:
    """The model's probabilities from its scores, as in :func:`to_proba`."""
    from onnx import TensorProto

    values = nodes.node("Cast", raw, to=TensorProto.DOUBLE)
    values = nodes.node("Reshape", values, np.array([-1, width]))
    if kind == "logit":
        if width == 1:
            return nodes.node("Sigmoid", nodes.columns([nodes.node("Neg", values), values]))
        return nodes.node("Softmax", values, axis=1)
    if kind == "log-probability":
        values = nodes.node("Exp", values)
    if width == 1:
        values = nodes.columns([nodes.less(1.0, values), values])
    return nodes.node("Div", values, nodes.row_sum(values))


def _finish(model: Any, nodes: Nodes, asked: str, found: str, card: CalibratorCard) -> None:
    """Add outputs and metadata; the largest entry of the tensor ``asked`` is the prediction."""
    from onnx import TensorProto, helper

    k = len(card.classes)
    top = nodes.largest(asked, k)
    confidence = nodes.row_sum(nodes.mul(found, top))
    flat = nodes.node("Reshape", confidence, np.array([-1]))
    made = (
        nodes.node("Cast", found, to=TensorProto.FLOAT),
        nodes.node("ArgMax", asked, axis=1, keepdims=0),
        nodes.node("Cast", flat, to=TensorProto.FLOAT),
    )
    del model.graph.output[:]
    kinds: list[tuple[int, list[str | int]]] = [
        (TensorProto.FLOAT, ["rows", k]),
        (TensorProto.INT64, ["rows"]),
        (TensorProto.FLOAT, ["rows"]),
    ]
    for name, tensor, (kind, shape) in zip(OUTPUTS, made, kinds, strict=True):
        nodes.nodes.append(helper.make_node("Identity", [tensor], [name]))
        model.graph.output.append(helper.make_tensor_value_info(name, kind, shape))
    model.graph.node.extend(nodes.nodes)
    model.graph.initializer.extend(nodes.constants)
    del model.graph.value_info[:]
    _describe(model, card)


def _describe(model: Any, card: CalibratorCard) -> None:
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    metadata |= {
        "task": "classification",
        "classes": json.dumps(list(card.classes)),
        "kdcal_calibrator": card.title,
        "kdcal_calibrator_key": card.key,
        "kdcal_version": card.kdcal_version,
        "kdcal_created": card.created,
    }
    if card.model is not None:
        metadata["kdcal_model_sha256"] = card.model.digest
    for which, data in card.data.items():
        metadata[f"kdcal_{which}_sha256"] = data.digest
    del model.metadata_props[:]
    for key, value in metadata.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value


def _checked(model: Any) -> None:
    from onnx import checker

    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        raise InputError(
            "The model with the calibrator is not a valid ONNX model: "
            f"{str(error).splitlines()[0][:200]}",
            fix="Use the calibrator file.",
        ) from error


def _difference(model: Any, rows: Features, proba: FloatArray, confidence: FloatArray) -> float:
    """Largest difference between the finished model and the calibrator in Python."""
    inputs = read_inputs(Graph(model))
    n = inputs.batch or len(proba)
    feed = inputs.feed(rows[:n])
    theirs, _, theirs_confidence = run(open_session(model), list(OUTPUTS), feed)
    difference = max(
        float(np.abs(theirs - proba[:n]).max()),
        float(np.abs(theirs_confidence - confidence[:n]).max()),
    )
    if not difference <= LARGEST_DIFFERENCE:
        raise InputError(
            f"In ONNX Runtime the calibrated probabilities differ by up to {difference:.2g}",
            fix="Use the calibrator file: it gives the same numbers as the calibrator here.",
        )
    return difference
