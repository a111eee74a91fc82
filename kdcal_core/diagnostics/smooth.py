"""The smooth and the isotonic reliability curve of one target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.targets import Target
from kdcal_core.statistics import clopper_pearson

MAX_CELLS = 1000
GRID = 201
MIN_BANDWIDTH = 0.02


@dataclass(frozen=True, eq=False)
class FineCells:
    """Rows gathered by score, in increasing order: distinct scores where n <= MAX_CELLS."""

    score: FloatArray
    weight: FloatArray
    weight_sq: FloatArray
    hits: FloatArray


def fine_cells(target: Target) -> FineCells:
    """Gather equal scores; above MAX_CELLS rows, MAX_CELLS equal widths of the scores' range.

    A cell keeps the mean of its scores, so that no sum over the rows changes.
    """
    score, weight = target.score, target.weight
    if len(score) <= MAX_CELLS:
        _, index = np.unique(score, return_inverse=True)
    else:
        low, high = score.min(), score.max()
        scale = MAX_CELLS / (high - low) if high - low > 1e-300 else 0.0
        index = np.minimum((score - low) * scale, MAX_CELLS - 1).astype(np.int64)
    some = bin_sums(index, MAX_CELLS) > 0
    mass, weight_sq, total, hits = (
        bin_sums(index, MAX_CELLS, values)[some]
        for values in (weight, weight * weight, weight * score, weight * target.hit)
    )
    return FineCells(total / mass, mass, weight_sq, hits)


def smooth_curve(
    cells: FineCells, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Kernel-smoothed observed frequency on the cells' range: x, y, low, high, each (G,).

    The gap (outcome minus score), not the outcome, is averaged with a Gaussian kernel and added
    to the diagonal: a calibrated model then has no bias at the ends of the range, where the
    mean of outcomes alone would bend inwards. The bandwidth is Silverman's 1.06 sd n^(-1/5),
    at least 0.02. Kernels are taken as logarithms, so a wide empty stretch falls back to its
    nearest scores. The pointwise band is Clopper-Pearson's for the kernel's effective number of
    rows, (sum K w)^2 / sum K^2 w^2: few rows near, wide band.
    """
    if len(cells.score) == 0:
        empty = np.empty(0)
        return empty, empty, empty, empty
    low, high = cells.score[0], cells.score[-1]
    x = np.linspace(low, high, GRID) if high > low else np.array([low])
    log_kernel = -0.5 * ((x[:, None] - cells.score) / bandwidth(cells)) ** 2
    kernel = np.exp(log_kernel - log_kernel.max(axis=1, keepdims=True))
    mass = kernel @ cells.weight
    gap = kernel @ (cells.hits - cells.weight * cells.score) / mass
    effective = mass**2 / (kernel**2 @ cells.weight_sq)
    y = np.clip(x + gap, 0.0, 1.0)
    return x, y, *clopper_pearson(y, effective, level)


def bandwidth(cells: FineCells) -> float:
    """Silverman's rule 1.06 sd n^(-1/5) with the effective n, at least MIN_BANDWIDTH."""
    total = cells.weight.sum()
    mean = cells.weight @ cells.score / total
    sd = float(np.sqrt(cells.weight @ (cells.score - mean) ** 2 / total))
    effective = float(total**2 / cells.weight_sq.sum())
    return max(1.06 * sd * float(effective**-0.2), MIN_BANDWIDTH)


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
    from sklearn.isotonic import isotonic_regression

    fitted: FloatArray = isotonic_regression(
        cells.hits / cells.weight, sample_weight=cells.weight, y_min=0.0, y_max=1.0
    )
    return fitted
