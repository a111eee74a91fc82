"""Conf_KDE as a piecewise cubic: as exact as the sums behind it, and fast for millions of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import expit

from kdcal_core.calibration._kernel_sum import KernelSum
from kdcal_core.data.types import FloatArray

TOLERANCE = 1e-7
_SMALLEST_INTERVAL = 1e-14


@dataclass(frozen=True, eq=False)
class Curve:
    """A piecewise cubic: its nodes, its values and its slopes there, (g,) each, g >= 2."""

    at: FloatArray
    value: FloatArray
    slope: FloatArray

    def __call__(self, score: FloatArray) -> FloatArray:
        """The curve at scores between the first node and the last."""
        found: FloatArray = CubicHermiteSpline(self.at, self.value, self.slope)(score)
        return found


def fit_curve(
    right: KernelSum, wrong: KernelSum, bandwidth: float, lower: float, upper: float
) -> Curve:
    """Piecewise cubic through Conf_KDE(S) (paper 002 Eq. 9) on [lower, upper].

    It starts from nodes a quarter of the bandwidth apart and from the middle of every wide gap
    between scores (far from all data the curve bends only there), and halves each interval
    whose middle is off by more than 1e-7.
    """
    start = np.linspace(lower, upper, int(np.ceil(4 * (upper - lower) / bandwidth)) + 2)
    middles = [_gap_middles(kernels.score, bandwidth) for kernels in (right, wrong)]
    x = np.unique(np.concatenate([start, *middles]))
    x = x[(x >= lower) & (x <= upper)]
    y, slope = _confidence(right, wrong, x, bandwidth)
    nodes = [(x, y, slope)]
    left, end = [x[:-1], y[:-1], slope[:-1]], [x[1:], y[1:], slope[1:]]
    while len(left[0]):
        width = end[0] - left[0]
        middle = 0.5 * (left[0] + end[0])
        value, change = _confidence(right, wrong, middle, bandwidth)
        guess = 0.5 * (left[1] + end[1]) + width * (left[2] - end[2]) / 8
        nodes.append((middle, value, change))
        split = (np.abs(guess - value) > TOLERANCE) & (width > _SMALLEST_INTERVAL)
        halves = [middle[split], value[split], change[split]]
        left = _both([part[split] for part in left], halves)
        end = _both(halves, [part[split] for part in end])
    x, y, slope = (np.concatenate(part) for part in zip(*nodes, strict=True))
    x, first = np.unique(x, return_index=True)
    return Curve(x, y[first], slope[first])


def _confidence(
    right: KernelSum, wrong: KernelSum, at: FloatArray, bandwidth: float
) -> tuple[FloatArray, FloatArray]:
    log_right, slope_right = right(at, bandwidth)
    log_wrong, slope_wrong = wrong(at, bandwidth)
    odds = log_right - log_wrong
    value = expit(odds)
    return value, value * expit(-odds) * (slope_right - slope_wrong)


def _both(first: list[FloatArray], second: list[FloatArray]) -> list[FloatArray]:
    return [np.concatenate(pair) for pair in zip(first, second, strict=True)]


def _gap_middles(score: FloatArray, bandwidth: float) -> FloatArray:
    wide = np.flatnonzero(np.diff(score) > 3 * bandwidth)
    middles: FloatArray = 0.5 * (score[wide] + score[wide + 1])
    return middles
