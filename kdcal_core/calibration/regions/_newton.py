"""Newton's method for many small penalised fits at once."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray

# The loss of each node, (m,), its gradient, (m, q), and its curvature, (m, q, q).
Known = tuple[FloatArray, FloatArray, FloatArray]

_STEPS = 300
# Keeps a fit that its rows leave open (all scores equal) where it is drawn to.
_RIDGE = 1e-10


class Loss(Protocol):
    """A convex loss of each of m nodes in q parameters, summed over the node's rows."""

    def __call__(self, theta: FloatArray, wanted: NDArray[np.bool_]) -> Known:
        """What is known of the loss at ``theta`` (m, q).

        Of the nodes that are not ``wanted`` (m,) they may be anything.
        """

    def bound(self) -> FloatArray:
        """(m, q, q): at least the curvature, wherever it is taken."""


def minimise(
    loss: Loss,
    start: FloatArray,
    centre: FloatArray,
    precision: FloatArray,
    known: Known | None = None,
) -> tuple[FloatArray, Known]:
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
    known : Known, optional
        What an earlier call has said of the loss at ``start``.

    Returns
    -------
    theta : (m, q) array
    known : Known
        Of the loss alone, without the pull, at ``theta``.
    """
    from kdcal_core.calibration.regions._newton_kernels import judge, propose

    theta = start.copy()
    going = np.ones(len(theta), dtype=bool)
    value, gradient, curvature = loss(theta, going) if known is None else known
    bound = loss.bound()
    scale = np.maximum(np.trace(bound, axis1=1, axis2=2), 1.0)
    pull = precision + _RIDGE * scale[:, None, None] * np.eye(theta.shape[1])
    damping, decrement, ahead = np.zeros(len(theta)), np.zeros(len(theta)), theta.copy()
    for _ in range(_STEPS):
        propose(theta, centre, pull, gradient, curvature, bound, damping, going, ahead, decrement)
        found = loss(ahead, going)
        if not judge(
            ahead,
            decrement,
            *found,
            centre,
            pull,
            theta,
            value,
            gradient,
            curvature,
            damping,
            going,
        ):
            break
    return theta, (value, gradient, curvature)
