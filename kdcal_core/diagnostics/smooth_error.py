"""Smooth calibration error: no bins, and a bandwidth that chooses itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import irfft, rfft, rfftfreq

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.results import Estimate
from kdcal_core.diagnostics.targets import Target, check_level, confidence_target, targets
from kdcal_core.errors import InputError

FINE, COARSE = 32768, 2048  # lattice of the value, and of the draws
CLIP = 1e-7  # where float32 probabilities saturate
SMALLEST = 1e-5  # no smaller bandwidth, and so no smaller error but 0, is told apart
STEPS = 16


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

    The gaps, outcome minus probability, are smoothed with a Gaussian kernel on the logit scale;
    the error is the integral of their magnitude at the bandwidth that equals it. Rows are laid
    on a fine lattice of logits and smoothed by FFT; O(n).

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
        For the draws rows are gathered into at most 2,048 cells of equal width in logit, and
        the hits and misses of each cell are drawn. The interval is the percentile interval
        moved down by the draws' mean excess over the value, since noise adds to this error; it
        begins at 0 where the value is below the upper limit for a calibrated model.

    Raises
    ------
    InputError
        For arrays or settings not of this form; the message names the row.

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
    check_level(level)
    if n_boot < 1:
        raise InputError(f"n_boot is {n_boot}", fix="Choose at least one draw.")
    rng = np.random.default_rng(seed)
    value = float(_errors(_cells(target, FINE), _observed)[0])
    cells = _cells(target, COARSE)
    resampled = _errors(cells, lambda c: _resampled(c, n_boot, rng))
    null = _errors(cells, lambda c: _null(c, n_boot, rng))
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(resampled, [tail, 1.0 - tail]) - max(resampled.mean() - value, 0.0)
    noise = float(np.quantile(null, 1.0 - tail))
    if value <= noise:
        low, high = 0.0, max(high, noise)
    return Estimate(
        name="Smooth ECE of the top label: Gaussian kernel on the logit scale",
        label="Smooth ECE",
        value=value,
        low=float(np.clip(low, 0.0, value)),
        high=float(max(min(high, 1.0), value)),
        n=len(target.score),
        level=level,
        interval=f"row bootstrap, shifted percentiles, {n_boot:,} draws",
        expected=float(null.mean()),
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """Rows on a lattice of logits, (C,) each: place on it, mean score, mean weight, rows, hits."""

    size: int
    width: float
    place: IntArray
    score: FloatArray
    weight: FloatArray
    count: FloatArray
    hits: FloatArray


def lattice(target: Target, size: int) -> tuple[IntArray, float]:
    """Place of each row on a lattice of ``size`` logits, (n,), and the width of its cells."""
    score = np.clip(target.score, CLIP, 1.0 - CLIP)
    logit = np.log(score) - np.log1p(-score)
    # five units of empty lattice at each end keep the kernels of the two ends apart
    low = float(logit.min()) - 5.0
    width = (float(logit.max()) + 5.0 - low) / (size - 1)
    return ((logit - low) / width).astype(np.int64), width


def _cells(target: Target, size: int) -> _Cells:
    index, width = lattice(target, size)
    count = bin_sums(index, size)
    place = np.flatnonzero(count)
    mass = bin_sums(index, size, target.weight)[place]
    mean = bin_sums(index, size, target.weight * target.score)[place] / mass
    n = count[place]
    hits = bin_sums(index, size, target.weight * target.hit)[place] / mass * n
    return _Cells(size, width, place, np.clip(mean, 0.0, 1.0), mass / n, n, hits)


def _observed(cells: _Cells) -> tuple[FloatArray, FloatArray]:
    return cells.hits[None, :], cells.count[None, :]


def _resampled(
    cells: _Cells, n_boot: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Hits and rows of each cell in resamples of the rows, (n_boot, C) each."""
    outcome = np.concatenate([cells.hits, np.maximum(cells.count - cells.hits, 0.0)])
    n = int(cells.count.sum())
    drawn = rng.multinomial(n, outcome / outcome.sum(), size=n_boot)
    hits, misses = np.split(drawn.astype(np.float64), 2, axis=1)
    return hits, hits + misses


def _null(cells: _Cells, n_boot: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """The same where each cell's score is its chance of a hit."""
    shape = (n_boot, len(cells.count))
    hits = rng.binomial(cells.count.astype(np.int64), cells.score, size=shape)
    return hits.astype(np.float64), np.broadcast_to(cells.count, shape)


def _errors(cells: _Cells, draw: Callable[[_Cells], tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Smooth ECE of each draw, (draws,)."""
    hits, count = draw(cells)
    mass = np.zeros((len(hits), cells.size))
    total = (count * cells.weight).sum(axis=1, keepdims=True)
    mass[:, cells.place] = cells.weight * (hits - count * cells.score) / total
    return lattice_errors(mass, cells.width)


def lattice_errors(mass: FloatArray, width: float, steps: int = STEPS) -> FloatArray:
    """Smooth ECE of gaps (draws, size) on a lattice, in shares of the rows: (draws,).

    The bandwidth s at which the smoothed error equals s. The smoothed error falls as s grows, so
    s is found by halving the range of log s ``steps`` times, for all draws at once.
    """
    size = mass.shape[1]
    waves = rfft(mass, axis=1)
    frequency = 2.0 * np.pi * rfftfreq(size, width)
    low, high = np.full(len(mass), np.log(SMALLEST)), np.zeros(len(mass))
    for _ in range(steps):
        middle = 0.5 * (low + high)
        decay = np.exp(-0.5 * np.square(np.exp(middle)[:, None] * frequency))
        smoothed = np.abs(irfft(waves * decay, size, axis=1)).sum(axis=1)
        above = smoothed > np.exp(middle)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(np.abs(mass).sum(axis=1) <= SMALLEST, 0.0, np.exp(0.5 * (low + high)))
