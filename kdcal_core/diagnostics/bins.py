"""Rows reduced to bins: the sums every binned diagnostic needs, and draws under the null."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges, uniform_edges
from kdcal_core.diagnostics.targets import Strategy, Target

SLICES = 8  # each bin is cut into so many slices where rows are drawn under the null


@dataclass(frozen=True, eq=False)
class BinTable:
    """Sums over the B bins of one target, and over the B * SLICES slices inside them.

    ``count``, ``weight``, ``weight_sq`` are sums of 1, w and w^2; ``score`` and ``rate`` the
    weighted mean stated probability and observed frequency (NaN in empty bins); ``variance``
    estimates the sampling variance of ``rate - score``.
    """

    edges: FloatArray
    count: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    score: FloatArray
    rate: FloatArray
    variance: FloatArray
    slice_n: FloatArray
    slice_weight: FloatArray
    slice_weight_sq: FloatArray
    slice_score: FloatArray

    @property
    def effective(self) -> FloatArray:
        """Kish's effective number of rows in each bin; the count without weights."""
        return _ratio(self.weight**2, self.weight_sq, 0.0)


def edges_for(target: Target, n_bins: int, strategy: Strategy) -> FloatArray:
    """Bin edges for one target; (0, 1) for quantile bins of a target without rows."""
    if strategy == "uniform":
        return uniform_edges(n_bins)
    if len(target.score) == 0:
        return uniform_edges(1)
    plain = bool(np.all(target.weight == target.weight[0]))
    return quantile_edges(target.score, n_bins, None if plain else target.weight)


def bin_table(target: Target, edges: FloatArray) -> BinTable:
    """Reduce the rows of ``target`` to the bins of ``edges``; O(n)."""
    n_bins = len(edges) - 1
    score, hit, weight = target.score, target.hit, target.weight
    index = bin_index(score, edges)
    inside = (score - edges[index]) / np.diff(edges)[index]
    piece = index * SLICES + np.clip(inside * SLICES, 0, SLICES - 1).astype(np.int64)
    n_slices = n_bins * SLICES
    weighted = weight * score
    slice_count = bin_sums(piece, n_slices)
    slice_weight = bin_sums(piece, n_slices, weight)
    slice_weight_sq = bin_sums(piece, n_slices, weight * weight)
    slice_score = bin_sums(piece, n_slices, weighted)
    count, total, total_sq, mass = (
        s.reshape(n_bins, SLICES).sum(axis=1)
        for s in (slice_count, slice_weight, slice_weight_sq, slice_score)
    )
    mean = _ratio(mass, total, np.nan)
    rate = _ratio(bin_sums(index, n_bins, weight * hit), total, np.nan)
    residual = weight * (hit - score - (rate - mean)[index])
    variance = gap_variance(bin_sums(index, n_bins, residual * residual), count, total, mean)
    effective = _ratio(slice_weight**2, slice_weight_sq, 0.0)
    return BinTable(
        edges=edges,
        count=count,
        weight=total,
        weight_sq=total_sq,
        score=mean,
        # a mean of zeros and ones may pass one by a rounding error once weighted
        rate=np.minimum(rate, 1.0),
        variance=variance,
        slice_n=np.maximum(np.rint(effective), slice_count > 0),
        slice_weight=slice_weight,
        slice_weight_sq=slice_weight_sq,
        slice_score=np.clip(_ratio(slice_score, slice_weight, 0.0), 0.0, 1.0),
    )


def gap_variance(
    squares: FloatArray, count: FloatArray, weight: FloatArray, score: FloatArray
) -> FloatArray:
    """Unbiased variance of a bin's gap from the sum of squared weighted residuals.

    A bin of one row has no residual; there s (1 - s) is used, the variance under the stated
    probability.
    """
    several = count > 1
    scale = np.where(several, count / np.maximum(count - 1.0, 1.0), 0.0)
    alone = np.where(count == 1, score * (1.0 - score), 0.0)
    return np.where(several, _ratio(squares, weight**2, 0.0) * scale, alone)


def bin_chance(table: BinTable, doubt: FloatArray | float = 1.0) -> FloatArray:
    """Chance of a hit in each bin, half way between what it says and what it sees.

    ``doubt`` rows, half of them hits, give noise also to a bin that says and sees 0 or 1.
    """
    return with_doubt(np.nan_to_num(0.5 * (table.score + table.rate)), table.effective, doubt)


def with_doubt(chance: FloatArray, rows: FloatArray, doubt: FloatArray | float) -> FloatArray:
    """Chances (M,) after ``doubt`` rows, half of them hits, are added to the ``rows`` of each bin.

    Examples
    --------
    >>> with_doubt(np.array([0.0, 1.0]), np.array([9.0, 99.0]), 1.0)
    array([0.05 , 0.995])
    """
    total = rows + doubt
    return np.divide(
        chance * rows + 0.5 * doubt, total, out=np.full_like(total, 0.5), where=total > 0
    )


def null_rates(
    table: BinTable, n_draws: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws of each bin's frequency under the stated probabilities, (n_draws, B).

    Each row is a coin with its own probability. The rows of a slice, an eighth of a bin,
    get the slice's mean probability: the frequency's mean is exact and its variance too
    large by less than 1/64 of the variance of the scores in the bin. With row weights a slice
    counts as its effective number of rows, rounded.

    Also returns the residual variance of the gap in each draw, (n_draws, B).
    """
    n_bins = len(table.count)
    some = np.flatnonzero(table.slice_n > 0)
    home = (np.arange(len(some)), some // SLICES)
    n, p = table.slice_n[some], table.slice_score[some]
    hits = rng.binomial(n.astype(np.int64), p, size=(n_draws, len(some)))
    to_bins = np.zeros((len(some), n_bins))
    # without weights these are ones: the frequency is then exactly a ratio of counts
    to_bins[home] = table.slice_weight[some] / n
    rates = _ratio(hits @ to_bins, np.broadcast_to(table.weight, (n_draws, n_bins)), np.nan)
    rates = np.minimum(rates, 1.0)  # as in bin_table
    to_bins[home] = table.slice_weight_sq[some]
    gap = np.nan_to_num(rates - table.score)
    share = hits / n
    first = (share * (1.0 - 2.0 * p) + p * p) @ to_bins
    second = (share - p) @ to_bins
    squares = np.maximum(first - 2.0 * gap * second + gap**2 * table.weight_sq, 0.0)
    variance = gap_variance(squares, table.count, table.weight, np.nan_to_num(table.score))
    return rates, variance


def _ratio(top: FloatArray, bottom: FloatArray, empty: float) -> FloatArray:
    result: FloatArray = np.divide(top, bottom, out=np.full(np.shape(top), empty), where=bottom > 0)
    return result
