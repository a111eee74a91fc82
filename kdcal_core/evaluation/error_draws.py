"""Calibration errors of all methods, resampled on the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_index, bin_sums
from kdcal_core.diagnostics.calibration_error import (
    RowDraws,
    error_norm,
    pooled_bins,
    resampled,
)
from kdcal_core.diagnostics.smooth_error import lattice, lattice_errors, stretched
from kdcal_core.diagnostics.targets import Norm, Strategy, Target, bin_table, edges_for
from kdcal_core.evaluation.spread import Spread, error_grid, of_errors

ROOM = 1.25  # the grid of true errors goes so far above the largest observed
SMOOTH_GRID = slice(0, None, 3)  # every third true error, for what is slow to draw
CHANCE_BINS = 10  # of the rates by which outcomes are drawn
COARSE = 512  # cells of [0, 1] behind the draws


def binned_spread(
    problems: Sequence[tuple[Target, ...]],
    norm: Norm,
    strategy: Strategy,
    n_bins: int,
    draws: RowDraws,
    seed: int,
) -> Spread:
    """Norms of the gaps in bins, as observed and where the true gaps are larger or smaller.

    With gaps g of norm T and resampled deviations e, the statistic at a true error t is drawn as
    the norm of (t / T) g + e: the observed direction, at another length. The rows drawn are the
    same for all methods, so that what they share cancels in a difference.
    """
    parts = []
    for found in problems:
        tables = tuple(bin_table(one, edges_for(one, n_bins, strategy)) for one in found)
        share, gap, _ = pooled_bins(found, tables)
        value = float(error_norm(share, gap, norm))
        drawn = resampled(found, tables, gap, draws, np.random.default_rng(seed))
        # gaps of 0 have no direction; an error everywhere alike stands in
        unit = gap / value if value > 1e-12 else np.where(share > 0, 1.0, 0.0)
        parts.append((value, unit, drawn))
    observed = np.array([one for one, _, _ in parts])
    truth = error_grid(max(ROOM * float(observed.max()), 1e-6))
    drawn_errors = np.array(
        [
            [error_norm(share, t * unit + deviation, norm) for t in truth]
            for _, unit, (share, deviation) in parts
        ]
    )
    return of_errors(observed, np.tile(truth, (len(parts), 1)), drawn_errors)


def smooth_spread(problems: Sequence[Target], n_draws: int, seed: int) -> Spread:
    """Smooth ECE likewise: the gaps lie on a lattice of [0, 1].

    Where a kernel holds hardly a row, a miss drawn twice or not at all stays where it is, and
    resampled rows show about half of the noise. So new outcomes are drawn, a row being right
    with its stated probability plus the gap of its bin, by one uniform number for all methods.
    """
    places = [lattice(one, COARSE) for one in problems]
    chances = [_chance(one) for one in problems]
    weights = [one.weight / one.weight.sum() for one in problems]
    drawn = np.empty((len(problems), n_draws, COARSE))
    rng = np.random.default_rng(seed)
    for draw in range(n_draws):
        level = rng.random(len(problems[0].score))
        for i, (index, chance, weight) in enumerate(zip(places, chances, weights, strict=True)):
            drawn[i, draw] = bin_sums(index, COARSE, weight * ((level < chance) - chance))
    gaps = [
        bin_sums(index, COARSE, weight * (one.hit - one.score))
        for one, index, weight in zip(problems, places, weights, strict=True)
    ]
    value = lattice_errors(np.array(gaps))
    goal = error_grid(max(ROOM * float(value.max()), 1e-6))[SMOOTH_GRID]
    truths, drawn_errors = [], []
    for gap, deviation in zip(gaps, drawn, strict=True):
        scale, truth = stretched(gap, goal)
        both = (scale[:, None, None] * gap + deviation).reshape(-1, COARSE)
        drawn_errors.append(lattice_errors(both).reshape(len(goal), -1))
        truths.append(truth)
    return of_errors(value, np.array(truths), np.array(drawn_errors))


def _chance(one: Target) -> FloatArray:
    """How likely each row is right: its stated probability plus the gap of its equal-mass bin."""
    edges = edges_for(one, CHANCE_BINS, "quantile")
    table = bin_table(one, edges)
    gap = np.nan_to_num(table.rate - table.score)
    return np.clip(one.score + gap[bin_index(one.score, edges)], 0.0, 1.0)
