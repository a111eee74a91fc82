"""A model and its calibrator as one ONNX model, beside the calibrator in Python."""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from onnx import TensorProto, helper, numpy_helper

from kdcal_core.calibration import CALIBRATORS, TemperatureScaling, fit_calibrator
from kdcal_core.calibration.export import can_export_onnx, export_onnx, make_card
from kdcal_core.calibration.fitting import calibrated
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.models import load_model, model_info

SAMPLES = Path(__file__).parents[3] / "sample_data"
WRITTEN = [key for key, entry in CALIBRATORS.items() if entry.factory().why_no_onnx() is None]
KEYS = [key for key in WRITTEN if not CALIBRATORS[key].needs]
# What the graph ends in, and how many columns that has.
ENDS = {
    "logit": (None, 1),
    "sigmoid": ("Sigmoid", 1),
    "softmax": ("Softmax", 3),
    "log": ("LogSoftmax", 2),
}
N_FEATURES = 4


def model(end, *, opset=17, batch=None):
    """A linear model whose scores end in this way."""
    kind, width = ENDS[end]
    rng = np.random.default_rng(width)
    weights = 2 * rng.normal(size=(N_FEATURES, width)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["z"])]
    nodes.append(helper.make_node(kind or "Identity", ["z"], ["scores"]))
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, N_FEATURES])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, width])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@cache
def rows(n=500):
    return np.random.default_rng(3).normal(size=(n, N_FEATURES)).astype(np.float32)


def scored(model, X, seed=4):
    proba = model.predict_proba(X)
    honest = np.sqrt(proba)
    honest /= honest.sum(axis=1, keepdims=True)
    y = (np.random.default_rng(seed).random((len(X), 1)) > honest.cumsum(axis=1)).sum(axis=1)
    return ScoredSet(proba, y, model.classes, "digest", "calibration")


def fit(key, found, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return fit_calibrator(key, found, **given)


@cache
def case(key, end):
    """A calibrator of the model that ends so, with its rows and their model."""
    model = model_of(end)
    found = scored(model, rows())
    return fit(key, found), found, model


@cache
def model_of(end):
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model(end), Path(folder) / "model.onnx")
        return load_model(Path(folder) / "model.onnx", task="classification")


def card(key, calibrator, found, info=None):
    return make_card(key, calibrator, classes=found.classes, data={}, model=info)


def answers(path, X):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: X})


# Every calibrator once, and every end with one calibrator of each kind.
PAIRS = [(key, "softmax") for key in KEYS] + [
    (key, end) for key in ("kde_mon2", "tswa", "isotonic", "beta") for end in ENDS
]


@pytest.mark.parametrize(("key", "end"), dict.fromkeys(PAIRS))
def test_the_model_answers_as_the_calibrator_does(key, end, tmp_path):
    onnx.save(model(end), tmp_path / "model.onnx")
    calibrator, found, wrapped = case(key, end)
    export = export_onnx(
        calibrator,
        tmp_path / "model.onnx",
        tmp_path / "out.onnx",
        card(key, calibrator, found),
        rows(),
    )
    assert export.max_difference < 1e-6
    assert export.n_rows == 500
    new = np.random.default_rng(9).normal(size=(3000, N_FEATURES)).astype(np.float32)
    expected = calibrated(calibrator, wrapped.predict_proba(new))
    proba, predicted, confidence = answers(tmp_path / "out.onnx", new)
    np.testing.assert_allclose(proba, expected.proba, atol=1e-6)
    np.testing.assert_allclose(confidence, expected.confidence, atol=1e-6)
    assert (predicted == expected.predicted).mean() > 0.999  # all but ties in the last digit
    again = load_model(tmp_path / "out.onnx")
    np.testing.assert_allclose(again.predict_proba(new), expected.proba, atol=1e-5)


@pytest.mark.parametrize("key", KEYS)
def test_saturated_scores_go_through(key, tmp_path):
    onnx.save(model("softmax"), tmp_path / "model.onnx")
    calibrator, found, _ = case(key, "softmax")
    far = np.concatenate([rows() * scale for scale in (0, 1, 30, 1000)])
    export = export_onnx(
        calibrator,
        tmp_path / "model.onnx",
        tmp_path / "out.onnx",
        card(key, calibrator, found),
        far,
    )
    assert export.max_difference < 1e-6


@pytest.mark.parametrize(
    ("sample", "key"),
    [
        ("digits", "tswa"),
        ("digits", "dirichlet"),
        ("xor_network", "kde_mon2"),
        ("xor_network", "isotonic"),
        ("xor_network", "platt"),
    ],
)
def test_real_networks(sample, key, tmp_path):
    path = SAMPLES / sample / "model.onnx"
    model = load_model(path)
    frame = pd.read_parquet(SAMPLES / sample / "evaluation.parquet")
    X = frame[list(model.feature_names or frame.columns[: model.n_features])]
    found = scored(model, X)
    calibrator = fit(key, found)
    info = model_info(model, path, "model.onnx")
    assert can_export_onnx(calibrator, info) is None
    stated = card(key, calibrator, found, info)
    export = export_onnx(calibrator, path, tmp_path / "out.onnx", stated, X)
    assert export.max_difference < 1e-6
    metadata = {one.key: one.value for one in onnx.load(tmp_path / "out.onnx").metadata_props}
    assert metadata["kdcal_calibrator"] == CALIBRATORS[key].name
    assert metadata["kdcal_model_sha256"] == info.digest
    again = load_model(tmp_path / "out.onnx")
    assert again.feature_names == model.feature_names
    assert again.classes == found.classes


def test_a_model_of_fixed_batches(tmp_path):
    onnx.save(model("softmax", batch=32), tmp_path / "model.onnx")
    wrapped = load_model(tmp_path / "model.onnx", task="classification")
    found = scored(wrapped, rows())
    calibrator = fit("sts", found)
    stated = card("sts", calibrator, found)
    export_onnx(calibrator, tmp_path / "model.onnx", tmp_path / "out.onnx", stated, rows())
    proba, _, _ = answers(tmp_path / "out.onnx", rows()[:32])
    np.testing.assert_allclose(proba, calibrator.predict_proba(found.proba[:32]), atol=1e-6)


def test_every_calibrator_is_written_or_says_why_not():
    for key, entry in CALIBRATORS.items():
        reason = can_export_onnx(entry.factory(), None)
        assert reason is not None
        assert (key not in WRITTEN) == ("cannot be written" in reason)
        assert "does not know" not in reason


def test_what_cannot_be_exported_is_reported(tmp_path):
    onnx.save(model("softmax"), tmp_path / "model.onnx")
    onnx.save(model("softmax", opset=11), tmp_path / "old.onnx")
    wrapped = load_model(tmp_path / "model.onnx", task="classification")
    found = scored(wrapped, rows())
    out = tmp_path / "out.onnx"
    venn, plain = fit("venn_abers", found), fit("sts", found)
    stated = card("sts", plain, found)
    with pytest.raises(InputError, match="rounding in another runtime"):
        export_onnx(venn, tmp_path / "model.onnx", out, stated, rows())
    with pytest.raises(InputError, match="version 11"):
        export_onnx(plain, tmp_path / "old.onnx", out, stated, rows())
    two = dataclasses.replace(found, proba=np.full((500, 2), 0.5), y=found.y % 2)
    with pytest.raises(InputError, match="3 classes"):
        export_onnx(fit("sts", two), tmp_path / "model.onnx", out, stated, rows())
    info = dataclasses.replace(
        model_info(wrapped, tmp_path / "model.onnx", "model.onnx"), name="model.skops"
    )
    assert "not an ONNX file" in str(can_export_onnx(plain, info))
    assert not out.exists()


def test_a_calibrator_that_onnx_would_change_is_not_written(tmp_path, monkeypatch):
    onnx.save(model("softmax"), tmp_path / "model.onnx")
    wrapped = load_model(tmp_path / "model.onnx", task="classification")
    found = scored(wrapped, rows())
    calibrator = fit("sts", found)
    monkeypatch.setattr(TemperatureScaling, "onnx_nodes", lambda self, nodes, proba: proba)
    with pytest.raises(InputError, match="differ by up to"):
        export_onnx(
            calibrator,
            tmp_path / "model.onnx",
            tmp_path / "out.onnx",
            card("sts", calibrator, found),
            rows(),
        )
    assert sorted(one.name for one in tmp_path.iterdir()) == ["model.onnx"]


SHRUNK = [key for key in KEYS if hasattr(CALIBRATORS[key].factory(), "shrinkage")]


# Every calibrator without shrinkage and with some; with all of it they are one temperature.
AMOUNTS = [
    *((key, None, "log") for key in SHRUNK),
    *((key, 20.0, "softmax") for key in SHRUNK),
    *((key, float("inf"), "log") for key in ("kde_mon2", "histogram", "tswa", "dirichlet")),
]


@pytest.mark.parametrize(("key", "shrinkage", "end"), AMOUNTS)
def test_any_amount_of_shrinkage_is_written(key, shrinkage, end, tmp_path):
    wrapped = model_of(end)
    found = scored(wrapped, rows())
    onnx.save(model(end), tmp_path / "model.onnx")
    calibrator = fit(CALIBRATORS[key].factory().set_params(shrinkage=shrinkage), found)
    text = card(key, calibrator, found)
    export = export_onnx(calibrator, tmp_path / "model.onnx", tmp_path / "out.onnx", text, rows())
    assert export.max_difference < 1e-6
