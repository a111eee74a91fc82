"""Intervals of means and of their ratios."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kdcal_core.statistics.dependence import Dependence, pooled, small_sample_factor, units
from kdcal_core.statistics.effective_rows import kish
from kdcal_core.statistics.quantiles import normal_quantile, t_quantile_of_rows

FloatArray = NDArray[np.float64]


def mean_interval(
    values: FloatArray,
    weight: FloatArray,
    level: float,
    *,
    student: bool = False,
    dependence: Dependence | None = None,
) -> tuple[float, float, float]:
    """Weighted mean of ``values`` with its interval; one row gives an infinite one.

    Normal, or by :func:`t_quantile_of_rows` with ``student`` and for dependent rows. Their variance
    is that of the clusters' totals, or Newey and West's (1987); of a difference of losses in time
    the interval is then that of the test of Diebold and Mariano (1995), with the correction of
    Harvey, Leybourne and Newbold (1997).

    Examples
    --------
    >>> values, weight = np.repeat([0.0, 1.0, 2.0], 9), np.ones(27)
    >>> thrice = Dependence.of("cluster", np.repeat([7, 8, 9], 9))
    >>> [round(one, 2) for one in mean_interval(values, weight, 0.95)]
    [1.0, 0.69, 1.31]
    >>> [round(one, 2) for one in mean_interval(values, weight, 0.95, dependence=thrice)]
    [1.0, -1.48, 3.48]
    """
    total = weight.sum()
    mean = float(weight @ values / total)
    n = len(units(weight, dependence))
    if n < 2:
        return mean, -np.inf, np.inf
    square = np.square(pooled(weight * (values - mean), dependence)).sum() / total**2
    if dependence is None:
        variance = float(square * n / (n - 1))
    else:
        variance = float(square * small_sample_factor(n, dependence.lags))
    student = student or dependence is not None
    quantile = t_quantile_of_rows(level, weight, dependence) if student else normal_quantile(level)
    half = quantile * variance**0.5
    return mean, mean - half, mean + half


def interval_of_sums(
    total: float,
    square: float,
    n: float,
    level: float,
    extra: Sequence[float] = (),
    *,
    effect: float = 1.0,
) -> tuple[float, float, float]:
    """:func:`mean_interval` from the sums of n values and of their squares, and ``extra`` values.

    ``effect`` multiplies the variance, as dependent rows do.
    """
    total, square = total + sum(extra), square + sum(one * one for one in extra)
    n = n + len(extra)
    mean = total / n
    if n < 2:
        return mean, -np.inf, np.inf
    variance = max(square / n - mean * mean, 0.0) / (n - 1.0)
    half = normal_quantile(level) * (variance * effect) ** 0.5
    return mean, mean - half, mean + half


def ratio_of_means(
    top: FloatArray,
    bottom: FloatArray,
    weight: FloatArray,
    level: float,
    dependence: Dependence | None = None,
) -> tuple[float, float, float]:
    """Weighted mean of ``top`` over that of ``bottom``, with Fieller's interval.

    Both means are uncertain, and the interval accounts for both and for their covariance. It
    excludes 0 exactly where the interval of the mean of ``top`` does, by
    :func:`t_quantile_of_rows`.

    Parameters
    ----------
    top, bottom : (n,) array
        Values of the same rows.
    weight : (n,) array
        Positive row weights.

    Returns
    -------
    tuple of float
        The ratio and its ends: infinite for one row, and where the mean of ``bottom`` does not
        differ from 0 beyond chance. NaN where that mean is 0.

    Examples
    --------
    >>> top, bottom = np.array([1.0, 3.0, 2.0, 2.0]), np.array([9.0, 12.0, 11.0, 8.0])
    >>> [round(one, 2) for one in ratio_of_means(top, bottom, np.ones(4), 0.95)]
    [0.2, 0.09, 0.3]
    """
    share = weight / weight.sum()
    a, b = float(share @ top), float(share @ bottom)
    n = len(units(weight, dependence))
    if b == 0.0:
        return np.nan, np.nan, np.nan
    if n < 2:
        return a / b, -np.inf, np.inf
    away = pooled(np.stack([share * (top - a), share * (bottom - b)]), dependence)
    factor = small_sample_factor(n, 0 if dependence is None else dependence.lags)
    (var_a, covariance), (_, var_b) = (away @ away.T) * factor
    reach = t_quantile_of_rows(level, weight, dependence)
    low, high = ratio_interval(a, b, float(var_a), float(covariance), float(var_b), reach)
    return a / b, min(low, a / b), max(high, a / b)


def ratio_interval(
    top: float, bottom: float, var_top: float, covariance: float, var_bottom: float, reach: float
) -> tuple[float, float]:
    """Fieller's interval (1954) of top / bottom: the ratios r for which top - r bottom may be 0.

    ``reach`` is half its width in standard errors. Infinite where ``bottom`` may itself be 0.

    Examples
    --------
    >>> low, high = ratio_interval(1.0, 10.0, 0.04, 0.0, 0.0, 2.0)
    >>> round(low, 2), round(high, 2)
    (0.06, 0.14)
    """
    square = reach**2
    lead = bottom**2 - square * var_bottom
    middle = top * bottom - square * covariance
    root = middle**2 - lead * (top**2 - square * var_top)
    if not lead > 0.0 or root < 0.0:
        return -np.inf, np.inf
    low, high = ((middle + sign * root**0.5) / lead for sign in (-1.0, 1.0))
    return low, high


def bounded_mean_interval(
    values: FloatArray,
    weight: FloatArray,
    least: float,
    most: float,
    level: float,
    dependence: Dependence | None = None,
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
        np.concatenate([values, ends]),
        np.concatenate([weight, each]),
        level,
        dependence=None if dependence is None else dependence.and_alone(4),
    )
    return mean, max(min(low, mean), least), min(max(high, mean), most)


def bounded_mean_of_counts(
    values: FloatArray,
    counts: FloatArray,
    least: float,
    most: float,
    level: float,
    effect: float = 1.0,
) -> tuple[float, float, float]:
    """As `bounded_mean_interval`, of values (m,) of which each occurs in ``counts`` (m,) rows.

    ``effect`` is that of dependence on the variance.

    Examples
    --------
    >>> values, counts = np.array([0.2, 0.7]), np.array([3.0, 5.0])
    >>> found = bounded_mean_of_counts(values, counts, 0.0, 1.0, 0.95)
    >>> rows = np.repeat(values, [3, 5])
    >>> np.allclose(found, bounded_mean_interval(rows, np.ones(8), 0.0, 1.0, 0.95))
    True
    """
    n = float(counts.sum())
    mean = float(counts @ values / n)
    every = np.concatenate([values, [least, least, most, most]])
    times = np.concatenate([counts, np.ones(4)])
    rows = n + 4.0
    middle = float(times @ every / rows)
    variance = float(times @ np.square(every - middle)) / (rows - 1.0) / rows
    half = normal_quantile(level) * (variance * effect) ** 0.5
    low, high = middle - half, middle + half
    return mean, max(min(low, mean), least), min(max(high, mean), most)
