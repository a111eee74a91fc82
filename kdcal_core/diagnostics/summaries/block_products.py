"""How the cells of a decision, and several classes, vary together: from sums of blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.calibration_curves import FineCells
from kdcal_core.diagnostics.decisions import STEPS, CellProducts
from kdcal_core.diagnostics.summaries.class_summary import BLOCK_BINS, ClassSummary
from kdcal_core.diagnostics.summaries.cluster_blocks import BlockSums, EffectOf, coarse_ends
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells
from kdcal_core.statistics import small_sample_factor

_WIDTH = 500  # thresholds at a time, some 20 MB


def decision_products(cells: ScoreCells, last: IntArray) -> CellProducts | None:
    """As those of the rows, for each block the rows of a bin shared out as those of all blocks.

    Parameters
    ----------
    cells : ScoreCells
    last : (c,) int array
        How many thresholds the scores of each cell reach.

    Returns
    -------
    CellProducts or None
        None of independent rows.
    """
    blocks = cells.clusters
    if blocks is None:
        return None
    sides = ((cells.hits, blocks.hits), (cells.misses, blocks.count - blocks.hits))
    # share of each bin's rows that reach so many thresholds or more
    reach = [
        np.cumsum(cells.parts(rows, last, STEPS)[:, ::-1], axis=1)[:, ::-1] for rows, _ in sides
    ]
    product = np.zeros((4, 4, STEPS - 1))
    for start in range(1, STEPS, _WIDTH):
        held = []
        for (_, of_blocks), share in zip(sides, reach, strict=True):
            part = share[:, start : start + _WIDTH]
            whole, mass = of_blocks.sum(axis=1, keepdims=True), of_blocks.sum(axis=0)
            found = of_blocks @ part
            held.append((found, whole - found, mass @ part, mass @ np.square(part)))
        parts = np.stack([held[0][0], held[1][0], held[0][1], held[1][1]])  # as of `DecisionCounts`
        at = slice(start - 1, start - 1 + parts.shape[2])
        near = np.moveaxis(blocks.together(np.moveaxis(parts, 1, 0)), 0, 1)
        product[:, :, at] = np.einsum("ibt,jbt->ijt", near, near)
        for side, (_, _, first, square) in enumerate(held):
            # a row is in one of two cells, of which its bin's rows hold shares
            between = first - square
            for one in (side, side + 2):
                product[one, one, at] += between
                product[one, 2 * side + 2 - one, at] -= between
    n = blocks.present
    factor = small_sample_factor(n, blocks.lags) if n > 1 else np.inf
    return CellProducts(product, blocks.units, factor)


def noise_of_blocks(
    cells: ScoreCells,
    fine: FineCells,
    likely: FloatArray,
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """As :func:`kdcal_core.diagnostics.split_noise.noise_of_units`, of rows in blocks of times.

    The blocks say how the residuals of each of their bins vary together. Within a bin the noise of
    the cells ``fine`` is that of independent rows, less what it adds to the bin.
    """
    blocks = cells.clusters
    assert blocks is not None
    assert blocks.times is not None
    ends, size = coarse_ends(), len(coarse_ends())
    bins = np.searchsorted(ends, fine.score)
    mass = bin_sums(bins, size, fine.weight)
    moved = bin_sums(bins, size, fine.weight * (likely - fine.score))
    gap = np.divide(moved, mass, out=np.zeros(size), where=mass > 0.0)
    n = blocks.times.n_units
    away = (blocks.hits - blocks.score - blocks.count * gap)[:n]
    each = replace(blocks.times, unit=np.arange(n)).alike(rng, draws)
    misses = fine.weight - fine.hits
    own = fine.hits * np.square(1.0 - likely) + misses * np.square(likely)
    alone = rng.normal(size=(draws, len(bins))) * np.sqrt(own)
    into = np.zeros((len(bins), size))
    into[np.arange(len(bins)), bins] = 1.0
    of_bins = (each.T @ away - alone @ into) / np.where(mass > 0.0, mass, 1.0)
    factor = small_sample_factor(blocks.present, blocks.lags) ** 0.5
    return np.asarray(factor * (alone / fine.weight + of_bins[:, bins]))


def joint_variance(
    summary: ClassSummary,
    cells: Sequence[ScoreCells],
    parts: Sequence[tuple[FloatArray, FloatArray]],
    *,
    of: EffectOf = "mean",
) -> float:
    """Variance of a row's sum, over the targets, of a value of its cell and outcome.

    Each target's own variance follows from its cells. Their correlations come from the sums of the
    random blocks, in which a value is the mean of its bin. Where rows have clusters, the variances
    are multiplied by what clusters add to each.
    """
    own = []
    for one, (hit, miss) in zip(cells, parts, strict=True):
        mean = float(one.hits @ hit + one.misses @ miss) / one.n
        square = float(one.hits @ np.square(hit - mean) + one.misses @ np.square(miss - mean))
        own.append((mean, square / one.n * one.effect(hit, miss, of=of)))
    if len(cells) == 1:
        return own[0][1]
    n, hits, _ = summary.block_sums()
    totals = []
    for at, (one, (hit, miss), (mean, _)) in enumerate(zip(cells, parts, own, strict=True)):
        k = at if one.label is None else one.label
        bins = bins_of_cells(BLOCK_BINS)[one.place]
        of_hit, of_miss = (
            np.divide(
                bin_sums(bins, BLOCK_BINS, rows * (values - mean)),
                mass := bin_sums(bins, BLOCK_BINS, rows),
                out=np.zeros(BLOCK_BINS),
                where=mass > 0,
            )
            for rows, values in ((one.hits, hit), (one.misses, miss))
        )
        totals.append(hits[:, k] @ of_hit + (n[:, k] - hits[:, k]) @ of_miss)
    if summary.clusters is not None:
        rows = BlockSums(n[:, 0].sum(axis=1), n_times=summary.clusters.names.n_times)
        totals = list(rows.together(np.array(totals).T).T)
    together = np.array(totals) @ np.array(totals).T
    scale = np.sqrt(np.outer(np.diag(together), np.diag(together)))
    # a value that does not vary between bins says nothing: then the safe correlation, 1
    correlation = np.divide(together, scale, out=np.ones_like(together), where=scale > 1e-30)
    spread = np.sqrt([variance for _, variance in own])
    return float(max(spread @ np.clip(correlation, -1.0, 1.0) @ spread, 0.0))
