"""Compiled loops of the neighbour search, imported only when used, as numba loads slowly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

compiled = njit(nogil=True, cache=True)


BUCKETS = 2**13
SHIFT = 18  # leaves the exponent of a number in single precision and its 5 first digits


@compiled
def among_all(points: Array, columns: Array, wanted: int, index: Array, count: Array) -> None:
    """For every point the ``wanted`` nearest rows and those about as far as the last, ascending.

    ``columns`` (d, n) holds the coordinates of the rows. Squared distances are counted in buckets
    by the leading digits of their rounded values; rounding keeps their order, so the buckets up to
    the one of the last hold the nearest rows with all ties.
    """
    d, n = columns.shape
    squared, rounded = np.empty(n), np.empty(n, dtype=np.float32)
    digits, held = rounded.view(np.int32), np.empty(BUCKETS, dtype=np.int64)
    for i in range(len(points)):
        squared[:] = 0.0
        for c in range(d):
            for j in range(n):
                off = columns[c, j] - points[i, c]
                squared[j] += off * off
        held[:] = 0
        for j in range(n):
            rounded[j] = squared[j]
            held[digits[j] >> SHIFT] += 1
        last, total = 0, held[0]
        while total < wanted:
            last += 1
            total += held[last]
        end = 0
        for j in range(n):
            if end < total:
                index[i, end] = j
                end += digits[j] >> SHIFT <= last
        count[i] = end


@compiled
def gather(tile: Array, start: int, limit: Array, index: Array, value: Array, count: Array) -> None:
    """Append to every point's list the rows whose value is within the point's limit.

    ``tile`` (b, c) holds the values of the rows from ``start`` on.
    """
    for i in range(tile.shape[0]):
        end, most = count[i], limit[i]
        for j in range(tile.shape[1]):
            if tile[i, j] <= most:
                index[i, end], value[i, end] = start + j, tile[i, j]
                end += 1
        count[i] = end


@compiled
def farthest(index: Array, value: Array, count: Array, kth: Array, norms: Array) -> Array:
    """For every point, the largest norm among the rows whose value is at most ``kth``."""
    greatest = np.zeros(len(count))
    for i in range(len(count)):
        for j in range(count[i]):
            if value[i, j] <= kth[i]:
                greatest[i] = max(greatest[i], norms[index[i, j]])
    return greatest


@compiled
def drop_beyond(limit: Array, index: Array, value: Array, count: Array) -> None:
    """Keep the rows within the limit, in their order; the rest of the list is set to infinity."""
    for i in range(len(count)):
        end = 0
        for j in range(count[i]):
            if value[i, j] <= limit[i]:
                index[i, end], value[i, end] = index[i, j], value[i, j]
                end += 1
        value[i, end : count[i]] = np.inf
        count[i] = end


@compiled
def squared_distances(
    points: Array, space: Array, index: Array, count: Array, squared: Array
) -> None:
    """Squared distances from every point to its list, summed in the order of the coordinates."""
    for i in range(len(points)):
        for j in range(count[i]):
            distance = 0.0
            for c in range(space.shape[1]):
                off = space[index[i, j], c] - points[i, c]
                distance += off * off
            squared[i, j] = distance
        squared[i, count[i] :] = np.inf


@compiled
def lowest_first(order: Array, ascending: Array, index: Array, k: int) -> Array:
    """``order`` (b, w), the lowest of ``index`` (b, w) first where distances are equal.

    ``ascending`` (b, w) holds the distances in this order. What comes after the first k, and is not
    level with the k-th, stays as it is.
    """
    for i in range(order.shape[0]):
        start = 0
        while start < k:
            end = start + 1
            while end < order.shape[1] and ascending[i, end] == ascending[i, start]:
                end += 1
            if end > start + 1:
                level = order[i, start:end].copy()
                order[i, start:end] = level[np.argsort(index[i][level])]
            start = end
    return order


@compiled
def along_line(
    points: Array, ordered: Array, row: Array, wanted: int, index: Array, distance: Array
) -> None:
    """The nearest of ascending numbers to every point, nearest first, and their distances."""
    n = len(ordered)
    for i in range(len(points)):
        point = points[i]
        right = np.searchsorted(ordered, point)
        left = right - 1
        for j in range(wanted):
            if right == n or (left >= 0 and point - ordered[left] <= ordered[right] - point):
                at = left
                left -= 1
            else:
                at = right
                right += 1
            off = ordered[at] - point
            index[i, j], distance[i, j] = row[at], np.sqrt(off * off)


@compiled
def weighted_crps(away: Array, order: Array, share: Array, found: Array) -> None:
    """CRPS of every row's weighted sample.

    ``away`` (m, K) holds the samples less the outcome, ascending; ``order`` (m, K) which neighbour
    each is, the nearest being 0; ``share`` (m, k) the weights of the k nearest, which sum to 1.
    """
    for i in range(len(away)):
        below, total = 0.0, 0.0
        for j in range(away.shape[1]):
            neighbour = order[i, j]
            if neighbour < share.shape[1]:
                weight, apart = share[i, neighbour], away[i, j]
                below += weight
                total += weight * apart * (np.sign(apart) + 1.0 + weight - 2.0 * below)
        found[i] = total
