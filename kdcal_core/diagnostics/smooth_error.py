"""Smooth calibration error, which needs no bins and takes its bandwidth from the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums
from kdcal_core.diagnostics.error_interval import (
    gap_directions,
    inverted_test,
    noise_scale,
    over_shapes,
    tried_errors,
)
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import (
    BinTable,
    Target,
    bin_chance,
    bin_table,
    check_level,
    confidence_target,
    edges_for,
    targets,
)
from kdcal_core.errors import InputError
from kdcal_core.statistics import BinDependence, binomial_draws, effective_size, whole_rows

Floats = NDArray[np.floating[Any]]

FINE = 16384  # cells of [0, 1] behind the value
CELLS = (128, 1024)  # fewest and most behind the draws
CELLS_A_BANDWIDTH = 8.0
SMALLEST = 1e-5  # the smallest bandwidth, and so the smallest error above 0
BANDWIDTHS = np.geomspace(SMALLEST, 1.0, 65)
USUAL_FALL = 0.25  # of the log of smoothed error over bandwidth, from one bandwidth to the next
DIRECTION_BINS = 10
LEAST_ROWS = 200  # with 100 rows 92% of the 95% intervals contained the truth


def smooth_calibration_error(
    proba: Any,
    y: Any,
    *,
    level: float = 0.95,
    n_boot: int = 200,
    seed: int = 0,
    sample_weight: Any = None,
) -> Estimate:
    """Smooth ECE of the top label's probability (Błasiok and Nakkiran 2024).

    The gaps, outcome minus probability, are smoothed with a Gaussian kernel on [0, 1] that is
    reflected at both ends; smECE(s) is the integral of the smoothed gaps' magnitude at bandwidth
    s, and the error is the s with smECE(s) = s. That is the authors' definition and the default
    of their package. On the logit scale, which they also offer, numbers are larger.

    Parameters
    ----------
    proba, y, level, sample_weight
        As in :func:`kdcal_core.diagnostics.reliability`.
    n_boot : int
        Draws behind the interval and behind ``expected``.
    seed : int

    Returns
    -------
    Estimate
        The interval covers the smooth ECE of the population, which is 0 for a calibrated model. It
        is NaN with fewer than 200 rows, because it would contain the truth too rarely.
        ``expected`` is the mean for a calibrated model with these probabilities.

    Raises
    ------
    InputError
        For arrays or settings not of this form; the message names the row.

    Notes
    -----
    Cosines are the eigenfunctions of the reflected kernel: rows are placed on a fine lattice of
    [0, 1] and smoothed by cosine transforms; O(n).

    Noise adds to a magnitude, so resampled errors lie above the truth. The interval inverts a
    test: it contains the errors t for which the observed one is not an outlier. The gaps have one
    of two shapes that the rows support, stretched until their error is t, and the outcomes of each
    cell are redrawn. Measured coverage is in ``tests/benchmarks/RESULTS_coverage.md``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 500)
    >>> y = (rng.random(500) > p - 0.2).astype(int)  # says p, is right in p - 0.2
    >>> round(smooth_calibration_error(np.column_stack([p, 1 - p]), y).value, 1)
    0.2
    """
    (target,) = targets(proba, y, sample_weight, "confidence")
    return _estimate(target, level, n_boot, seed)


def confidence_smooth_calibration_error(
    confidence: Any,
    correct: Any,
    *,
    level: float = 0.95,
    n_boot: int = 200,
    seed: int = 0,
    sample_weight: Any = None,
) -> Estimate:
    """:func:`smooth_calibration_error` of confidences (n,) and whether each row was right.

    Examples
    --------
    >>> confidence_smooth_calibration_error([0.5, 0.5], [0, 1], n_boot=20).value < 0.01
    True
    """
    return _estimate(confidence_target(confidence, correct, sample_weight), level, n_boot, seed)


def _estimate(target: Target, level: float, n_boot: int, seed: int) -> Estimate:
    gaps = target.weight * (target.hit - target.score) / target.weight.sum()
    rows = effective_size(target.hit - target.score, target.weight, target.dependence)
    return smooth_error_of(
        bin_sums(lattice(target, FINE), FINE, gaps),
        lambda size: _cells(target, size),
        lambda: bin_table(target, edges_for(target, DIRECTION_BINS, "quantile")),
        rows,
        len(target.score),
        level,
        n_boot,
        seed,
    )


def smooth_error_of(
    gaps: FloatArray,
    cells_of: Callable[[int], LatticeCells],
    table_of: Callable[[], BinTable],
    rows: float,
    n: int,
    level: float,
    n_boot: int,
    seed: int,
) -> Estimate:
    """:func:`smooth_calibration_error` from sums of rows on lattices.

    Parameters
    ----------
    gaps : (FINE,) array
        Sum of outcome minus score in each cell, in shares of the rows.
    cells_of : callable
        Number of cells of a coarser lattice to the rows on it.
    table_of : callable
        The ten bins of equal mass.
    rows : float
        Effective number of rows.
    n : int
        Rows.
    """
    check_level(level)
    if n_boot < 1:
        raise InputError(f"n_boot is {n_boot}", fix="Choose at least one draw.")
    rng = np.random.default_rng(seed)
    value = float(lattice_errors(gaps[None, :], refine=2)[0])
    cells = cells_of(_cells_for(value))
    low, high, how = np.nan, np.nan, f"none on fewer than {LEAST_ROWS} rows: it would be too narrow"
    if rows >= LEAST_ROWS:
        low, high = _interval(cells, table_of(), value, level, n_boot, rng)
        how = f"test inversion, {n_boot:,} draws"
    null = lattice_errors(_drawn(cells, cells.score, n_boot, rng))
    return Estimate(
        name="Smooth ECE of the top label: reflected Gaussian kernel on [0, 1]",
        label="Smooth ECE",
        value=value,
        low=low,
        high=high,
        n=n,
        level=level,
        interval=how,
        expected=float(null.mean()),
    )


@dataclass(frozen=True, eq=False)
class LatticeCells:
    """Rows on a lattice of [0, 1], (C,) each: place, mean score, share of weight, rows.

    ``own`` is the bin of each in ten bins of equal mass, and ``together`` how bins depend.
    """

    size: int
    place: IntArray
    score: FloatArray
    share: FloatArray
    count: FloatArray
    own: IntArray
    together: BinDependence | None


def lattice(target: Target, size: int) -> IntArray:
    """Place of each row's score on a lattice of ``size`` cells of [0, 1], (n,)."""
    return np.minimum((target.score * size).astype(np.int64), size - 1)


def _cells_for(bandwidth: float) -> int:
    """Number of cells that resolve a kernel of this bandwidth, a power of two."""
    few, most = CELLS
    wanted = CELLS_A_BANDWIDTH / max(bandwidth, CELLS_A_BANDWIDTH / most)
    return int(np.clip(2 ** int(np.ceil(np.log2(wanted))), few, most))


def _cells(target: Target, size: int) -> LatticeCells:
    index = lattice(target, size)
    count = bin_sums(index, size)
    place = np.flatnonzero(count)
    mass = bin_sums(index, size, target.weight)[place]
    square = bin_sums(index, size, np.square(target.weight))[place]
    mean = bin_sums(index, size, target.weight * target.score)[place] / mass
    rows = np.maximum(np.rint(mass**2 / square), 1.0)  # Kish's effective number
    score = np.clip(mean, 0.0, 1.0)
    own, together = own_bins(target, score)
    return LatticeCells(size, place, score, mass / mass.sum(), rows, own, together)


def own_bins(target: Target, score: FloatArray) -> tuple[IntArray, BinDependence | None]:
    """The bin of each of these scores (C,), of ten of equal mass, and the bins' dependence."""
    edges = edges_for(target, DIRECTION_BINS, "quantile")
    together = None if target.dependence is None else bin_table(target, edges).together
    return bin_index(score, edges), together


def _drawn(
    cells: LatticeCells, chance: FloatArray, n_boot: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Deviations of the gaps if each cell's rows are right with ``chance``, (draws, size).

    In single precision, which halves the time of the transforms and moves an interval's ends by
    about 1e-8.
    """
    rows = whole_rows(cells.count)
    hits = binomial_draws(rng, rows, chance, n_boot)
    mass = np.zeros((n_boot, cells.size), dtype=np.float32)
    noise = (hits - rows * chance) / cells.count
    if cells.together is not None:
        noise = shared_noise(cells.together, noise, cells.own, chance, rng)
    mass[:, cells.place] = cells.share * noise
    return mass


def shared_noise(
    together: BinDependence,
    noise: FloatArray,
    own: IntArray,
    chance: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Noise of independent outcomes (draws, C) with what those of each bin share."""
    drawn = rng.normal(size=(len(noise), len(together.root))) @ together.root
    spread = np.sqrt(chance * (1.0 - chance))
    return np.asarray(noise * together.alone + drawn[:, own] * spread)


def _interval(
    cells: LatticeCells,
    table: BinTable,
    value: float,
    level: float,
    n_boot: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    chance = bin_chance(table)
    variance = chance * (1.0 - chance) / np.maximum(table.effective, 1.0)
    own = cells.own
    moved = np.clip(cells.score + (chance - table.score)[own], 0.0, 1.0)
    noise = _drawn(cells, moved, n_boot, rng)
    goal = tried_errors(max(value, SMALLEST), lattice_errors(noise), level, stride=3)

    def along(direction: FloatArray) -> tuple[float, float]:
        if not np.abs(direction).sum() > 1e-9:  # use an error that is the same everywhere
            direction = np.ones_like(direction)
        gap, louder = np.zeros(cells.size), np.ones(cells.size, dtype=np.float32)
        gap[cells.place] = cells.share * direction[own]
        scale, truth = stretched(gap, goal)

        def draws(t: float) -> FloatArray:
            gaps = t * direction
            wider = noise_scale(table.score, gaps, table.effective, chance)
            louder[cells.place] = wider[own]
            return lattice_errors(noise * louder + (t * gap).astype(np.float32))

        return inverted_test(value, truth, map(draws, scale), level)

    shapes = gap_directions(table.score, table.rate - table.score, variance)
    return over_shapes(along, shapes, table.rate, table.effective)


def stretched(gap: FloatArray, goal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far to stretch gaps on the lattice for errors near ``goal``, and the resulting errors.

    The kernel's width depends on the error, so the error is not proportional to the gaps.
    """
    tried = np.concatenate([[0.0], np.geomspace(1e-2, 1e3, 32)])
    reached = np.maximum.accumulate(lattice_errors(tried[:, None] * gap))
    scale = np.interp(goal, reached, tried)
    return scale, lattice_errors(scale[:, None] * gap)


def lattice_errors(mass: Floats, refine: int = 0) -> FloatArray:
    """Smooth ECE of gaps (draws, size) on a lattice of [0, 1], in shares of the rows: (draws,).

    The result is the bandwidth s at which the smoothed error equals s. The smoothed error falls as
    s grows, so a search finds the two neighbours in a fixed set of bandwidths. Interpolation of
    logarithms between them is accurate to half a percent; each of ``refine`` secant steps improves
    that about a hundredfold.
    """
    size = mass.shape[1]
    waves = dct(mass, axis=1)
    total = np.abs(mass).sum(axis=1)
    ends, known = _bracket(waves)
    every = np.arange(len(mass))
    root = _between(ends, known)
    for _ in range(refine):
        excess = _log(_magnitude(waves, _decay(np.exp(root), size))) - root
        beyond = (excess <= 0.0).astype(np.int64)
        ends[beyond, every], known[beyond, every] = root, excess
        root = _between(ends, known)
    return np.where(total <= SMALLEST, 0.0, np.minimum(np.exp(root), 1.0))


def smooth_signs(target: Target) -> FloatArray:
    """How much a gap at each row's score adds to the smooth ECE, from -1 to 1, up to a factor.

    The sign of the smoothed gaps, smoothed by the same kernel, which has the error as bandwidth.
    """
    place = lattice(target, FINE)
    gaps = target.weight * (target.hit - target.score) / target.weight.sum()
    mass = bin_sums(place, FINE, gaps)[None, :]
    decay = _decay(lattice_errors(mass, refine=2), FINE)
    signs = np.sign(idct(dct(mass, axis=1) * decay, axis=1))
    return np.asarray(idct(dct(signs, axis=1) * decay, axis=1)[0][place])


def _bracket(waves: Floats) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the neighbouring bandwidths below and above the error, (2, draws).

    Also the log of smoothed error over bandwidth at both, which falls from above 0 to below it. The
    draws of a call are much alike, so the search begins where that of the first one ended and
    follows the usual slope: about three transforms for each draw. Bisection takes six.
    """
    n, last = len(waves), len(BANDWIDTHS) - 1
    decays, logs = _decays(waves.shape[1], waves.dtype), np.log(BANDWIDTHS)
    low, high, known = np.zeros(n, dtype=np.int64), np.full(n, last), np.full((2, n), np.nan)

    def excess(rows: IntArray, at: IntArray) -> Floats:
        some = waves if len(rows) == n else waves[rows]
        same = bool((at == at[0]).all())
        return _log(_magnitude(some, decays[at[0]] if same else decays[at])) - logs[at]

    first = last // 2
    if n > 1:
        near = _bracket(waves[:1])[0][0, 0]
        first = int(np.clip(np.searchsorted(logs, near), 1, last - 1))
    left, at = np.arange(n), np.full(n, first)
    while len(left):
        found = excess(left, at)
        above = found > 0.0
        rises, falls = left[above], left[~above]
        low[rises], known[0, rises] = at[above], found[above]
        high[falls], known[1, falls] = at[~above], found[~above]
        steps = np.rint(found / USUAL_FALL)
        steps = np.where(above, np.maximum(steps, 1.0), np.minimum(steps, -1.0))
        open_ = high[left] - low[left] > 1
        left, at = left[open_], (at + steps.astype(np.int64))[open_]
        at = np.clip(at, low[left] + 1, high[left] - 1)
    for side, end in enumerate((low, high)):
        new = np.flatnonzero(np.isnan(known[side]))
        if len(new):
            known[side, new] = excess(new, end[new])
    return logs[np.array([low, high])], known


@lru_cache(maxsize=8)
def _decays(size: int, dtype: np.dtype[Any]) -> Floats:
    """:func:`_decay` of all bandwidths."""
    return _decay(BANDWIDTHS, size).astype(dtype)


def _decay(bandwidth: FloatArray, size: int) -> FloatArray:
    """Factor of each cosine under the reflected kernel, (bandwidths, size)."""
    square = -0.5 * np.square(np.pi * np.arange(size))
    return np.asarray(np.exp(np.square(bandwidth)[:, None] * square))


def _magnitude(waves: Floats, decay: Floats) -> Floats:
    smooth = idct(waves * decay, axis=1, overwrite_x=True)
    return np.asarray(np.abs(smooth, out=smooth).sum(axis=1))


def _log(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, np.finfo(values.dtype).tiny)))


def _between(ends: FloatArray, excess: FloatArray) -> FloatArray:
    """Where a line through two points (2, draws) is 0, kept between them."""
    share = np.clip(excess[0] / np.maximum(excess[0] - excess[1], 1e-300), 0.0, 1.0)
    return np.asarray(ends[0] + share * (ends[1] - ends[0]))
