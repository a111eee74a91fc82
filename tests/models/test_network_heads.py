"""Encoders with a dense ReLU head, logits and named activations, against plain forward passes."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from scipy.special import expit, softmax
from sklearn.neural_network import MLPClassifier
from unpacked_codes import bits_of

from kdcal_core.errors import InputError
from kdcal_core.models import (
    HasCodes,
    HasHead,
    HasLogits,
    load_model,
    model_info,
    wrap_model,
)
from kdcal_core.models.network_layers import Step, find_head
from kdcal_core.models.torch_model import wrap_module

torch = pytest.importorskip("torch")
nn = torch.nn
RNG = np.random.default_rng(0)
X = RNG.normal(size=(23, 36))


class Attention(nn.Module):
    """Six tokens of six numbers, attention, a GELU layer, the mean over the tokens."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(6, 6) for _ in range(3))
        self.wide, self.back, self.norm = nn.Linear(6, 12), nn.Linear(12, 6), nn.LayerNorm(6)

    def forward(self, x):
        x = x.reshape(-1, 6, 6)
        share = torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), dim=-1)
        x = x + share @ self.v(x)
        x = x + self.back(nn.functional.gelu(self.wide(x)))
        return self.norm(x).mean(1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True)

    def forward(self, x):
        return self.lstm(x.reshape(-1, 6, 6))[0][:, -1]


class Transformer(nn.Module):
    """PyTorch runs the layer as one operation in memory and as its parts in a file."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(6, 2, 12, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2)

    def forward(self, x):
        return self.layers(x.reshape(-1, 6, 6))[:, 0]


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.MaxPool2d(2)
        self.norm.running_mean.uniform_(-0.2, 0.2)

    def forward(self, x):
        return self.pool(torch.relu(self.norm(self.conv(x.reshape(-1, 1, 6, 6))))).flatten(1)


class Skip(nn.Module):
    """A residual block: where its two branches meet, the encoder ends."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(36, 36), nn.Linear(36, 36)

    def forward(self, x):
        return x + torch.sigmoid(self.b(torch.relu(self.a(x))))


ENCODERS = {
    "images": (Images, 12, ()),
    "attention": (Attention, 6, ("layer 1: softmax", "layer 2: GELU")),
    "lstm": (Recurrent, 5, ("layer 1: LSTM",)),
    "tanh": (lambda: nn.Sequential(nn.Linear(36, 7), nn.Tanh()), 7, ("layer 1: tanh",)),
    "skip": (Skip, 36, ("layer 2: sigmoid",)),
}  # fmt: skip


def _network(name):
    torch.manual_seed(3)
    make, width, named = ENCODERS[name]
    encoder = make()
    head = nn.Sequential(
        nn.Linear(width, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(9, 70), nn.ReLU(), nn.Linear(70, 3),
    )  # fmt: skip
    return encoder.eval(), head.eval(), named


def _as_model(how, module, tmp_path):
    if how == "memory":
        return wrap_module(module, n_features=36)
    rows = torch.randn(5, 36)
    program = torch.export.export(module, (rows,), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    torch.export.save(program, tmp_path / "m.pt2")
    return load_model(tmp_path / "m.pt2")


@pytest.mark.parametrize(
    ("how", "name"),
    # An exported program's LSTM is one operator that kdcal does not run.
    [
        *product(["memory"], ENCODERS),
        *product(["file"], [name for name in ENCODERS if name != "lstm"]),
    ],
)
def test_a_torch_encoder_with_a_head(how, name, tmp_path):
    encoder, head, named = _network(name)
    model = _as_model(how, nn.Sequential(encoder, head, nn.Softmax(1)), tmp_path)
    with torch.no_grad():
        seen = encoder(torch.tensor(X, dtype=torch.float32))
        first = torch.relu(head[1](head[0](seen)))
        second = torch.relu(head[4](first))
        logits = head[6](second).numpy()
    assert isinstance(model, HasHead)
    np.testing.assert_allclose(model.head_input(X), seen.numpy(), atol=1e-5)
    codes = model.head_codes(X)
    assert codes.layer_widths == (9, 70)
    np.testing.assert_array_equal(bits_of(codes)[0], first.numpy() > 0)
    np.testing.assert_array_equal(bits_of(codes)[1], second.numpy() > 0)
    np.testing.assert_allclose(model.logits(X), logits, atol=1e-5)
    assert model.other_activations == named
    for one in (model.head_input(X[:1]), model.logits(X[:1])):
        assert len(one) == 1
    np.testing.assert_allclose(model.head_input(X[:1])[0], seen.numpy()[0], atol=1e-5)


class Skipped(nn.Module):
    """Dense ReLU layers with a bypass: piecewise affine in the input itself."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(36, 36), nn.Linear(36, 36), nn.Linear(72, 2)

    def forward(self, x):
        h = x + torch.relu(self.a((x - 0.5) / 2))
        return self.c(torch.cat([x, torch.relu(self.b(h))], 1))


PLAIN = {
    "mlp": lambda: nn.Sequential(nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(1)),
    "bypass": Skipped,
    "no dense ReLU behind": lambda: nn.Sequential(Images(), nn.Linear(12, 2)),
    "tanh between": lambda: nn.Sequential(
        nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 2)
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_networks_without_a_head(name):
    torch.manual_seed(4)
    model = wrap_module(PLAIN[name]().eval(), n_features=36)
    assert isinstance(model, HasCodes)
    assert not isinstance(model, HasHead)


def test_an_average_of_probabilities_has_no_logits():
    class Ensemble(nn.Module):
        def __init__(self):
            super().__init__()
            self.members = nn.ModuleList(PLAIN["mlp"]() for _ in range(3))

        def forward(self, x):
            return torch.stack([member(x) for member in self.members]).mean(0)

    model = wrap_module(Ensemble().eval(), n_features=36)
    assert isinstance(model, HasCodes)
    assert not isinstance(model, HasLogits)
    assert not isinstance(model, HasHead)
    assert model.other_activations == ()


@pytest.mark.parametrize("end", [nn.Identity, nn.Sigmoid])
def test_one_logit_becomes_two(end):
    torch.manual_seed(5)
    body = nn.Sequential(nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 1))
    model = wrap_module(nn.Sequential(body, end()))
    with torch.no_grad():
        z = body(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(model.logits(X), np.c_[-z, z] / 2, atol=1e-6)
    np.testing.assert_allclose(softmax(model.logits(X), 1), model.predict_proba(X), atol=1e-6)


def test_a_transformer_that_runs_as_one_operation():
    torch.manual_seed(7)
    encoder = Transformer().eval()
    head = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))
    model = wrap_module(nn.Sequential(encoder, head), n_features=36)
    with torch.no_grad():
        seen = encoder(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(model.head_input(X), seen, atol=1e-6)
    assert model.head_codes(X).layer_widths == (5,)
    assert model.other_activations == ("layer 1: transformer layer", "layer 2: transformer layer")


def test_what_comes_behind_the_softmax_is_checked_by_its_numbers():
    class Sharpened(nn.Module):
        def __init__(self, power):
            super().__init__()
            torch.manual_seed(6)
            self.images, self.power = Images(), power
            self.head = nn.Sequential(nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 1))

        def forward(self, x):
            p = torch.sigmoid(self.head(self.images(x))) ** self.power
            return torch.cat([1 - p, p], dim=1)

    plain, sharp = (wrap_module(Sharpened(k).eval(), n_features=36) for k in (1, 2))
    np.testing.assert_allclose(softmax(plain.logits(X), 1), plain.predict_proba(X), atol=1e-6)
    assert not isinstance(sharp, HasLogits)
    for model in (plain, sharp):
        assert model.head_codes(X).layer_widths == (5,)


def test_activations_are_named_layer_by_layer():
    body = [nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)]
    body += [nn.LeakyReLU(), nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 2), nn.Softmax(1)]
    model = wrap_module(nn.Sequential(*body))
    assert model.other_activations == ("layer 2: GELU", "layer 3: LeakyReLU", "layer 4: SiLU")
    assert model.codes(X).layer_widths == (8,)


def test_a_module_that_takes_another_course_with_one_row_is_refused():
    class Query(nn.Module):
        """A dense layer on a weight of one row looks like one on a batch of one row."""

        def __init__(self):
            super().__init__()
            self.images, self.query = Images(), nn.Parameter(torch.ones(1, 12))
            self.q, self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 5), nn.Linear(5, 2)

        def forward(self, x):
            return self.b(torch.relu(self.a(self.images(x) * self.q(self.query))))

    model = wrap_module(Query().eval(), n_features=36)
    assert model.head_input(X[:2]).shape == (2, 12)
    with pytest.raises(InputError, match="another course with 1 rows"):
        model.head_input(X[:1])


# ONNX


def _const(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def _save(nodes, weights, shape, last, tmp_path, *, n_out=3):
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", n_out])],
        [_const(name, value) for name, value in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return load_model(path)


def _weights(**shapes):
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def _head_nodes(source, end):
    return [
        helper.make_node("MatMul", [source, "W1"], ["z1"]),
        helper.make_node("Add", ["z1", "b1"], ["s1"]),
        helper.make_node("Relu", ["s1"], ["h1"]),
        helper.make_node("Gemm", ["h1", "W2"], ["z2"]),
        helper.make_node(end, ["z2"], ["out"]),
    ]


def _onnx_images(tmp_path, end="Softmax"):
    w = _weights(C=(2, 1, 3, 3), W1=(32, 9), b1=9, W2=(9, 3))
    nodes = [
        helper.make_node("Conv", ["x", "C"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["seen"]),
        *_head_nodes("seen", end),
    ]
    windows = np.lib.stride_tricks.sliding_window_view(X.reshape(-1, 6, 6), (3, 3), axis=(1, 2))
    seen = np.maximum(np.einsum("nijkl,okl->noij", windows, w["C"][:, 0]), 0).reshape(len(X), -1)
    return _save(nodes, w, ["n", 1, 6, 6], "out", tmp_path), w, seen, ()


def _onnx_tokens(tmp_path, end="Softmax"):
    """A ReLU layer on every token: dense, yet not on one vector a row."""
    w = _weights(T=(6, 4), W1=(24, 9), b1=9, W2=(9, 3)) | {"flat": np.array([-1, 24])}
    nodes = [
        helper.make_node("MatMul", ["x", "T"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Reshape", ["r", "flat"], ["seen"]),
        *_head_nodes("seen", end),
    ]
    seen = np.maximum(X.reshape(-1, 6, 6) @ w["T"], 0).reshape(len(X), -1)
    return _save(nodes, w, ["n", 6, 6], "out", tmp_path), w, seen, ()


def _onnx_sigmoid(tmp_path, end="Softmax"):
    w = _weights(T=(36, 5), W1=(5, 9), b1=9, W2=(9, 3))
    nodes = [
        helper.make_node("Gemm", ["x", "T"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["seen"]),
        *_head_nodes("seen", end),
    ]
    return _save(nodes, w, ["n", 36], "out", tmp_path), w, expit(X @ w["T"]), ("layer 1: sigmoid",)


@pytest.mark.parametrize(
    ("make", "end"),
    [*product([_onnx_images, _onnx_tokens, _onnx_sigmoid], ["Softmax", "LogSoftmax", "Identity"])],
)
def test_an_onnx_encoder_with_a_head(make, end, tmp_path):
    model, w, seen, named = make(tmp_path, end)
    before = seen @ w["W1"] + w["b1"]
    logits = np.maximum(before, 0) @ w["W2"]
    assert isinstance(model, HasHead)
    np.testing.assert_allclose(model.head_input(X), seen, atol=1e-4)
    (bits,) = bits_of(model.head_codes(X))
    np.testing.assert_array_equal(bits[np.abs(before) > 1e-4], (before > 0)[np.abs(before) > 1e-4])
    np.testing.assert_allclose(model.logits(X), logits, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(softmax(model.logits(X), 1), model.predict_proba(X), atol=1e-5)
    assert model.other_activations == named
    info = model_info(model, tmp_path / "m.onnx", "m.onnx")
    assert (info.has_head, info.has_logits, info.other_activations) == (True, True, named)


def test_a_plain_onnx_network_has_logits_and_no_head(tmp_path):
    w = _weights(W1=(36, 9), b1=9, W2=(9, 3), m=36)
    nodes = [helper.make_node("Mul", ["x", "m"], ["seen"]), *_head_nodes("seen", "Softmax")]
    model = _save(nodes, w, ["n", 36], "out", tmp_path)
    assert not isinstance(model, HasHead)
    logits = np.maximum(X * w["m"] @ w["W1"] + w["b1"], 0) @ w["W2"]
    np.testing.assert_allclose(model.logits(X), logits, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_a_sigmoid_and_its_rest_have_a_logit_unless_something_else_follows(power, tmp_path):
    """Two outputs 1 - p and p, as scikit-learn's perceptron is exported."""
    w = _weights(W1=(36, 9), b1=9, W2=(9, 1)) | {"one": np.ones(1, np.float32)}
    nodes = [
        *_head_nodes("x", "Sigmoid"),
        helper.make_node("Pow", ["out", "power"], ["p"]),
        helper.make_node("Sub", ["one", "p"], ["q"]),
        helper.make_node("Concat", ["q", "p"], ["both"], axis=1),
    ]
    w["power"] = np.float32(power)
    model = _save(nodes, w, ["n", 36], "both", tmp_path, n_out=2)
    assert isinstance(model, HasLogits) == (power == 1)
    if power == 1:
        z = np.maximum(X @ w["W1"] + w["b1"], 0) @ w["W2"]
        np.testing.assert_allclose(model.logits(X), np.c_[-z, z] / 2, rtol=1e-4, atol=1e-3)


def test_an_onnx_network_without_relus_names_what_it_has(tmp_path):
    w = _weights(W1=(36, 9), W2=(9, 3))
    nodes = [
        helper.make_node("Gemm", ["x", "W1"], ["a"]),
        helper.make_node("Elu", ["a"], ["b"]),
        helper.make_node("Gemm", ["b", "W2"], ["c"]),
        helper.make_node("Softmax", ["c"], ["out"]),
    ]
    model = _save(nodes, w, ["n", 36], "out", tmp_path)
    assert not isinstance(model, HasCodes)
    assert model.other_activations == ("layer 1: ELU",)


# scikit-learn


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_a_perceptron(activation, n_classes):
    y = np.arange(len(X)) % n_classes
    model = MLPClassifier((5, 4), activation=activation, max_iter=3, random_state=0)
    with pytest.warns(UserWarning, match="converge"):
        wrapped = wrap_model(model.fit(X, y))
    np.testing.assert_allclose(softmax(wrapped.logits(X), 1), model.predict_proba(X), atol=1e-12)
    named = {"relu": None, "logistic": "sigmoid"}.get(activation, activation)
    assert wrapped.other_activations == (
        (f"layer 1: {named}", f"layer 2: {named}") if named else ()
    )
    assert isinstance(wrapped, HasCodes) == (activation == "relu")
    assert not isinstance(wrapped, HasHead)


# The search itself


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["relu", "dense", "weights", "affine", "other"]), max_size=9))
def test_a_chain_is_cut_behind_its_last_encoder_step(roles):
    """On a chain the head is the dense layers and ReLUs behind the last step of another kind."""
    roles = [*roles, "dense", "relu", "dense"]
    steps = [Step((f"v{i}",), (f"v{i + 1}",), role) for i, role in enumerate(roles)]
    found = find_head(steps, f"v{len(roles)}", ["v0"])
    strange = [i for i, role in enumerate(roles) if role in ("weights", "other")]
    if not strange:
        assert found is None
        return
    start = roles.index("dense", strange[-1])
    assert found is not None
    assert (found.start, found.source) == (start, f"v{start}")
    assert found.layers == tuple(i for i, role in enumerate(roles) if role == "relu" and i > start)
