"""Where a column's bins end, and which categories keep a code of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition.tree.columns import OTHER

DIGITS = 17  # a double needs no more
SLACK = 0.25  # of a bin, by which an edge may leave its quantile for a shorter number


def find_edges(values: NDArray[np.float64], max_bins: int) -> NDArray[np.float64]:
    """Edges between all distinct values, or between quantiles where there are too many.

    What is not finite is left out. An edge is the shortest decimal there is between the values on
    its two sides, or within a quarter of a bin of its quantile, so that what is said of a split
    is short and yet exactly what it does.

    Examples
    --------
    >>> find_edges(np.array([1.0, 2.0, 2.0, 5.0]), 254).tolist()
    [1.0, 3.0]
    >>> find_edges(np.array([0.1234, 0.1299]), 254).tolist()
    [0.126]
    """
    distinct, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if len(distinct) < 2:
        return np.empty(0)
    if len(distinct) <= max_bins:
        return short_between(distinct[:-1], distinct[1:])
    # a value lies at the middle of its ranks, so that frequent ones fill bins alone
    place = (np.cumsum(counts) - counts / 2) * (max_bins / counts.sum())
    ends = np.arange(1, max_bins)
    low = np.searchsorted(place, ends - SLACK) - 1
    high = np.searchsorted(place, ends + SLACK)
    inside = (low >= 0) & (high < len(distinct))
    return np.unique(short_between(distinct[low[inside]], distinct[high[inside]]))


def short_between(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """The number of fewest digits near the middle that is at least ``low`` and below ``high``."""
    middle = low / 2 + high / 2
    edges = np.where((middle >= low) & (middle < high), middle, low)
    size = np.abs(np.where(middle == 0, 1.0, middle))
    exponent = np.floor(np.log10(size)).astype(np.int64)
    waiting = np.ones(len(low), dtype=bool)
    for digits in range(DIGITS):
        places = digits - 1 - exponent
        unit = 10.0 ** np.minimum(np.abs(places), 300)
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.where(
                places >= 0, np.floor(middle * unit) / unit, np.floor(middle / unit) * unit
            )
        # without a digit there is only zero, or minus one, for what is smaller than one
        found = waiting & (rounded >= low) & (rounded < high) & ((digits > 0) | (size < 1))
        edges[found] = rounded[found]
        waiting &= ~found
    return edges


def find_categories(
    counts: NDArray[np.int64], names: list[str], max_bins: int
) -> tuple[tuple[str, ...], bool]:
    """The names that occur, the most frequent first, and whether the rarest are one "other".

    Examples
    --------
    >>> find_categories(np.array([1, 3, 2, 0]), ["a", "b", "c", "d"], 2)
    (('b', 'other'), True)
    """
    seen = sorted(np.flatnonzero(counts), key=lambda at: (-counts[at], names[at]))
    kept = [names[at] for at in seen]
    if len(kept) <= max_bins:
        return tuple(kept), False
    return (*kept[: max_bins - 1], OTHER), True
