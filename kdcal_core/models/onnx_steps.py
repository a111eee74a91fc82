"""What each operation of an ONNX graph does to the rows, for the search of layers and heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kdcal_core.models.relu_layers import Role, Step

# What hands its first input on without changing the numbers.
PASSING = (
    "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Dropout", "ZipMap",
)  # fmt: skip
# Affine in the rows, or a preparation of columns that comes before all layers.
_AFFINE = frozenset([
    *PASSING, "Add", "Sub", "Sum", "Neg", "Concat", "Slice", "Split", "Gather", "Transpose",
    "Expand", "Pad", "BatchNormalization", "ReduceMean", "ReduceSum", "Mean",
    "Scaler", "Imputer", "FeatureVectorizer", "ArrayFeatureExtractor", "OneHotEncoder",
    "LabelEncoder", "OneHot",
])  # fmt: skip
_WEIGHTS = frozenset([
    "Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "Einsum", "Attention",
    "QLinearMatMul", "MatMulInteger",
])  # fmt: skip
_RECURRENT = frozenset(["LSTM", "GRU", "RNN"])
_ACTIVATIONS = {
    "Sigmoid": "sigmoid", "HardSigmoid": "hard sigmoid", "Tanh": "tanh", "Softsign": "softsign",
    "Softplus": "softplus", "LeakyRelu": "LeakyReLU", "PRelu": "PReLU", "Elu": "ELU",
    "Selu": "SELU", "Celu": "CELU", "Gelu": "GELU", "Erf": "GELU", "HardSwish": "hard swish",
    "Swish": "SiLU", "Mish": "Mish", "ThresholdedRelu": "thresholded ReLU", "Clip": "clip",
    "Softmax": "softmax", "LogSoftmax": "log-softmax", "Hardmax": "hardmax", "Shrink": "shrink",
    "LSTM": "LSTM", "GRU": "GRU", "RNN": "RNN",
    "Attention": "softmax",
}  # fmt: skip
_FLOAT32_MAX = float(np.finfo(np.float32).max)


def read_step(node: Any, constant: Callable[[str], Any], rank: Callable[[str], int | None]) -> Step:
    """A node as a step.

    Parameters
    ----------
    node : onnx.NodeProto
    constant : callable
        Value of a constant tensor by its name, or None.
    rank : callable
        Number of dimensions of a tensor by its name, or None where it is not known.
    """
    reads, writes = tuple(reads_of(node)), tuple(name for name in node.output if name)
    if _is_relu(node, constant):
        return Step(reads, writes, "relu")
    return Step(reads, writes, _role(node, rank), _ACTIVATIONS.get(node.op_type, ""))


def _role(node: Any, rank: Callable[[str], int | None]) -> Role:
    op = node.op_type
    if op == "Gemm" or (op == "MatMul" and rank(node.input[0]) == 2):
        return "dense"
    if op == "MatMul" or op in _WEIGHTS or op in _RECURRENT:
        return "weights"
    if op in ("Mul", "Div"):
        return "product"
    return "affine" if op in _AFFINE else "other"


def reads_of(node: Any) -> Iterator[str]:
    """Tensors that a node reads, those read by its subgraphs included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
            for inner in graph.node:
                yield from reads_of(inner)
            yield from (output.name for output in graph.output)


def _is_relu(node: Any, constant: Callable[[str], Any]) -> bool:
    if node.op_type == "Relu":
        return True
    if node.op_type != "Clip":
        return False
    low, high = _clip_bounds(node, constant)
    return low == 0 and high is not None and high >= _FLOAT32_MAX


def _clip_bounds(node: Any, constant: Callable[[str], Any]) -> tuple[float | None, float | None]:
    """Bounds of a Clip, None where they are computed; attributes before opset 11."""
    bounds: dict[str, float | None] = {"min": -np.inf, "max": np.inf}
    for attribute in node.attribute:
        bounds[attribute.name] = attribute.f
    for side, name in zip(("min", "max"), list(node.input)[1:], strict=False):
        if name:
            value = constant(name)
            bounds[side] = None if value is None or value.size != 1 else float(value.item())
    return bounds["min"], bounds["max"]
