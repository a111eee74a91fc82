"""The compiled loop of logistic regressions. Imported only when needed: numba is heavy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

compiled = njit(nogil=True, cache=True)


@compiled
def add_losses(
    features: Array,
    weight: Array,
    positive: Array,
    node: Array,
    theta: Array,
    wanted: Array,
    value: Array,
    gradient: Array,
    curvature: Array,
) -> None:
    """Add each row's log loss with two derivatives to those of its node, if that is wanted."""
    q = features.shape[1]
    for row in range(len(node)):
        at = node[row]
        if not wanted[at]:
            continue
        score = 0.0
        for i in range(q):
            score += features[row, i] * theta[at, i]
        less = np.exp(-abs(score))
        p = 1.0 / (1.0 + less) if score >= 0 else less / (1.0 + less)
        value[at] += weight[row] * (max(score, 0.0) + np.log1p(less)) - positive[row] * score
        error = weight[row] * p - positive[row]
        # 1 - p would lose its digits where p is nearly one
        mass = weight[row] * less / ((1.0 + less) * (1.0 + less))
        for i in range(q):
            x = features[row, i]
            gradient[at, i] += error * x
            for j in range(i + 1):
                curvature[at, i, j] += mass * x * features[row, j]
    for at in range(len(value)):
        for i in range(q):
            for j in range(i):
                curvature[at, j, i] = curvature[at, i, j]
