"""The networks that the simulation lab trains: dense ReLU layers, and one for images."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of

if TYPE_CHECKING:
    import torch

    from kdcal_core.models import Model

RATE = 3e-4
BATCH = 32
PATIENCE = 10  # epochs without a better loss
FILTERS, HEAD = 3, 10
STEPS = 2000
STARTS, LEARNT = 10, 0.1
_BETTER = 1e-4


def train_network(
    X: FloatArray,
    y: IntArray,
    *,
    layers: int,
    width: int,
    epochs: int,
    seed: int,
    progress: Progress,
) -> torch.nn.Sequential:
    """A network of dense ReLU layers that returns logits.

    Trained by Adam at 3e-4 on batches of 32, until the loss has not improved for ten epochs or
    ``epochs`` are over. It runs on one thread, so a seed gives the same network anywhere.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) int64
        Classes from 0.
    layers, width : int
        Number of hidden layers, and units in each.
    epochs : int
        Maximum number of epochs.
    progress : callable
        Called after each epoch; may raise to cancel.

    Examples
    --------
    >>> import torch
    >>> X, y = np.array([[-1.0], [1.0]] * 32), np.array([0, 1] * 32)
    >>> settings = {"layers": 1, "width": 32, "epochs": 100, "seed": 0}
    >>> network = train_network(X, y, **settings, progress=lambda share, note: None)
    >>> network(torch.tensor([[-1.0], [1.0]])).argmax(axis=1).tolist()
    [0, 1]
    """
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        parts: list[torch.nn.Module] = []
        for before, after in pairwise([X.shape[1], *[width] * layers]):
            parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        network = torch.nn.Sequential(*parts, torch.nn.Linear(width, int(y.max()) + 1))
    return _trained(network, X, y, epochs, seed, progress)


def train_image_network(
    X: FloatArray, y: IntArray, *, channels: int, seed: int, progress: Progress
) -> Model:
    """One 3 x 3 convolution and dense layers of 10 and 2 (Dey et al., section 3.2.1).

    There are three filters, as the channels of the earlier version (section 5.2); the later one
    does not say how many. Training is that of `train_network`, for about 2,000 batches at most. Ten
    units over thousands of inputs that are never negative often die in the first steps: then other
    random weights are tried.

    Parameters
    ----------
    X : (n, channels * size * size) array
        Brightness from 0 to 1, one channel after the other.
    y : (n,) int64
        Classes 0 and 1.
    progress : callable
        Called after each epoch; may raise to cancel.

    Returns
    -------
    Model
        An encoder with a dense head, of rows like those of ``X``.

    Raises
    ------
    InputError
        If none of ten random weights led to an error below 0.1 on ``X``.
    """
    import torch

    from kdcal_core.models.torch_model import wrap_module

    size = round((X.shape[1] / channels) ** 0.5)
    images = np.reshape(X, (len(X), channels, size, size))
    epochs = -(-STEPS // -(-len(X) // BATCH))
    for start in range(STARTS):
        own = seed + 10_000 * start
        with torch.random.fork_rng():
            torch.manual_seed(own)
            network = torch.nn.Sequential(
                torch.nn.Conv2d(channels, FILTERS, 3),
                torch.nn.ReLU(),
                torch.nn.Flatten(),
                torch.nn.Linear(FILTERS * (size - 2) ** 2, HEAD),
                torch.nn.ReLU(),
                torch.nn.Linear(HEAD, 2),
            )
        report = part_of(progress, start / STARTS, (start + 1) / STARTS)
        module = _trained(network, images, y, epochs, own, report)
        model = wrap_module(module, input_shape=(channels, size, size))
        if np.mean(model.predict_proba(X).argmax(axis=1) != y) < LEARNT:
            return model
    raise InputError(
        f"The network learnt nothing from any of {STARTS} random weights",
        fix="Choose more images, or another seed.",
    )


def _trained(
    network: torch.nn.Sequential,
    X: FloatArray,
    y: IntArray,
    epochs: int,
    seed: int,
    progress: Progress,
) -> torch.nn.Sequential:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _descended(network, X, y, epochs, seed, progress)
    finally:
        torch.set_num_threads(threads)


def _descended(
    network: torch.nn.Sequential,
    X: FloatArray,
    y: IntArray,
    epochs: int,
    seed: int,
    progress: Progress,
) -> torch.nn.Sequential:
    import torch

    order = torch.Generator().manual_seed(seed)
    rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    best, waited = np.inf, 0
    for epoch in range(epochs):
        total = 0.0
        shuffled = torch.randperm(len(rows), generator=order)
        for batch in torch.tensor_split(shuffled, list(range(BATCH, len(rows), BATCH))):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(rows[batch]), labels[batch])
            torch.autograd.backward(loss)
            optimiser.step()
            total += float(loss.detach()) * len(batch)
        mean = total / len(rows)
        progress((epoch + 1) / epochs, f"Epoch {epoch + 1:,}, loss {mean:.3f}")
        waited = 0 if mean < best - _BETTER else waited + 1
        best = min(best, mean)
        if waited >= PATIENCE:
            break
    return network.eval()
