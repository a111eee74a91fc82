"""Pooling of counts: how strongly a region's rates are drawn to its ancestor's, in rows.

In a bin of the score, k of a region's n rows are of the class, and the region above has rate g. The
region's own rate is taken as a draw from a beta distribution with mean g that is worth M rows, so
that its estimate is (k + M g) / (n + M): the ancestor's without rows, its own with many. M is
learned from all regions and bins as the largest beta-binomial likelihood, with a wide prior
around 20 rows.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln

from kdcal_core.calibration.regions.cells import Cells
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums

N_BINS = 10
_WORTHS = np.geomspace(0.5, 20_000.0, 50)
_USUAL, _WIDTH = 20.0, 1.5
# A rate of 0 or 1 above would exclude outcomes that a region may still have.
_LOWEST = 1e-6


def bins_of(cells: Cells) -> tuple[FloatArray, IntArray]:
    """Inner edges (at most 9) that part the rows into bins of equal weight, and each cell's bin.

    A bin ends with its upper edge, which is one of the scores.
    """
    order = np.argsort(cells.logit, kind="stable")
    mass = np.cumsum(cells.weight[order])
    at = np.searchsorted(mass, np.arange(1, N_BINS) / N_BINS * mass[-1] * (1 - 1e-12))
    edges = np.unique(cells.logit[order][at])
    edges = edges[edges < cells.logit.max()]
    return edges, np.searchsorted(edges, cells.logit, side="left")


def tallies(
    cells: Cells, bins: IntArray, n_bins: int, hierarchy: Hierarchy
) -> tuple[FloatArray, FloatArray]:
    """Positive and total weight of every node and bin, (m, B) each."""
    r, found = hierarchy.n_regions, []
    for values in (cells.positive, cells.weight):
        own = bin_sums(cells.region * n_bins + bins, r * n_bins, values).reshape(r, n_bins)
        found.append(hierarchy.totals(own))
    return found[0], found[1]


def pooled_rates(
    positive: FloatArray, weight: FloatArray, hierarchy: Hierarchy, worth: float
) -> FloatArray:
    """The rate of every node and bin, (m, B), each worth ``worth`` rows of the node above."""
    rate = np.empty_like(weight)
    overall = positive[0].sum() / weight[0].sum()
    rate[0] = (positive[0] + overall) / (weight[0] + 1.0)
    for level in range(1, int(hierarchy.depth.max()) + 1):
        nodes = np.flatnonzero(hierarchy.depth == level)
        above = rate[hierarchy.parent[nodes]]
        total = weight[nodes] + worth
        mixed = positive[nodes] + worth * above
        # without a worth, an empty bin still has its ancestor's rate
        rate[nodes] = np.divide(mixed, total, out=above.copy(), where=total > 0)
    return rate


def worth_of(positive: FloatArray, weight: FloatArray, hierarchy: Hierarchy) -> float:
    """Rows that an ancestor's rate is worth in a bin, by the largest likelihood."""
    if len(hierarchy.parent) == 1:
        return float(_USUAL)
    merits = [_merit(positive, weight, hierarchy, worth) for worth in _WORTHS]
    return float(_WORTHS[int(np.argmax(merits))])


def _merit(positive: FloatArray, weight: FloatArray, hierarchy: Hierarchy, worth: float) -> float:
    rate = pooled_rates(positive, weight, hierarchy, worth)
    above = np.clip(rate[hierarchy.parent[1:]], _LOWEST, 1.0 - _LOWEST)
    k, n = positive[1:], weight[1:]
    yes, no = worth * above, worth * (1.0 - above)
    likelihood = betaln(k + yes, n - k + no) - betaln(yes, no)
    return float(likelihood.sum() - 0.5 * (np.log(worth / _USUAL) / _WIDTH) ** 2)
