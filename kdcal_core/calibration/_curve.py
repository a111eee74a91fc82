"""Kernel sums as piecewise cubics: as exact as the sums, and fast for millions of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.special import expit

from kdcal_core.calibration._kernel_sum import KernelSum
from kdcal_core.data.schema import FloatArray
from kdcal_core.store import storable

TOLERANCE = 1e-7
_SMALLEST_INTERVAL = 1e-14
# Kernels of rows further away than this many bandwidths are negligible.
_REACH = 7.0
# A function's values and slopes, each (m,), at m places.
Sampled = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


@storable
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

    def pieces(self) -> FloatArray:
        """Coefficients of each piece in the distance from its first node, (4, g - 1)."""
        found: FloatArray = CubicHermiteSpline(self.at, self.value, self.slope).c
        return found


def fit_curve(
    right: KernelSum, wrong: KernelSum, bandwidth: float, lower: float, upper: float
) -> Curve:
    """Piecewise cubic through Conf_KDE(S) (Salamon et al., Eq. 9) on [lower, upper].

    It starts from nodes a quarter of the bandwidth apart and from the middle of every wide gap
    between scores (far from all data the curve bends only there), and halves each interval
    whose middle is off by more than 1e-7.
    """
    middles = [_gap_middles(kernels.score, bandwidth) for kernels in (right, wrong)]
    return _through(
        lambda at: _confidence(right, wrong, at, bandwidth), bandwidth, lower, upper, middles
    )


def fit_rows_curve(everyone: KernelSum, bandwidth: float) -> Curve:
    """Piecewise cubic through the logarithm of the kernel-weighted rows at a score.

    It spans all scores and seven bandwidths more on either side, where a row counts as 2e-11.
    Far from all data it is less exact, because there are no rows.
    """
    lower = max(0.0, everyone.score[0] - _REACH * bandwidth)
    upper = min(1.0, everyone.score[-1] + _REACH * bandwidth)
    negligible = -0.5 * _REACH**2

    def rows(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, slope = everyone(at, bandwidth)
        return np.maximum(value, negligible), np.where(value > negligible, slope, 0.0)

    return _through(rows, bandwidth, lower, upper, [_gap_middles(everyone.score, bandwidth)], 1e-6)


def _through(
    sampled: Sampled,
    bandwidth: float,
    lower: float,
    upper: float,
    middles: list[FloatArray],
    smallest: float = _SMALLEST_INTERVAL,
) -> Curve:
    start = np.linspace(lower, upper, int(np.ceil(4 * (upper - lower) / bandwidth)) + 2)
    x = np.unique(np.concatenate([start, *middles]))
    x = x[(x >= lower) & (x <= upper)]
    y, slope = sampled(x)
    nodes = [(x, y, slope)]
    left, end = [x[:-1], y[:-1], slope[:-1]], [x[1:], y[1:], slope[1:]]
    while len(left[0]):
        width = end[0] - left[0]
        middle = 0.5 * (left[0] + end[0])
        value, change = sampled(middle)
        guess = 0.5 * (left[1] + end[1]) + width * (left[2] - end[2]) / 8
        nodes.append((middle, value, change))
        split = (np.abs(guess - value) > TOLERANCE) & (width > smallest)
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
