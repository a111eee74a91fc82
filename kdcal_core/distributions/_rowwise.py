"""Searches and picks within every row of a table at once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray


def count_up_to(ascending: FloatArray, at: FloatArray, side: Literal["left", "right"]) -> IntArray:
    """How many values of a row are <= ``at`` ("right") or < ``at`` ("left").

    Parameters
    ----------
    ascending : (n, k) or (1, k)
        Every row in ascending order.
    at : (n, g) or (1, g)

    Returns
    -------
    (n, g), or (1, g) where both are shared
        By bisection of all rows together: no loop over rows, no (n, g, k) array.

    Examples
    --------
    >>> count_up_to(np.array([[1.0, 2.0, 2.0, 3.0]]), np.array([[0.0, 2.0, 9.0]]), "right").tolist()
    [[0, 3, 4]]
    """
    if len(ascending) == 1:
        return np.searchsorted(ascending[0], at, side=side).astype(np.int64)
    n, k = ascending.shape
    low = np.zeros((n, at.shape[1]), dtype=np.int64)
    high = np.full_like(low, k)
    for _ in range(k.bit_length()):
        middle = (low + high) // 2
        value = np.take_along_axis(ascending, np.minimum(middle, k - 1), axis=1)
        counted = (value <= at if side == "right" else value < at) & (middle < high)
        low, high = np.where(counted, middle + 1, low), np.where(counted, high, middle)
    return low


def pick(table: NDArray[Any], places: IntArray) -> NDArray[Any]:
    """``table[row, places[row, g]]`` for all rows; either may be one row for all."""
    picked: NDArray[Any]
    if len(table) == 1:
        picked = table[0][places]
    elif len(places) == 1:
        picked = table[:, places[0]]
    else:
        picked = np.take_along_axis(table, places, axis=1)
    return picked


def rows_ascend(values: FloatArray, block: int = 4096) -> bool:
    """Whether every row ascends; read in blocks, because the rows may lie in a file."""
    return all(
        bool((np.diff(values[start : start + block], axis=1) >= 0).all())
        for start in range(0, len(values), block)
    )
