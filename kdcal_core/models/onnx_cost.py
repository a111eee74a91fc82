"""Checks of an ONNX file before a runtime opens it, and the cost of running it.

A few hundred bytes can describe an endless loop, functions that expand into billions of nodes, or
tensors that double at every node. So nodes are counted as functions expand, loops must state how
often they run, and the shapes of all tensors are inferred for one row. The trial
(`kdcal_core.jobs.trial`) finds what a file can hide from these checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.models.upload_checks import (
    LOAD_PREDICTIONS,
    MOST_ROW_CELLS,
    most_cells,
    trial_rows,
)
from kdcal_core.quotas import GRAPH_NODES

_STANDARD_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
# ONNX's densest packing stores four elements in a byte.
_ELEMENTS_PER_BYTE = 4
_DAMAGED = "It may have been cut off on its way; copy or export it again."


def read_model(path: Path, *, name: str) -> Any:
    """Read an ONNX file, and refuse one that could reach beyond the file.

    Local functions are inlined, so the result is one plain graph.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Its name, for messages.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    InputError
        The file is not ONNX, has too many operations, external data or operators outside the
        standard, or has tensors that claim more elements than it stores.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    model = onnx.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise InputError(
            "The file is not a complete ONNX model", fix=_DAMAGED, file=name
        ) from error
    if not model.graph.node or not model.graph.output or not model.opset_import:
        raise InputError("The file holds no ONNX model", fix=_DAMAGED, file=name)
    check_nodes(model)
    _check_operators(model, name)
    for tensor in _tensors(model):
        _check_tensor(tensor, name)
    return _inlined(model, name)


def nodes_of(graph: Any) -> Iterator[Any]:
    """All nodes of a graph or function and of its subgraphs."""
    for node in graph.node:
        yield node
        for subgraph in subgraphs(node):
            yield from nodes_of(subgraph)


def _check_operators(model: Any, name: str) -> None:
    local = {(function.domain, function.name) for function in model.functions}
    for body in (model.graph, *model.functions):
        for node in nodes_of(body):
            if node.domain in _STANDARD_DOMAINS or (node.domain, node.op_type) in local:
                continue
            raise InputError(
                f"The model uses the custom operator {node.op_type!r} of {node.domain!r}",
                fix="Export it with standard operators only (domains ai.onnx and ai.onnx.ml).",
                file=name,
            )


def _tensors(model: Any) -> Iterator[Any]:
    """Every tensor of the file: initial values and attributes, at any depth."""
    for body in (model.graph, *model.functions):
        yield from _initializers(body)
        for function_default in getattr(body, "attribute_proto", ()):
            yield from _attribute_tensors(function_default)
        for node in nodes_of(body):
            for attribute in node.attribute:
                yield from _attribute_tensors(attribute)
                if attribute.HasField("g"):
                    yield from _initializers(attribute.g)
                for graph in attribute.graphs:
                    yield from _initializers(graph)
    for training in model.training_info:
        yield from _initializers(training.initialization)
        yield from _initializers(training.algorithm)


def _initializers(body: Any) -> Iterator[Any]:
    yield from getattr(body, "initializer", ())
    for sparse in getattr(body, "sparse_initializer", ()):
        yield from (sparse.values, sparse.indices)


def _attribute_tensors(attribute: Any) -> Iterator[Any]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    sparse = list(attribute.sparse_tensors)
    if attribute.HasField("sparse_tensor"):
        sparse.append(attribute.sparse_tensor)
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)


def _check_tensor(tensor: Any, name: str) -> None:
    if tensor.external_data or tensor.data_location == tensor.EXTERNAL:
        raise InputError(
            f"The model keeps its tensor {tensor.name!r} in another file",
            fix="Export it as one file: onnx.save(model, path, save_as_external_data=False).",
            file=name,
        )
    claimed = prod(tensor.dims)
    if min(tensor.dims, default=0) < 0 or claimed > _ELEMENTS_PER_BYTE * tensor.ByteSize():
        raise InputError(
            f"The tensor {tensor.name!r} claims {claimed:,} elements and stores "
            f"{tensor.ByteSize():,} bytes",
            fix=_DAMAGED,
            file=name,
        )


def _inlined(model: Any, name: str) -> Any:
    if not model.functions:
        return model
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model)
    except Exception as error:  # the inliner's C++ errors have no narrower base
        raise InputError(
            "The model's functions cannot be expanded", fix=_DAMAGED, file=name
        ) from error


#: Maximum number of node runs for one block of rows, counting each round of a loop.
MOST_STEPS = 100_000
_STORED_TIMES = 4  # tensors independent of the rows may take this many times the stored bytes
_LARGEST_KEPT = 1 << 10  # maximum number of elements of a stored tensor that may be a shape
_HARM = "The file may be built to do harm. If you trust it, export the model again without this."


@dataclass(frozen=True)
class Cost:
    """The cost of one row.

    Attributes
    ----------
    row_cells : int
        Numbers in the largest tensor computed for one row, as far as shapes can be inferred.
    """

    row_cells: int = 1

    @property
    def trial_rows(self) -> int:
        """Number of rows to try the graph on: fewer where each takes much memory."""
        return trial_rows(self.row_cells)


def check_nodes(model: Any) -> None:
    """Refuse a model that expands into too many nodes, before its functions are expanded.

    The nodes of branches, of loops and of functions wherever they are called count.

    Raises
    ------
    InputError
        Too many nodes, or a function that calls itself.
    """
    functions = {(one.domain, one.name): one for one in model.functions}
    counts: dict[tuple[str, str], int] = {}
    calling: set[tuple[str, str]] = set()

    def count(body: Any) -> int:
        total = 0
        for node in body.node:
            key = (node.domain, node.op_type)
            total += of_function(key) if key in functions else 1
            total += sum(count(graph) for graph in subgraphs(node))
            GRAPH_NODES.refuse_beyond(total, "The model", verb="has at least", fix=LOAD_PREDICTIONS)
        return total

    def of_function(key: tuple[str, str]) -> int:
        if key in calling:
            raise InputError(f"The model's function {key[1]!r} calls itself", fix=_HARM)
        if key not in counts:
            calling.add(key)
            counts[key] = count(functions[key])
            calling.discard(key)
        return counts[key]

    count(model.graph)
    for key in functions:
        of_function(key)


def check_cost(model: Any) -> Cost:
    """The cost of a graph without functions for one row.

    A graph with a fixed number of rows may cost somewhat more, because it takes them all.

    Raises
    ------
    InputError
        A loop does not state how often it runs or runs too often, or a tensor is too large.
    """
    shapes = _Shapes.of(model)
    _count_steps(model.graph, {}, shapes, 1)
    stored = sum(prod(tensor.dims) for tensor in model.graph.initializer)
    n_rows = _fixed_rows(model.graph)
    of_rows = _of_rows(model.graph)
    row_limit = most_cells(n_rows)
    other_limit = max(MOST_ROW_CELLS, _STORED_TIMES * stored)
    most = 1
    for name, dims in shapes.dims.items():
        cells = prod(dims)
        limit = row_limit if name in of_rows else other_limit
        if cells > limit:
            of = "one row" if n_rows == 1 else f"{n_rows:,} rows"
            raise InputError(
                f"The model makes a tensor of {cells:,} numbers ({name[:60]!r}) of {of}; the "
                f"limit is {limit:,}",
                fix=_HARM,
            )
        if name in of_rows:
            most = max(most, -(-cells // n_rows))
    return Cost(most)


def _fixed_rows(graph: Any) -> int:
    """The graph's fixed number of rows; 1 where it takes any number."""
    stored = {tensor.name for tensor in graph.initializer}
    shapes = (v.type.tensor_type.shape.dim for v in graph.input if v.name not in stored)
    return max((dims[0].dim_value for dims in shapes if dims), default=1) or 1


def reads_of(node: Any) -> Iterator[str]:
    """Tensors that a node and its subgraphs read."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
            for inner in graph.node:
                yield from reads_of(inner)
            yield from (output.name for output in graph.output)


def subgraphs(node: Any) -> Iterator[Any]:
    """The branches or the body of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


@dataclass(frozen=True)
class _Shapes:
    """The shape of each tensor, inferred for one row."""

    dims: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, model: Any) -> _Shapes:
        """The shapes; empty where the file contradicts itself, which the runtime then reports."""
        from onnx import shape_inference

        try:
            graph = shape_inference.infer_shapes(_one_row(model), data_prop=True).graph
        except MemoryError:  # inference computes the values of small tensors, which may grow
            raise
        except Exception:  # the C++ errors have no narrower base
            return cls({})
        return cls(dict(_known_dims(graph)))


def _known_dims(graph: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    for value in (*graph.input, *graph.value_info, *graph.output):
        shape = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in shape):
            yield value.name, tuple(max(0, d.dim_value) for d in shape)
    for node in graph.node:
        for body in subgraphs(node):
            yield from _known_dims(body)


def _one_row(model: Any) -> Any:
    """The model for one row, without the weights, of which only the shapes matter."""
    import onnx

    small = onnx.ModelProto()
    small.ir_version = model.ir_version
    small.opset_import.extend(model.opset_import)
    graph = small.graph
    graph.name = "one row"
    stored = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in stored:
            continue
        kept = graph.input.add()
        kept.CopyFrom(value)
        dims = kept.type.tensor_type.shape.dim
        if dims and not dims[0].HasField("dim_value"):
            dims[0].dim_value = 1
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= _LARGEST_KEPT:
            graph.initializer.add().CopyFrom(tensor)
        else:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    graph.node.extend(model.graph.node)
    graph.output.extend(model.graph.output)
    return small


def _of_rows(graph: Any) -> set[str]:
    """Names of the tensors that depend, or inside a branch or loop may depend, on the rows."""
    stored = {tensor.name for tensor in graph.initializer}
    found = {value.name for value in graph.input if value.name not in stored}
    for node in graph.node:
        if any(name in found for name in reads_of(node)):
            found.update(node.output)
        for body in subgraphs(node):
            found.update(_inner_names(body))
    return found


def _inner_names(graph: Any) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    for node in graph.node:
        yield from node.output
        for body in subgraphs(node):
            yield from _inner_names(body)


def _count_steps(graph: Any, outer: Mapping[str, int], shapes: _Shapes, times: int) -> int:
    """Number of node runs, counting each round of a loop."""
    numbers = _known_numbers(graph, outer)
    total = 0
    for node in graph.node:
        total += times
        runs = times
        if node.op_type in ("Loop", "Scan", "SequenceMap"):
            runs *= max(1, _rounds(node, numbers, shapes))
        for body in subgraphs(node):
            total += _count_steps(body, numbers, shapes, runs)
        if total > MOST_STEPS:
            raise InputError(
                f"The loops of the model run more than {MOST_STEPS:,} operations",
                fix="kdcal opens models with shorter loops. Write the model's predictions into a "
                "table and load that instead.",
            )
    return total


def _rounds(node: Any, numbers: Mapping[str, int], shapes: _Shapes) -> int:
    """The most rounds that a loop runs.

    Raises
    ------
    InputError
        The file does not state it.
    """
    rounds: int | None = None
    if node.op_type == "Loop":
        rounds = numbers.get(next(iter(node.input), ""))
    elif node.op_type == "Scan":
        rounds = _scanned(node, shapes)
    if rounds is None:
        raise InputError(
            f"The model holds a loop ({node.op_type}) and does not say how often it runs",
            fix="Export the model with its loops unrolled, or with a fixed number of rounds. Or "
            "write its predictions into a table and load that instead.",
        )
    return rounds


def _scanned(node: Any, shapes: _Shapes) -> int | None:
    """The length of the axis that a Scan iterates over."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    n_scanned = attributes["num_scan_inputs"].i if "num_scan_inputs" in attributes else 0
    axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else []
    if not 0 < n_scanned <= len(node.input):
        return None
    for name, axis in zip(node.input[-n_scanned:], axes or [0] * n_scanned, strict=False):
        dims = shapes.dims.get(name)
        if dims is not None and -len(dims) <= axis < len(dims):
            return int(dims[axis])  # the same for all
    return None


# Operators that pass their first input on unchanged.
PASSING = (
    "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Dropout", "ZipMap",
)  # fmt: skip


def _known_numbers(graph: Any, outer: Mapping[str, int]) -> dict[str, int]:
    """Scalar whole numbers that the file states, by the name of their tensor."""
    from onnx import numpy_helper

    written = {name for node in graph.node for name in node.output}
    written.update(value.name for value in graph.input)
    known = {name: number for name, number in outer.items() if name not in written}
    stored = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in written}
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                stored[node.output[0]] = attribute.t
            if node.op_type == "Constant" and attribute.name == "value_int":
                known[node.output[0]] = attribute.i
    for name, tensor in stored.items():
        if prod(tensor.dims) == 1:
            value = numpy_helper.to_array(tensor)
            if value.dtype.kind in "iu":
                known[name] = int(value.reshape(-1)[0])
    for node in graph.node:
        if node.op_type in PASSING and node.input and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]
    return known
