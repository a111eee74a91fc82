"""ONNX networks: probabilities, activation codes and embedding against plain numpy."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx import TensorProto, helper, numpy_helper
from scipy.special import expit, log_softmax, softmax
from unpacked_codes import bits_of

from kdcal_core.errors import InputError
from kdcal_core.models.onnx_model import load
from kdcal_core.models.protocol import HasCodes, HasEmbedding

FLOAT = TensorProto.FLOAT


def _const(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def _model(nodes, inits, inputs, outputs, *, metadata=None, functions=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, inits)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)]
    opsets += [helper.make_opsetid(f.domain, 1) for f in functions]
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=9)
    if metadata:
        helper.set_model_props(model, metadata)
    return model


def _value(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


class Net:
    """A plain network: the weights, its ONNX graph, its forward pass in numpy."""

    def __init__(self, widths, seed=0, prefix=""):
        rng = np.random.default_rng(seed)
        self.prefix = prefix
        self.weights = [
            (
                rng.normal(size=(a, b)).astype(np.float32),
                rng.normal(size=b).astype(np.float32),
            )
            for a, b in pairwise(widths)
        ]

    def forward(self, X):
        h, hidden = X.astype(np.float32), []
        for i, (W, b) in enumerate(self.weights):
            h = h @ W + b
            if i < len(self.weights) - 1:
                h = np.maximum(h, 0)
                hidden.append(h)
        return h, hidden

    def nodes(self, source="x", relu="Relu"):
        nodes, inits, p = [], [], self.prefix
        for i, (W, b) in enumerate(self.weights):
            inits += [_const(f"{p}W{i}", W), _const(f"{p}b{i}", b)]
            nodes.append(helper.make_node("Gemm", [source, f"{p}W{i}", f"{p}b{i}"], [f"{p}z{i}"]))
            source = f"{p}z{i}"
            if i < len(self.weights) - 1:
                nodes.append(_relu_node(relu, source, f"{p}h{i}"))
                source = f"{p}h{i}"
        if relu == "Clip":
            inits.append(_const("zero", np.float32(0)))
        return nodes, inits, source


def _relu_node(kind, source, target):
    inputs = [source, "zero"] if kind == "Clip" else [source]
    return helper.make_node(kind, inputs, [target])


def _plain(net, *, end=None, batch="n", d=4, k=3, relu="Relu", metadata=None):
    nodes, inits, last = net.nodes(relu=relu)
    if end:
        nodes.append(helper.make_node(end, [last], ["out"]))
        last = "out"
    return _model(nodes, inits, [_value("x", [batch, d])], [_value(last, [batch, k])],
                  metadata=metadata)  # fmt: skip


def _load(model, tmp_path, name="net.onnx"):
    path = tmp_path / name
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return load(path, name=name)


@pytest.fixture
def X():  # noqa: N802
    return np.random.default_rng(1).normal(size=(150, 4))


@pytest.mark.parametrize("end", [None, "Softmax", "LogSoftmax"])
@pytest.mark.parametrize("relu", ["Relu", "Clip"])
def test_a_network_against_numpy(tmp_path, X, end, relu):
    net = Net([4, 70, 5, 3])
    model = _load(_plain(net, end=end, relu=relu), tmp_path)
    logits, hidden = net.forward(X)
    np.testing.assert_allclose(model.predict_proba(X), softmax(logits.astype(float), 1), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1, atol=1e-12)
    codes = model.codes(X)
    assert codes.layer_widths == (70, 5)
    for got, want in zip(bits_of(codes), hidden, strict=True):
        np.testing.assert_array_equal(got, want > 0)
    embedding = model.embed(X)
    assert embedding.dtype == np.float64
    np.testing.assert_allclose(embedding, hidden[-1], rtol=1e-4, atol=1e-5)
    assert model.kind == "ReLU network (ONNX), hidden layers of 70 and 5"
    assert (model.classes, model.named_classes) == (("0", "1", "2"), False)


@pytest.mark.parametrize("batch", [1, 7, 150, 400])
def test_a_fixed_batch_gives_the_same_as_a_free_one(tmp_path, X, batch):
    net = Net([4, 8, 3])
    fixed = _load(_plain(net, batch=batch), tmp_path)
    free = _load(_plain(net), tmp_path)
    np.testing.assert_allclose(fixed.predict_proba(X), free.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(fixed.codes(X).words, free.codes(X).words)
    assert fixed.embed(X).shape == (150, 8)


def test_many_rows_are_streamed_in_blocks(tmp_path):
    X = np.random.default_rng(2).normal(size=(20_001, 4))
    net = Net([4, 8, 3])
    model = _load(_plain(net), tmp_path)
    np.testing.assert_allclose(model.predict_proba(X), softmax(net.forward(X)[0], 1), atol=1e-5)
    np.testing.assert_array_equal(bits_of(model.codes(X))[0], net.forward(X)[1][0] > 0)


@pytest.mark.parametrize("end", [None, "Sigmoid"])
@pytest.mark.parametrize("flat", [True, False])
def test_one_output_stands_for_two_classes(tmp_path, X, end, flat):
    net = Net([4, 6, 1])
    nodes, inits, last = net.nodes()
    if flat:
        inits.append(_const("shape", np.array([-1])))
        nodes.append(helper.make_node("Reshape", [last, "shape"], ["flat"]))
        last = "flat"
    if end:
        nodes.append(helper.make_node(end, [last], ["p"]))
        last = "p"
    shape = ["n"] if flat else ["n", 1]
    model = _load(_model(nodes, inits, [_value("x", ["n", 4])], [_value(last, shape)]), tmp_path)
    p = expit(net.forward(X)[0][:, 0].astype(float))
    np.testing.assert_allclose(model.predict_proba(X), np.c_[1 - p, p], atol=1e-6)
    assert model.classes == ("0", "1")


def _ensemble(nets, how):
    nodes, inits, ends = [], [], []
    for net in nets:
        more, weights, last = net.nodes()
        nodes += more
        inits += weights
        nodes.append(helper.make_node("Softmax", [last], [f"{net.prefix}p"], axis=-1))
        ends.append(f"{net.prefix}p")
    nodes.append(helper.make_node(how, ends, ["total"]))
    last = "total"
    if how == "Sum":
        inits.append(_const("count", np.float32(len(nets))))
        nodes.append(helper.make_node("Div", ["total", "count"], ["mean"]))
        last = "mean"
    return _model(nodes, inits, [_value("x", ["n", 4])], [_value(last, ["n", 3])])


@pytest.mark.parametrize("how", ["Mean", "Sum"])
def test_an_ensemble_of_networks(tmp_path, X, how):
    nets = [Net([4, 6, 6, 3], seed=i, prefix=f"m{i}_") for i in range(4)]
    model = _load(_ensemble(nets, how), tmp_path)
    runs = [net.forward(X) for net in nets]
    mean = np.mean([softmax(logits.astype(float), 1) for logits, _ in runs], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-5)
    for got, want in zip(bits_of(model.codes(X)), [h for _, hs in runs for h in hs], strict=True):
        np.testing.assert_array_equal(got, want > 0)
    last = np.concatenate([hidden[-1] for _, hidden in runs], axis=1)
    np.testing.assert_allclose(model.embed(X), last, rtol=1e-4, atol=1e-5)
    assert model.kind == "Ensemble of 4 ReLU networks (ONNX), 2 hidden layers of 6 each"


def test_images_are_reshaped_from_their_columns(tmp_path):
    rng = np.random.default_rng(3)
    W = rng.normal(size=(5, 2, 3, 3)).astype(np.float32)
    V = rng.normal(size=(5 * 4 * 4, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "W"], ["z"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["z"], ["h"]),
        helper.make_node("Flatten", ["h"], ["f"]),
        helper.make_node("MatMul", ["f", "V"], ["out"]),
    ]
    model = _model(
        nodes, [_const("W", W), _const("V", V)],
        [_value("x", ["n", 2, 4, 4])], [_value("out", ["n", 3])],
    )  # fmt: skip
    wrapped = _load(model, tmp_path)
    assert wrapped.n_features == 32
    X = rng.normal(size=(9, 32))
    images = np.pad(X.reshape(9, 2, 4, 4), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), axis=(2, 3))
    hidden = np.maximum(np.einsum("ncijkl,ockl->noij", windows, W), 0).reshape(9, -1)
    np.testing.assert_array_equal(bits_of(wrapped.codes(X))[0], hidden > 0)
    np.testing.assert_allclose(wrapped.embed(X), hidden, atol=1e-4)
    np.testing.assert_allclose(wrapped.predict_proba(X), softmax(hidden @ V, 1), atol=1e-4)


def test_relus_that_say_nothing_of_the_row_are_left_out(tmp_path, X):
    """One of a constant, one beside the path to the scores, one of the leaky kind."""
    net = Net([4, 6, 3])
    nodes, inits, last = net.nodes()
    inits.append(_const("c", np.array([[1.0, -1.0, 2.0]], np.float32)))
    nodes += [
        helper.make_node("Relu", ["c"], ["rc"]),
        helper.make_node("Add", [last, "rc"], ["sum"]),
        helper.make_node("LeakyRelu", ["sum"], ["leaky"]),
        helper.make_node("Relu", ["x"], ["aside"]),
    ]
    model = _model(nodes, inits, [_value("x", ["n", 4])],
                   [_value("leaky", ["n", 3]), _value("aside", ["n", 4])])  # fmt: skip
    assert _load(model, tmp_path).codes(X).layer_widths == (6,)


def test_without_relus_there_are_no_codes(tmp_path, X):
    model = _load(_plain(Net([4, 3])), tmp_path)
    assert not isinstance(model, HasCodes)
    assert not isinstance(model, HasEmbedding)
    assert model.kind == "ONNX classifier"
    np.testing.assert_allclose(
        model.predict_proba(X), np.exp(log_softmax(Net([4, 3]).forward(X)[0], 1)), atol=1e-5
    )


def test_names_from_the_metadata(tmp_path, X):
    metadata = {
        "classes": json.dumps(["cat", "dog", "<b>"]),
        "feature_names": json.dumps(list("abcd")),
    }
    model = _load(_plain(Net([4, 6, 3]), metadata=metadata), tmp_path)
    assert (model.classes, model.named_classes) == (("cat", "dog", "<b>"), True)
    frame = pd.DataFrame(X[:, ::-1], columns=list("dcba"))
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(X))


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"classes": '["a", "b"]'}, "names 2 classes but gives 3"),
        ({"classes": "cat, dog"}, "not a JSON list"),
        ({"classes": '["a", "a", "b"]'}, "twice"),
        ({"feature_names": '["a"]'}, "names 1 features but takes 4"),
    ],
)
def test_wrong_metadata_is_reported(tmp_path, metadata, message):
    with pytest.raises(InputError, match=message) as caught:
        _load(_plain(Net([4, 6, 3]), metadata=metadata), tmp_path)
    assert caught.value.file == "net.onnx"


def test_an_open_width_takes_the_metadata_names(tmp_path, X):
    net = Net([4, 6, 3])
    with pytest.raises(InputError, match="how many features"):
        _load(_plain(net, d="d"), tmp_path)
    model = _load(_plain(net, d="d", metadata={"feature_names": '["a","b","c","d"]'}), tmp_path)
    assert model.n_features == 4


def test_one_input_a_column_of_numbers_and_text(tmp_path):
    nodes = [
        helper.make_node("OneHotEncoder", ["colour"], ["hot"], domain="ai.onnx.ml",
                         cats_strings=["red", "blue"], zeros=1),
        helper.make_node("Reshape", ["hot", "flat"], ["hot2"]),
        helper.make_node("Cast", ["count"], ["count_f"], to=FLOAT),
        helper.make_node("Concat", ["hot2", "size", "count_f"], ["all"], axis=1),
        helper.make_node("MatMul", ["all", "W"], ["out"]),
    ]  # fmt: skip
    W = np.arange(12, dtype=np.float32).reshape(4, 3) / 3
    model = _model(
        nodes, [_const("W", W), _const("flat", np.array([-1, 2]))],
        [_value("colour", ["n", 1], TensorProto.STRING), _value("size", ["n", 1]),
         _value("count", ["n", 1], TensorProto.INT64)],
        [_value("out", ["n", 3])],
    )  # fmt: skip
    wrapped = _load(model, tmp_path)
    assert wrapped.feature_names == ("colour", "size", "count")
    frame = pd.DataFrame({"count": [1, 2], "size": [0.5, 2.0], "colour": ["blue", "green"]})
    rows = np.array([[0, 1, 0.5, 1], [0, 0, 2.0, 2]])
    np.testing.assert_allclose(wrapped.predict_proba(frame), softmax(rows @ W, 1), atol=1e-6)
    with pytest.raises(InputError) as caught:
        wrapped.predict_proba(frame.assign(count=[1.0, 2.5]))
    assert (caught.value.column, caught.value.row) == ("count", 2)
    with pytest.raises(InputError) as caught:
        wrapped.predict_proba(frame.assign(colour=["red", None]))
    assert (caught.value.column, caught.value.row) == ("colour", 2)
    with pytest.raises(InputError, match="takes a number") as caught:
        wrapped.predict_proba(frame.assign(size=["1.0", "x"]))
    assert (caught.value.column, caught.value.row) == ("size", 1)


def test_bad_rows_are_located(tmp_path, X):
    model = _load(_plain(Net([4, 6, 3])), tmp_path)
    X[5, 2] = np.nan
    with pytest.raises(InputError, match="missing value") as caught:
        model.codes(X)
    assert caught.value.row == 6
    X[5, 2] = 1e60
    with pytest.raises(InputError, match="too large") as caught:
        model.predict_proba(X)
    assert caught.value.row == 6


def test_sigmoids_of_several_classes_are_no_distribution(tmp_path, X):
    model = _load(_plain(Net([4, 6, 3]), end="Sigmoid"), tmp_path)
    with pytest.raises(InputError, match="not a distribution over the classes") as caught:
        model.predict_proba(X)
    assert caught.value.row == 1


def test_relus_inside_a_local_function_are_found(tmp_path, X):
    body = helper.make_function(
        "my.layers", "Act", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )  # fmt: skip
    net = Net([4, 6, 3])
    nodes, inits, last = net.nodes()
    nodes[1].op_type, nodes[1].domain = "Act", "my.layers"
    model = _model(nodes, inits, [_value("x", ["n", 4])], [_value(last, ["n", 3])],
                   functions=[body])  # fmt: skip
    wrapped = _load(model, tmp_path)
    np.testing.assert_array_equal(bits_of(wrapped.codes(X))[0], net.forward(X)[1][0] > 0)


# Hostile and broken files


def test_external_data_is_refused_wherever_it_hides(tmp_path):
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.zeros(24, np.float32).tobytes())

    def outside(tensor):
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", "secret.bin"

    plain = _plain(Net([4, 6, 3]))
    outside(plain.graph.initializer[0])

    constant = _plain(Net([4, 6, 3]))
    node = helper.make_node("Constant", [], ["k"], value=_const("k", np.zeros(24, np.float32)))
    outside(node.attribute[0].t)
    constant.graph.node.insert(0, node)

    nested = _plain(Net([4, 6, 3]))
    inner = _const("inner", np.zeros(24, np.float32))
    outside(inner)
    branch = helper.make_graph(
        [helper.make_node("Identity", ["inner"], ["o"])], "b", [], [_value("o", [24])], [inner]
    )
    nested.graph.node.append(
        helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)
    )
    for model in (plain, constant, nested):
        with pytest.raises(InputError, match="in another file") as caught:
            _load(model, tmp_path)
        assert caught.value.file == "net.onnx"


@pytest.mark.parametrize("domain", ["com.evil", "com.microsoft"])
def test_custom_operators_are_refused_by_name(tmp_path, domain):
    model = _plain(Net([4, 6, 3]))
    model.graph.node[1].domain, model.graph.node[1].op_type = domain, "Steal"
    model.opset_import.append(helper.make_opsetid(domain, 1))
    with pytest.raises(InputError, match=f"custom operator 'Steal' of '{domain}'"):
        _load(model, tmp_path)


def test_custom_operators_in_a_branch_are_refused(tmp_path):
    branch = helper.make_graph(
        [helper.make_node("Steal", [], ["o"], domain="com.evil")], "b", [], [_value("o", [1])]
    )
    model = _plain(Net([4, 6, 3]))
    model.graph.node.append(
        helper.make_node("If", ["c"], ["r"], then_branch=branch, else_branch=branch)
    )
    with pytest.raises(InputError, match="Steal"):
        _load(model, tmp_path)


def test_truncated_files_are_refused_wherever_they_end(tmp_path):
    whole = _plain(Net([4, 6, 3])).SerializeToString()
    for end in range(0, len(whole), 23):
        with pytest.raises(InputError) as caught:
            _load(whole[:end], tmp_path)
        assert caught.value.file == "net.onnx"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x05K\x01.", b"a,b\n1,2\n"])
def test_what_is_no_onnx_file_is_refused(tmp_path, content):
    with pytest.raises(InputError):
        _load(content, tmp_path)


def test_claimed_sizes_beyond_the_file_are_refused(tmp_path):
    model = _plain(Net([4, 6, 3]))
    model.graph.initializer[0].dims[:] = [1 << 20, 1 << 20]
    with pytest.raises(InputError, match="claims 1,099,511,627,776 elements"):
        _load(model, tmp_path)


@pytest.mark.parametrize("change", ["operator", "shape", "dangling", "labels only"])
def test_what_the_runtime_refuses_is_an_input_error(tmp_path, change):
    model = _plain(Net([4, 6, 3]))
    if change == "operator":
        model.graph.node[1].op_type = "NoSuchOperator"
    elif change == "shape":
        model.graph.initializer[0].CopyFrom(_const("W0", np.zeros((7, 2), np.float32)))
    elif change == "dangling":
        model.graph.node[1].input[0] = "nowhere"
    else:
        model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(InputError) as caught:
        _load(model, tmp_path)
    assert caught.value.file == "net.onnx"


def test_an_endless_cycle_of_nodes_is_refused(tmp_path):
    model = _plain(Net([4, 6, 3]))
    model.graph.node[0].input[0] = model.graph.node[1].output[0]
    with pytest.raises(InputError):
        _load(model, tmp_path)


def test_the_checker_agrees_that_the_test_graphs_are_valid():
    onnx.checker.check_model(_plain(Net([4, 6, 3])), full_check=True)
