"""Reads an ONNX graph, turns a table into its inputs, and runs it in a session.

Finds the classifier's output, what it holds, and the graph's ReLUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import Task, as_pandas
from kdcal_core.errors import InputError
from kdcal_core.models.features import (
    TOO_LARGE,
    bad_value,
    column_names,
    numeric_input,
    select_columns,
)
from kdcal_core.models.network_layers import (
    Role,
    Step,
    ancestors,
    find_head,
    hidden_layers,
    last_end,
    other_activations,
    relu_layers,
)
from kdcal_core.models.onnx_cost import PASSING, Cost, reads_of
from kdcal_core.models.output_meaning import (
    OutputKind,
    check_feature_names,
    family_of_names,
    read_task,
    string_list,
)
from kdcal_core.models.protocol import Features

_POST_TRANSFORMS: dict[str, OutputKind] = {"LOGISTIC": "probability", "SOFTMAX": "probability"}
# No tensor of a file has this name: ONNX names are not empty.
_ALL = ""
_FLOATS = (1, 10, 11)  # float, float16, double of onnx.TensorProto.DataType


@dataclass(frozen=True)
class Score:
    """The output that carries the classifier's scores.

    Attributes
    ----------
    name : str
        Tensor name, before any ZipMap.
    kind : OutputKind or None
        What it holds, where the graph shows it.
    classes : tuple of str or None
        Class names, where the graph names them.
    """

    name: str
    kind: OutputKind | None
    classes: tuple[str, ...] | None


class Graph:
    """An ONNX graph, and what the adapter needs to know about it."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.nodes = list(model.graph.node)
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in self.nodes:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value":
                    self.constants[node.output[0]] = attribute.t
        self._producer = {name: node for node in self.nodes for name in node.output if name}
        self._steps = [read_step(node, self.constant, self._rank) for node in self.nodes]
        self.metadata = {entry.key: entry.value for entry in model.metadata_props}
        self.inputs = [v for v in model.graph.input if v.name not in self.constants]

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list of names from the file's metadata."""
        return string_list(self.metadata[key], key) if key in self.metadata else None

    def score(self) -> Score:
        """The scores among the graph's outputs: of a ZipMap, a float one so named, or the first.

        Raises
        ------
        InputError
            If there are none.
        """
        outputs = list(self.model.graph.output)
        zipped = [v.name for v in outputs if self._op(v.name) == "ZipMap"]
        floats = self.float_outputs()
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

    def float_outputs(self) -> list[str]:
        """The graph's floating-point outputs."""
        outputs = self.model.graph.output
        return [v.name for v in outputs if v.type.tensor_type.elem_type in _FLOATS]

    def said_task(self) -> Task | None:
        """The task that the file states in its metadata or shows by its operators and outputs.

        Converters of scikit-learn call the output of a regressor "variable".

        Raises
        ------
        InputError
            If the metadata names an unknown task.
        """
        if "task" in self.metadata:
            return read_task(self.metadata["task"])
        if "family" in self.metadata or "outputs" in self.metadata:
            return "regression"
        floats = self.float_outputs()
        classifies = any(node.op_type.endswith("Classifier") for node in self.nodes)
        if classifies or "classes" in self.metadata or len(floats) < len(self.model.graph.output):
            return "classification"
        if len(floats) > 1:
            return None if family_of_names(floats) is None else "regression"
        source = self._source(floats[0])
        regresses = source is not None and source.op_type.endswith("Regressor")
        return "regression" if floats == ["variable"] or (regresses and _is_plain(source)) else None

    def ends_linear(self, name: str) -> bool:
        """Whether a tensor comes straight from a linear layer."""
        source = self._source(name)
        return source is not None and source.op_type in ("Gemm", "MatMul")

    def ancestors(self, name: str) -> list[Any]:
        """Nodes from which a tensor is computed, in topological order."""
        return [self.nodes[i] for i in ancestors(self._steps, name)]

    def relus(self, *names: str) -> tuple[list[str], list[str]]:
        """ReLU outputs from which tensors are computed, and the last ones of them."""
        layers, last = relu_layers(self._joined(names), _ALL, self._input_names())
        return self._written(layers), self._written(last)

    def hidden(self, *names: str) -> tuple[list[str], list[str]]:
        """Hidden layers of vectors from which tensors are computed, and the last ones of them."""
        layers, last = hidden_layers(self._joined(names), _ALL, self._input_names())
        return [name for _, name in layers], last

    def other_activations(self, *names: str) -> tuple[str, ...]:
        """Names of the hidden activations other than ReLU from which tensors are computed."""
        return other_activations(self._joined(names), _ALL, self._input_names())

    def head(self, name: str) -> tuple[str, list[str]] | None:
        """The input of the dense ReLU head after an encoder, and the outputs of its ReLUs."""
        found = find_head(self._steps, name, self._input_names())
        return None if found is None else (found.source, self._written(found.layers))

    def logits(self, name: str) -> str | None:
        """The input of the single softmax or sigmoid before these scores."""
        end = last_end(self._steps, name, self._input_names())
        return None if end is None else str(self.nodes[end].input[0])

    def with_outputs(self, names: list[str]) -> Any:
        """A copy of the model that returns these tensors and computes nothing else."""
        import onnx

        needed = set(ancestors(self._joined(names), _ALL))
        copy = onnx.ModelProto()
        copy.CopyFrom(self.model)
        del copy.graph.node[:]
        copy.graph.node.extend(node for i, node in enumerate(self.nodes) if i in needed)
        del copy.graph.output[:]
        copy.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        return copy

    def constant(self, name: str) -> Any:
        """Value of a constant tensor, or None."""
        from onnx import numpy_helper

        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def _joined(self, names: Sequence[str]) -> list[Step]:
        """The steps, with a last one that reads all of these tensors."""
        return [*self._steps, Step(tuple(names), (_ALL,), "affine")]

    def _rank(self, name: str) -> int | None:
        return self._ranks.get(name)

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """Number of dimensions of each tensor whose shape can be inferred."""
        from onnx import shape_inference

        try:
            graph = shape_inference.infer_shapes(self.model).graph
        except Exception:  # the C++ errors have no narrower base; without a rank, no head
            return {}
        return {
            value.name: len(value.type.tensor_type.shape.dim)
            for value in (*graph.input, *graph.value_info, *graph.output)
            if value.type.tensor_type.HasField("shape")
        }

    def _input_names(self) -> list[str]:
        return [value.name for value in self.inputs]

    def _written(self, steps: Iterable[int]) -> list[str]:
        return [self._steps[i].writes[0] for i in steps]

    def _op(self, name: str) -> str:
        node = self._producer.get(name)
        return "" if node is None else node.op_type

    def _source(self, name: str) -> Any:
        """The node whose numbers a tensor carries, before reshapes and casts."""
        node = self._producer.get(name)
        while node is not None and node.op_type in PASSING:
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


def _is_plain(source: Any) -> bool:
    """Whether a node passes its scores on unchanged."""
    return all(a.s == b"NONE" for a in source.attribute if a.name == "post_transform")


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


# Affine in the rows, or a preparation of columns before all layers.
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
        Number of dimensions of a tensor by its name, or None where it is unknown.
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


Feed = dict[str, NDArray[Any]]

_STRING = 8
_DTYPES: dict[int, type[np.generic]] = {
    1: np.float32,
    2: np.uint8,
    3: np.int8,
    4: np.uint16,
    5: np.int16,
    6: np.int32,
    7: np.int64,
    9: np.bool_,
    10: np.float16,
    11: np.float64,
    12: np.uint32,
}  # by number of onnx.TensorProto.DataType
_MOST_FEATURES = 1 << 24


@dataclass(frozen=True)
class Slot:
    """One input of the graph: its name, the shape of one row and its type (None for text)."""

    name: str
    row_shape: tuple[int, ...]
    dtype: type[np.generic] | None

    @property
    def width(self) -> int:
        return prod(self.row_shape)


@dataclass(frozen=True)
class Inputs:
    """All inputs of a graph.

    Attributes
    ----------
    slots : tuple of Slot
        They take consecutive feature columns.
    batch : int or None
        The graph's fixed number of rows, if it has one.
    feature_names : tuple of str or None
    allow_missing : bool
        Whether the graph takes NaN.
    cost : Cost
        Cost of one row in the graph.
    """

    slots: tuple[Slot, ...]
    batch: int | None
    feature_names: tuple[str, ...] | None
    allow_missing: bool
    cost: Cost = field(default_factory=Cost)

    @property
    def trial_rows(self) -> int:
        """How many rows of noise to try the graph on."""
        return self.batch or self.cost.trial_rows

    @property
    def n_features(self) -> int:
        return sum(slot.width for slot in self.slots)

    def feed(self, X: Features) -> Feed:
        """The rows as the graph's inputs.

        Raises
        ------
        InputError
            Columns are missing or not of the type that the graph takes.
        """
        X = as_pandas(X)
        if all(slot.dtype is not None for slot in self.slots):
            matrix = numeric_input(
                X,
                n_features=self.n_features,
                feature_names=self.feature_names,
                allow_missing=self.allow_missing,
            )
            return self._split(matrix, self._names(X))
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X, dtype=object))
        names = self.feature_names if isinstance(X, pd.DataFrame) else None
        frame = select_columns(frame, n_features=self.n_features, feature_names=names)
        return self._split_frame(frame, self._names(frame))

    def trial(self, n_rows: int) -> Feed:
        """Rows of normal noise (empty text) to try the graph on."""
        rng = np.random.default_rng(0)
        feed: Feed = {}
        for slot in self.slots:
            shape = (n_rows, *slot.row_shape)
            noise = rng.standard_normal(shape)
            if slot.dtype is None:
                feed[slot.name] = np.full(shape, "", dtype=object)
            elif np.issubdtype(slot.dtype, np.floating):
                feed[slot.name] = noise.astype(slot.dtype)
            else:
                feed[slot.name] = (noise > 0).astype(slot.dtype)
        return feed

    def _names(self, X: Features) -> tuple[str, ...]:
        return column_names(X, n_features=self.n_features, feature_names=self.feature_names)

    def _split(self, matrix: NDArray[np.float64], names: Sequence[str]) -> Feed:
        feed: Feed = {}
        start = 0
        for slot in self.slots:
            part = matrix[:, start : start + slot.width]
            feed[slot.name] = _cast(part, slot, names[start:]).reshape(-1, *slot.row_shape)
            start += slot.width
        return feed

    def _split_frame(self, frame: pd.DataFrame, names: Sequence[str]) -> Feed:
        feed: Feed = {}
        start = 0
        for slot in self.slots:
            part = frame.iloc[:, start : start + slot.width]
            if slot.dtype is None:
                values = _texts(part)
            else:
                numbers = numeric_input(
                    part, n_features=slot.width, allow_missing=self.allow_missing
                )
                values = _cast(numbers, slot, names[start:])
            feed[slot.name] = values.reshape(-1, *slot.row_shape)
            start += slot.width
        return feed


def _cast(part: NDArray[np.float64], slot: Slot, names: Sequence[str]) -> NDArray[Any]:
    assert slot.dtype is not None
    with np.errstate(over="ignore", invalid="ignore"):
        cast = part.astype(slot.dtype)
    if np.issubdtype(slot.dtype, np.floating):
        bad, what = np.isinf(cast), TOO_LARGE
    else:
        bad = cast.astype(np.float64) != part
        what = f"is not a number of the kind the model takes ({np.dtype(slot.dtype).name})"
    if bad.any():
        raise bad_value(part, bad, names, what)
    return cast


def read_inputs(graph: Graph, cost: Cost | None = None) -> Inputs:
    """The inputs of a graph; ``cost`` is that of one row, if the graph is to be run.

    Raises
    ------
    InputError
        Inputs that are not tensors of numbers or text, or whose width the file leaves open.
    """
    names = graph.names("feature_names")
    open_slot_width = len(names) if names is not None and len(graph.inputs) == 1 else None
    slots, batches = [], set()
    for value in graph.inputs:
        slot, batch = _read_slot(value, open_slot_width)
        slots.append(slot)
        batches.add(batch)
    n_features = sum(slot.width for slot in slots)
    if not 0 < n_features <= _MOST_FEATURES or len(batches - {None}) > 1:
        raise InputError(
            "The model's inputs do not fit together",
            fix="A classifier takes one row per example in each of its inputs.",
        )
    if names is None and len(slots) > 1 and all(slot.width == 1 for slot in slots):
        names = tuple(slot.name for slot in slots)
    return Inputs(
        slots=tuple(slots),
        batch=next(iter(batches - {None}), None),
        feature_names=check_feature_names(names, n_features),
        allow_missing=_takes_missing(graph),
        cost=cost or Cost(),
    )


def _read_slot(value: Any, open_width: int | None) -> tuple[Slot, int | None]:
    kind = value.type.tensor_type
    dtype = _DTYPES.get(kind.elem_type)
    if dtype is None and kind.elem_type != _STRING:
        raise InputError(
            f"The model's input {value.name!r} is not a tensor of numbers or text",
            fix="Export the classifier with a table as its input.",
        )
    dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
    if not dims:
        raise InputError(f"The model's input {value.name!r} has no rows")
    batch = dims[0] if dims[0] and dims[0] > 0 else None
    rest = [open_width if d is None and len(dims) == 2 else d for d in dims[1:]]
    row_shape = tuple(d for d in rest if d is not None and d > 0)
    if len(row_shape) < len(rest):
        raise InputError(
            f"The file does not say how many features its input {value.name!r} takes",
            fix="Export the model with a fixed number of features, or list them in the metadata "
            "entry 'feature_names'.",
        )
    return Slot(value.name, row_shape, dtype), batch


def _takes_missing(graph: Graph) -> bool:
    for node in graph.nodes:
        if node.op_type in ("Imputer", "IsNaN"):
            return True
        for attribute in node.attribute:
            if attribute.name == "nodes_missing_value_tracks_true" and any(attribute.ints):
                return True
    return False


def _texts(part: pd.DataFrame) -> NDArray[np.object_]:
    values = np.empty(part.shape, dtype=object)
    for j, name in enumerate(part.columns):
        column = part.iloc[:, j].astype(object)
        missing = column.isna().to_numpy(dtype=bool)
        if missing.any():
            raise InputError(
                "The model cannot take the missing value",
                fix="Fill it with the text that was used in training.",
                column=str(name),
                row=int(np.argmax(missing)) + 1,
            )
        values[:, j] = [str(v) for v in column]
    return values


_MOST_THREADS = 2
_SEVERITY_ERROR = 3


def open_session(model: Any) -> Any:
    """A session that runs on the processor with few threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _MOST_THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = _SEVERITY_ERROR
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the runtime's C++ errors have no narrower base
        _raise_for_memory(error)
        raise InputError(
            f"ONNX Runtime refuses the model: {_first_line(error)}",
            fix="Export it again for a version that the installed runtime knows.",
        ) from error


def run(session: Any, names: list[str], feed: Feed) -> list[NDArray[Any]]:
    """The named tensors for a batch of rows."""
    taken = {value.name for value in session.get_inputs()}
    try:
        values = session.run(names, {key: v for key, v in feed.items() if key in taken})
    except Exception as error:  # as above
        _raise_for_memory(error)
        raise InputError(
            f"ONNX Runtime cannot run the model: {_first_line(error)}",
            fix="Check that the table's columns are those that the model takes.",
        ) from error
    return [np.asarray(value) for value in values]


def padded(part: Feed, n_rows: int, inputs: Inputs) -> Feed:
    """The last block filled up with empty rows, where the graph takes a fixed number of rows."""
    lacking = (inputs.batch or n_rows) - n_rows
    if not lacking:
        return part
    filler = inputs.trial(lacking)
    return {key: np.concatenate([values, filler[key]]) for key, values in part.items()}


def flat(values: NDArray[Any]) -> NDArray[Any]:
    """One row of numbers for each example."""
    return values.reshape(len(values), prod(values.shape[1:]))


def _raise_for_memory(error: Exception) -> None:
    if "allocate memory" in str(error) or "bad_alloc" in str(error):
        raise MemoryError("ONNX Runtime ran out of memory") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
