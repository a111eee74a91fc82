"""The compiled loop of expectation and maximisation. Imported only when needed: numba is heavy."""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration.regions._small_kernels import Array, compiled, invert

_STEPS = 100
_SETTLED = 1e-4


@compiled
def learn_spread(
    theta: Array,
    curvature: Array,
    pull: Array,
    above: Array,
    first: int,
    seen: Array,
    widen: Array,
    prior: Array,
    prior_nodes: float,
    widest: float,
    spread: Array,
) -> None:
    """Learn the spread (q, q) of one copy, in place, until it settles.

    The copy's nodes are those of the arrays, numbered from ``first``, its root being the first.
    Their losses are the parabolas ``theta' curvature theta / 2 - pull' theta``.
    """
    m, q = theta.shape
    mean = theta.copy()
    precision, covariance, total = np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
    drawn = np.empty(q)
    n_seen = seen.sum()
    for _ in range(_STEPS):
        precision[:] = spread
        invert(precision)
        total[:] = prior
        for at in range(1, m):
            up = above[at] - first
            for i in range(q):
                drawn[i] = pull[at, i]
                for j in range(q):
                    covariance[i, j] = curvature[at, i, j] + precision[i, j]
                    drawn[i] += precision[i, j] * mean[up, j]
            invert(covariance)
            for i in range(q):
                mean[at, i] = 0.0
                for j in range(q):
                    mean[at, i] += covariance[i, j] * drawn[j]
            if seen[at]:
                for i in range(q):
                    for j in range(q):
                        off = (mean[at, i] - mean[up, i]) * (mean[at, j] - mean[up, j])
                        total[i, j] += widen[at] * off + covariance[i, j]
        size = 0.0
        known = 0.0
        for i in range(q):
            size += total[i, i] / (n_seen + prior_nodes)
            known += spread[i, i]
        shrink = min(1.0, widest**2 / size) / (n_seen + prior_nodes)
        moved = 0.0
        for i in range(q):
            for j in range(q):
                found = total[i, j] * shrink
                moved = max(moved, abs(found - spread[i, j]))
                spread[i, j] = found
        if moved / known < _SETTLED:
            break
