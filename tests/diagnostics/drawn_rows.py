"""Random rows of a classification whose probabilities may be too sharp."""

import numpy as np


def draw(n, n_classes, seed, sharp=1.0):
    """Stated probabilities (n, K) and classes drawn from the true ones, equal to them at 1."""
    rng = np.random.default_rng(seed)
    odds = np.exp(2.0 * rng.normal(size=(n, n_classes)))
    proba = odds / odds.sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    stated = proba**sharp
    return stated / stated.sum(axis=1, keepdims=True), y
