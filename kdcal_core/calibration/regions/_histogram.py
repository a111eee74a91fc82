"""Histogram binning in every region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.calibration.calibrator_base import check_array, demand
from kdcal_core.calibration.regions._counts import (
    N_BINS,
    bins_of,
    pooled_rates,
    tallies,
    worth_of,
)
from kdcal_core.calibration.regions.cells import logit_of
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.calibration.regions.scores import MapFit, Scores, normalised
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.store import storable


@storable
@dataclass(frozen=True, eq=False)
class HistogramMaps:
    """The rate of the class in the score's bin and region.

    Attributes
    ----------
    edges : (C, 9) array
        Inner edges of each class's bins on the logit, ascending, the same in all regions; plus
        infinity where there are fewer bins.
    rates : (C, R, 10) array in [0, 1]

    Examples
    --------
    >>> maps = HistogramMaps(np.full((1, 9), np.inf), np.full((1, 1, 10), 0.25))
    >>> maps.predict(np.array([[0.1, 0.9]]), np.array([0])).tolist()
    [[0.75, 0.25]]
    """

    edges: FloatArray
    rates: FloatArray

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K)."""
        labels = [1] if len(self.rates) == 1 else range(len(self.rates))
        mapped = np.empty((len(proba), len(self.rates)))
        for i, label in enumerate(labels):
            bins = np.searchsorted(self.edges[i], logit_of(proba[:, label]), side="left")
            mapped[:, i] = self.rates[i][leaf, bins]
        return normalised(mapped)

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse bins that do not fit, as a damaged file may hold them."""
        n_maps = 1 if n_classes == 2 else n_classes
        check_array(self, "rates", (n_maps, n_regions, N_BINS), low=0.0, high=1.0)
        edges = self.edges
        demand(
            isinstance(edges, np.ndarray)
            and edges.dtype == np.float64
            and edges.shape == (n_maps, N_BINS - 1)
            and bool((edges[:, 1:] >= edges[:, :-1]).all()),
            "the bins' edges",
        )


def fit_histogram(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """Rates in ten bins that hold as many rows each, region by region."""
    shape = (len(scores.mapped), hierarchy.n_regions)
    edges = np.full((shape[0], N_BINS - 1), np.inf)
    rates, borrowed = np.zeros((*shape, N_BINS)), np.empty(shape)
    for i, label in enumerate(scores.mapped):
        cells = scores.cells(label, leaf, hierarchy.n_regions)
        found, bins = bins_of(cells)
        edges[i, : len(found)] = found
        positive, weight = tallies(cells, bins, len(found) + 1, hierarchy)
        worth = worth_of(positive, weight, hierarchy) if pooling else 0.0
        rate = pooled_rates(positive, weight, hierarchy, worth)
        rates[i, :, : len(found) + 1] = rate[hierarchy.node]
        borrowed[i] = borrowed_share(weight[hierarchy.node], worth, len(hierarchy.parent))
    # a rate that dips from one bin to the next is noise more often than not: nothing is flagged
    falling = np.zeros(hierarchy.n_regions, dtype=bool)
    return MapFit(HistogramMaps(edges, rates), borrowed, {}, falling)


def borrowed_share(weight: FloatArray, worth: float, m: int) -> FloatArray:
    """Mean over the bins of the share of a rate that is the ancestor's, (R,)."""
    if m == 1:
        return np.zeros(len(weight))
    total = weight + worth
    share = np.divide(worth, total, out=np.ones_like(total), where=total > 0)
    mean: FloatArray = share.mean(axis=1)
    return mean
