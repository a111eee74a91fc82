"""Maps with few parameters in every region: Platt's, beta, and temperatures.

Platt's and the beta map are logistic regressions on the score, fitted for all regions at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from kdcal_core.calibration.calibrator_base import log_proba
from kdcal_core.calibration.regions._node_fits import (
    Loss,
    NodeRows,
    fit_alone,
    fit_unpooled,
    losses_of_nodes,
    minimise,
)
from kdcal_core.calibration.regions.pooling import LossOf, order_evidence, pool
from kdcal_core.calibration.regions.scores_and_hierarchy import (
    Cells,
    Hierarchy,
    MapFit,
    Scores,
    logit_of,
    normalised,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand

LOWEST, HIGHEST = 0.05, 20.0


@storable
@dataclass(frozen=True, eq=False)
class TemperatureMaps:
    """``softmax(log p / T)`` with the temperature of the region.

    Attributes
    ----------
    temperatures : (R,) array in [0.05, 20]

    Examples
    --------
    >>> maps = TemperatureMaps(np.array([2.0]))
    >>> maps.predict(np.array([[0.1, 0.9]]), np.array([0])).round(2).tolist()
    [[0.25, 0.75]]
    """

    temperatures: FloatArray

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K)."""
        z = _logs(proba) / self.temperatures[leaf][:, None]
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return z

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse temperatures that do not fit, as in a damaged file."""
        check_array(self, "temperatures", (n_regions,), low=LOWEST, high=HIGHEST)


def fit_temperature(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """The temperature of every region with the smallest log loss of the whole vector.

    Pooling acts on 1 / T, in which the loss is convex. Without pooling a region with one class or
    without rows has its nearest ancestor's temperature.
    """
    losses, root = _losses(scores, leaf, hierarchy)
    inverse, _ = minimise(root, np.ones((1, 1)), np.ones((1, 1)), np.zeros((1, 1)))
    inverse = np.clip(inverse, 1.0 / HIGHEST, 1.0 / LOWEST)
    if pooling:
        pooled = pool(losses, inverse, hierarchy)
        inverse, borrowed = pooled.theta[hierarchy.node], pooled.borrowed[hierarchy.node]
    else:
        start = np.tile(inverse, (len(hierarchy.parent), 1))
        several = np.ones(len(hierarchy.parent), dtype=bool)
        for nodes in hierarchy.levels[1:]:
            above = start[hierarchy.parent[nodes]]
            found, _ = minimise(losses(nodes), above, above, np.zeros((1, 1)))
            several[nodes] = _several_classes(scores.y, hierarchy.place_among(nodes)[leaf], nodes)
            start[nodes] = np.where(several[nodes, None], found, above)
        inverse = start[hierarchy.node]
        borrowed = 1.0 - several[hierarchy.node]
    temperatures = 1.0 / np.clip(inverse[:, 0], 1.0 / HIGHEST, 1.0 / LOWEST)
    return MapFit(
        TemperatureMaps(temperatures),
        borrowed[None, :],
        {"temperature": temperatures[None, :]},
        np.zeros(hierarchy.n_regions, dtype=bool),
    )


def _several_classes(y: IntArray, place: IntArray, nodes: IntArray) -> NDArray[np.bool_]:
    """Whether the rows of each node, at their place among the nodes, have several classes."""
    low, high = np.full(len(nodes), np.inf), np.full(len(nodes), -np.inf)
    here = place >= 0
    np.minimum.at(low, place[here], y[here])
    np.maximum.at(high, place[here], y[here])
    return np.asarray(low < high)


def _losses(scores: Scores, leaf: IntArray, hierarchy: Hierarchy) -> tuple[LossOf, Loss]:
    """The loss of nodes of one depth, and that of the root."""
    if scores.n_classes == 2:
        cells = scores.cells(1, leaf, hierarchy.n_regions)
        losses: LossOf = losses_of_nodes(cells, cells.logit[:, None], hierarchy).of_nodes
    else:
        z = _logs(scores.proba)
        losses = _VectorLosses(z, scores.y, scores.weight, leaf, hierarchy)
    return losses, losses(np.zeros(1, dtype=np.int64))


def _logs(proba: FloatArray) -> FloatArray:
    """log p, clipped at 1e-12, less the row's largest."""
    z = log_proba(proba)
    z -= z.max(axis=1, keepdims=True)
    return z


@dataclass(frozen=True, eq=False)
class _VectorLosses:
    z: FloatArray
    y: IntArray
    weight: FloatArray
    leaf: IntArray
    hierarchy: Hierarchy

    def __call__(self, nodes: IntArray) -> Loss:
        node = self.hierarchy.place_among(nodes)[self.leaf]
        true = self.z[np.arange(len(node)), self.y]
        return _VectorLoss(self.z, true, self.weight, node, len(nodes)).of_rows(node >= 0)


@dataclass(frozen=True, eq=False)
class _VectorLoss:
    """Log loss of softmax(z / T) in each of m nodes, with two derivatives by 1 / T."""

    z: FloatArray
    true: FloatArray
    weight: FloatArray
    node: IntArray
    m: int

    def of_rows(self, which: NDArray[np.bool_]) -> _VectorLoss:
        """The loss of some of the rows."""
        if which.all():
            return self
        return _VectorLoss(
            self.z[which], self.true[which], self.weight[which], self.node[which], self.m
        )

    def __call__(
        self, theta: FloatArray, wanted: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        if not wanted.all():
            return self.of_rows(wanted[self.node])(theta, np.ones_like(wanted))
        inverse = theta[:, 0][self.node]
        scaled = self.z * inverse[:, None]
        # an overshooting step may make 1 / T negative, which changes the largest entry
        top = scaled.max(axis=1)
        odds = np.exp(scaled - top[:, None])
        total = odds.sum(axis=1)
        mean = np.einsum("nk,nk->n", odds, self.z) / total
        square = np.einsum("nk,nk,nk->n", odds, self.z, self.z) / total
        value = self._sum(np.log(total) + top - inverse * self.true)
        gradient = self._sum(mean - self.true)
        curvature = self._sum(square - mean**2)
        return value, gradient[:, None], curvature[:, None, None]

    def bound(self) -> FloatArray:
        """A quarter of the squared range of each row, (m, 1, 1), the largest possible variance."""
        return self._sum(0.25 * self.z.min(axis=1) ** 2)[:, None, None]

    def _sum(self, values: FloatArray) -> FloatArray:
        return bin_sums(self.node, self.m, self.weight * values)


def platt_features(logit: FloatArray) -> FloatArray:
    """(n, 2): the logit and one."""
    return np.column_stack([logit, np.ones(len(logit))])


def beta_features(logit: FloatArray) -> FloatArray:
    """(n, 3): log p, -log(1 - p) and one."""
    return np.column_stack(
        [-np.logaddexp(0.0, -logit), np.logaddexp(0.0, logit), np.ones(len(logit))]
    )


# Larger parameters could overflow a double.
_LARGEST = 1e100
# Smaller differences between scores are rounding.
_CONSTANT = 1e-9
# Rows times classes fitted at once, so many that the calls cost little.
_ROWS = 100_000

FEATURES = {2: platt_features, 3: beta_features}


@storable
@dataclass(frozen=True, eq=False)
class LinearMaps:
    """``sigmoid(features @ parameters)`` of every class and region.

    Attributes
    ----------
    parameters : (C, R, q) array
        C is 1 for two classes. With q = 2 they are Platt's slope and offset on the logit, with q =
        3 the beta map's a, b and c: ``a log p - b log(1 - p) + c``.

    Examples
    --------
    >>> LinearMaps(np.array([[[1.0, 0.0], [0.0, 0.0]]])).predict(
    ...     np.array([[0.2, 0.8], [0.2, 0.8]]), np.array([0, 1])
    ... ).round(3).tolist()
    [[0.2, 0.8], [0.5, 0.5]]
    """

    parameters: FloatArray

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K)."""
        n_maps, _, q = self.parameters.shape
        columns = [1] if n_maps == 1 else range(n_maps)
        mapped = np.empty((len(proba), n_maps))
        for i, label in enumerate(columns):
            features = FEATURES[q](logit_of(proba[:, label]))
            mapped[:, i] = expit(np.einsum("nq,nq->n", features, self.parameters[i][leaf]))
        return normalised(mapped)

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse parameters that do not fit, as in a damaged file."""
        shape = (1 if n_classes == 2 else n_classes, n_regions, None)
        check_array(self, "parameters", shape, low=-_LARGEST, high=_LARGEST)
        demand(self.parameters.shape[2] in FEATURES, "the number of parameters")


def fit_platt(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """Platt's sigmoid of the logit in every region (Durfee et al., Algorithm 1)."""
    return _fit(scores, leaf, hierarchy, pooling, ("slope", "offset"))


def fit_beta(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """The beta map in every region: slopes a and b of log p and -log(1 - p), offset c."""
    return _fit(scores, leaf, hierarchy, pooling, ("a", "b", "c"))


def _fit(
    scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool, names: tuple[str, ...]
) -> MapFit:
    parameters, borrowed = [], []
    at_once = max(1, _ROWS // len(leaf))
    for start in range(0, len(scores.mapped), at_once):
        labels = scores.mapped[start : start + at_once]
        cells = [scores.cells(label, leaf, hierarchy.n_regions) for label in labels]
        found, share = _fit_classes(cells, FEATURES[len(names)], hierarchy, pooling)
        parameters.append(found)
        borrowed.append(share)
    stacked = np.concatenate(parameters)
    return MapFit(
        LinearMaps(stacked),
        np.concatenate(borrowed),
        {name: stacked[:, :, i] for i, name in enumerate(names)},
        np.asarray((stacked[:, :, :-1] < 0).any(axis=(0, 2))),
    )


def _fit_classes(
    classes: list[Cells],
    features_of: Callable[[FloatArray], FloatArray],
    hierarchy: Hierarchy,
    pooling: bool,
) -> tuple[FloatArray, FloatArray]:
    """Parameters (C, R, q) and borrowed shares (C, R) of the maps of C classes."""
    features = [features_of(one.logit) for one in classes]
    # the offset is taken at the middle of the scores, where it does not depend on the slopes, and
    # the slopes of scores that hardly differ are pooled as if they differed by one
    pairs = zip(features, classes, strict=True)
    middle, scale = np.swapaxes([_standard(x[:, :-1], one.weight) for x, one in pairs], 0, 1)
    which = np.repeat(np.arange(len(classes)), [len(one.logit) for one in classes])
    centred = np.concatenate(features)
    centred[:, :-1] = (centred[:, :-1] - middle[which]) / scale[which]
    cells = Cells.joined(classes, hierarchy.n_regions)
    every = hierarchy.copies(len(classes))
    rows = NodeRows.of(cells, centred, every)
    unchanged = np.column_stack([scale, middle.sum(axis=1)])
    root = fit_alone(rows, every.levels[0], unchanged)
    if pooling:
        pooled = pool(rows.losses.of_nodes, root, every, order_evidence(rows.rarer))
        theta, borrowed = pooled.theta, pooled.borrowed
    else:
        theta, borrowed = fit_unpooled(rows, every, root)
    theta = theta[every.node].reshape(len(classes), hierarchy.n_regions, -1)
    theta[:, :, :-1] /= scale[:, None]
    theta[:, :, -1] -= np.einsum("crq,cq->cr", theta[:, :, :-1], middle)
    return theta, borrowed[every.node].reshape(theta.shape[:2])


def _standard(features: FloatArray, weight: FloatArray) -> FloatArray:
    """Means and deviations of features, (2, q); deviations are at most one, and one if constant.

    >>> _standard(np.array([[0.5, 3.0, 7.0], [-0.5, -3.0, 7.0]]), np.ones(2)).tolist()
    [[0.0, 0.0, 7.0], [0.5, 1.0, 1.0]]
    """
    middle = np.average(features, axis=0, weights=weight)
    deviation = np.sqrt(np.average((features - middle) ** 2, axis=0, weights=weight))
    return np.stack([middle, np.where(deviation > _CONSTANT, np.minimum(deviation, 1.0), 1.0)])
