"""Intervals for proportions and means."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

FloatArray = NDArray[np.float64]


def clopper_pearson(rate: Any, n: Any, level: float) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson interval of proportions ``rate`` seen in ``n`` rows; NaN where n is 0.

    ``n`` may be fractional: with row weights it is Kish's effective size (sum w)^2 / sum w^2.

    Examples
    --------
    >>> low, high = clopper_pearson(np.array([0.0, 0.5]), np.array([10, 10]), 0.95)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.187]), array([0.308, 0.813]))
    """
    rate = np.asarray(rate, dtype=np.float64)
    n = np.asarray(n, dtype=np.float64)
    alpha = 1.0 - level
    some = n > 0
    hits = np.where(some, rate * n, 0.5)
    misses = np.where(some, n - hits, 0.5)
    inner_low = betaincinv(np.maximum(hits, 1e-300), misses + 1.0, alpha / 2)
    inner_high = betaincinv(hits + 1.0, np.maximum(misses, 1e-300), 1 - alpha / 2)
    low = np.where(hits <= 0.0, 0.0, inner_low)
    high = np.where(misses <= 0.0, 1.0, inner_high)
    # an interval around a fractional count can miss it by a rounding error
    low, high = np.minimum(low, rate), np.maximum(high, rate)
    return np.where(some, low, np.nan), np.where(some, high, np.nan)


def normal_quantile(level: float) -> float:
    """Half the width, in standard errors, of a normal interval.

    Examples
    --------
    >>> round(normal_quantile(0.95), 2)
    1.96
    """
    return float(ndtri(0.5 + level / 2.0))


def kish(weight: FloatArray) -> float:
    """Effective number of rows, (sum w)^2 / sum w^2.

    Examples
    --------
    >>> kish(np.array([1.0, 1.0, 2.0]))
    2.6666666666666665
    """
    return float(weight.sum() ** 2 / np.square(weight).sum())


def mean_interval(
    values: FloatArray, weight: FloatArray, level: float
) -> tuple[float, float, float]:
    """Weighted mean of ``values`` with its normal interval; one row gives an infinite one."""
    total = weight.sum()
    mean = float(weight @ values / total)
    n = len(values)
    if n < 2:
        return mean, -np.inf, np.inf
    variance = float(np.square(weight * (values - mean)).sum() / total**2 * n / (n - 1))
    half = normal_quantile(level) * variance**0.5
    return mean, mean - half, mean + half


def bounded_mean_interval(
    values: FloatArray, weight: FloatArray, least: float, most: float, level: float
) -> tuple[float, float, float]:
    """Weighted mean of values in [least, most], with an interval that holds at those bounds.

    Normal, with four rows added, two at each end of the range: for zeros and ones the interval
    of Agresti and Coull (1998). Rows that are all alike keep a width, as they should.

    Examples
    --------
    >>> mean, low, high = bounded_mean_interval(np.zeros(96), np.ones(96), 0.0, 1.0, 0.95)
    >>> mean, low, round(high, 3)
    (0.0, 0.0, 0.048)
    """
    mean = float(weight @ values / weight.sum())
    ends = np.array([least, least, most, most])
    # each as heavy as one of the effective rows
    each = np.full(4, weight.sum() / kish(weight))
    _, low, high = mean_interval(
        np.concatenate([values, ends]), np.concatenate([weight, each]), level
    )
    return mean, max(min(low, mean), least), min(max(high, mean), most)
