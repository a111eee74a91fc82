"""A network of ReLU layers that forecasts a Gamma distribution: its training and its graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from recipes.onnx_files import graph_bytes

WIDTHS = (100, 5, 5)
EPOCHS, BATCH, RATE, SEED = 120, 128, 0.002, 0

Layers = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class GammaNetwork:
    """Standardisation of the features, weights (in, out) and offsets, logarithm of the shape."""

    centre: np.ndarray
    scale: np.ndarray
    layers: Layers
    log_shape: float

    def mean(self, X: np.ndarray) -> np.ndarray:
        signal = (X - self.centre) / self.scale
        for weight, offset in self.layers[:-1]:
            signal = np.maximum(signal @ weight + offset, 0.0)
        weight, offset = self.layers[-1]
        return np.asarray(np.exp(signal @ weight + offset)[:, 0])

    def to_onnx(self, features: list[str]) -> bytes:
        """Features in, mean and shape out; the layer of the shape has no weights but zero."""
        from onnx import helper

        weights = {"centre": self.centre, "scale": self.scale}
        nodes: list[Any] = [
            helper.make_node("Sub", ["features", "centre"], ["centred"], name="centre"),
            helper.make_node("Div", ["centred", "scale"], ["standardised"], name="scale"),
        ]

        def dense(name: str, given: str, layer: tuple[np.ndarray, np.ndarray]) -> str:
            weights[f"{name}_weight"], weights[f"{name}_offset"] = layer
            reads = [given, f"{name}_weight", f"{name}_offset"]
            nodes.append(helper.make_node("Gemm", reads, [f"{name}_sum"], name=f"{name}_gemm"))
            return f"{name}_sum"

        value = "standardised"
        for number, layer in enumerate(self.layers[:-1], start=1):
            name = f"hidden_{number}"
            reads = dense(name, value, layer)
            nodes.append(helper.make_node("Relu", [reads], [name], name=name))
            value = name
        constant = np.zeros((WIDTHS[-1], 1)), np.array([self.log_shape])
        for name, layer in (("mean", self.layers[-1]), ("shape", constant)):
            reads = dense(f"log_{name}", value, layer)
            nodes.append(helper.make_node("Exp", [reads], [name], name=name))
        return graph_bytes("gamma", features, ["mean", "shape"], nodes, weights, "gamma")


def train(X: np.ndarray, y: np.ndarray) -> GammaNetwork:
    """Least negative Gamma log likelihood by Adam, with a fixed number of steps.

    No rows decide when to stop, so the calibration rows stay fresh. Numbers are rounded, so that
    the last bits of a machine's linear algebra do not reach the file.
    """
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    centre, scale = X.mean(axis=0).round(4), X.std(axis=0).round(4)
    given = torch.tensor((X - centre) / scale, dtype=torch.float32)
    wanted = torch.tensor(y, dtype=torch.float32)
    linear = [
        torch.nn.Linear(*pair) for pair in zip((X.shape[1], *WIDTHS), (*WIDTHS, 1), strict=True)
    ]
    log_shape = torch.nn.Parameter(torch.tensor(0.0))
    torch.nn.init.constant_(linear[-1].bias, float(np.log(y.mean())))
    weights = [weight for layer in linear for weight in layer.parameters()]
    optimiser = torch.optim.Adam([*weights, log_shape], lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(BATCH):
            signal = given[rows]
            for layer in linear[:-1]:
                signal = torch.relu(layer(signal))
            optimiser.zero_grad()
            loss(linear[-1](signal)[:, 0], log_shape, wanted[rows]).backward()
            optimiser.step()
        schedule.step()
    layers = [
        (rounded(layer.weight.detach().numpy().T), rounded(layer.bias.detach().numpy()))
        for layer in linear
    ]
    return GammaNetwork(centre, scale, layers, round(log_shape.item(), 4))


def loss(log_mean: Any, log_shape: Any, y: Any) -> Any:
    """Mean negative log likelihood of Gamma(shape, mean / shape), less what y alone decides."""
    shape = log_shape.exp()
    return (
        shape * (log_mean - log_shape + y * (-log_mean).exp() - y.log()) + shape.lgamma()
    ).mean()


def rounded(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).round(5)
