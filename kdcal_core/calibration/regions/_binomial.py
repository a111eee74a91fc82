"""The log loss of logistic regressions in many nodes at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.regions.cells import Cells
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums


@dataclass(frozen=True, eq=False)
class Binomial:
    """Log loss of ``sigmoid(features @ theta)`` in each of m nodes, with two derivatives.

    Attributes
    ----------
    cells : Cells
        In an order in which those of a node stand side by side.
    features : (c, q) array
    start, stop : (m,) int arrays
        A node's cells are those from ``start`` up to ``stop``.
    limit : (m, q, q) array
        The curvature where every probability is one half.
    """

    cells: Cells
    features: FloatArray
    start: IntArray
    stop: IntArray
    limit: FloatArray

    def __call__(
        self, theta: FloatArray, wanted: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        from kdcal_core.calibration.regions._binomial_kernels import sum_losses

        m, q = theta.shape
        value, gradient, curvature = np.zeros(m), np.zeros((m, q)), np.zeros((m, q, q))
        rows = self.features, self.cells.weight, self.cells.positive, self.start, self.stop
        sum_losses(*rows, theta, wanted, value, gradient, curvature)
        return value, gradient, curvature

    def bound(self) -> FloatArray:
        """No curvature is larger, (m, q, q)."""
        return self.limit

    def of_nodes(self, nodes: IntArray) -> Binomial:
        """The loss of some of the nodes."""
        return replace(
            self, start=self.start[nodes], stop=self.stop[nodes], limit=self.limit[nodes]
        )

    def with_positive(self, positive: FloatArray) -> Binomial:
        """The loss with other targets: this much of each cell's weight is of the class."""
        return replace(self, cells=replace(self.cells, positive=positive))


def losses_of_nodes(cells: Cells, features: FloatArray, hierarchy: Hierarchy) -> Binomial:
    """The binomial loss of every node of a hierarchy: of the rows of all regions below it."""
    first, last, rank = hierarchy.spans
    place = rank[cells.region]
    order = np.argsort(place, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(rank)))])
    q = features.shape[1]
    limit = np.empty((len(hierarchy.parent), q, q))
    for i in range(q):
        for j in range(i + 1):
            products = 0.25 * cells.weight * features[:, i] * features[:, j]
            own = bin_sums(cells.region, hierarchy.n_regions, products)
            limit[:, i, j] = limit[:, j, i] = hierarchy.totals(own)
    return Binomial(
        cells.take(order), np.ascontiguousarray(features[order]), edges[first], edges[last], limit
    )
