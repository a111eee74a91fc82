"""The log loss of logistic regressions in many nodes at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.heterogeneous._newton import Loss
from kdcal_core.calibration.heterogeneous.cells import Cells
from kdcal_core.calibration.heterogeneous.hierarchy import Hierarchy
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums


class Binomial:
    """Log loss of ``sigmoid(features @ theta)`` in each of m nodes, with two derivatives."""

    def __init__(
        self, features: FloatArray, weight: FloatArray, positive: FloatArray, node: IntArray, m: int
    ) -> None:
        self.features = np.ascontiguousarray(features)
        self.weight, self.positive, self.node, self.m = weight, positive, node, m

    def __call__(
        self, theta: FloatArray, wanted: NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        from kdcal_core.calibration.heterogeneous._binomial_kernels import add_losses

        m, q = theta.shape
        value, gradient, curvature = np.zeros(m), np.zeros((m, q)), np.zeros((m, q, q))
        rows = self.features, self.weight, self.positive, self.node
        add_losses(*rows, theta, wanted, value, gradient, curvature)
        return value, gradient, curvature

    def bound(self) -> FloatArray:
        """The curvature where every probability is one half, (m, q, q)."""
        q = self.features.shape[1]
        total = np.empty((self.m, q, q))
        for i in range(q):
            for j in range(i + 1):
                products = 0.25 * self.weight * self.features[:, i] * self.features[:, j]
                total[:, i, j] = total[:, j, i] = bin_sums(self.node, self.m, products)
        return total


@dataclass(frozen=True, eq=False)
class BinomialLosses:
    """The binomial loss of any set of nodes at one depth."""

    cells: Cells
    features: FloatArray
    hierarchy: Hierarchy

    def __call__(self, nodes: IntArray) -> Loss:
        node = self.hierarchy.place_among(nodes)[self.cells.region]
        here = np.flatnonzero(node >= 0)
        cells = self.cells.take(here)
        return Binomial(self.features[here], cells.weight, cells.positive, node[here], len(nodes))
