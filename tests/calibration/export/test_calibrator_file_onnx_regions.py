"""Calibration region by region as part of an ONNX model, beside the calibrator in Python."""

from __future__ import annotations

import dataclasses
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from calibrator_file_cases import card
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from kdcal_core.calibration.export import can_export_onnx, export_onnx
from kdcal_core.calibration.export.onnx_nodes import Nodes
from kdcal_core.calibration.export.onnx_regions import ModelColumns
from kdcal_core.calibration.regions import MAPS, PARTITIONS, HeterogeneousCalibrator
from kdcal_core.calibration.regions.heterogeneous import AT_SCORES
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.models import load_model, model_info
from kdcal_core.models.onnx_graph import Inputs, Slot
from kdcal_core.partition.tree import InputColumn, bin_inputs

SAMPLES = Path(__file__).parents[3] / "sample_data"
COLOURS = ["red", "blue", "green", "grey"]
# What the model's graph takes, one input a column.
KINDS = {
    "size": TensorProto.FLOAT,
    "price": TensorProto.DOUBLE,
    "rooms": TensorProto.INT64,
    "old": TensorProto.FLOAT,
    "colour": TensorProto.STRING,
}


def model_model(n_classes, *, missing=True, unread=()):
    """A linear model of the columns but those ``unread``, with a place for missing numbers."""
    nodes, ready = [], []
    for at, (name, kind) in enumerate(KINDS.items()):
        if name in unread:
            continue
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
    weights = np.random.default_rng(n_classes).normal(size=(len(ready), n_classes))
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info(name, kind, [None, 1]) for name, kind in KINDS.items()],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, n_classes])],
        [
            numpy_helper.from_array(weights.astype(np.float32), "w"),
            numpy_helper.from_array(np.zeros((1, 1), np.float32), "zero"),
        ],
    )
    opset = [helper.make_opsetid("", 17)]
    if "colour" not in unread:
        opset.append(helper.make_opsetid("ai.onnx.ml", 3))
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


@cache
def frame(seed=0, n=400, strange=False):
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


def scored(model, X, seed=4):
    """Labels that some rows' probabilities miss by far."""
    proba = model.predict_proba(X)
    tilt = np.where((X["colour"] == "red") | X["size"].isna(), 0.2, 1.0)
    honest = proba ** tilt[:, None]
    honest /= honest.sum(axis=1, keepdims=True)
    y = (np.random.default_rng(seed).random((len(X), 1)) > honest.cumsum(axis=1)).sum(axis=1)
    return ScoredSet(proba, y, model.classes, "digest", "calibration")


@cache
def case(folder, n_classes):
    path = Path(folder) / f"model {n_classes}.onnx"
    onnx.save(model_model(n_classes), path)
    return path, load_model(path, task="classification")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


def fit(found, X, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return HeterogeneousCalibrator(**{"partition": "tree", "min_rows": 20, **given}).fit(
            found.proba, found.y, X
        )


def answers(path, X):
    """The finished model's outputs, fed by hand."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    feed = {
        one.name: X[[one.name]].to_numpy().astype(types.get(one.type, object))
        for one in session.get_inputs()
    }
    return session.run(None, feed)


# A forest differs from a tree, and an AUC tree from another, by nothing that a graph knows; and a
# map knows only the number of its region.
EXPRESSIBLE = [
    *((partition, "platt", n_classes) for partition in PARTITIONS for n_classes in (2, 3)),
    *(
        ("tree", inside, n_classes)
        for inside in MAPS
        if inside not in ("kde", "platt")
        for n_classes in (2, 3)
    ),
    *(("boosted", inside, 3) for inside in MAPS if inside not in ("kde", "platt", *AT_SCORES)),
]


@pytest.mark.parametrize(("partition", "inside", "n_classes"), EXPRESSIBLE)
def test_every_partition_and_map_is_written(partition, inside, n_classes, folder, tmp_path):
    path, model = case(folder, n_classes)
    found, X = scored(model, frame()), frame()
    column = {"column": "price", "groups": ["colour", "size", "old"]}.get(partition)
    calibrator = fit(found, X, partition=partition, calibrator=inside, n_trees=3, column=column)
    assert sum(layer.partition.n_leaves for layer in calibrator.layers_) > 2
    assert can_export_onnx(calibrator, model_info(model, path, "model.onnx")) is None
    stated = card("", calibrator, found, X)
    export = export_onnx(calibrator, path, tmp_path / "out.onnx", stated, X)
    assert export.max_difference < 1e-6
    assert export.n_rows == 400
    new = frame(seed=1, strange=True)
    expected = calibrator.predict_proba(model.predict_proba(new), new)
    proba, predicted, confidence = answers(tmp_path / "out.onnx", new)
    np.testing.assert_allclose(proba, expected, atol=1e-6)
    np.testing.assert_allclose(confidence, expected.max(axis=1), atol=1e-6)
    assert (predicted == expected.argmax(axis=1)).mean() > 0.99  # all but ties


def regional(folder, X=None, **given):
    """A fitted calibrator of two classes with all that its export takes."""
    path, model = case(folder, 2)
    X = frame() if X is None else X
    found = scored(model, frame())
    calibrator = fit(found, X, **given)
    return calibrator, path, card("", calibrator, found, X), model_info(model, path, "a.onnx")


def test_trees_without_a_split_have_one_region(folder, tmp_path):
    calibrator, path, stated, _ = regional(folder, min_rows=400)
    assert all(layer.partition.n_leaves == 1 for layer in calibrator.layers_)
    export = export_onnx(calibrator, path, tmp_path / "out.onnx", stated, frame())
    assert export.max_difference < 1e-6


def test_columns_that_no_split_asks_for_may_be_strange_to_the_model(folder, tmp_path):
    X = frame().assign(idle=1.0)
    calibrator, path, stated, info = regional(folder, X)
    assert can_export_onnx(calibrator, info) is None
    assert export_onnx(calibrator, path, tmp_path / "out.onnx", stated, X).max_difference < 1e-6


def test_a_column_that_the_model_does_not_take_is_reported(folder, tmp_path):
    X = frame().assign(shop=frame()["size"].isna())
    calibrator, path, stated, info = regional(folder, X, partition="column", column="shop")
    assert (
        can_export_onnx(calibrator, info)
        == "The regions are defined by 'shop', which is not among the model's inputs."
    )
    with pytest.raises(InputError, match="defined by 'shop'"):
        export_onnx(calibrator, path, tmp_path / "out.onnx", stated, X)
    # a hidden layer's units are such columns
    units = pd.DataFrame(
        np.random.default_rng(0).normal(size=(400, 3)), columns=[f"unit {i}" for i in (1, 2, 3)]
    )
    hidden, _, _, _ = regional(folder, units, partition="groups")
    assert "by 'unit 1' and 2 more, which are not" in str(can_export_onnx(hidden, info))
    assert not (tmp_path / "out.onnx").exists()


def test_numbers_that_the_model_takes_as_text_are_reported(folder, tmp_path):
    X = frame().assign(colour=range(400))
    calibrator, path, stated, _ = regional(folder, X, partition="column", column="colour")
    with pytest.raises(InputError, match="as text that the regions read as numbers") as error:
        export_onnx(calibrator, path, tmp_path / "out.onnx", stated, X)
    assert error.value.column == "colour"


def test_maps_that_no_graph_should_hold_are_reported(folder, tmp_path):
    for settings_, said in (
        ({"calibrator": "kde"}, "density curves"),
        ({"partition": "boosted", "calibrator": "isotonic"}, "rounding in another runtime"),
    ):
        unfitted = HeterogeneousCalibrator(**settings_)
        assert said in str(can_export_onnx(unfitted, None))
    mixed, path, stated, _ = regional(folder)
    other, _, _, _ = regional(folder, calibrator="temperature")
    mixed.layers_ = (mixed.layers_[0], other.layers_[0])
    with pytest.raises(InputError, match="different kinds"):
        export_onnx(mixed, path, tmp_path / "out.onnx", stated, frame())


def test_the_model_needs_no_operators_for_text_of_its_own(tmp_path):
    onnx.save(model_model(2, unread=("colour",)), tmp_path / "model.onnx")
    model = load_model(tmp_path / "model.onnx", task="classification")
    found = scored(model, frame())
    calibrator = fit(found, frame(), partition="column", column="colour")
    stated = card("", calibrator, found, frame())
    out = tmp_path / "out.onnx"
    export = export_onnx(calibrator, tmp_path / "model.onnx", out, stated, frame())
    assert export.max_difference < 1e-6


def test_a_model_that_takes_no_missing_number_takes_none_afterwards(tmp_path):
    onnx.save(model_model(2, missing=False), tmp_path / "model.onnx")
    model = load_model(tmp_path / "model.onnx", task="classification")
    whole = frame().fillna({"size": 0.0, "price": 0.0})
    found = scored(model, whole)
    calibrator = fit(found, whole)
    stated = card("", calibrator, found, whole)
    out = tmp_path / "out.onnx"
    export_onnx(calibrator, tmp_path / "model.onnx", out, stated, whole)
    again = load_model(out)
    expected = calibrator.predict_proba(found.proba, whole)
    np.testing.assert_allclose(again.predict_proba(whole), expected, atol=1e-5)
    with pytest.raises(InputError, match="missing value"):
        again.predict_proba(frame())


@pytest.mark.parametrize(
    ("sample", "target", "partition"),
    [
        ("adult_network", "income", "tree"),
        ("adult_network", "income", "boosted"),
        ("adult_network", "income", "groups"),
        ("xor_network", "class", "forest"),
        ("xor_network", "class", "boosted"),
    ],
)
def test_real_networks(sample, target, partition, tmp_path):
    path = SAMPLES / sample / "model.onnx"
    model = load_model(path)
    table = pd.read_parquet(SAMPLES / sample / "calibration.parquet")
    X = table[list(model.feature_names or table.columns[: model.n_features])]
    y = pd.Categorical(table[target].astype(str), categories=model.classes).codes.astype(int)
    found = ScoredSet(model.predict_proba(X), y, model.classes, "digest", "calibration")
    column = list(X.columns[-3:]) if partition == "groups" else None
    calibrator = fit(found, X, partition=partition, n_trees=5, min_rows=None, column=column)
    stated = card("", calibrator, found, X)
    rows = pd.read_parquet(SAMPLES / sample / "evaluation.parquet")[X.columns]
    for at, name in enumerate(rows.select_dtypes(exclude="number")):
        rows.loc[rows.index[at::50], name] = "a word that nobody knows"
    export = export_onnx(calibrator, path, tmp_path / "out.onnx", stated, rows)
    assert export.max_difference < 1e-6
    assert load_model(tmp_path / "out.onnx").feature_names == model.feature_names


def test_an_array_has_its_columns_by_number(tmp_path):
    path = SAMPLES / "xor_network" / "model.onnx"
    model = onnx.load(path)
    kept = [one for one in model.metadata_props if one.key != "feature_names"]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    onnx.save(model, tmp_path / "model.onnx")
    wrapped = load_model(tmp_path / "model.onnx", task="classification")
    assert wrapped.feature_names is None
    X = np.random.default_rng(0).normal(size=(300, wrapped.n_features))
    proba = wrapped.predict_proba(X)
    y = ((X[:, 0] > 0) ^ (proba[:, 1] > 0.5)).astype(int)
    found = ScoredSet(proba, y, wrapped.classes, "digest", "calibration")
    calibrator = fit(found, X)
    stated = card("", calibrator, found, pd.DataFrame(X, columns=calibrator.columns_))
    export = export_onnx(calibrator, tmp_path / "model.onnx", tmp_path / "out.onnx", stated, X)
    assert export.max_difference < 1e-6


def codes_in_onnx(column, values, dtype, *, allow_missing=True):
    """A column's codes as a graph computes them that takes numbers of this type."""
    kind = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}[dtype]
    inputs = Inputs((Slot("x", (1,), dtype),), None, None, allow_missing)
    nodes = Nodes()
    made = ModelColumns(inputs, pd.DataFrame({column.name: values})).codes(nodes, column)
    nodes.nodes.append(helper.make_node("Identity", [made], ["codes"]))
    graph = helper.make_graph(
        nodes.nodes,
        "codes",
        [helper.make_tensor_value_info("x", kind, [None, 1])],
        [helper.make_tensor_value_info("codes", TensorProto.INT64, [None, 1])],
        nodes.constants,
    )
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    fed = np.asarray(values, dtype=np.float64).astype(dtype)[:, None]
    return session.run(None, {"x": fed})[0][:, 0]


decimals = st.builds(lambda a, k: a / 10.0**k, st.integers(-(10**6), 10**6), st.integers(0, 6))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(decimals, max_size=6), st.lists(decimals, max_size=4))
def test_numbers_fall_on_the_side_where_they_fall_in_python(edges, others):
    edges = np.unique(edges)
    column = InputColumn("x", "number", edges=edges)
    near = np.concatenate([edges, others, [0.5]])
    single = near.astype(np.float32)
    steps = [np.nextafter(single, np.float32(to)) for to in (-np.inf, np.inf)]
    natives = np.concatenate([single, *steps, [np.nan]]).astype(np.float64)

    def expected(values):
        return bin_inputs(pd.DataFrame({"x": values}), like=(column,)).codes[:, 0]

    # numbers that 32 bits hold change no side at all
    np.testing.assert_array_equal(codes_in_onnx(column, natives, np.float32), expected(natives))
    # others only from just above a threshold that rounds to the same
    more = np.concatenate([natives, near, np.nextafter(near, np.inf), [0.1]])
    found, right = codes_in_onnx(column, more, np.float32), expected(more)
    rounded = more.astype(np.float32)[:, None] == edges.astype(np.float32)[None, :]
    alike = (rounded & (more[:, None] > edges[None, :])).any(axis=1)
    np.testing.assert_array_equal(found[~alike], right[~alike])
    np.testing.assert_array_equal(codes_in_onnx(column, more, np.float64), right)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categories_that_are_numbers_to_the_model(dtype, pooled):
    names = ("0.1", "2", "other") if pooled else ("2", "0", "0.1")
    column = InputColumn("x", "category", categories=names, pooled=pooled)
    values = pd.Series(pd.Categorical(["0.1", "2", "0", "7", None]))
    right = bin_inputs(pd.DataFrame({"x": values}), like=(column,)).codes[:, 0]
    found = codes_in_onnx(column, [0.1, 2.0, 0.0, 7.0, np.nan], dtype)
    np.testing.assert_array_equal(found, right)
    assert len(set(right.tolist())) == 4
    twice = dataclasses.replace(column, categories=("1", "True", "other"))
    with pytest.raises(InputError, match="read as text"):
        codes_in_onnx(twice, [1.0], dtype)


def test_a_column_with_no_category_of_its_own_has_one_code():
    column = InputColumn("x", "category", categories=("other",), pooled=True)
    assert codes_in_onnx(column, [3.0, np.nan], np.float32).tolist() == [0, 1]
