"""Quantiles of numbers with their intervals, and those of the normal and Student distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from kdcal_core.statistics.dependence import Dependence, units
from kdcal_core.statistics.effective_rows import effective_size, kish

FloatArray = NDArray[np.float64]


def quantile_interval(
    values: Any,
    share: float,
    level: float,
    weight: FloatArray | None = None,
    dependence: Dependence | None = None,
) -> tuple[float, float]:
    """Two of the values between which the quantile of their population lies; infinite without any.

    Order statistics by the binomial law, so that the interval holds for every distribution and
    for ties (David and Nagaraja 2003, section 7.1). Few rows say nothing about a far quantile:
    its outer end is then infinite. With weights, or of dependent rows, the law is that of the
    effective number of rows for the share below the quantile (Woodruff 1952).

    Examples
    --------
    >>> quantile_interval(np.arange(1000), 0.5, 0.95)
    (468.0, 531.0)
    >>> quantile_interval(np.arange(50), 0.01, 0.95)
    (-inf, 2.0)
    """
    values = np.asarray(values, dtype=np.float64)
    ordered, n = np.sort(values), len(values)
    if weight is None and dependence is None:
        below, above = quantile_ranks(n, share, level)
        low = float(ordered[below - 1]) if below >= 1 else -np.inf
        return low, float(ordered[above - 1]) if above <= n else np.inf
    weight = np.ones(n) if weight is None else weight
    reached = _shares_below(values, weight)
    middle = ordered[_first_at(reached, share)]
    residual = (values <= middle) - np.average(values <= middle, weights=weight)
    # at least one row, and no more than there are
    rows = min(max(round(effective_size(residual, weight, dependence)), 1), n)
    below, above = quantile_ranks(rows, share, level)
    low = float(ordered[_first_at(reached, below / rows)]) if below >= 1 else -np.inf
    return low, float(ordered[_first_at(reached, above / rows)]) if above <= rows else np.inf


def weighted_quantile(values: Any, share: float, weight: FloatArray | None = None) -> float:
    """The least of the values (n,) that this share of the weight does not exceed.

    Without weights, or where all are equal, NumPy's quantile, which lies between two values.

    Examples
    --------
    >>> weighted_quantile([1.0, 2.0, 3.0], 0.5, np.array([1.0, 1.0, 8.0]))
    3.0
    >>> weighted_quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    2.5
    """
    values = np.asarray(values, dtype=np.float64)
    if weight is None or np.ptp(weight) == 0.0:
        return float(np.quantile(values, share))
    return float(np.sort(values)[_first_at(_shares_below(values, weight), share)])


def _shares_below(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Share of the weight up to each of the values, in their order."""
    running = np.cumsum(weight[np.argsort(values, kind="stable")])
    return np.asarray(running / running[-1])


def _first_at(reached: FloatArray, share: float) -> int:
    """The first place at which a share is reached, but for rounding."""
    return min(int(np.searchsorted(reached, share * (1.0 - 1e-12))), len(reached) - 1)


def quantile_ranks(n: int, share: float, level: float) -> tuple[int, int]:
    """Ranks, from 1, of the two values of :func:`quantile_interval` among ``n`` in order.

    0 and ``n + 1`` where no value bounds the quantile on that side.

    Examples
    --------
    >>> quantile_ranks(1000, 0.5, 0.95), quantile_ranks(50, 0.01, 0.95)
    ((469, 532), (0, 3))
    """
    from scipy.stats import binom  # slow to import

    alpha = 1.0 - level
    # the largest r and the smallest s with P(B < r) and P(B >= s) at most alpha / 2 each
    below = int(binom.ppf(alpha / 2.0, n, share))
    return below, int(binom.isf(alpha / 2.0, n, share)) + 1


def normal_quantile(level: float) -> float:
    """Half the width, in standard errors, of a normal interval.

    Examples
    --------
    >>> round(normal_quantile(0.95), 2)
    1.96
    """
    return float(ndtri(0.5 + level / 2.0))


def t_quantile(level: float, freedom: float) -> float:
    """Half the width, in estimated standard errors, of an interval by Student's distribution.

    Examples
    --------
    >>> round(t_quantile(0.95, 9), 2)
    2.26
    """
    return float(stdtrit(freedom, 0.5 + level / 2.0))


def t_quantile_of_rows(
    level: float, weight: FloatArray, dependence: Dependence | None = None
) -> float:
    """:func:`t_quantile` for the mean of rows, with Kish's effective number of them less one.

    Of dependent rows the clusters, or the times, are counted. Infinite where that is no degree of
    freedom.

    Examples
    --------
    >>> t_quantile_of_rows(0.95, np.ones(10)) == t_quantile(0.95, 9)
    True
    """
    freedom = kish(units(weight, dependence)) - 1.0
    return t_quantile(level, freedom) if freedom > 1e-9 else np.inf
