"""Compiled loops over the rows of binned inputs. Imported only when needed: numba is heavy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

compiled = njit(nogil=True, cache=True)


@compiled
def code_numbers(values: Array, edges: Array, missing: int, out: Array) -> int:
    """Write each value's code; return the first row that is infinite, -1 where none is.

    ``edges`` is filled up to 255 with infinity, so that the search takes eight steps for all.
    """
    infinite = -1
    for row in range(len(values)):
        value = values[row]
        if np.isnan(value):
            out[row] = missing
            continue
        if np.isinf(value) and infinite < 0:
            infinite = row
        at = 0
        for power in range(7, -1, -1):
            # no branch, since nobody could guess it
            at += int(edges[at + (1 << power) - 1] < value) << power
        out[row] = at
    return infinite


@compiled
def histograms(
    codes: Array, tried: Array, rows: Array, cells: Array, values: Array, out: Array
) -> None:
    """Count the rows and sum their values at every code of every column tried.

    ``codes`` is (columns, rows of the table); ``cells`` and ``values`` (m, v) are those of the m
    ``rows``. ``out`` is (columns tried, codes, 1 + cells * v), the counts first.
    """
    width = values.shape[1]
    for column in range(len(tried)):
        code_of, sums = codes[tried[column]], out[column]
        if width == 1:
            for at in range(len(rows)):
                code = code_of[rows[at]]
                sums[code, 0] += 1
                sums[code, 1 + cells[at]] += values[at, 0]
            continue
        for at in range(len(rows)):
            code = code_of[rows[at]]
            sums[code, 0] += 1
            first = 1 + cells[at] * width
            for k in range(width):
                sums[code, first + k] += values[at, k]


@compiled
def write_cuts(
    histogram: Array, order: Array, missing_code: Array, least: int, sides: Array, cuts: Array
) -> int:
    """Write every cut of every column that leaves ``least`` rows on both sides; return how many.

    ``order`` (columns, codes) is that in which a column's codes are cut. ``sides`` (2, cuts, sums)
    are the sums of what goes left and right; ``cuts`` (cuts, 4) are the column, the last place
    that goes left, whether missing values do, and whether most rows do.
    """
    n, width = 0, histogram.shape[2]
    total, up_to = np.zeros(width), np.zeros(width)
    for k in range(width):
        for last in range(order.shape[1]):
            if order[0, last] != missing_code[0]:
                total[k] += histogram[0, order[0, last], k]
        total[k] += histogram[0, missing_code[0], k]
    for column in range(len(histogram)):
        missing = histogram[column, missing_code[column]]
        for k in range(width):
            up_to[k] = 0.0
        for last in range(order.shape[1]):
            here = histogram[column, order[column, last]]
            if order[column, last] == missing_code[column]:
                continue
            for k in range(width):
                up_to[k] += here[k]
            for side in range(1 + int(missing[0] > 0)):
                left = up_to[0] + side * missing[0]
                right = total[0] - left
                if here[0] <= 0 or left < least or right < least:
                    continue
                for k in range(1, width):
                    sides[0, n, k - 1] = up_to[k] + missing[k] if side else up_to[k]
                    sides[1, n, k - 1] = total[k] - sides[0, n, k - 1]
                cuts[n, 0], cuts[n, 1] = column, last
                cuts[n, 2], cuts[n, 3] = side, int(left > right)
                n += 1
    return n


@compiled
def find_leaves(
    codes: Array,
    feature: Array,
    goes_left: Array,
    left: Array,
    right: Array,
    leaf_of_node: Array,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """The leaf of the rows ``start`` to ``stop``; ``goes_left`` is (nodes, 256) of the codes."""
    for row in range(start, stop):
        node = 0
        while feature[node] >= 0:
            goes = goes_left[node, codes[feature[node], row]]
            node = left[node] if goes else right[node]
        out[row] = leaf_of_node[node]
