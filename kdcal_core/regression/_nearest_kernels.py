"""Compiled loops of the neighbour search, imported only when used, as numba loads slowly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

compiled = njit(nogil=True, cache=True)


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
