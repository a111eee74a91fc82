"""ONNX files that say what they are, and graphs of a regression."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def graph_bytes(
    name: str,
    features: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[Any],
    weights: Mapping[str, np.ndarray],
    family: str,
) -> bytes:
    """A regression: a table of numbers, "features", in, and one column a parameter out."""
    from onnx import TensorProto, helper, numpy_helper

    def column(name: str, width: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", width])

    graph = helper.make_graph(
        list(nodes),
        name,
        [column("features", len(features))],
        [column(output, 1) for output in outputs],
        initializer=[
            numpy_helper.from_array(value.astype(np.float32), key) for key, value in weights.items()
        ],
    )
    lists = {"outputs": outputs, "feature_names": features}
    return model_bytes(graph, lists, task="regression", family=family)


def model_bytes(graph: Any, lists: Mapping[str, Sequence[str]], **says: str) -> bytes:
    """A checked file of a graph, which says these lists and words."""
    from onnx import checker, helper

    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="kdcal")
    named = {name: json.dumps(list(words)) for name, words in lists.items()}
    helper.set_model_props(model, {**says, **named})
    checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString(deterministic=True)
    return content
