"""Maps by bins that smooth what a bin says: scaling-binning and Bayesian binning, in every region.

Durfee et al. (section 1) name both. Each ends as a rate in every bin and region, so it is stored
and exported as :class:`.HistogramMaps`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, softmax

from kdcal_core.calibration.regions.nonparametric_maps import HistogramMaps, borrowed_share
from kdcal_core.calibration.regions.parametric_maps import fit_platt
from kdcal_core.calibration.regions.pooling import N_BINS, bins_of, pooled_rates, tallies, worth_of
from kdcal_core.calibration.regions.scores_and_hierarchy import (
    Cells,
    Hierarchy,
    MapFit,
    Scores,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums

BINNINGS = (1, 2, 5, 10)
"""Numbers of bins that are averaged. Each divides ten, so the average has ten bins too."""
_ROWS = 2.0  # that the prior of a whole binning is worth, as in Naeini et al.


def fit_scaling_binning(
    scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool
) -> MapFit:
    """In ten bins of equal mass, the mean of the region's sigmoid over its rows in the bin.

    Kumar et al. (2019), Verified uncertainty calibration, fit and average on different rows; with
    the few rows of a region both use all of them. A bin without rows of the region has the sigmoid
    at the mean score of all its rows.
    """
    scaled = fit_platt(scores, leaf, hierarchy, pooling)
    edges, rates = _empty(scores, hierarchy)
    for i, label in enumerate(scores.mapped):
        cells = scores.cells(label, leaf, hierarchy.n_regions)
        edges[i], bins = _edges(cells)
        slope, offset = (scaled.parameters[name][i] for name in ("slope", "offset"))
        middle = _means(bins, cells.logit, cells.weight)
        rates[i] = expit(slope[:, None] * middle + offset[:, None])
        for region in range(hierarchy.n_regions):
            near = _nearest_rows(cells, region, hierarchy)
            value = expit(slope[region] * cells.logit[near] + offset[region])
            known = bin_sums(bins[near], N_BINS, cells.weight[near]) > 0
            rates[i, region, known] = _means(bins[near], value, cells.weight[near])[known]
    return MapFit(HistogramMaps(edges, rates), scaled.borrowed, {}, scaled.falling)


def fit_bayesian_binning(
    scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool
) -> MapFit:
    """The rates of four binnings of every region, weighted by how well each explains its rows.

    Bayesian binning into quantiles, Naeini et al. (2015): the weight of a binning is the
    beta-binomial likelihood of its bins. Theirs go up to ten times the cube root of n; ours are
    1, 2, 5 and 10 bins of equal mass. With pooling a bin's prior is the enclosing region's rate, as
    in :mod:`.pooling`; otherwise it is the mean score in the bin, worth two rows in all bins.
    """
    edges, rates = _empty(scores, hierarchy)
    borrowed = np.empty(rates.shape[:2])
    for i, label in enumerate(scores.mapped):
        cells = scores.cells(label, leaf, hierarchy.n_regions)
        edges[i], bins = _edges(cells)
        found = [_binning(cells, bins, count, hierarchy, pooling) for count in BINNINGS]
        evidence = np.stack([one[1] for one in found])
        weights = softmax(evidence, axis=0)
        mean = np.einsum("km,kmb->mb", weights, np.stack([one[0] for one in found]))
        for nodes in hierarchy.levels[1:]:  # without rows, the map of the node above
            none = nodes[~evidence[:, nodes].any(axis=0)]
            mean[none] = mean[hierarchy.parent[none]]
        rates[i] = mean[hierarchy.node]
        shares = np.stack([one[2] for one in found])
        borrowed[i] = (weights[:, hierarchy.node] * shares).sum(axis=0)
    return MapFit(
        HistogramMaps(edges, rates), borrowed, {}, np.zeros(hierarchy.n_regions, dtype=bool)
    )


def _binning(
    cells: Cells, bins: IntArray, count: int, hierarchy: Hierarchy, pooling: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of every node the rates in the ten bins (m, 10) and the log likelihood (m,) of ``count``.

    Third, of every region the share of its rates that comes from the enclosing one, (R,).
    """
    merged = bins * count // N_BINS
    positive, weight = tallies(cells, merged, count, hierarchy)
    if pooling:
        worth = worth_of(positive, weight, hierarchy)
        rate = pooled_rates(positive, weight, hierarchy, worth)
        prior = rate[hierarchy.parent]
        prior[0] = positive[0].sum() / weight[0].sum()
        rows = np.full(len(prior), worth)
        rows[0] = 1.0
        borrowed = borrowed_share(weight[hierarchy.node], worth, len(prior))
    else:
        prior = np.tile(expit(_means(merged, cells.logit, cells.weight)[:count]), (len(weight), 1))
        rows = np.full(len(prior), _ROWS / count)
        borrowed = np.zeros(hierarchy.n_regions)
    yes = np.maximum(rows[:, None] * prior, 1e-9)
    no = np.maximum(rows[:, None] * (1.0 - prior), 1e-9)
    rate = (positive + yes) / (weight + yes + no)
    likelihood = betaln(positive + yes, weight - positive + no) - betaln(yes, no)
    each = np.arange(N_BINS) * count // N_BINS
    return rate[:, each], likelihood.sum(axis=1), borrowed


def _empty(scores: Scores, hierarchy: Hierarchy) -> tuple[FloatArray, FloatArray]:
    """Edges (C, 9) and rates (C, R, 10) to fill."""
    n_maps = len(scores.mapped)
    return np.empty((n_maps, N_BINS - 1)), np.empty((n_maps, hierarchy.n_regions, N_BINS))


def _edges(cells: Cells) -> tuple[FloatArray, IntArray]:
    """Nine edges, filled up with infinity, and each cell's bin."""
    found, bins = bins_of(cells)
    return np.pad(found, (0, N_BINS - 1 - len(found)), constant_values=np.inf), bins


def _nearest_rows(cells: Cells, region: int, hierarchy: Hierarchy) -> NDArray[np.bool_]:
    """The cells of a region, or where it has none, of the nearest node above it that has some."""
    near = cells.region == region
    node = hierarchy.node[region]
    while not near.any():
        node = hierarchy.parent[node]
        near = hierarchy.above(int(hierarchy.depth[node]))[cells.region] == node
    return np.asarray(near)


def _means(bins: IntArray, value: FloatArray, weight: FloatArray) -> FloatArray:
    """Mean value in each of ten bins, 0 in those without rows."""
    mass, total = (bin_sums(bins, N_BINS, each) for each in (weight, weight * value))
    return np.divide(total, mass, out=np.zeros(N_BINS), where=mass > 0)
