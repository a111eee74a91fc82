"""Compiled loops of the fits in many regions; imported only when used, as numba is slow to load.

They compute small matrices, the losses of logistic regressions, the steps of Newton's method, and
the expectation-maximisation that estimates how much regions differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

compiled = njit(nogil=True, cache=True)


@compiled
def invert(matrix: Array) -> None:
    """Invert a positive definite (q, q) matrix in place, by Gauss and Jordan."""
    q = len(matrix)
    for k in range(q):
        pivot = 1.0 / matrix[k, k]
        matrix[k, k] = 1.0
        for j in range(q):
            matrix[k, j] *= pivot
        for i in range(q):
            if i != k:
                share = matrix[i, k]
                matrix[i, k] = 0.0
                for j in range(q):
                    matrix[i, j] -= share * matrix[k, j]


@compiled
def quadratic(matrix: Array, vector: Array) -> float:
    """``vector' matrix vector``."""
    total = 0.0
    for i in range(len(vector)):
        for j in range(len(vector)):
            total += vector[i] * matrix[i, j] * vector[j]
    return total


# Twice this is still a finite double.
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
    """The log loss of each wanted node's rows with two derivatives.

    A logarithm takes as long as everything else for a row, so consecutive rows of equal weight
    share the logarithm of the product of their arguments.
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
            # 1 - p would lose digits where p is nearly one
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


# Newton decrement, as a share of the node's loss, below which a last step ends the fit.
_DONE = 1e-11
# Relative rounding error of a sum over the rows.
_ROUNDING = 1e-12
# Share of the bound in the curvature after the first failed step; it changes by factors of four.
_DAMPING = 0.01


@compiled
def propose(
    theta: Array,
    centre: Array,
    pull: Array,
    gradient: Array,
    curvature: Array,
    bound: Array,
    damping: Array,
    going: Array,
    ahead: Array,
    decrement: Array,
) -> None:
    """Write each unfinished node's next step into ``ahead``, with its predicted decrease."""
    m, q = theta.shape
    inverse, slope = np.empty((q, q)), np.empty(q)
    for at in range(m):
        if not going[at]:
            continue
        for i in range(q):
            slope[i] = gradient[at, i]
            for j in range(q):
                slope[i] += pull[at, i, j] * (theta[at, j] - centre[at, j])
                own = curvature[at, i, j]
                inverse[i, j] = own + pull[at, i, j] + damping[at] * (bound[at, i, j] - own)
        invert(inverse)
        decrement[at] = quadratic(inverse, slope)
        for i in range(q):
            step = 0.0
            for j in range(q):
                step += inverse[i, j] * slope[j]
            ahead[at, i] = theta[at, i] - step


@compiled
def judge(
    ahead: Array,
    decrement: Array,
    found_value: Array,
    found_gradient: Array,
    found_curvature: Array,
    centre: Array,
    pull: Array,
    theta: Array,
    value: Array,
    gradient: Array,
    curvature: Array,
    damping: Array,
    going: Array,
) -> bool:
    """Accept the steps that go down, damp the others, and return whether any node is unfinished."""
    more = False
    for at in range(len(theta)):
        if not going[at]:
            continue
        done = decrement[at] <= _DONE * (1.0 + abs(value[at]))
        before = value[at] + 0.5 * quadratic(pull[at], theta[at] - centre[at])
        after = found_value[at] + 0.5 * quadratic(pull[at], ahead[at] - centre[at])
        lower = after <= before - 1e-4 * decrement[at] + _ROUNDING * abs(before)
        if done or lower:
            theta[at] = ahead[at]
            value[at] = found_value[at]
            gradient[at] = found_gradient[at]
            curvature[at] = found_curvature[at]
            damping[at] = 0.25 * damping[at] if damping[at] > _DAMPING else 0.0
        else:
            damping[at] = min(max(4.0 * damping[at], _DAMPING), 1.0)
        going[at] = not done
        more |= not done
    return more


@compiled
def descend(
    features: Array,
    weight: Array,
    positive: Array,
    start: Array,
    stop: Array,
    bound: Array,
    centre: Array,
    pull: Array,
    theta: Array,
    value: Array,
    gradient: Array,
    curvature: Array,
    steps: int,
) -> None:
    """Newton's method on the log loss of each node's rows, in place from ``theta``.

    ``value``, ``gradient`` and ``curvature`` are those of the loss at ``theta``, before and after.
    """
    m, q = theta.shape
    going, damping, decrement = np.ones(m, dtype=np.bool_), np.zeros(m), np.zeros(m)
    ahead, found_value = theta.copy(), np.zeros(m)
    found_gradient, found_curvature = np.zeros((m, q)), np.zeros((m, q, q))
    for _ in range(steps):
        propose(theta, centre, pull, gradient, curvature, bound, damping, going, ahead, decrement)
        sum_losses(
            features, weight, positive, start, stop, ahead, going,
            found_value, found_gradient, found_curvature,
        )  # fmt: skip
        if not judge(
            ahead, decrement, found_value, found_gradient, found_curvature, centre, pull,
            theta, value, gradient, curvature, damping, going,
        ):  # fmt: skip
            break


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
    """Estimate the spread (q, q) of one copy in place, until it converges.

    The arrays hold the copy's nodes, numbered from ``first``, which is its root. Their losses are
    the parabolas ``theta' curvature theta / 2 - pull' theta``.
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
