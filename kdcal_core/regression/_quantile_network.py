"""A network whose output is a whole quantile curve, trained by the check loss.

The curve of a row is piecewise linear in the normal score of the level, with an offset and
positive slopes that the network gives. Slopes of 1 and an offset of 0 give the standard normal,
with which training starts. torch trains the network; the trained network is plain arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import ndtri

from kdcal_core.data.schema import FloatArray
from kdcal_core.progress import Progress

# Corners of the curve, as normal scores of the level; slopes go on beyond the outer ones.
CORNERS = ndtri(np.array([0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99]))
_UNIT = float(np.log(np.e - 1))  # softplus of this is 1
_BATCH, _MOST_STEPS, _LEVELS = 256, 100, 32
_CHECKED_LEVELS = (np.arange(49) + 1) / 50


@dataclass(frozen=True, eq=False)
class QuantileCurves:
    """The trained network.

    Attributes
    ----------
    layers : tuple of (weight (out, in), bias (out,))
        ReLU between them. The last one's outputs are the offset and the slopes.
    """

    layers: tuple[tuple[FloatArray, FloatArray], ...]

    def __call__(self, features: FloatArray, score: FloatArray) -> FloatArray:
        """The curve of each row (n, d) at normal scores of the level (g,), (n, g)."""
        hidden = features
        for weight, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weight.T + bias, 0.0)
        weight, bias = self.layers[-1]
        raw = hidden @ weight.T + bias
        slopes = np.logaddexp(0.0, raw[:, 1:] + _UNIT)
        curve: FloatArray = raw[:, :1] + slopes @ segments(score).T
        return curve


def segments(score: FloatArray) -> FloatArray:
    """Signed length of each linear piece between 0 and the score, (..., pieces).

    The slopes times these lengths are the rise of the curve from its offset at score 0.
    """
    bounds = np.concatenate([[-np.inf], CORNERS, [np.inf]])
    at = np.asarray(score)[..., np.newaxis]
    start, end = np.maximum(bounds[:-1], 0.0), np.maximum(bounds[1:], 0.0)
    above = np.clip(at, start, end) - start
    start, end = np.minimum(bounds[:-1], 0.0), np.minimum(bounds[1:], 0.0)
    lengths: FloatArray = above + np.clip(at, start, end) - end
    return lengths


def train_curves(
    features: FloatArray,
    target: FloatArray,
    *,
    width: int,
    max_epochs: int,
    patience: int,
    learning_rate: float,
    seed: int,
    report: Progress,
) -> tuple[QuantileCurves, int, float, float]:
    """Train on 80% of the rows, stop by the other 20%.

    Returns
    -------
    curves, epochs until the best, its check loss on the 20%, the untrained network's.
    """
    import torch

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(target))
    n_held = max(1, len(target) // 5)
    held, kept = order[:n_held], order[n_held:]
    x, v = torch.from_numpy(features[kept]), torch.from_numpy(target[kept])
    sizes = [features.shape[1], width, width, 1 + len(CORNERS) + 1]
    parameters = _start(sizes, rng)
    optimiser = torch.optim.Adam(parameters, lr=learning_rate)
    size = max(_BATCH, len(kept) // _MOST_STEPS)
    threads = torch.get_num_threads()
    # One thread: sums in one order give the same numbers with any number of cores.
    torch.set_num_threads(1)
    try:
        best = start = _held_loss(_frozen(parameters), features[held], target[held])
        found, best_epoch = _frozen(parameters), 0
        for epoch in range(1, max_epochs + 1):
            report((epoch - 1) / max_epochs, f"Quantile network: epoch {epoch:,}")
            shuffled = rng.permutation(len(kept))
            for first in range(0, len(kept), size):
                rows = torch.from_numpy(shuffled[first : first + size])
                level = rng.random(_LEVELS)
                pieces = torch.from_numpy(segments(ndtri(level)))
                raw = _forward(parameters, x[rows])
                slopes = torch.nn.functional.softplus(raw[:, 1:] + _UNIT)
                residual = v[rows, None] - (raw[:, :1] + slopes @ pieces.T)
                tau = torch.from_numpy(level)
                loss = torch.maximum(tau * residual, (tau - 1) * residual).mean()
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            now = _frozen(parameters)
            reached = _held_loss(now, features[held], target[held])
            if reached < best:
                found, best, best_epoch = now, reached, epoch
            elif epoch - best_epoch >= patience:
                break
    finally:
        torch.set_num_threads(threads)
    report(1.0, "Quantile network trained")
    return found, best_epoch, best, start


def _start(sizes: list[int], rng: np.random.Generator) -> list[Any]:
    """Weights and biases in turn; the last layer is zero, so every curve is the identity."""
    import torch

    parameters = []
    for i, (n_in, n_out) in enumerate(pairwise(sizes)):
        last = i == len(sizes) - 2
        weight, bias = rng.normal(0, np.sqrt(2 / n_in), (n_out, n_in)), rng.uniform(-1, 1, n_out)
        if last:
            weight, bias = np.zeros_like(weight), np.zeros_like(bias)
        parameters += [torch.from_numpy(weight), torch.from_numpy(bias)]
    return [parameter.requires_grad_() for parameter in parameters]


def _forward(parameters: list[Any], x: Any) -> Any:
    for i in range(0, len(parameters), 2):
        x = x @ parameters[i].T + parameters[i + 1]
        if i < len(parameters) - 2:
            x = x.relu()
    return x


def _frozen(parameters: list[Any]) -> QuantileCurves:
    arrays = [parameter.detach().numpy().copy() for parameter in parameters]
    return QuantileCurves(tuple(zip(arrays[::2], arrays[1::2], strict=True)))


def _held_loss(curves: QuantileCurves, features: FloatArray, target: FloatArray) -> float:
    """Mean check loss over evenly spaced levels: half the CRPS on this scale, but for the grid."""
    residual = target[:, np.newaxis] - curves(features, ndtri(_CHECKED_LEVELS))
    loss = np.maximum(_CHECKED_LEVELS * residual, (_CHECKED_LEVELS - 1) * residual)
    return float(loss.mean())
