"""What an ONNX file must satisfy before a runtime may open it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.models.onnx_cost import check_nodes, subgraphs

_STANDARD_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
# The tightest packing that ONNX knows stores four elements in a byte.
_ELEMENTS_PER_BYTE = 4
_DAMAGED = "It may have been cut off on its way; copy or export it again."


def read_model(path: Path, *, name: str) -> Any:
    """Read an ONNX file and refuse what could reach beyond the file.

    Local functions are inlined, so that the rest sees one plain graph.

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
        Not an ONNX file, too many operations, external data, operators outside the standard, or
        tensors that claim more elements than the file stores.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    model = onnx.ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise InputError("The file is not a whole ONNX model", fix=_DAMAGED, file=name) from error
    if not model.graph.node or not model.graph.output or not model.opset_import:
        raise InputError("The file holds no ONNX model", fix=_DAMAGED, file=name)
    check_nodes(model)
    _check_operators(model, name)
    for tensor in _tensors(model):
        _check_tensor(tensor, name)
    return _inlined(model, name)


def nodes_of(graph: Any) -> Iterator[Any]:
    """All nodes of a graph or function, those of its subgraphs included."""
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
    """Every tensor of the file: initial values, and attributes at any depth."""
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
    except Exception as error:  # the inliner's C++ errors share no narrower base
        raise InputError(
            "The model's functions cannot be unfolded", fix=_DAMAGED, file=name
        ) from error
