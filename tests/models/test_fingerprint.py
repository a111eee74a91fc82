"""A model's fingerprint: the same from file and memory, another for another model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import skops.io
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from kdcal_core.errors import InputError
from kdcal_core.models import fingerprint, load_model, wrap_model
from kdcal_core.models.torch_model import wrap_module

X, Y = load_iris(return_X_y=True)


def _forest(seed):
    return RandomForestClassifier(20, random_state=seed).fit(X, Y)


MODELS = {
    "forest": _forest,
    "boosted": lambda seed: GradientBoostingClassifier(
        n_estimators=5, subsample=0.5, random_state=seed
    ).fit(X, Y),
    "network": lambda seed: MLPClassifier((8, 8), max_iter=40, random_state=seed).fit(X, Y),
    "regression": lambda seed: LogisticRegression(C=1 + seed / 10, max_iter=500).fit(X, Y),
}


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", MODELS)
def test_the_same_from_file_and_memory_and_another_for_another_seed(name, tmp_path):
    model = MODELS[name](0)
    skops.io.dump(model, tmp_path / "m.skops")
    own = fingerprint(wrap_model(model), X)
    assert fingerprint(load_model(tmp_path / "m.skops"), X) == own
    others = {fingerprint(wrap_model(MODELS[name](seed)), X) for seed in range(1, 6)}
    assert len(others | {own}) == 6


def _network(seed, *, sure=False):
    """A small network; a sure one is certain of the same class everywhere."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(seed)
    body = [torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU()]
    model = torch.nn.Sequential(*body, torch.nn.Linear(64, 3))
    with torch.no_grad():
        model[-1].bias[0] += 1e4 * sure
    return model


def test_networks_that_are_certain_everywhere_are_told_apart():
    models = [wrap_module(_network(seed, sure=True)) for seed in range(5)]
    assert {model.predict_proba(X).min() for model in models} == {0.0}
    assert len({fingerprint(model, X) for model in models}) == 5


class _Shaken:
    """The same network on a machine whose float32 sums end in other digits."""

    def __init__(self, model, seed):
        self._model, self._random = model, np.random.default_rng(seed)
        self.n_features = model.n_features

    def predict_proba(self, rows):
        return self._shake(self._model.predict_proba(rows), 1e-7)

    def embed(self, rows):
        return self._shake(self._model.embed(rows), 1e-6)

    def _shake(self, values, size):
        return values * (1 + size * self._random.standard_normal(values.shape))


def test_other_last_digits_do_not_make_another_model():
    model = wrap_module(_network(0))
    own = fingerprint(model, X)
    same = [fingerprint(_Shaken(model, seed), X) == own for seed in range(300)]
    assert np.mean(same) > 0.98


def test_the_rows_belong_to_the_fingerprint():
    model = wrap_model(_forest(0))
    assert fingerprint(model, X[:50]) != fingerprint(model, X[:60])
    assert fingerprint(model, X[:1]) != fingerprint(model, X[-1:])
    with pytest.raises(InputError, match="no rows"):
        fingerprint(model, X[:0])


def test_torch_and_its_exported_program_agree(tmp_path):
    torch = pytest.importorskip("torch")
    model = _network(2).eval()
    program = torch.export.export(
        model, (torch.zeros(3, 4),), dynamic_shapes=({0: torch.export.Dim.AUTO},)
    )
    torch.export.save(program, tmp_path / "m.pt2")
    own = fingerprint(wrap_module(model), X)
    assert fingerprint(load_model(tmp_path / "m.pt2"), X) == own
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    assert fingerprint(load_model(_to_onnx(weights, tmp_path / "m.onnx")), X) == own


def _to_onnx(weights, path):
    from onnx import TensorProto, helper, numpy_helper

    nodes, value = [], "x"
    for place in (0, 2, 4):
        given = [value, f"{place}.weight", f"{place}.bias"]
        nodes.append(helper.make_node("Gemm", given, [f"z{place}"], transB=1))
        value = f"z{place}"
        if place < 4:
            nodes.append(helper.make_node("Relu", [value], [f"h{place}"]))
            value = f"h{place}"
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["n", 3])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path
