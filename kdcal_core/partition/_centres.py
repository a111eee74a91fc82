"""Rows and the centres of polytopes: blocks of the search for the nearest in Euclidean distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Centres:
    """Coordinates of m rows, (m, d), and of p centres, (p, d)."""

    x: NDArray[np.float64]
    centres: NDArray[np.float64]


def nearest_centre_block(prepared: Centres, start: int, stop: int) -> tuple[NDArray[Any], ...]:
    """Index, kernel (NaN) and tie of the rows ``start`` to ``stop``."""
    index, tied = nearest_centre_of(np.arange(start, stop), prepared.x, prepared.centres)
    return index, np.full(stop - start, np.nan), tied


def nearest_centre_of(
    rows: NDArray[np.int64], x: NDArray[np.float64], centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The nearest of all centres for some rows, and whether another is as near."""
    from kdcal_core.partition._centre_kernels import nearest_of_all

    index = np.zeros(len(rows), dtype=np.int64)
    tied = np.zeros(len(rows), dtype=bool)
    if len(rows):
        nearest_of_all(rows, x, centres, index, tied, np.full(len(rows), np.inf))
    return index, tied
