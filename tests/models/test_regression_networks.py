"""Regression networks of PyTorch and ONNX: outputs by name, hidden layers, and dropout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.tree import DecisionTreeRegressor
from torch import nn

from kdcal_core.errors import InputError
from kdcal_core.models import (
    HasCodes,
    HasDropout,
    HasLayers,
    Model,
    Regressor,
    fingerprint,
    load_model,
    model_info,
    wrap_model,
)
from kdcal_core.models.torch_model import wrap_regression_module

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(120, 3))
Y = np.exp(X[:, 0] + 0.2 * RANDOM.normal(size=120))
NEW = RANDOM.normal(size=(50, 3))


class TwoOutputs(nn.Module):
    """A mean and a positive second number, in a dict, a tuple or one table."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.kind = kind
        self.body = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5), nn.Tanh())
        self.mean, self.std = nn.Linear(5, 1), nn.Linear(5, 1)

    def forward(self, rows: torch.Tensor) -> Any:
        hidden = self.body(rows)
        mean, std = self.mean(hidden)[:, 0], nn.functional.softplus(self.std(hidden))
        if self.kind == "dict":
            return {"mean": mean, "std": std}
        return (mean, std) if self.kind == "tuple" else torch.cat([mean[:, None], std], dim=1)


def dropping(p: float = 0.3, kind: Any = nn.Dropout) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 64), nn.BatchNorm1d(64), nn.ReLU(), kind(p), nn.Linear(64, 1)
    ).eval()


def run_plain(module: nn.Module, rows: Any) -> Any:
    with torch.no_grad():
        return module(torch.tensor(rows, dtype=torch.float32))


def exported(module: nn.Module, path: Path, **extra: Any) -> Path:
    program = torch.export.export(
        module.eval(), (torch.zeros(2, 3),), dynamic_shapes=({0: torch.export.Dim("rows")},)
    )
    files = {f"{key}.json": json.dumps(value) for key, value in extra.items()}
    torch.export.save(program, path, extra_files=files)
    return path


@pytest.mark.parametrize("kind", ["dict", "tuple", "table"])
def test_outputs_of_a_module_stand_side_by_side(kind: str) -> None:
    module = TwoOutputs(kind)
    family = None if kind == "dict" else "normal"
    model = wrap_model(module, task="regression", family=family)
    assert (model.outputs, model.family) == (("mean", "std"), "normal")
    expected = run_plain(TwoOutputs("table"), NEW).numpy()
    np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-5)
    assert isinstance(model, HasLayers)
    assert model.layers == ("hidden 1 (8)", "hidden 2 (5)")
    first = run_plain(module.body[:2], NEW).numpy()
    np.testing.assert_allclose(model.embed(NEW, "hidden 1 (8)"), first, rtol=1e-5)
    np.testing.assert_allclose(model.embed(NEW), run_plain(module.body, NEW).numpy(), rtol=1e-5)
    assert not isinstance(model, HasDropout)


def test_a_module_is_a_classifier_unless_said() -> None:
    module = TwoOutputs("table")
    assert isinstance(wrap_model(module), Model)
    assert isinstance(wrap_model(module, outputs=["mu", "sigma"]), Regressor)
    with pytest.raises(InputError, match="takes 3 outputs"):
        wrap_model(module, family="student_t")
    unnamed = wrap_model(module, task="regression")
    assert (unnamed.outputs, unnamed.family) == (("output_1", "output_2"), None)


# Alpha dropout keeps mean and variance of standard inputs only: it scales a unit's mean by
# a (1 - p) with a = ((1 - p) (1 + p alpha^2))^(-1/2) and alpha = 1.758 of the SELU.
ALPHA_SCALE = 0.8 / np.sqrt(0.8 * (1 + 0.2 * 1.7580993408473766**2))
KINDS = [(nn.Dropout, 1.0), (nn.AlphaDropout, ALPHA_SCALE), (nn.FeatureAlphaDropout, ALPHA_SCALE)]


@pytest.mark.parametrize(("kind", "scale"), KINDS)
@pytest.mark.parametrize("from_file", [False, True])
def test_dropout_is_sampled(
    kind: type[nn.Module], scale: float, from_file: bool, tmp_path: Path
) -> None:
    module = dropping(0.2, kind)
    if from_file:
        model: Any = load_model(exported(module, tmp_path / "m.pt2", family="dropout"))
        assert model_info(model, tmp_path / "m.pt2", "m.pt2").has_dropout
    else:
        model = wrap_model(module, family="dropout")
    assert isinstance(model, HasDropout)
    assert (model.outputs, model.family) == (("mean",), "dropout")
    statistics = module[1].running_mean.clone(), module[1].num_batches_tracked.clone()  # type: ignore[operator, union-attr]
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    shares: list[float] = []
    drawn = model.sample(NEW, 300, seed=1, progress=lambda share, _: shares.append(share))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(module[1].running_mean, statistics[0])  # type: ignore[arg-type]
    assert torch.equal(module[1].num_batches_tracked, statistics[1])  # type: ignore[arg-type]
    assert not any(part.training for part in module.modules())
    assert drawn.shape == (50, 300)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert np.array_equal(drawn, model.sample(NEW, 300, seed=1))
    assert np.array_equal(drawn[:, :7], model.sample(NEW, 7, seed=1))
    assert not np.array_equal(drawn[:, :7], model.sample(NEW, 7, seed=2))
    # One linear layer follows on the dropout, so the mean over passes is known.
    expected = nn.functional.linear(
        scale * run_plain(module[:3], NEW), module[4].weight, module[4].bias
    )
    error = drawn.mean(axis=1) - expected[:, 0].detach().numpy()
    spread = drawn.std(axis=1) / np.sqrt(300)
    assert (spread > 0).all()
    assert (np.abs(error) < 5 * spread).all()
    np.testing.assert_allclose(model.predict(NEW), run_plain(module, NEW).numpy(), rtol=1e-4)


def test_the_spread_of_dropout_is_the_known_one() -> None:
    """One linear layer of weights w behind a dropout p: variance p / (1 - p) sum (w h)^2."""
    module = dropping(0.4)
    model: Any = wrap_model(module, task="regression")
    hidden = run_plain(module[:3], NEW).numpy()
    weights = module[4].weight.detach().numpy()
    expected = 0.4 / 0.6 * ((hidden * weights) ** 2).sum(axis=1)
    seen = model.sample(NEW, 2000, seed=0).var(axis=1)
    np.testing.assert_allclose(seen, expected, rtol=0.2)


def test_where_there_is_no_dropout() -> None:
    module = dropping(0.0)
    assert not isinstance(wrap_model(module, task="regression"), HasDropout)
    with pytest.raises(InputError, match="no dropout to sample"):
        wrap_model(module, family="dropout")
    model: Any = wrap_model(dropping(), task="regression")
    with pytest.raises(InputError, match="The number of passes is 0"):
        model.sample(NEW, 0, seed=0)


def test_a_cancelled_run_leaves_the_random_numbers_alone() -> None:
    def stop(share: float, words: str) -> None:
        raise KeyboardInterrupt

    model: Any = wrap_model(dropping(), task="regression")
    state = torch.random.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        model.sample(NEW, 3, seed=0, progress=stop)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_blocks_do_not_change_a_prediction() -> None:
    module = TwoOutputs("table")
    model = wrap_regression_module(module, family="normal")
    rows = RANDOM.normal(size=(9000, 3))
    expected = run_plain(module, rows).numpy()
    np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-4, atol=1e-6)
    assert model.predict(rows[:0]).shape == (0, 2)


def test_a_program_says_what_it_is(tmp_path: Path) -> None:
    module = TwoOutputs("tuple")
    expected = run_plain(TwoOutputs("table"), NEW).numpy()
    for number, extra in enumerate(
        [{"family": "gamma"}, {"outputs": ["mean", "shape"]}, {"task": "regression"}]
    ):
        model = load_model(exported(module, tmp_path / f"m{number}.pt2", **extra))
        assert isinstance(model, Regressor)
        assert model.family == (None if "task" in extra else "gamma")
        np.testing.assert_allclose(model.predict(NEW), expected, rtol=1e-5)
        assert isinstance(model, HasLayers)
        assert len(model.layers) == 2
        info = model_info(model, tmp_path / f"m{number}.pt2", "m.pt2")
        assert info.layers == model.layers
        assert info.outputs == model.outputs
    path = exported(dropping(), tmp_path / "silent.pt2")
    assert isinstance(load_model(path), Model)
    assert load_model(path, task="regression").family == "point"
    lie = exported(dropping(), tmp_path / "lie.pt2", family="gamma")
    with pytest.raises(InputError, match=r"takes 2 outputs \(mean, shape\), but gives 1") as caught:
        load_model(lie)
    assert caught.value.file == "lie.pt2"
    with pytest.raises(InputError, match="regression model, not a classification"):
        load_model(tmp_path / "m0.pt2", task="classification")
    named = exported(TwoOutputs("table"), tmp_path / "classes.pt2", classes=["a", "b"])
    with pytest.raises(InputError, match="classification model, not a regression"):
        load_model(named, task="regression")


def test_output_that_is_not_finite_names_the_row() -> None:
    model = wrap_regression_module(nn.Sequential(nn.Linear(3, 1, bias=False)), n_features=3)
    rows = NEW.copy()
    rows[11] = 1e38
    rows[11] *= np.sign(rows[11])
    module = nn.Sequential(nn.Linear(3, 1))
    nn.init.constant_(module[0].weight, 10.0)
    with pytest.raises(InputError, match="not finite") as caught:
        wrap_regression_module(module).predict(rows)
    assert caught.value.row == 12
    assert model.outputs == ("mean",)


# ONNX


def constant(name: str, values: Any, dtype: Any) -> Any:
    return numpy_helper.from_array(np.asarray(values, dtype=dtype), name)


def two_headed(
    path: Path,
    *,
    names: Sequence[str] = ("mean", "std"),
    joined: bool = False,
    dtype: Any = np.float32,
    bend: str = "Relu",
    **metadata: Any,
) -> Path:
    """Hidden layers of 6 and 4, and two outputs, or one of two columns."""
    random = np.random.default_rng(1)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    weights = [
        constant("w1", random.normal(size=(3, 6)), dtype), constant("b1", np.ones(6), dtype),
        constant("w2", random.normal(size=(6, 4)), dtype), constant("b2", np.zeros(4), dtype),
        constant("wm", random.normal(size=(4, 1)), dtype), constant("bm", [0.5], dtype),
        constant("ws", random.normal(size=(4, 1)), dtype), constant("bs", [0.1], dtype),
    ]  # fmt: skip
    node = helper.make_node
    first, second = ("left", "right") if joined else names
    nodes = [
        node("Gemm", ["x", "w1", "b1"], ["z1"]), node(bend, ["z1"], ["h1"]),
        node("Gemm", ["h1", "w2", "b2"], ["z2"]), node(bend, ["z2"], ["h2"]),
        node("Gemm", ["h2", "wm", "bm"], [first]),
        node("Gemm", ["h2", "ws", "bs"], ["zs"]), node("Exp", ["zs"], [second]),
    ]  # fmt: skip
    ends = [(name, 1) for name in names]
    if joined:
        nodes.append(node("Concat", ["left", "right"], ["out"], axis=1))
        ends = [("out", 2)]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, ["n", 3])],
        [helper.make_tensor_value_info(name, kind, ["n", width]) for name, width in ends],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata)
    onnx.save(model, path)
    return path


def run_onnx(path: Path, rows: Any, dtype: Any = np.float32) -> Any:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    values = session.run(None, {session.get_inputs()[0].name: rows.astype(dtype)})
    return np.concatenate([value.reshape(len(rows), -1) for value in values], axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bend", ["Relu", "Tanh"])
def test_onnx_outputs_are_reported_by_their_names(dtype: Any, bend: Any, tmp_path: Path) -> None:
    path = two_headed(tmp_path / "m.onnx", dtype=dtype, bend=bend)
    model = load_model(path)
    assert isinstance(model, Regressor)
    assert (model.outputs, model.family) == (("mean", "std"), "normal")
    np.testing.assert_allclose(model.predict(NEW), run_onnx(path, NEW, dtype), rtol=1e-6)
    assert isinstance(model, HasLayers)
    assert isinstance(model, HasCodes) == (bend == "Relu")
    assert model.layers == ("hidden 1 (6)", "hidden 2 (4)")
    weights = {w.name: numpy_helper.to_array(w) for w in onnx.load(path).graph.initializer}
    first = NEW @ weights["w1"] + weights["b1"]
    first = np.maximum(first, 0) if bend == "Relu" else np.tanh(first)
    np.testing.assert_allclose(model.embed(NEW, "hidden 1 (6)"), first, rtol=1e-4, atol=1e-5)
    assert model.embed(NEW).shape == (50, 4)
    assert model.predict(NEW[:0]).shape == (0, 2)
    assert fingerprint(model, NEW) == fingerprint(load_model(path), NEW)
    info = model_info(model, path, "m.onnx")
    assert (info.task, info.layers, info.has_dropout) == ("regression", model.layers, False)


def test_onnx_metadata_decide(tmp_path: Path) -> None:
    path = two_headed(tmp_path / "a.onnx", joined=True, family="gamma")
    gamma: Any = load_model(path)
    assert (gamma.outputs, gamma.family) == (("mean", "shape"), "gamma")
    np.testing.assert_allclose(gamma.predict(NEW), run_onnx(path, NEW), rtol=1e-6)
    levels = two_headed(tmp_path / "b.onnx", joined=True, outputs='["q0.05", "q0.95"]')
    quantiles: Any = load_model(levels)
    assert (quantiles.outputs, quantiles.family) == (("0.05", "0.95"), "quantiles")
    silent = two_headed(tmp_path / "c.onnx", joined=True)
    assert isinstance(load_model(silent), Model)
    unnamed = load_model(silent, task="regression")
    assert (unnamed.outputs, unnamed.family) == (("output_1", "output_2"), None)
    said = two_headed(tmp_path / "d.onnx", joined=True, task="regression")
    with pytest.raises(InputError, match="regression model, not a classification"):
        load_model(said, task="classification")


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "family": ({"family": "student_t"}, "takes 3 outputs"),
    "unknown family": ({"family": "<b>cauchy"}, "which kdcal does not know"),
    "unknown task": ({"task": "ranking"}, "names the task 'ranking'"),
    "too many names": ({"outputs": '["a", "b", "c"]'}, "names 3 outputs but gives 2"),
    "names that are none": ({"outputs": "a, b"}, "not a JSON list"),
    "other parameters": ({"family": "gamma", "outputs": '["mean", "std"]'}, "not the parameters"),
    "levels": ({"family": "quantiles"}, "not of which levels"),
    "levels twice": ({"outputs": '["0.5", "q50"]'}, "one level twice"),
}


@pytest.mark.parametrize("lie", LIES)
def test_lying_metadata_are_refused(lie: str, tmp_path: Path) -> None:
    metadata, words = LIES[lie]
    path = two_headed(tmp_path / "m.onnx", joined=True, **metadata)
    with pytest.raises(InputError, match=words) as caught:
        load_model(path)
    assert caught.value.file == "m.onnx"


def test_one_wide_output_beside_another_has_counted_names(tmp_path: Path) -> None:
    path = two_headed(tmp_path / "m.onnx", names=("apples", "pears"), task="regression")
    model: Any = load_model(path)
    assert (model.outputs, model.family) == (("apples", "pears"), None)


CONVERTED: list[Any] = [
    LinearRegression(),
    DecisionTreeRegressor(max_depth=4, random_state=0),
    RandomForestRegressor(5, max_depth=4, random_state=0),
    GradientBoostingRegressor(n_estimators=5, random_state=0),
    MLPRegressor(hidden_layer_sizes=(6, 4), max_iter=300, random_state=0, tol=1e-2),
]


@pytest.mark.parametrize("model", CONVERTED, ids=lambda model: type(model).__name__)
def test_models_converted_from_scikit_learn(model: Any, tmp_path: Path) -> None:
    model.fit(X, Y)
    path = tmp_path / "m.onnx"
    skl2onnx = pytest.importorskip("skl2onnx")
    path.write_bytes(skl2onnx.to_onnx(model, X[:1].astype(np.float32)).SerializeToString())
    wrapped = load_model(path)
    assert isinstance(wrapped, Regressor)
    assert (wrapped.outputs, wrapped.family) == (("mean",), "point")
    rows = NEW.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(wrapped.predict(rows)[:, 0], model.predict(rows), rtol=1e-4)
    if isinstance(model, MLPRegressor):
        assert isinstance(wrapped, HasLayers)
        assert wrapped.layers == ("hidden 1 (6)", "hidden 2 (4)")
    if hasattr(model, "apply"):
        assert isinstance(wrapped, HasCodes)
        ours = wrapped.codes(rows).leaves
        theirs = np.asarray(model.apply(rows)).reshape(len(rows), -1)
        for j in range(ours.shape[1]):
            same = ours[:, j, None] == ours[None, :, j]
            assert np.array_equal(same, theirs[:, j, None] == theirs[None, :, j])
    with pytest.raises(InputError, match="regression model"):
        load_model(path, task="classification")


def test_an_onnx_classifier_is_no_regression_model(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(X, Y > 1)
    path = tmp_path / "m.onnx"
    skl2onnx = pytest.importorskip("skl2onnx")
    path.write_bytes(skl2onnx.to_onnx(model, X[:1].astype(np.float32)).SerializeToString())
    assert isinstance(load_model(path), Model)
    with pytest.raises(InputError, match="classification model, not a regression"):
        load_model(path, task="regression")


def test_no_output_of_numbers(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT64)],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, ["n", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"task": "regression"})
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(InputError, match="no output of numbers"):
        load_model(tmp_path / "m.onnx")


def test_the_hidden_layers_of_classifiers_have_names_too() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    model = wrap_model(module)
    assert isinstance(model, HasLayers)
    assert model.layers == ("hidden 1 (6)", "hidden 2 (4)")
    first = run_plain(module[:2], NEW).numpy()
    np.testing.assert_allclose(model.embed(NEW, "hidden 1 (6)"), first, rtol=1e-5)
    assert np.array_equal(model.embed(NEW), model.embed(NEW, "hidden 2 (4)"))
    with pytest.raises(InputError, match="no hidden layer 'output'"):
        model.embed(NEW, "output")
