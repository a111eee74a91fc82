"""The papers' models (Dey et al., Tables 3 and 4), trained on the spot."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.models import Model

TREES = 500
LAYERS = 4
RATE = 3e-4
BATCH = 32
PATIENCE = 10
MOST_STEPS = 6000
CHANNELS = 3
CNN_STEPS = 2000
CNN_STARTS, CNN_ERROR = 10, 0.1


def forest(X: FloatArray, y: IntArray, seed: int) -> Any:
    """500 fully grown trees."""
    return RandomForestClassifier(TREES, random_state=seed, n_jobs=1).fit(X, y)


def network(
    X: FloatArray,
    y: IntArray,
    seed: int,
    width: int = 200,
    depth: int = LAYERS,
    most_steps: int = MOST_STEPS,
) -> Any:
    """Hidden ReLU layers, Adam at 3e-4, stopped when the loss of an epoch stays where it is.

    The paper has 1,000 units a layer; ``width`` is smaller by default so that many seeds can be
    run, and every result says which it was. No steps leave the weights random.
    """
    import torch

    torch.manual_seed(seed)
    n_classes = int(y.max()) + 1
    sizes = [X.shape[1], *[width] * depth]
    layers: list[Any] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(width, n_classes))
    return _trained(module, X, y, seed, most_steps)


def cnn(X: FloatArray, y: IntArray, seed: int) -> Model:
    """One 3 x 3 convolution, dense layers of 10 and 2 (Dey et al., section 3.2.1) on square images.

    Three channels are those of the earlier version of Dey et al., section 5.2; the later one does
    not say. Ten units over thousands of inputs that are never negative often die in the first
    steps: then other random weights are tried.

    Raises
    ------
    RuntimeError
        No random weights of ten led anywhere.
    """
    from kdcal_core.models.torch_model import wrap_module

    size = round(X.shape[1] ** 0.5)
    for start in range(CNN_STARTS):
        module = _cnn(size, seed + 10_000 * start)
        _trained(module, np.reshape(X, (len(X), 1, size, size)), y, seed, CNN_STEPS)
        model = wrap_module(module, input_shape=(1, size, size))
        if np.mean(model.predict_proba(X).argmax(axis=1) != y) < CNN_ERROR:
            return model
    raise RuntimeError("The network learnt nothing from any of its random weights")


def _cnn(size: int, seed: int) -> Any:
    import torch

    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, CHANNELS, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(CHANNELS * (size - 2) ** 2, 10),
        torch.nn.ReLU(),
        torch.nn.Linear(10, 2),
    )


def _trained(module: Any, X: FloatArray, y: IntArray, seed: int, most_steps: int) -> Any:
    import torch

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.tensor(np.asarray(X), dtype=torch.float32)
    labels = torch.tensor(np.asarray(y))
    optimiser = torch.optim.Adam(module.parameters(), lr=RATE)
    best, waited, steps = np.inf, 0, 0
    while waited < PATIENCE and steps < most_steps:
        total = 0.0
        order = torch.randperm(len(rows), generator=generator)
        for batch in order.split(BATCH):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(rows[batch]), labels[batch])
            loss.backward()
            optimiser.step()
            total += float(loss.detach()) * len(batch)
            steps += 1
        waited = waited + 1 if total >= best - 1e-4 * len(rows) else 0
        best = min(best, total)
    return module.eval()
