"""Compiled search for the nearest centre. Imported only when it is needed: numba is heavy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

compiled: Any = njit(nogil=True, cache=True)

TILE = 256
STRIDE = 16


@compiled
def squared_distance(x: Array, centres: Array, s: int) -> float:
    """Squared Euclidean distance, summed in the order of the coordinates."""
    distance = 0.0
    for j in range(len(x)):
        off = x[j] - centres[s, j]
        distance += off * off
    return distance


@compiled
def nearest_of(x: Array, centres: Array, among: Array) -> int:
    """The nearest of some centres, given in ascending order; the first of equals."""
    best, least = int(among[0]), np.inf
    if len(among) == 1:
        return best
    for s in among:
        distance = squared_distance(x, centres, s)
        if distance < least:
            best, least = int(s), distance
    return best


@compiled
def nearest_of_all(
    rows: Array, x: Array, centres: Array, index: Array, tied: Array, least: Array
) -> None:
    """The nearest of all centres for each of ``rows``; the first of equals.

    A distance is summed as :func:`squared_distance` does, for a tile of centres at once. ``least``
    is infinite at first.
    """
    n_centres, n_coordinates = centres.shape
    tile = np.empty((n_coordinates, TILE))
    distance = np.empty(TILE)
    for begin in range(0, n_centres, TILE):
        size = min(TILE, n_centres - begin)
        for s in range(size):
            for j in range(n_coordinates):
                tile[j, s] = centres[begin + s, j]
        for i in range(len(rows)):
            distance[:] = 0.0
            for coordinate in range(0, n_coordinates, STRIDE):
                for j in range(coordinate, min(coordinate + STRIDE, n_coordinates)):
                    value, column = x[rows[i], j], tile[j]
                    for s in range(TILE):
                        off = value - column[s]
                        distance[s] += off * off
                # Sums only grow: a tile that is beyond the nearest so far stays beyond it.
                if distance[:size].min() > least[i]:
                    break
            else:
                for s in range(size):
                    if distance[s] < least[i]:
                        least[i] = distance[s]
                        index[i] = begin + s
                        tied[i] = False
                    elif distance[s] == least[i] and begin + s != index[i]:
                        tied[i] = True
