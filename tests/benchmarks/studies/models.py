"""The papers' models (Dey et al., Tables 3 and 4), trained on the spot."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.models import Model
from kdcal_core.progress import silent
from kdcal_core.tasks.lab_networks import train_image_network

TREES = 500
LAYERS = 4
RATE = 3e-4
BATCH = 32
PATIENCE = 10
MOST_STEPS = 6000


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
    """The simulation lab's network for square grey images.

    Raises
    ------
    InputError
        No random weights of ten led anywhere.
    """
    return train_image_network(X, y, channels=1, seed=seed, progress=silent)


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
