"""The compiled loop of logistic regressions. Imported only when needed: numba is heavy."""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration.regions._small_kernels import Array, compiled

# Twice as much is still a double.
_LARGE = 1e300


@compiled
def sum_losses(
    features: Array,
    weight: Array,
    positive: Array,
    start: Array,
    stop: Array,
    theta: Array,
    wanted: Array,
    value: Array,
    gradient: Array,
    curvature: Array,
) -> None:
    """The log loss of each node's rows with two derivatives, where it is wanted.

    A logarithm takes as long as all the rest of a row: rows in a row that weigh alike share one,
    of the product of what they would each take it of.
    """
    q = features.shape[1]
    slope, bend = np.empty(q), np.empty((q, q))
    for at in range(len(start)):
        if not wanted[at]:
            continue
        total = 0.0
        product, shared = 1.0, 0.0
        slope[:] = 0.0
        bend[:] = 0.0
        for row in range(start[at], stop[at]):
            score = 0.0
            for i in range(q):
                score += features[row, i] * theta[at, i]
            less = np.exp(-abs(score))
            share = 1.0 / (1.0 + less)
            p = share if score >= 0 else less * share
            total += weight[row] * max(score, 0.0) - positive[row] * score
            if weight[row] != shared or product > _LARGE:
                total += shared * np.log(product)
                product, shared = 1.0, weight[row]
            product *= 1.0 + less
            error = weight[row] * p - positive[row]
            # 1 - p would lose its digits where p is nearly one
            mass = weight[row] * less * share * share
            for i in range(q):
                x = features[row, i]
                slope[i] += error * x
                for j in range(i + 1):
                    bend[i, j] += mass * x * features[row, j]
        value[at] = total + shared * np.log(product)
        for i in range(q):
            gradient[at, i] = slope[i]
            for j in range(i + 1):
                curvature[at, i, j] = curvature[at, j, i] = bend[i, j]
