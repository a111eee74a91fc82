"""ONNX graphs of a regression: a table of numbers in, one column a parameter out."""

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
    """A checked graph that takes "features" and says what it predicts."""
    from onnx import TensorProto, checker, helper, numpy_helper

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
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="kdcal")
    says = {
        "task": "regression",
        "family": family,
        "outputs": json.dumps(list(outputs)),
        "feature_names": json.dumps(list(features)),
    }
    helper.set_model_props(model, says)
    checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString(deterministic=True)
    return content
