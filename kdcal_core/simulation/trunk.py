"""Trunk's simulation: two Gaussians whose further dimensions tell ever less (paper 000 App. D)."""

from __future__ import annotations

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.simulation.base import Simulated, check_count, simulate


def trunk(n: int, *, seed: int, n_features: int = 10) -> Simulated:
    """Class 0 is N(mu, I) and class 1 N(-mu, I), with mu_i = i^(-1/2) for i = 1 to d.

    Not restricted to a box (decision D17). The log odds of class 0 are 2 mu'x.

    Parameters
    ----------
    n : int
        Number of points, from 1 on.
    seed : int
        Equal seeds give equal points.
    n_features : int
        Dimension d, from 1 on.

    Raises
    ------
    InputError
        For an ``n`` or a dimension below 1.

    Examples
    --------
    >>> trunk(20, seed=0, n_features=3).X.shape
    (20, 3)
    """
    mean = _mean(check_count("n_features", n_features))

    def draw(sign: float, size: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(sign * mean + rng.normal(size=(size, n_features)))

    draws = (
        lambda size, rng: draw(1.0, size, rng),
        lambda size, rng: draw(-1.0, size, rng),
    )
    return simulate(draws, log_density_trunk, n, seed)


def log_density_trunk(X: FloatArray) -> FloatArray:
    """Log densities of both classes (m, 2), up to what they share: ±mu'x."""
    along = X @ _mean(X.shape[1])
    return np.column_stack([along, -along])


def _mean(n_features: int) -> FloatArray:
    return np.asarray(1.0 / np.sqrt(np.arange(1.0, n_features + 1.0)))
