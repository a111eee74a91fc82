"""Smooth and isotonic calibration curves, from rows that are grouped by their scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.targets import Target
from kdcal_core.statistics import clopper_pearson

MAX_CELLS = 1000
GRID = 201
MIN_BANDWIDTH = 0.02
NEAR_ROWS = 20.0
_HALVINGS = 12


@dataclass(frozen=True, eq=False)
class FineCells:
    """Rows grouped by score, in increasing order: distinct scores if n <= MAX_CELLS."""

    score: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    hits: FloatArray


def fine_cells(target: Target) -> FineCells:
    """Group equal scores; above MAX_CELLS rows, by MAX_CELLS equal widths of the scores' range.

    A cell keeps the mean of its scores, so that no sum over the rows changes.
    """
    score, weight = target.score, target.weight
    if len(score) <= MAX_CELLS:
        _, index = np.unique(score, return_inverse=True)
    else:
        low, high = score.min(), score.max()
        scale = MAX_CELLS / (high - low) if high - low > 1e-300 else 0.0
        index = np.minimum((score - low) * scale, MAX_CELLS - 1).astype(np.int64)
    return _grouped(index, weight, weight * weight, weight * score, weight * target.hit)


def fewer_cells(cells: FineCells) -> FineCells:
    """Cells merged to at most MAX_CELLS, as :func:`fine_cells` does with rows."""
    if len(cells.score) <= MAX_CELLS:
        return cells
    low = cells.score[0]
    scale = MAX_CELLS / max(cells.score[-1] - low, 1e-300)
    index = np.minimum((cells.score - low) * scale, MAX_CELLS - 1).astype(np.int64)
    return _grouped(index, cells.weight, cells.weight_sq, cells.weight * cells.score, cells.hits)


def _grouped(index: IntArray, *sums: FloatArray) -> FineCells:
    """Cells from weights, their squares, weighted scores and hits, in order of ``index``."""
    some = bin_sums(index, MAX_CELLS) > 0
    mass, weight_sq, total, hits = (bin_sums(index, MAX_CELLS, values)[some] for values in sums)
    return FineCells(total / mass, mass, weight_sq, hits)


def smooth_curve(
    cells: FineCells, level: float, effect: FloatArray | float = 1.0
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Kernel-smoothed observed frequency on the cells' range: x, y, low, high, each (G,).

    The gap (outcome minus score), not the outcome, is averaged with a Gaussian kernel and added
    to the diagonal. A calibrated model then has no bias at the ends of the range, where the mean
    of outcomes alone would bend inwards. Each point has its own bandwidth, see
    :func:`bandwidths`. Kernels are computed as logarithms, so a wide gap without scores uses the
    nearest ones.
    The pointwise band is Clopper-Pearson's for the kernel's effective number of rows,
    (sum K w)^2 / sum K^2 w^2, so it is wide where few rows are near. ``effect`` is the design
    effect at each cell.
    """
    if len(cells.score) == 0:
        empty = np.empty(0)
        return empty, empty, empty, empty
    low, high = cells.score[0], cells.score[-1]
    x = np.linspace(low, high, GRID) if high > low else np.array([low])
    log_kernel = -0.5 * ((x[:, None] - cells.score) / bandwidths(x, cells)[:, None]) ** 2
    kernel = np.exp(log_kernel - log_kernel.max(axis=1, keepdims=True))
    mass = kernel @ cells.weight
    gap = kernel @ (cells.hits - cells.weight * cells.score) / mass
    effective = mass**2 / (kernel**2 @ (cells.weight_sq * effect))
    y = np.clip(x + gap, 0.0, 1.0)
    return x, y, *clopper_pearson(y, effective, level)


def bandwidths(x: FloatArray, cells: FineCells) -> FloatArray:
    """Bandwidth at each of the points ``x`` (G,): Silverman's, or wider where rows are few.

    Silverman's rule 1.06 sd n^(-1/5), with the effective n and at least MIN_BANDWIDTH, suits the
    bulk of the scores. Those of a rare event lie near 0, so that it is too narrow for the few rows
    above: the curve would run from one of them to the next. There the bandwidth reaches as far as
    NEAR_ROWS effective rows, or a quarter of fewer.
    """
    total = cells.weight.sum()
    mean = cells.weight @ cells.score / total
    sd = float(np.sqrt(cells.weight @ (cells.score - mean) ** 2 / total))
    effective = float(total**2 / cells.weight_sq.sum())
    least = max(1.06 * sd * effective**-0.2, MIN_BANDWIDTH)
    share = min(NEAR_ROWS / effective, 0.25)
    reached = (np.cumsum(cells.weight) - 0.5 * cells.weight) / total
    low, high = np.full(len(x), least), np.full(len(x), max(np.ptp(cells.score), least))
    for _ in range(_HALVINGS):  # of the interval that holds the distance
        middle = 0.5 * (low + high)
        up, down = (
            np.interp(x + side * middle, cells.score, reached, 0.0, 1.0) for side in (1, -1)
        )
        enough = up - down >= share
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high


def isotonic_curve(cells: FineCells) -> tuple[FloatArray, FloatArray]:
    """Corners of the increasing step function closest to the outcomes (CORP, by PAV).

    Each block of equal value gives the points (first score, value) and (last score, value).
    """
    if len(cells.score) == 0:
        return np.empty(0), np.empty(0)
    value = isotonic_values(cells)
    first = np.flatnonzero(np.diff(value, prepend=-1.0) != 0.0)
    last = np.append(first[1:], len(value)) - 1
    x = np.column_stack([cells.score[first], cells.score[last]]).ravel()
    return x, np.repeat(value[first], 2)


def isotonic_values(cells: FineCells) -> FloatArray:
    """Isotonic frequency of each cell, non-decreasing in [0, 1]."""
    # the function behind scikit-learn's isotonic_regression, without its slow checks
    fitted = isotonic_regression(cells.hits / cells.weight, weights=cells.weight).x
    return np.asarray(np.clip(fitted, 0.0, 1.0))
