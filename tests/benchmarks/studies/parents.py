"""The papers' parents (paper 000 Tables 3 and 4), trained on the spot."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.data import FloatArray, IntArray

TREES = 500
LAYERS = 4
RATE = 3e-4
BATCH = 32
PATIENCE = 10
MOST_STEPS = 6000


def forest(X: FloatArray, y: IntArray, seed: int) -> Any:
    """500 fully grown trees."""
    return RandomForestClassifier(TREES, random_state=seed, n_jobs=1).fit(X, y)


def network(X: FloatArray, y: IntArray, seed: int, width: int = 200) -> Any:
    """Four hidden ReLU layers, Adam at 3e-4, stopped when the loss of an epoch stays where it is.

    The paper has 1,000 units a layer; ``width`` is smaller by default so that many seeds can be
    run, and every result says which it was.
    """
    import torch

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    n_classes = int(y.max()) + 1
    sizes = [X.shape[1], *[width] * LAYERS]
    layers: list[Any] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers, torch.nn.Linear(width, n_classes))
    rows = torch.tensor(np.asarray(X), dtype=torch.float32)
    labels = torch.tensor(np.asarray(y))
    optimiser = torch.optim.Adam(module.parameters(), lr=RATE)
    best, waited, steps = np.inf, 0, 0
    while waited < PATIENCE and steps < MOST_STEPS:
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
