"""Newton's method for many small penalised fits at once, vectorised over the nodes."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray

_STEPS = 300
# Newton decrement, as a share of the node's loss, below which one last step ends a fit.
_DONE = 1e-11
# The rounding of a sum over the rows, as a share of it.
_ROUNDING = 1e-12
# Keeps a fit that its rows leave open (all scores equal) where it is drawn to.
_RIDGE = 1e-10
# Share of the bound in the curvature after a first step that failed; it goes up or down by four.
_DAMPING = 0.01


class Loss(Protocol):
    """A convex loss of each of m nodes in q parameters, summed over the node's rows."""

    def __call__(
        self, theta: FloatArray, wanted: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Loss (m,), gradient (m, q) and curvature (m, q, q) at ``theta`` (m, q).

        Of the nodes that are not ``wanted`` (m,) they may be anything.
        """

    def bound(self) -> FloatArray:
        """(m, q, q): at least the curvature, wherever it is taken."""


def minimise(
    loss: Loss, start: FloatArray, centre: FloatArray, precision: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Parameters of each node that minimise its loss and a quadratic pull to its centre.

    A node whose step does not lower its loss takes the next one with a share of the loss's bound
    in place of its curvature. With all of it every step goes down: so scores of 0 and 1, where
    the curvature is nearly nothing, end where the others do.

    Parameters
    ----------
    loss : Loss
    start, centre : (m, q) arrays
    precision : (q, q) or (m, q, q) array
        The pull is ``(theta - centre)' precision (theta - centre) / 2``.

    Returns
    -------
    theta : (m, q) array
    gradient : (m, q) array
    curvature : (m, q, q) array
        Of the loss alone, without the pull, at ``theta``.
    """
    theta = start.copy()
    going = np.ones(len(theta), dtype=bool)
    value, gradient, curvature = loss(theta, going)
    bound = loss.bound()
    scale = np.maximum(np.trace(bound, axis1=1, axis2=2), 1.0)
    pull = precision + _RIDGE * scale[:, None, None] * np.eye(theta.shape[1])
    damping = np.zeros(len(theta))
    for _ in range(_STEPS):
        off = theta - centre
        slope = gradient + np.einsum("mij,mj->mi", pull, off)
        steepness = curvature + pull
        if damping.any():
            steepness = steepness + damping[:, None, None] * (bound - curvature)
        step = np.linalg.solve(steepness, slope[:, :, None])[:, :, 0]
        decrement = np.einsum("mi,mi->m", slope, step)
        done = decrement <= _DONE * (1.0 + np.abs(value))
        ahead = theta - step
        found = loss(ahead, going)
        before, after = value + _penalty(off, pull), found[0] + _penalty(ahead - centre, pull)
        lower = after <= before - 1e-4 * decrement + _ROUNDING * np.abs(before)
        better = going & (done | lower)
        theta = np.where(better[:, None], ahead, theta)
        value = np.where(better, found[0], value)
        gradient = np.where(better[:, None], found[1], gradient)
        curvature = np.where(better[:, None, None], found[2], curvature)
        going &= ~done
        if not going.any():
            break
        raised = np.minimum(np.maximum(4.0 * damping, _DAMPING), 1.0)
        lowered = np.where(damping > _DAMPING, 0.25 * damping, 0.0)
        damping = np.where(better, lowered, raised)
    return theta, gradient, curvature


def _penalty(off: FloatArray, pull: FloatArray) -> FloatArray:
    value: FloatArray = 0.5 * np.einsum("mi,mij,mj->m", off, pull, off)
    return value
