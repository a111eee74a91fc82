"""One measure of all methods on the same rows, with what comparing any two needs.

For means and areas the rows' own parts are enough; calibration errors are resampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums
from kdcal_core.diagnostics.calibration_error import (
    error_norm,
    pooled_bins,
    resampled,
)
from kdcal_core.diagnostics.smooth_error import (
    lattice,
    lattice_errors,
    own_bins,
    shared_noise,
    stretched,
)
from kdcal_core.diagnostics.targets import Norm, Strategy, Target, bin_table, edges_for
from kdcal_core.statistics import Dependence, Resamples, kish, pooled, small_sample_factor, units

GRID = 16
PLAUSIBLE = 3.0  # standard errors within which a true error counts as possible


@dataclass(frozen=True, eq=False)
class Spread:
    """Values of M methods, and how they vary together over the rows.

    A calibration error is a magnitude, so noise increases it, and more so where the true error is
    small. Bias and covariance are therefore kept for the T true errors of a grid. A mean has no
    bias, and its T is 1.

    Attributes
    ----------
    value : (M,)
        The statistic as observed.
    shown : (M,)
        The estimate of each method that is shown next to the difference; it may be another
        estimator of the same quantity (debiased, or on a finer lattice).
    bias : (M, T)
        Mean of the statistic at each true error of the grid, less that error.
    possible : (M, T) bool
        Whether the observed value could come from this true error.
    covariance : (M, T, M, T)
        Covariance of the statistics; one row for each method and true error.
    freedom : float
        Degrees of freedom of t quantiles.
    floor : float
        Least standard error of a difference.
    """

    value: FloatArray
    shown: FloatArray
    bias: FloatArray
    possible: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    covariance: FloatArray
    freedom: float = np.inf
    floor: float = 0.0


def of_means(
    losses: FloatArray,
    weight: FloatArray,
    floor: float = 0.0,
    dependence: Dependence | None = None,
) -> Spread:
    """Weighted means of row losses (M, n), paired by row, or by cluster.

    In time the covariance is Newey and West's, with the correction of Harvey, Leybourne and Newbold
    (1997), so that the t test of a difference is that of Diebold and Mariano (1995).

    ``floor`` is the range of one row's difference. It keeps rows that agree from looking certain,
    as if half a row at each end of the range were added. For the share of right rows this is the
    interval of Agresti and Min (2005) for matched pairs.
    """
    mass = units(weight, dependence)
    n, lags = len(mass), 0 if dependence is None else dependence.lags
    value = losses @ weight / weight.sum()
    away = pooled((losses - value[:, None]) * (weight / weight.sum()), dependence)
    covariance = away @ away.T * small_sample_factor(max(n, 2), lags)
    effective = kish(mass)
    return unbiased(value, covariance, max(effective - 1.0, 1.0), floor / effective)


def of_areas(
    value: FloatArray,
    part: FloatArray,
    lead: FloatArray,
    side: IntArray,
    weight: FloatArray,
    dependence: Dependence | None = None,
) -> Spread:
    """Areas under ROC curves (M,), from each row's contribution (M, n) to their sampling error.

    Each true class is its own sample, as in :func:`kdcal_core.diagnostics.auc.area_variance`. The
    degrees of freedom are those of the pair of methods that has the fewest. A class of one row has
    no variance, so a difference is then as uncertain as its ``lead`` allows. Dependent rows are one
    sample: the totals of clusters, whatever the class (Obuchowski 1997), with as many degrees of
    freedom as clusters less one.
    """
    if dependence is not None:
        mass, totals = units(weight, dependence), pooled(part, dependence)
        factor = small_sample_factor(max(len(mass), 2), dependence.lags)
        return unbiased(value, totals @ totals.T * factor, max(kish(mass) - 1.0, 1.0))
    sides = [side == one for one in np.unique(side)]
    products = np.array([part[:, here] @ part[:, here].T for here in sides])
    rows = np.array([kish(weight[here]) for here in sides])
    return of_area_products(
        value, products, rows, np.array([np.square(lead[here]).sum() for here in sides])
    )


def of_area_products(
    value: FloatArray, products: FloatArray, rows: FloatArray, widest: FloatArray
) -> Spread:
    """:func:`of_areas` of independent rows from sums over each of S samples.

    Parameters
    ----------
    products : (S, M, M) array
        Products of the methods' parts.
    rows, widest : (S,) array
        Effective rows, and sums of the squared leads.
    """
    m = len(value)
    covariance, doubt, lone = np.zeros((m, m)), np.zeros((m, m)), 0.0
    for of_sample, spare, range_ in zip(products, rows - 1.0, widest, strict=True):
        if spare < 1e-9:
            lone += float(range_)
            continue
        each = of_sample * ((spare + 1.0) / spare)
        covariance += each
        doubt += _of_gaps(each) ** 2 / spare
    gap = _of_gaps(covariance)
    varies = (gap > 1e-18) & (doubt > 0.0)
    freedom = float((gap[varies] ** 2 / doubt[varies]).min(initial=np.inf))
    return unbiased(value, covariance, freedom, lone**0.5)


def _of_gaps(covariance: FloatArray) -> FloatArray:
    """Variance of the difference of each pair, (M, M)."""
    variance = np.diag(covariance)
    return np.asarray(variance[:, None] + variance - 2.0 * covariance)


def unbiased(
    value: FloatArray, covariance: FloatArray, freedom: float = np.inf, floor: float = 0.0
) -> Spread:
    """Statistics (M,) without bias, with their covariance (M, M)."""
    m = len(value)
    return Spread(
        value,
        value,
        np.zeros((m, 1)),
        np.ones((m, 1), dtype=bool),
        covariance.reshape(m, 1, m, 1),
        freedom,
        floor,
    )


def of_errors(value: FloatArray, truth: FloatArray, draws: FloatArray) -> Spread:
    """Magnitudes (M,), drawn (M, T, B) at true errors (M, T) that rise along T."""
    mean = draws.mean(axis=2)
    m, t, n_draws = draws.shape
    flat = (draws - mean[:, :, None]).reshape(m * t, n_draws)
    covariance = (flat @ flat.T / (n_draws - 1)).reshape(m, t, m, t)
    error = np.sqrt(np.einsum("itit->it", covariance))
    # between two neighbours on the grid, or within the noise of one
    above = mean >= value[:, None]
    next_to = np.zeros_like(above)
    next_to[:, 1:] |= above[:, 1:] & ~above[:, :-1]
    next_to[:, :-1] |= above[:, 1:] & ~above[:, :-1]
    next_to[:, 0] |= above[:, 0]
    next_to[:, -1] |= ~above[:, -1]
    possible = next_to | (np.abs(value[:, None] - mean) <= PLAUSIBLE * error)
    return Spread(value, value, mean - truth, possible, covariance)


def error_grid(most: float) -> FloatArray:
    """True errors from 0 to ``most``, more closely spaced near 0, (T,)."""
    return most * (np.arange(GRID) / (GRID - 1)) ** 2


ROOM = 1.25  # the grid of true errors ends at this multiple of the largest observed one
SMOOTH_GRID = slice(0, None, 3)  # every third true error, for what is slow to draw
CHANCE_BINS = 10  # bins of the rates by which outcomes are drawn
COARSE = 512  # cells of [0, 1] used for the draws
_BLOCK = 2**15  # rows whose numbers stay in the cache


@dataclass(frozen=True, eq=False)
class ResampledBins:
    """The bins of one method: share and gap (M,), and resampled shares and deviations (B, M)."""

    share: FloatArray
    gap: FloatArray
    drawn_share: FloatArray
    deviation: FloatArray


def resampled_bins(
    problems: Sequence[tuple[Target, ...]],
    strategy: Strategy,
    n_bins: int,
    draws: Resamples,
    seed: int,
) -> tuple[ResampledBins, ...]:
    """The bins of every method, all resampled with the same rows."""
    found = []
    for one in problems:
        tables = tuple(bin_table(part, edges_for(part, n_bins, strategy)) for part in one)
        share, gap, _ = pooled_bins([part.share for part in one], tables)
        drawn = resampled(one, tables, gap, draws, np.random.default_rng(seed))
        found.append(ResampledBins(share, gap, *drawn))
    return tuple(found)


def binned_spread(bins: Sequence[ResampledBins], norm: Norm) -> Spread:
    """Norms of the gaps in bins, as observed and as they would be for other true gaps.

    With gaps g of norm T and resampled deviations e, the statistic at a true error t is drawn as
    the norm of (t / T) g + e: the observed direction with another length. All methods use the same
    resampled rows, so what they share cancels in a difference.
    """
    observed = np.array([float(error_norm(one.share, one.gap, norm)) for one in bins])
    truth = error_grid(max(ROOM * float(observed.max()), 1e-6))
    drawn_errors = []
    for one, value in zip(bins, observed, strict=True):
        # gaps of 0 have no direction: use the same error everywhere
        unit = one.gap / value if value > 1e-12 else np.where(one.share > 0, 1.0, 0.0)
        drawn_errors.append(
            [error_norm(one.drawn_share, t * unit + one.deviation, norm) for t in truth]
        )
    return of_errors(observed, np.tile(truth, (len(bins), 1)), np.array(drawn_errors))


def smooth_spread(problems: Sequence[Target], n_draws: int, seed: int) -> Spread:
    """Smooth ECE, as observed and for other true gaps, on a lattice of [0, 1].

    Where a kernel covers few rows, resampling rows does not move their outcomes and shows only
    about half of the noise. So new outcomes are drawn instead: a row is right with its stated
    probability plus the gap of its bin, by one uniform number for all methods. Of dependent rows
    the draws share a part in each bin.
    """
    places = [lattice(one, COARSE) for one in problems]
    chances = [_chance(one) for one in problems]
    weights = [one.weight / one.weight.sum() for one in problems]
    bins = [own_bins(one, one.score) for one in problems]
    sums = np.zeros((len(problems), n_draws, COARSE))
    n, rng = len(problems[0].score), np.random.default_rng(seed)
    blocks = [slice(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]
    for draw, rows in product(range(n_draws), blocks):
        level = rng.random(rows.stop - rows.start)
        for i, (index, chance, weight) in enumerate(zip(places, chances, weights, strict=True)):
            some, (own, together) = chance[rows], bins[i]
            noise = (level < some) - some
            if together is not None:
                same = np.random.default_rng((seed, draw))  # for all methods and blocks
                noise = shared_noise(together, noise[None, :], own[rows], some, same)[0]
            noise *= weight[rows]
            sums[i, draw] += bin_sums(index[rows], COARSE, noise)
    gaps = [
        bin_sums(index, COARSE, weight * (one.hit - one.score))
        for one, index, weight in zip(problems, places, weights, strict=True)
    ]
    return of_lattices(np.array(gaps), sums)


def of_lattices(gaps: FloatArray, drawn: FloatArray) -> Spread:
    """Smooth ECE of gaps (M, L) on a lattice, and of drawn deviations from them (M, B, L)."""
    drawn = drawn.astype(np.float32)  # as `kdcal_core.diagnostics.smooth_error` draws
    value = lattice_errors(gaps)
    goal = error_grid(max(ROOM * float(value.max()), 1e-6))[SMOOTH_GRID]
    truths, drawn_errors = [], []
    for gap, deviation in zip(gaps, drawn, strict=True):
        scale, truth = stretched(gap, goal)
        moved = (scale[:, None] * gap).astype(np.float32)
        both = (moved[:, None, :] + deviation).reshape(-1, COARSE)
        drawn_errors.append(lattice_errors(both).reshape(len(goal), -1))
        truths.append(truth)
    return of_errors(value, np.array(truths), np.array(drawn_errors))


def _chance(one: Target) -> FloatArray:
    """Each row's probability to be right: the stated one plus the gap of its equal-mass bin."""
    edges = edges_for(one, CHANCE_BINS, "quantile")
    table = bin_table(one, edges)
    gap = np.nan_to_num(table.rate - table.score)
    return np.clip(one.score + gap[bin_index(one.score, edges)], 0.0, 1.0)
