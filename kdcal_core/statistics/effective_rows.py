"""How many rows weighted ones count as."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdcal_core.statistics.dependence import Dependence, design_effect

FloatArray = NDArray[np.float64]


def kish(weight: FloatArray) -> float:
    """Effective number of rows, (sum w)^2 / sum w^2.

    Examples
    --------
    >>> kish(np.array([1.0, 1.0, 2.0]))
    2.6666666666666665
    """
    return float(weight.sum() ** 2 / np.square(weight).sum())


def whole_rows(count: NDArray[np.float64]) -> NDArray[np.int64]:
    """Counts (c,) as whole numbers whose running totals differ by at most half a row.

    For binomial draws in cells of weighted rows, whose counts are fractions.

    Examples
    --------
    >>> whole_rows(np.array([0.4, 0.4, 2.0, 0.4])).tolist()
    [0, 1, 2, 0]
    """
    return np.diff(np.rint(np.cumsum(count)), prepend=0.0).astype(np.int64)


def effective_size(
    residual: FloatArray, weight: FloatArray, dependence: Dependence | None
) -> float:
    """Kish's number of rows over the design effect: independent rows that would say as much.

    ``residual`` (n,) is each row's, with mean 0; see :func:`bin_dependence`.

    Examples
    --------
    >>> same = Dependence.of("cluster", np.repeat(np.arange(50), 4))
    >>> noise = np.repeat(np.tile([-0.5, 0.5], 25), 4)
    >>> round(effective_size(noise, np.ones(200), same)), effective_size(noise, np.ones(200), None)
    (48, 200.0)
    """
    return kish(weight) / design_effect(residual, weight, dependence)
