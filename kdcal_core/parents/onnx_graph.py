"""Reading an ONNX graph: which output is the classifier's, what it holds, where its ReLUs are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdcal_core.errors import InputError
from kdcal_core.parents.outputs import OutputKind, string_list
from kdcal_core.parents.relu_layers import Step, ancestors, relu_layers

# What hands its first input on without changing the numbers.
_PASSING = (
    "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Dropout", "ZipMap",
)  # fmt: skip
_POST_TRANSFORMS: dict[str, OutputKind] = {"LOGISTIC": "probability", "SOFTMAX": "probability"}
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_FLOATS = (1, 10, 11)  # float, float16, double of onnx.TensorProto.DataType


@dataclass(frozen=True)
class Score:
    """The output that carries the classifier's scores.

    Attributes
    ----------
    name : str
        Tensor name, before any ZipMap.
    kind : OutputKind or None
        What it holds, where the graph says so.
    classes : tuple of str or None
        Class names, where the graph names them.
    """

    name: str
    kind: OutputKind | None
    classes: tuple[str, ...] | None


class Graph:
    """An ONNX graph with the questions that the adapter asks."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.nodes = list(model.graph.node)
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in self.nodes:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value":
                    self.constants[node.output[0]] = attribute.t
        self._producer = {name: node for node in self.nodes for name in node.output if name}
        self._steps = [
            Step(tuple(_reads(node)), tuple(n for n in node.output if n), self._is_relu(node))
            for node in self.nodes
        ]
        self.metadata = {entry.key: entry.value for entry in model.metadata_props}
        self.inputs = [v for v in model.graph.input if v.name not in self.constants]

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list of names from the file's metadata."""
        return string_list(self.metadata[key], key) if key in self.metadata else None

    def score(self) -> Score:
        """The scores among the graph's outputs: a ZipMap's, a float one called so, or the first.

        Raises
        ------
        InputError
            There is none.
        """
        outputs = list(self.model.graph.output)
        zipped = [v.name for v in outputs if self._op(v.name) == "ZipMap"]
        floats = [v.name for v in outputs if v.type.tensor_type.elem_type in _FLOATS]
        floats.sort(key=lambda name: "prob" not in name.lower())
        if not zipped and not floats:
            raise InputError(
                "The model has no output of probabilities or logits",
                fix="Export the classifier with its probabilities, not only its labels.",
            )
        name = (zipped or floats)[0]
        source = self._source(name)
        if zipped:
            name = self._producer[name].input[0]
        return Score(name, _kind(source), self.names("classes") or self._labels(name))

    def ends_linear(self, name: str) -> bool:
        """Whether a tensor comes straight from a linear layer."""
        source = self._source(name)
        return source is not None and source.op_type in ("Gemm", "MatMul")

    def ancestors(self, name: str) -> list[Any]:
        """Nodes that a tensor is computed from, in topological order."""
        return [self.nodes[i] for i in ancestors(self._steps, name)]

    def relus(self, name: str) -> tuple[list[str], list[str]]:
        """ReLU outputs that a tensor is computed from, and those of them that come last."""
        layers, last = relu_layers(self._steps, name, [value.name for value in self.inputs])
        return [self._steps[i].writes[0] for i in layers], [self._steps[i].writes[0] for i in last]

    def with_outputs(self, names: list[str]) -> Any:
        """A copy of the model that returns these tensors and computes nothing else."""
        import onnx

        nodes = {id(node): node for name in names for node in self.ancestors(name)}
        copy = onnx.ModelProto()
        copy.CopyFrom(self.model)
        del copy.graph.node[:]
        copy.graph.node.extend(node for node in self.nodes if id(node) in nodes)
        del copy.graph.output[:]
        copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        return copy

    def constant(self, name: str) -> Any:
        """Value of a constant tensor, or None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def _op(self, name: str) -> str:
        node = self._producer.get(name)
        return "" if node is None else node.op_type

    def _source(self, name: str) -> Any:
        """The node whose numbers a tensor carries, behind reshapes and casts."""
        node = self._producer.get(name)
        while node is not None and node.op_type in _PASSING:
            node = self._producer.get(node.input[0])
        return node

    def _labels(self, score: str) -> tuple[str, ...] | None:
        """Class names from the label attributes of a classifier node, or its table of labels."""
        for node in reversed(self.nodes):
            for attribute in node.attribute:
                if attribute.name in ("classlabels_strings", "classlabels_int64s"):
                    values = [v.decode("utf-8", "replace") for v in attribute.strings]
                    values = values or [str(v) for v in attribute.ints]
                    if values:
                        return tuple(values)
        for output in self.model.graph.output:
            source = self._source(output.name)
            if source is not None and source.op_type == "ArrayFeatureExtractor":
                table = self.constant(source.input[0])
                if table is not None and output.name != score:
                    return tuple(_text(value) for value in table.reshape(-1))
        return None

    def _is_relu(self, node: Any) -> bool:
        if node.op_type == "Relu":
            return True
        if node.op_type != "Clip":
            return False
        low, high = self._clip_bounds(node)
        return low == 0 and high is not None and high >= _FLOAT32_MAX

    def _clip_bounds(self, node: Any) -> tuple[float | None, float | None]:
        """Bounds of a Clip, None where they are computed; attributes before opset 11."""
        bounds: dict[str, float | None] = {"min": -np.inf, "max": np.inf}
        for attribute in node.attribute:
            bounds[attribute.name] = attribute.f
        for side, name in zip(("min", "max"), list(node.input)[1:], strict=False):
            if name:
                value = self.constant(name)
                bounds[side] = None if value is None or value.size != 1 else float(value.item())
        return bounds["min"], bounds["max"]


def _reads(node: Any) -> Iterator[str]:
    """Tensors that a node reads, those read by its subgraphs included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
            for inner in graph.node:
                yield from _reads(inner)
            yield from (output.name for output in graph.output)


def _kind(source: Any) -> OutputKind | None:
    if source is None:
        return None
    attributes = {a.name: a for a in source.attribute}
    if source.op_type in ("Softmax", "Sigmoid"):
        return "probability"
    if source.op_type == "LogSoftmax":
        return "log-probability"
    if source.op_type == "Normalizer":
        norm = attributes["norm"].s if "norm" in attributes else b"MAX"
        return "probability" if norm == b"L1" else None
    if "post_transform" in attributes:
        return _POST_TRANSFORMS.get(attributes["post_transform"].s.decode("utf-8", "replace"))
    return None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
