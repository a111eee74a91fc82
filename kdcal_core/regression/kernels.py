"""Weights of neighbours by their distance: K_u of Torres et al., Algorithm 1."""

from __future__ import annotations

from typing import Literal

import numpy as np

from kdcal_core.data.schema import FloatArray

Kernel = Literal["epanechnikov", "uniform"]

BEYOND = 1e-3
"""How far the scale u lies beyond the last neighbour, so that it keeps a weight (D75)."""


def kernel_weights(distance: FloatArray, kernel: Kernel, radius: float | None = None) -> FloatArray:
    """Weights of every row's neighbours, (m, k), zero or positive, not scaled to any sum.

    Parameters
    ----------
    distance : (m, k) array
        Ascending in every row.
    kernel : {"epanechnikov", "uniform"}
        1 - (d / u)^2, or 1 for all.
    radius : float, optional
        The scale u. None: slightly beyond the last neighbour of each row (decision D75), and
        uniform weights where that lies at distance zero.

    Returns
    -------
    (m, k) array
        With a radius, neighbours at or beyond it have weight 0 (with the uniform kernel: beyond).

    Examples
    --------
    >>> kernel_weights(np.array([[0.0, 1.0, 2.0]]), "epanechnikov", radius=2.0).tolist()
    [[1.0, 0.75, 0.0]]
    >>> kernel_weights(np.array([[0.0, 0.0]]), "epanechnikov").tolist()
    [[1.0, 1.0]]
    """
    if kernel == "uniform":
        return np.ones_like(distance) if radius is None else (distance <= radius).astype(np.float64)
    scale = distance[:, -1:] * (1 + BEYOND) if radius is None else np.full((1, 1), radius)
    share = np.divide(distance, scale, out=np.zeros_like(distance), where=scale > 0)
    weights: FloatArray = np.maximum(1 - share**2, 0.0)
    return weights
