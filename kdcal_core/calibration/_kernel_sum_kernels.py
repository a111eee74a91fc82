"""The compiled loop of sums of kernels, imported only on use because numba loads slowly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]


@njit(nogil=True, cache=True, error_model="numpy")
def sum_kernels(
    centre: Array,
    weight: Array,
    second: Array,
    third: Array,
    at: Array,
    nearest: Array,
    low: Array,
    high: Array,
    bandwidth: float,
    without_self: bool,
    value: Array,
    slope: Array,
) -> None:
    """Log sum over the cells ``low`` to ``high`` of each place, and its slope.

    Kernels are divided by the nearest score's, so that the largest of a sum is near one.
    """
    by_second = 0.5 / bandwidth**2
    by_third = 1.0 / (6.0 * bandwidth**3)
    for i in range(len(at)):
        least = 0.5 * (nearest[i] / bandwidth) ** 2
        total, change = 0.0, 0.0
        for cell in range(low[i], high[i]):
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
