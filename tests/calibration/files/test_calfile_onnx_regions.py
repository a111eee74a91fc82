"""Calibration region by region as part of an ONNX model, beside the calibrator in Python."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from calfile_cases import card
from onnx import TensorProto, helper, numpy_helper

from kdcal_core.calibration.files import can_export_onnx, export_onnx
from kdcal_core.calibration.heterogeneous import MAPS, PARTITIONS, HeterogeneousCalibrator
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputWarning
from kdcal_core.parents import load_parent, parent_info

SAMPLES = Path(__file__).parents[3] / "sample_data"
COLOURS = ["red", "blue", "green", "grey"]
# What the parent's graph takes, one input a column.
KINDS = {
    "size": TensorProto.FLOAT,
    "price": TensorProto.DOUBLE,
    "rooms": TensorProto.INT64,
    "old": TensorProto.FLOAT,
    "colour": TensorProto.STRING,
}


def parent_model(n_classes, *, kinds=KINDS, missing=True):
    """A linear model of the columns, which has a place for missing numbers."""
    nodes, ready = [], []
    for at, (name, kind) in enumerate(kinds.items()):
        if kind == TensorProto.STRING:
            known = {"cats_strings": COLOURS, "cats_int64s": [1, 2, 3, 4], "default_int64": 0}
            made = helper.make_node("CategoryMapper", [name], [f"n{at}"], **known)
            made.domain = "ai.onnx.ml"
            nodes.append(made)
        else:
            nodes.append(helper.make_node("Identity", [name], [f"n{at}"]))
        nodes.append(helper.make_node("Cast", [f"n{at}"], [f"f{at}"], to=TensorProto.FLOAT))
        if missing:
            nodes.append(helper.make_node("IsNaN", [f"f{at}"], [f"m{at}"]))
            nodes.append(helper.make_node("Where", [f"m{at}", "zero", f"f{at}"], [f"r{at}"]))
        ready.append(f"r{at}" if missing else f"f{at}")
    nodes.append(helper.make_node("Concat", ready, ["x"], axis=1))
    nodes.append(helper.make_node("MatMul", ["x", "w"], ["z"]))
    nodes.append(helper.make_node("Softmax", ["z"], ["probabilities"]))
    weights = np.random.default_rng(n_classes).normal(size=(len(kinds), n_classes))
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info(name, kind, [None, 1]) for name, kind in kinds.items()],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, n_classes])],
        [
            numpy_helper.from_array(weights.astype(np.float32), "w"),
            numpy_helper.from_array(np.zeros((1, 1), np.float32), "zero"),
        ],
    )
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


@cache
def frame(seed=0, n=600, strange=False):
    """Rows of every kind of column, with gaps; ``strange`` ones have categories of their own."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(1),
            "price": rng.gamma(2.0, size=n),
            "rooms": rng.integers(1, 6, n),
            "old": rng.choice([True, False], n),
            "colour": rng.choice([*COLOURS[:3], "mauve" if strange else "grey"], n),
        }
    )
    table.loc[::7, "size"] = np.nan
    table.loc[3::11, "price"] = np.nan
    return table


def scored(parent, X, seed=4):
    """Labels that some rows' probabilities miss by far."""
    proba = parent.predict_proba(X)
    tilt = np.where((X["colour"] == "red") | X["size"].isna(), 0.2, 1.0)
    honest = proba ** tilt[:, None]
    honest /= honest.sum(axis=1, keepdims=True)
    y = (np.random.default_rng(seed).random((len(X), 1)) > honest.cumsum(axis=1)).sum(axis=1)
    return ScoredSet(proba, y, parent.classes, "digest", "calibration")


@cache
def case(folder, n_classes):
    path = Path(folder) / f"parent {n_classes}.onnx"
    onnx.save(parent_model(n_classes), path)
    return path, load_parent(path, task="classification")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("parents")


def fit(found, X, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return HeterogeneousCalibrator(**{"min_rows": 20, **given}).fit(found.proba, found.y, X)


def answers(path, X):
    """The finished model's outputs, fed by hand."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    feed = {
        one.name: X[[one.name]].to_numpy().astype(types.get(one.type, object))
        for one in session.get_inputs()
    }
    return session.run(None, feed)


EXPRESSIBLE = [
    (partition, inside)
    for partition in PARTITIONS
    for inside in MAPS
    if inside != "kde" and not (partition == "boosted" and inside in ("isotonic", "histogram"))
]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("partition", "inside"), EXPRESSIBLE)
def test_every_partition_and_map_is_written(partition, inside, n_classes, folder, tmp_path):
    path, parent = case(folder, n_classes)
    found, X = scored(parent, frame()), frame()
    column = {"column": {"column": "price", "groups": ["colour", "size", "old"]}.get(partition)}
    calibrator = fit(found, X, partition=partition, calibrator=inside, n_trees=4, **column)
    assert sum(layer.partition.n_leaves for layer in calibrator.layers_) > 2
    assert can_export_onnx(calibrator, parent_info(parent, path, "parent.onnx")) is None
    stated = card("", calibrator, found, X)
    export = export_onnx(calibrator, path, tmp_path / "out.onnx", stated, X)
    assert export.max_difference < 1e-6
    assert export.n_rows == 600
    new = frame(seed=1, strange=True)
    expected = calibrator.predict_proba(parent.predict_proba(new), new)
    proba, predicted, confidence = answers(tmp_path / "out.onnx", new)
    np.testing.assert_allclose(proba, expected, atol=1e-6)
    np.testing.assert_allclose(confidence, expected.max(axis=1), atol=1e-6)
    assert (predicted == expected.argmax(axis=1)).mean() > 0.99  # all but ties
