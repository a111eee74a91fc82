"""Census income: a ReLU network that was trained far too long, as an ONNX graph of columns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from recipes import adult

WIDTHS = (128, 128, 128)
EPOCHS, BATCH, RATE, SEED = 40, 256, 0.001, 0

Layers = list[tuple[np.ndarray, np.ndarray]]


def build(folder: Path) -> dict[str, Any]:
    frame = adult.fetched()
    income = frame.pop("income").to_numpy()
    label = (income == adult.CLASSES[1]).astype(np.float32)
    parts = adult.write_tables(folder, frame, income)
    known = parts["training"]
    columns = Columns.of(frame.iloc[known])
    layers = train(columns.matrix(frame.iloc[known]), label[known])
    (folder / "model.onnx").write_bytes(to_onnx(columns, layers))
    held_out = parts["evaluation"]
    stated = logits(layers, columns.matrix(frame.iloc[held_out]))
    return {
        "title": "Census income, an over-confident neural network",
        "summary": (
            "The same census forms, read by a neural network that memorised its training rows: "
            "it is 89% sure on average and right for 84 in 100 people. Look region by "
            "region: for the married without a degree it is 80% sure and right for 72 in 100. "
            "Calibrating each region by itself corrects that, and ranks people better too."
        ),
        "task": "classification",
        "model": "model.onnx",
        "target": "income",
        "source": adult.SOURCE,
        "licence": adult.LICENCE,
        "trained": (
            f"On the {len(known):,} people of the training table, who are in no other: three "
            f"ReLU layers of {WIDTHS[0]} on standardised numbers and one input a category, Adam, "
            f"learning rate {RATE:g}, {EPOCHS} epochs in batches of {BATCH}, no dropout, no "
            f"weight decay, no early stopping (PyTorch, seed {SEED})."
        ),
        "accuracy": float(np.mean((stated > 0) == label[held_out])),
        "class_names": adult.CLASSES,
    }


@dataclass(frozen=True)
class Columns:
    """The table's columns in order: (centre, scale) of a number, the categories of a text."""

    parts: dict[str, tuple[float, float] | list[str]]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Columns:
        return cls(
            {
                name: (round(column.mean(), 4), round(column.std(), 4))
                if name in adult.NUMBERS
                else sorted(column.unique())
                for name, column in frame.items()
            }
        )

    def matrix(self, frame: pd.DataFrame) -> np.ndarray:
        """One input a number and one a category, (n, d); an unknown category has none."""
        blocks = []
        for name, part in self.parts.items():
            values = frame[name].to_numpy()[:, np.newaxis]
            if isinstance(part, tuple):
                blocks.append((values - part[0]) / part[1])
            else:
                blocks.append(values == np.array(part, dtype=object))
        return np.hstack(blocks).astype(np.float32)


def train(X: np.ndarray, y: np.ndarray) -> Layers:
    """Weights (in, out) and offsets of each layer by a fixed number of steps.

    They are rounded, so that the last bits of a machine's linear algebra do not reach the file.
    """
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    sizes = (X.shape[1], *WIDTHS, 1)
    linear = [torch.nn.Linear(*pair) for pair in pairwise(sizes)]
    steps = [step for layer in linear for step in (layer, torch.nn.ReLU())]
    network = torch.nn.Sequential(*steps[:-1])
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    loss = torch.nn.BCEWithLogitsLoss()
    given, wanted = torch.from_numpy(X), torch.from_numpy(y)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(BATCH):
            optimiser.zero_grad()
            loss(network(given[rows])[:, 0], wanted[rows]).backward()
            optimiser.step()
    return [
        (rounded(layer.weight.detach().numpy().T), rounded(layer.bias.detach().numpy()))
        for layer in linear
    ]


def rounded(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).round(5)


def logits(layers: Layers, X: np.ndarray) -> np.ndarray:
    """The logit of the second class, (n,)."""
    signal = X
    for weight, offset in layers[:-1]:
        signal = np.maximum(signal @ weight + offset, 0.0)
    return np.asarray(signal @ layers[-1][0] + layers[-1][1])[:, 0]


def to_onnx(columns: Columns, layers: Layers) -> bytes:
    """The table's columns in, text as text; the probabilities of both classes out."""
    from onnx import TensorProto, checker, helper, numpy_helper

    inputs, nodes, weights, blocks = [], [], {}, []
    for number, (name, part) in enumerate(columns.parts.items()):
        block = f"column_{number}"
        blocks.append(f"{block}_ready")
        kind = TensorProto.FLOAT if isinstance(part, tuple) else TensorProto.STRING
        inputs.append(helper.make_tensor_value_info(name, kind, ["rows", 1]))
        if isinstance(part, tuple):
            weights[f"{block}_centre"], weights[f"{block}_scale"] = map(np.array, part)
            nodes += [
                helper.make_node("Sub", [name, f"{block}_centre"], [f"{block}_centred"]),
                helper.make_node("Div", [f"{block}_centred", f"{block}_scale"], blocks[-1:]),
            ]
        else:
            known = {"cats_strings": part, "zeros": 1}
            nodes += [
                helper.make_node("OneHotEncoder", [name], [block], domain="ai.onnx.ml", **known),
                helper.make_node("Flatten", [block], blocks[-1:]),
            ]
    nodes.append(helper.make_node("Concat", blocks, ["hidden_0"], axis=1))
    # One logit z of two classes says the same as the pair (-z/2, z/2).
    weight, offset = layers[-1]
    last = np.hstack([-weight, weight]) / 2, np.hstack([-offset, offset]) / 2
    for number, (weight, offset) in enumerate([*layers[:-1], last], start=1):
        name, value = f"layer_{number}", f"hidden_{number}"
        weights[f"{name}_weight"], weights[f"{name}_offset"] = weight, offset
        reads = [f"hidden_{number - 1}", f"{name}_weight", f"{name}_offset"]
        nodes.append(helper.make_node("Gemm", reads, [f"{name}_sum"]))
        if number < len(layers):
            nodes.append(helper.make_node("Relu", [f"{name}_sum"], [value]))
        else:
            nodes.append(helper.make_node("Softmax", [f"{name}_sum"], ["probabilities"]))
    shape_out = ["rows", len(adult.CLASSES)]
    graph = helper.make_graph(
        nodes,
        "adult_network",
        inputs,
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, shape_out)],
        initializer=[
            numpy_helper.from_array(value.astype(np.float32), name)
            for name, value in weights.items()
        ],
    )
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="kdcal")
    says = {"classes": adult.CLASSES, "feature_names": list(columns.parts)}
    helper.set_model_props(model, {key: json.dumps(value) for key, value in says.items()})
    checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString(deterministic=True)
    return content
