"""The log loss of logistic regressions in many nodes at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

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
        self.columns = np.ascontiguousarray(features.T)
        self.weight, self.positive, self.node, self.m = weight, positive, node, m

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        score = np.einsum("qn,nq->n", self.columns, theta[self.node])
        p = expit(score)
        value = self._sum(self.weight * np.logaddexp(0.0, score) - self.positive * score)
        error = self.weight * p - self.positive
        mass = self.weight * p * (1.0 - p)
        gradient = np.stack([self._sum(error * x) for x in self.columns], axis=1)
        return value, gradient, self._products(mass)

    def bound(self) -> FloatArray:
        """The curvature where every probability is one half, (m, q, q)."""
        return self._products(0.25 * self.weight)

    def _products(self, mass: FloatArray) -> FloatArray:
        q = len(self.columns)
        total = np.empty((self.m, q, q))
        for i in range(q):
            for j in range(i + 1):
                found = self._sum(mass * self.columns[i] * self.columns[j])
                total[:, i, j] = total[:, j, i] = found
        return total

    def _sum(self, values: FloatArray) -> FloatArray:
        return bin_sums(self.node, self.m, values)


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
