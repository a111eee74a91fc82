"""Handwritten digits: an ensemble of ten small networks, stopped early on purpose.

As in the appendix of Salamon et al.: the members are under-trained, and the ensemble's score is
the mean of the members' probabilities (their plain sum is not a probability).
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from recipes.files import split_rows, write_parquet
from recipes.foreign_digits import WORDS, foreign_digits
from recipes.onnx_files import model_bytes

N_MEMBERS = 10
WIDTHS = (64, 32, 16, 10)
STEPS, BATCH, RATE = 60, 64, 0.003
PIXEL_MAX = 16.0
N_FOREIGN = 200
CLASSES = [str(digit) for digit in range(10)]
SOURCE = (
    "Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning "
    "Repository (1998), as shipped with scikit-learn (load_digits): 1,797 images of 8 x 8 pixels."
)
LICENCE = "Data: CC BY 4.0. Model: made for kdcal, same terms."

Layers = list[tuple[np.ndarray, np.ndarray]]


def load() -> tuple[np.ndarray, np.ndarray, list[str], list[np.ndarray]]:
    """Pixels (1797, 64), digits, pixel names, and the rows to train, calibrate and evaluate on."""
    data = load_digits()
    rows = split_rows(len(data.target), (597, 600, 600), seed=8)
    return data.data, data.target, list(data.feature_names), rows


def build(folder: Path) -> dict[str, Any]:
    pixels, digit, names, (train, calibration, evaluation) = load()
    members = [train_member(pixels[train], digit[train], seed) for seed in range(N_MEMBERS)]
    (folder / "model.onnx").write_bytes(to_onnx(members, names))
    parts = {"training": train, "calibration": calibration, "evaluation": evaluation}
    for name, rows in parts.items():
        columns = whole_columns(pixels[rows], names)
        write_parquet(folder / f"{name}.parquet", {**columns, "digit": digit[rows]})
    for name, images in foreign_digits(pixels[evaluation], N_FOREIGN, seed=1).items():
        write_parquet(folder / f"foreign_{name}.parquet", whole_columns(images, names))
    predicted = ensemble(members, pixels[evaluation]).argmax(axis=1)
    return {
        "title": "Handwritten digits, an under-confident network",
        "summary": (
            "Ten small neural networks read blurry 8 x 8 handwritten digits and vote; each was "
            "stopped early, long before it had learned all it could. Look for under-confidence: "
            "the votes are right far more often than they say, in some digits much more than in "
            "others."
        ),
        "task": "classification",
        "model": "model.onnx",
        "target": "digit",
        "source": f"{SOURCE} {WORDS}",
        "licence": LICENCE,
        "trained": (
            f"On the 597 images of the training table, which are in no other: {N_MEMBERS} ReLU "
            f"networks ({'-'.join(map(str, WIDTHS))}), {STEPS} Adam steps of {BATCH} images each; "
            "the ensemble's probability is the mean over the members."
        ),
        "accuracy": float(np.mean(predicted == digit[evaluation])),
        "class_names": CLASSES,
    }


def whole_columns(pixels: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    return {column: pixels[:, j].astype(np.int64) for j, column in enumerate(names)}


def train_member(pixels: np.ndarray, digit: np.ndarray, seed: int) -> Layers:
    """A few Adam steps on the cross-entropy, in plain numpy.

    The weights are rounded so that the last bits of a machine's linear algebra do not reach the
    file.
    """
    random = np.random.RandomState(seed)
    inputs, wanted = pixels / PIXEL_MAX, np.eye(WIDTHS[-1])[digit]
    parameters = [
        array
        for n_in, n_out in pairwise(WIDTHS)
        for array in (random.randn(n_in, n_out) * np.sqrt(2.0 / n_in), np.zeros(n_out))
    ]
    mean = [np.zeros_like(array) for array in parameters]
    square = [np.zeros_like(array) for array in parameters]
    for step in range(1, STEPS + 1):
        batch = random.choice(len(inputs), BATCH, replace=False)
        gradients = backward(pair(parameters), inputs[batch], wanted[batch])
        for j, gradient in enumerate(gradients):
            mean[j] += 0.1 * (gradient - mean[j])
            square[j] += 0.001 * (gradient**2 - square[j])
            scale = np.sqrt(square[j] / (1 - 0.999**step)) + 1e-8
            parameters[j] -= RATE * mean[j] / (1 - 0.9**step) / scale
    rounded = pair([np.round(array, 4) for array in parameters])
    # The network is given raw pixels, so the first layer takes over their scaling.
    first_weight, first_bias = rounded[0]
    return [(first_weight / PIXEL_MAX, first_bias), *rounded[1:]]


def pair(parameters: list[np.ndarray]) -> Layers:
    return list(zip(parameters[::2], parameters[1::2], strict=True))


def forward(layers: Layers, inputs: np.ndarray) -> list[np.ndarray]:
    """What each layer gives on: ReLU outputs, and the softmax at the end."""
    outputs = [inputs]
    for weight, bias in layers[:-1]:
        outputs.append(np.maximum(outputs[-1] @ weight + bias, 0.0))
    weight, bias = layers[-1]
    logits = outputs[-1] @ weight + bias
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return [*outputs, odds / odds.sum(axis=1, keepdims=True)]


def backward(layers: Layers, inputs: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
    """Gradient of the mean cross-entropy by every weight and bias, in the order of ``layers``."""
    outputs = forward(layers, inputs)
    slope = (outputs[-1] - wanted) / len(inputs)
    gradients: list[np.ndarray] = []
    for (weight, _), given in zip(reversed(layers), reversed(outputs[:-1]), strict=True):
        gradients = [given.T @ slope, slope.sum(axis=0), *gradients]
        slope = (slope @ weight.T) * (given > 0)
    return gradients


def ensemble(members: list[Layers], pixels: np.ndarray) -> np.ndarray:
    return np.mean([forward(member, pixels)[-1] for member in members], axis=0)


def to_onnx(members: list[Layers], names: list[str]) -> bytes:
    """All members as one graph: pixels in, the mean of their probabilities out."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, ends = [], [], []
    for m, layers in enumerate(members):
        value = "pixels"
        for j, (weight, bias) in enumerate(layers):
            name = f"member_{m}_layer_{j}"
            weights += [
                numpy_helper.from_array(weight.astype(np.float32), f"{name}_weight"),
                numpy_helper.from_array(bias.astype(np.float32), f"{name}_bias"),
            ]
            given = [value, f"{name}_weight", f"{name}_bias"]
            nodes.append(helper.make_node("Gemm", given, [f"{name}_sum"], name=f"{name}_gemm"))
            last = j == len(layers) - 1
            value = f"member_{m}_probabilities" if last else f"{name}_relu"
            nodes.append(
                helper.make_node("Softmax", [f"{name}_sum"], [value], name=value, axis=1)
                if last
                else helper.make_node("Relu", [f"{name}_sum"], [value], name=value)
            )
        ends.append(value)
    nodes.append(helper.make_node("Mean", ends, ["probabilities"], name="ensemble_mean"))
    shape_in, shape_out = ["rows", WIDTHS[0]], ["rows", WIDTHS[-1]]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("pixels", TensorProto.FLOAT, shape_in)],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, shape_out)],
        initializer=weights,
    )
    return model_bytes(graph, {"classes": CLASSES, "feature_names": names})
