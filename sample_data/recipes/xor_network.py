"""Gaussian XOR: a ReLU network of four hidden layers as ONNX, two features to draw."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from recipes import xor
from recipes.onnx_files import model_bytes

WIDTHS = (100, 100, 100, 100)
EPOCHS = 100

Layers = list[tuple[np.ndarray, np.ndarray]]


def build(folder: Path) -> dict[str, Any]:
    parts = xor.write_tables(folder)
    layers = train(*parts["training"])
    (folder / "model.onnx").write_bytes(to_onnx(layers))
    points, label = parts["evaluation"]
    return {
        "title": "Four clouds in the plane, a ReLU network",
        "summary": (
            "A neural network decides whether two numbers have the same sign: the smallest task "
            "in which every answer can be drawn. Look outside the square: the further a point "
            "lies from the training data, the more confident the network becomes."
        ),
        "task": "classification",
        "model": "model.onnx",
        "target": "class",
        "source": f"{xor.SOURCE} {xor.TABLES}",
        "licence": xor.LICENCE,
        "trained": (
            f"On the {xor.N_ROWS:,} points of the training table: a ReLU network of "
            f"{len(WIDTHS)} hidden layers of {WIDTHS[0]} (scikit-learn MLPClassifier, Adam, "
            f"{EPOCHS} epochs, no weight decay, seed 0)."
        ),
        "accuracy": float(np.mean(logits(layers, points).argmax(axis=1) == label)),
        "class_names": xor.CLASSES,
    }


def train(points: np.ndarray, label: np.ndarray) -> Layers:
    """Weights and offsets of each layer, the last with one logit a class.

    They are rounded so that the last bits of a machine's linear algebra do not reach the file.
    """
    model = MLPClassifier(
        WIDTHS, alpha=0.0, max_iter=EPOCHS, n_iter_no_change=EPOCHS, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(points, label)
    *hidden, (weight, offset) = zip(model.coefs_, model.intercepts_, strict=True)
    # One logit z of two classes says the same as the pair (-z/2, z/2).
    last = np.hstack([-weight, weight]) / 2, np.hstack([-offset, offset]) / 2
    return [(np.round(w, 4), np.round(b, 4)) for w, b in (*hidden, last)]


def logits(layers: Layers, points: np.ndarray) -> np.ndarray:
    signal = points
    for weight, offset in layers[:-1]:
        signal = np.maximum(signal @ weight + offset, 0.0)
    return np.asarray(signal @ layers[-1][0] + layers[-1][1])


def to_onnx(layers: Layers) -> bytes:
    """The network as a graph: points in, probabilities out."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, value = [], [], "points"
    for j, (weight, offset) in enumerate(layers):
        name = f"layer_{j}"
        weights += [
            numpy_helper.from_array(weight.astype(np.float32), f"{name}_weight"),
            numpy_helper.from_array(offset.astype(np.float32), f"{name}_offset"),
        ]
        given = [value, f"{name}_weight", f"{name}_offset"]
        nodes.append(helper.make_node("Gemm", given, [f"{name}_sum"], name=f"{name}_gemm"))
        last = j == len(layers) - 1
        value = "probabilities" if last else f"{name}_relu"
        operation = "Softmax" if last else "Relu"
        nodes.append(helper.make_node(operation, [f"{name}_sum"], [value], name=value))
    shape_in, shape_out = ["rows", len(xor.NAMES)], ["rows", len(xor.CLASSES)]
    graph = helper.make_graph(
        nodes,
        "xor",
        [helper.make_tensor_value_info("points", TensorProto.FLOAT, shape_in)],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, shape_out)],
        initializer=weights,
    )
    return model_bytes(graph, {"classes": xor.CLASSES, "feature_names": xor.NAMES})
