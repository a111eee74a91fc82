"""Newton's method for many small penalised fits at once, vectorised over the nodes."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kdcal_core.data import FloatArray

_STEPS = 60
_HALVINGS = 20
# Newton decrement, as a share of the node's loss, below which one last step ends a fit.
_DONE = 1e-11
# The rounding of a sum over the rows, as a share of it.
_ROUNDING = 1e-12
# Keeps a fit that its rows leave open (all scores equal) where it is drawn to.
_RIDGE = 1e-9


class Loss(Protocol):
    """A convex loss of each of m nodes in q parameters, summed over the node's rows."""

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss (m,), gradient (m, q) and curvature (m, q, q) at ``theta`` (m, q)."""


def minimise(
    loss: Loss, start: FloatArray, centre: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Parameters of each node that minimise its loss and a quadratic pull to its centre.

    Parameters
    ----------
    loss : Loss
    start, centre : (m, q) arrays
    precision : (q, q) array
        The pull is ``(theta - centre)' precision (theta - centre) / 2``.

    Returns
    -------
    theta : (m, q) array
    gradient : (m, q) array
    curvature : (m, q, q) array
        Of the loss alone, without the pull, at ``theta``.
    """
    theta = start.copy()
    value, gradient, curvature = loss(theta)
    pull = precision + np.zeros_like(curvature)
    scale = np.maximum(np.trace(curvature, axis1=1, axis2=2), 1.0)
    pull = pull + _RIDGE * scale[:, None, None] * np.eye(theta.shape[1])
    for _ in range(_STEPS):
        off = theta - centre
        slope = gradient + np.einsum("mij,mj->mi", pull, off)
        step = np.linalg.solve(curvature + pull, slope[:, :, None])[:, :, 0]
        decrement = np.einsum("mi,mi->m", slope, step)
        if not (decrement > _DONE * (1.0 + np.abs(value))).any():
            theta = theta - step
            break
        before = value + _penalty(off, pull)
        length = np.ones(len(theta))
        for _ in range(_HALVINGS):
            ahead = theta - length[:, None] * step
            found = loss(ahead)
            after = found[0] + _penalty(ahead - centre, pull)
            bound = before - 1e-4 * length * decrement + _ROUNDING * np.abs(before)
            if (after <= bound).all():
                break
            length = np.where(after <= bound, length, 0.5 * length)
        theta, (value, gradient, curvature) = ahead, found
    _, gradient, curvature = loss(theta)
    return theta, gradient, curvature


def _penalty(off: FloatArray, pull: FloatArray) -> FloatArray:
    value: FloatArray = 0.5 * np.einsum("mi,mij,mj->m", off, pull, off)
    return value
