"""Compiled loops of kernel sums and of Venn-Abers prediction.

Imported only when used, because numba loads slowly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


compiled = njit(nogil=True, cache=True)


@compiled
def _first_from(ascending: Array, least: float) -> int:
    """Index of the first value that is at least ``least``."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True, error_model="numpy")
def sum_kernels(
    centre: Array,
    weight: Array,
    second: Array,
    third: Array,
    at: Array,
    nearest: Array,
    bandwidth: float,
    reach: float,
    width: float,
    without_self: bool,
    value: Array,
    slope: Array,
) -> None:
    """Log sum over the cells near each place, and its slope.

    A cell is near within the square root of ``nearest`` squared and ``reach``, plus ``width``.
    Kernels are divided by that of the nearest score, so that the largest in a sum is near one.
    """
    by_second = 0.5 / bandwidth**2
    by_third = 1.0 / (6.0 * bandwidth**3)
    for i in range(len(at)):
        least = 0.5 * (nearest[i] / bandwidth) ** 2
        radius = np.sqrt(nearest[i] * nearest[i] + reach) + width
        total, change = 0.0, 0.0
        for cell in range(_first_from(centre, at[i] - radius), len(centre)):
            if centre[cell] > at[i] + radius:
                break
            d = (at[i] - centre[cell]) / bandwidth
            if without_self and d == 0.0:
                continue
            square = d * d
            kernel = np.exp(least - 0.5 * square)
            w, s, t = weight[cell], second[cell] * by_second, third[cell] * by_third
            total += kernel * (w + s * (square - 1.0) + t * d * (square - 3.0))
            change += kernel * (d * (w + s * (square - 3.0)) + t * (square * (square - 6.0) + 3.0))
        value[i] = np.log(total) - least
        slope[i] = -change / (total * bandwidth)


@compiled
def joined_as_yes(yes: Array, mass: Array) -> Array:
    """Isotonic fit at each score with one more yes row there, (m,).

    ``yes`` and ``mass`` (m,) are the weights of the yes rows and of all rows at each distinct
    score, ascending.

    The cumulative diagram has corners P_i = (mass, yes) of the scores before i. One more yes at
    score k shifts the corners after it by (1, 1), and the fit there is the slope of the edge that
    bridges the lower hulls of P_0 ... P_k and of the shifted P_k+1 ... P_m. As k decreases both
    ends of that edge only move left, so all bridges together take O(m).
    """
    m = len(mass)
    x, y = np.zeros(m + 1), np.zeros(m + 1)
    for i in range(m):
        x[i + 1], y[i + 1] = x[i] + mass[i], y[i] + yes[i]
    before = _hull_before(x, y)
    found = np.empty(m)
    right = np.empty(m + 1, dtype=np.int64)  # hull of the corners after k, the nearest on top
    top, end, start = -1, 0, m
    for k in range(m - 1, -1, -1):
        while top > 0 and _turn(x, y, k + 1, right[top], right[top - 1]) <= 0:
            top -= 1
        top += 1
        right[top] = k + 1
        end, start = min(end, top), min(start, k)
        while True:
            j = right[end]
            dx, dy = x[j] + 1 - x[start], y[j] + 1 - y[start]
            while start > 0:
                i = before[start]
                if (y[start] - y[i]) * dx < dy * (x[start] - x[i]):
                    break
                start = i
                dx, dy = x[j] + 1 - x[start], y[j] + 1 - y[start]
            if end == top:
                break
            i = right[end + 1]
            if (y[j] - y[i]) * dx <= dy * (x[j] - x[i]):
                break
            end += 1
        found[k] = min(dy / dx, 1.0)
    return found


@compiled
def _hull_before(x: Array, y: Array) -> Array:
    """Each corner's left neighbour on the lower hull of the corners up to it."""
    before = np.full(len(x), -1, dtype=np.int64)
    for i in range(1, len(x)):
        at = i - 1
        while before[at] >= 0 and _turn(x, y, before[at], at, i) <= 0:
            at = before[at]
        before[i] = at
    return before


@compiled
def _turn(x: Array, y: Array, a: int, b: int, c: int) -> float:
    """Above zero if the path from a over b to c turns left: b is a corner of the lower hull."""
    turn: float = (x[b] - x[a]) * (y[c] - y[b]) - (y[b] - y[a]) * (x[c] - x[b])
    return turn
