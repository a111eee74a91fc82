"""Compiled loops over the boxes of two columns. Imported only when needed: numba is heavy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


@njit(nogil=True, cache=True)
def best_box(
    cells: Array,
    sizes: Array,
    named: Array,
    values: Array,
    least: int,
    of_columns: Array,
    of_interval: Array,
    out: Array,
) -> float:
    """Write the box whose gain is most above its price; return the difference.

    ``cells`` (d, n) are the rows' cells in each column, below ``sizes`` (d,); those of ``named``
    columns have no order, so that a box holds one of them or all. ``values`` (n, 2 k) are
    residuals and their variances, side by side. The gain is the evidence of the box and of the
    other rows less that of all rows. The price is ``of_columns`` (3,) for the number of columns
    that bound the box, and for each of them ``of_interval`` (d, 2): the second for two cells that
    would be one in a grid of half as many, else the first. ``out`` (6,) is a column with its first
    and last cell, then another. The box and every part that its cuts leave over, made from the
    first column's upper end to the second's lower end, hold ``least`` rows or none. Returns 0 and
    writes nothing where no gain is above its price.
    """
    width, widest = values.shape[1], sizes.max()
    table = np.empty((widest + 1, widest + 1, 1 + width))
    band = np.empty((widest + 1, 1 + width))
    best, sums_of_all = 0.0, np.zeros(width)
    for row in range(len(values)):
        for k in range(width):
            sums_of_all[k] += values[row, k]
    at_once = 0.0
    for k in range(0, width, 2):
        at_once += sums_of_all[k] ** 2 / sums_of_all[k + 1]
    for a in range(len(cells)):
        for b in range(a + 1, len(cells)):
            n_a, n_b = sizes[a], sizes[b]
            table[:] = 0.0
            for row in range(cells.shape[1]):
                in_a, in_b = np.int64(cells[a, row]) + 1, np.int64(cells[b, row]) + 1
                table[in_a, in_b, 0] += 1.0
                for k in range(width):
                    table[in_a, in_b, 1 + k] += values[row, k]
            for i in range(1, n_a + 1):
                for j in range(1, n_b + 1):
                    for k in range(1 + width):
                        table[i, j, k] += table[i, j - 1, k] + table[i - 1, j, k]
                        table[i, j, k] -= table[i - 1, j - 1, k]
            total = table[n_a, n_b, 0]
            for low_a in range(n_a):
                for high_a in range(low_a, n_a):
                    whole_a = low_a == 0 and high_a == n_a - 1
                    if named[a] and not whole_a and high_a > low_a:
                        continue
                    for j in range(n_b + 1):
                        for k in range(1 + width):
                            band[j, k] = table[high_a + 1, j, k] - table[low_a, j, k]
                    inside = band[n_b, 0]
                    below = table[low_a, n_b, 0]
                    above = total - table[high_a + 1, n_b, 0]
                    if named[a]:
                        below, above = total - inside, 0.0
                    price_a = 0.0
                    if not whole_a:
                        coarse = low_a % 2 == 0 and high_a == min(low_a + 1, n_a - 1)
                        price_a = of_interval[a, int(coarse)]
                    if inside < least or 0 < below < least or 0 < above < least:
                        continue
                    for low_b in range(n_b):
                        for high_b in range(low_b, n_b):
                            whole_b = low_b == 0 and high_b == n_b - 1
                            used = int(not whole_a) + int(not whole_b)
                            if used == 0:
                                continue
                            if named[b] and not whole_b and high_b > low_b:
                                continue
                            count = band[high_b + 1, 0] - band[low_b, 0]
                            if count < least:
                                continue
                            worth = -at_once - of_columns[used] - price_a
                            if not whole_b:
                                coarse = low_b % 2 == 0 and high_b == min(low_b + 1, n_b - 1)
                                worth -= of_interval[b, int(coarse)]
                            for k in range(0, width, 2):
                                r = band[high_b + 1, 1 + k] - band[low_b, 1 + k]
                                v = band[high_b + 1, 2 + k] - band[low_b, 2 + k]
                                r_other, v_other = sums_of_all[k] - r, sums_of_all[k + 1] - v
                                worth += r * r / v
                                if count < total:
                                    worth += r_other * r_other / v_other
                            if worth <= best:
                                continue
                            under, over = band[low_b, 0], inside - band[high_b + 1, 0]
                            if named[b]:
                                under, over = inside - count, 0.0
                            if 0 < under < least or 0 < over < least:
                                continue
                            best = worth
                            out[0], out[1], out[2] = a, low_a, high_a
                            out[3], out[4], out[5] = b, low_b, high_b
    return best
