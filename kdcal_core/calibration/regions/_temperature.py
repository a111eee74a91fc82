"""One temperature for each region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.calibrator_base import check_array
from kdcal_core.calibration.regions._binomial import losses_of_nodes
from kdcal_core.calibration.regions._newton import Loss, minimise
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.calibration.regions.pooling import LossOf, pool
from kdcal_core.calibration.regions.scores import MapFit, Scores
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable

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
        """Refuse temperatures that do not fit, as a damaged file may hold them."""
        check_array(self, "temperatures", (n_regions,), low=LOWEST, high=HIGHEST)


def fit_temperature(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """The temperature of every region with the smallest log loss of the whole vector.

    Pooling is on 1 / T, in which the loss is convex. Without pooling a region with one class or
    no rows has its nearest ancestor's temperature (decision D105).
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
    """Whether the rows of each node, at their place among the nodes, show more than one class."""
    low, high = np.full(len(nodes), np.inf), np.full(len(nodes), -np.inf)
    here = place >= 0
    np.minimum.at(low, place[here], y[here])
    np.maximum.at(high, place[here], y[here])
    return np.asarray(low < high)


def _losses(scores: Scores, leaf: IntArray, hierarchy: Hierarchy) -> tuple[LossOf, Loss]:
    """The loss of any nodes of one depth, and that of the root."""
    if scores.n_classes == 2:
        cells = scores.cells(1, leaf, hierarchy.n_regions)
        losses: LossOf = losses_of_nodes(cells, cells.logit[:, None], hierarchy).of_nodes
    else:
        z = _logs(scores.proba)
        losses = _VectorLosses(z, scores.y, scores.weight, leaf, hierarchy)
    return losses, losses(np.zeros(1, dtype=np.int64))


def _logs(proba: FloatArray) -> FloatArray:
    """log p, clipped at 1e-12 (decision D51), less the row's largest."""
    z = np.log(np.maximum(proba, CLIP))
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
    """Log loss of softmax(z / T) in each of m nodes, by 1 / T, with two derivatives."""

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
        # an overshooting step may make 1 / T negative, and the largest entry another one
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
        """A quarter of the squared range of each row, (m, 1, 1): no variance is larger."""
        return self._sum(0.25 * self.z.min(axis=1) ** 2)[:, None, None]

    def _sum(self, values: FloatArray) -> FloatArray:
        return bin_sums(self.node, self.m, self.weight * values)
