"""Models trained on the spot: the papers' forest and ReLU network (Dey et al., Tables 3 and 4)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.progress import Progress

if TYPE_CHECKING:
    import torch
    from sklearn.ensemble import RandomForestClassifier

RATE = 3e-4
BATCH = 32
PATIENCE = 10  # epochs without a better loss, decision D30
_BETTER = 1e-4


def grow_forest(X: FloatArray, y: IntArray, n_trees: int, seed: int) -> RandomForestClassifier:
    """A forest of fully grown trees.

    Examples
    --------
    >>> grow_forest(np.array([[0.0], [1.0]]), np.array([0, 1]), 3, seed=0).n_estimators
    3
    """
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_trees, random_state=seed).fit(X, y)


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

    Adam at 3e-4 on batches of 32, until the loss of an epoch has not improved for ten, or
    ``epochs`` are over. It runs on one thread, so that a seed gives the same network anywhere.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) int64
        Classes from 0.
    layers, width : int
        Hidden layers, and units in each.
    epochs : int
        At most.
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

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _train(X, y, layers, width, epochs, seed, progress)
    finally:
        torch.set_num_threads(threads)


def _train(
    X: FloatArray,
    y: IntArray,
    layers: int,
    width: int,
    epochs: int,
    seed: int,
    progress: Progress,
) -> torch.nn.Sequential:
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = _network(X.shape[1], layers, width, int(y.max()) + 1)
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


def _network(n_features: int, layers: int, width: int, n_classes: int) -> torch.nn.Sequential:
    import torch

    parts: list[torch.nn.Module] = []
    for before, after in pairwise([n_features, *[width] * layers]):
        parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*parts, torch.nn.Linear(width, n_classes))
