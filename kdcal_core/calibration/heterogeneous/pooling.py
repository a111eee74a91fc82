"""Partial pooling: a region's map is drawn to its ancestor's, the more the less it says itself.

A region with few rows cannot carry a map of its own, and a smallest number of rows below which it
loses it would be a cliff. Instead the parameters theta of a node are taken as a draw from a
normal distribution around those of the node above,

    theta_v ~ N(theta_above(v), S),

so that the fit of a node minimises its log loss plus ``(theta - theta_above)' S^-1 (theta -
theta_above) / 2``. A node without rows is its ancestor, one with many is on its own, and nothing
jumps in between (decision D105). How much nodes differ, S, is learned from all nodes of the
partition by empirical Bayes: expectation and maximisation over theta with the loss of each node
as a parabola around its fit. A prior worth two nodes keeps S sensible where a partition has few.

Measured on simulated regions (2, 8 and 50 of them, 10 to 300 rows in each, Platt's map): where
regions differ, with standard deviations of 0.4 of the slope and 1 of the offset, pooling has a
test log loss 0.003 to 0.095 below one map for all; where they do not differ at all it is 0.0014
above it at most. Regions on their own are up to 0.17 worse than pooled ones at 5 rows each, and
alike at 1,000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.heterogeneous._newton import Loss, minimise
from kdcal_core.calibration.heterogeneous.hierarchy import Hierarchy
from kdcal_core.data import FloatArray, IntArray

# The prior of S: this many nodes' worth of differences with standard deviation SPREAD.
PRIOR_NODES = 2.0
SPREAD = 0.2
# Nodes never differ by more: where scores are 0 or 1, a parabola says nothing of a loss far away.
WIDEST = 5.0
_ROUNDS = 3
_EM_STEPS = 100
_SETTLED = 1e-4

# The loss of the nodes at one depth: (node of each of the m fits) -> loss of those m nodes.
LossOf = Callable[[IntArray], Loss]


@dataclass(frozen=True, eq=False)
class Pooled:
    """Parameters of every node after pooling.

    Attributes
    ----------
    theta : (m, q) array
    borrowed : (m,) array in [0, 1]
        Share of a node's parameters that comes from its ancestor: 1 - trace((H + S^-1)^-1 H) / q.
    spread : (C, q, q) array
        S of each copy of the hierarchy; zeros where it is one node.
    """

    theta: FloatArray
    borrowed: FloatArray
    spread: FloatArray


def pool(loss_of: LossOf, root: FloatArray, hierarchy: Hierarchy) -> Pooled:
    """Fit every node, top down, each drawn to the one above it.

    Parameters
    ----------
    loss_of : callable
        The joint loss of some nodes, by their numbers.
    root : (C, q) array
        Parameters of the roots, which are fitted without any pull.
    hierarchy : Hierarchy
        Of C copies, each of which learns a spread of its own.
    """
    n_copies, q = root.shape
    copy = hierarchy.copy
    theta = root[copy]
    levels = [
        np.flatnonzero(hierarchy.depth == d) for d in range(1, int(hierarchy.depth.max()) + 1)
    ]
    if not levels:
        return Pooled(theta, np.zeros(len(theta)), np.zeros((n_copies, q, q)))
    spread: FloatArray = np.tile(SPREAD**2 * np.eye(q), (n_copies, 1, 1))
    moving = np.ones(n_copies, dtype=bool)
    for _ in range(_ROUNDS):
        theta, gradient, curvature = _descend(loss_of, theta, hierarchy, levels, spread)
        known = spread
        spread = _spread(theta, gradient, curvature, hierarchy, levels, spread, moving)
        moving = _moved(spread, known) >= 0.01
        if not moving.any():
            break
    theta, _, curvature = _descend(loss_of, theta, hierarchy, levels, spread)
    own = np.linalg.solve(curvature + np.linalg.inv(spread)[copy], curvature)
    borrowed = 1.0 - np.trace(own, axis1=1, axis2=2) / q
    borrowed[hierarchy.parent < 0] = 0.0
    return Pooled(theta, np.clip(borrowed, 0.0, 1.0), spread)


def _moved(now: FloatArray, before: FloatArray) -> FloatArray:
    """How far each spread has moved, as a share of what it was, (C,)."""
    far: FloatArray = np.abs(now - before).max(axis=(1, 2)) / np.trace(before, axis1=1, axis2=2)
    return far


def _descend(
    loss_of: LossOf,
    start: FloatArray,
    hierarchy: Hierarchy,
    levels: list[IntArray],
    spread: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    m, q = start.shape
    theta = start.copy()
    gradient, curvature = np.zeros((m, q)), np.zeros((m, q, q))
    precision = np.asarray(np.linalg.inv(spread), dtype=np.float64)[hierarchy.copy]
    for nodes in levels:
        centre = theta[hierarchy.parent[nodes]]
        theta[nodes], gradient[nodes], curvature[nodes] = minimise(
            loss_of(nodes), theta[nodes], centre, precision[nodes]
        )
    return theta, gradient, curvature


def _spread(
    theta: FloatArray,
    gradient: FloatArray,
    curvature: FloatArray,
    hierarchy: Hierarchy,
    levels: list[IntArray],
    spread: FloatArray,
    moving: NDArray[np.bool_],
) -> FloatArray:
    """S by expectation and maximisation, from the parabola of each node's loss.

    Copies that are not ``moving`` any more keep theirs.
    """
    m, q = theta.shape
    copy, above = hierarchy.copy, hierarchy.parent
    pull = np.einsum("mij,mj->mi", curvature, theta) - gradient
    seen = (np.trace(curvature, axis1=1, axis2=2) > 0) & (above >= 0)
    # sisters share an ancestor that was fitted on them: k of them show k - 1 differences
    below = above >= 0
    sisters = np.bincount(above[below], weights=seen[below], minlength=m)[above]
    widen = np.where(sisters > 1, sisters / np.maximum(sisters - 1.0, 1.0), 1.0)
    n_seen = np.bincount(copy[seen], minlength=len(spread))
    prior = PRIOR_NODES * SPREAD**2 * np.eye(q)
    mean = theta.copy()
    for _ in range(_EM_STEPS):
        precision = np.linalg.inv(spread)[copy]
        covariance = np.linalg.inv(curvature + precision)
        for nodes in levels:
            drawn = pull[nodes] + np.einsum("mij,mj->mi", precision[nodes], mean[above[nodes]])
            mean[nodes] = np.einsum("mij,mj->mi", covariance[nodes], drawn)
        off = (mean - mean[above])[seen]
        total = np.tile(prior, (len(spread), 1, 1))
        squares = np.einsum("m,mi,mj->mij", widen[seen], off, off)
        np.add.at(total, copy[seen], squares + covariance[seen])
        found = total / (n_seen + PRIOR_NODES)[:, None, None]
        found *= np.minimum(1.0, WIDEST**2 / np.trace(found, axis1=1, axis2=2))[:, None, None]
        found = np.where(moving[:, None, None], found, spread)
        moving = moving & (_moved(found, spread) >= _SETTLED)
        spread = found
        if not moving.any():
            break
    return spread
