"""What every room counts with: exact and normal intervals, corrections, rank tests, row losses.

Arrays in, numbers out: nothing here knows a model, a review or a screen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri, stdtrit

from kdcal_core.errors import InputError
from kdcal_core.statistics.dependence import (
    BinDependence,
    Dependence,
    DependenceKind,
    DesignedRows,
    Resamples,
    RowDesign,
    bin_dependence,
    dependence_of,
    dependence_of_bins,
    design_effect,
    design_of,
    independent_rows,
    lags_for,
    of_rows,
    only,
    pooled,
    side_by_side,
    small_sample_factor,
    units,
)
from kdcal_core.statistics.drawn_counts import binomial_draws
from kdcal_core.statistics.row_groups import GroupSums, RowGroups, correlation, is_telling

__all__ = [
    "CLIP",
    "BinDependence",
    "Dependence",
    "DependenceKind",
    "DesignedRows",
    "GroupSums",
    "Resamples",
    "RowDesign",
    "RowGroups",
    "bin_dependence",
    "binomial_draws",
    "bounded_mean_interval",
    "bounded_mean_of_counts",
    "brier_losses",
    "clopper_pearson",
    "correlation",
    "dependence_of",
    "dependence_of_bins",
    "design_effect",
    "design_of",
    "effective_size",
    "holm",
    "independent_rows",
    "is_telling",
    "jeffreys_test",
    "kish",
    "lags_for",
    "largest_share",
    "log_losses",
    "mean_interval",
    "normal_quantile",
    "of_rows",
    "one_sided_wilcoxon",
    "only",
    "pooled",
    "quantile_interval",
    "ratio_interval",
    "ratio_of_means",
    "side_by_side",
    "small_sample_factor",
    "step_down",
    "surprisal",
    "t_quantile",
    "t_quantile_of_rows",
    "top_label_brier_losses",
    "top_label_log_losses",
    "units",
    "weighted_quantile",
    "whole_rows",
]

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


def largest_share(shares: Any, n: float, level: float) -> tuple[float, float, float]:
    """The largest of several shares of ``n`` rows, with an interval of the largest true one.

    That share was chosen because it is the largest, so it tends to lie above its true value. The
    interval allows for the choice: its lower end has Bonferroni's correction for all shares, and
    its upper end is the largest of all upper ends. Clopper and Pearson's otherwise.

    Parameters
    ----------
    shares : (k,) array-like in [0, 1]
    n : float
        Rows, or Kish's effective number of them, above 0.
    level : float

    Returns
    -------
    tuple of float
        The largest share, and the ends of its interval.

    Examples
    --------
    >>> [round(one, 3) for one in largest_share([0.5], 10, 0.95)]
    [0.5, 0.187, 0.813]
    >>> [round(one, 3) for one in largest_share([0.5, 0.4, 0.1], 10, 0.95)]
    [0.5, 0.144, 0.813]
    """
    seen = np.asarray(shares, dtype=np.float64)
    low = clopper_pearson(seen, n, 1.0 - (1.0 - level) / len(seen))[0]
    high = clopper_pearson(seen, n, level)[1]
    return float(seen.max()), float(low.max()), float(high.max())


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


def jeffreys_test(hits: float, n: float, stated: float) -> float:
    """One-sided p value of the hypothesis that events happen at most as often as stated.

    The posterior probability, with Jeffreys's prior, that the true rate is at most ``stated``, as
    banks report it for each rating grade (European Central Bank, *Instructions for reporting the
    validation results of internal models*, 2019). Small where the stated probability is too low.

    Parameters
    ----------
    hits, n : float
        Events and rows; with row weights, shares of Kish's effective number.
    stated : float in [0, 1]

    Examples
    --------
    >>> jeffreys_test(5, 100, 0.02) < 0.05 < jeffreys_test(3, 100, 0.02)
    True
    """
    return float(betainc(hits + 0.5, n - hits + 0.5, stated))


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


def t_quantile(level: float, freedom: float) -> float:
    """Half the width, in estimated standard errors, of an interval by Student's distribution.

    Examples
    --------
    >>> round(t_quantile(0.95, 9), 2)
    2.26
    """
    return float(stdtrit(freedom, 0.5 + level / 2.0))


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


def one_sided_wilcoxon(a: Any, b: Any, paired: bool = False) -> float:
    """p value against "``a`` is not larger than ``b``": small where ``a`` is the larger.

    Parameters
    ----------
    a, b : (n,), (m,) array-like
        Improvements of two methods; infinities rank like any number.
    paired : bool
        False: the rank-sum test that the earlier version of Dey et al. states (Mann and Whitney's
        U). True: the signed-rank test, the one for methods run on the same data sets; equal pairs
        say nothing and are left out, and where all are equal p is 1.

    Raises
    ------
    InputError
        For a missing value (the row is named), no values, or pairs of unequal number.

    Examples
    --------
    >>> one_sided_wilcoxon([3.0, 4.0, 5.0], [0.0, 1.0, 2.0])
    0.05
    >>> one_sided_wilcoxon([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], paired=True)
    1.0
    """
    from scipy.stats import mannwhitneyu, wilcoxon  # slow to import

    a, b = _values(a, "first"), _values(b, "second")
    if not paired:
        return float(mannwhitneyu(a, b, alternative="greater").pvalue)
    if len(a) != len(b):
        raise InputError(
            f"There are {len(a)} and {len(b)} values, but pairs are compared",
            fix="Give one value of each method for each data set.",
        )
    unequal = a != b
    if not unequal.any():
        return 1.0
    return float(wilcoxon(a[unequal] - b[unequal], alternative="greater").pvalue)


def _values(values: Any, noun: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise InputError(
            f"The {noun} values have shape {array.shape}", fix="Give a list of numbers."
        )
    missing = np.isnan(array)
    if missing.any():
        raise InputError(
            f"One of the {noun} values is missing",
            fix="Leave its data set out of both.",
            row=int(np.argmax(missing)) + 1,
        )
    return array


def holm(p_values: Any) -> NDArray[np.float64]:
    """Holm's adjusted p values (1979): valid whatever the tests' dependence.

    Where tests with an adjusted p value below ``a`` count as significant, the chance that any of
    them is a false alarm is at most ``a``.

    Parameters
    ----------
    p_values : (m,) array-like
        From 0 to 1.

    Returns
    -------
    (m,) array
        In the same order, from 0 to 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


CLIP = 1e-12
"""How far probabilities are kept from 0, and from 1, before a logarithm.

An outcome that was called impossible costs 27.6 nats, not infinity.
"""


def surprisal(probability: Any) -> NDArray[np.float64]:
    """-log of the probability that was given to what happened, in nats, clipped at ``CLIP``.

    Examples
    --------
    >>> surprisal([1.0, 0.5, 0.0]).round(3).tolist()
    [-0.0, 0.693, 27.631]
    """
    return np.asarray(-np.log(np.clip(probability, CLIP, 1.0)))


def log_losses(proba: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log loss of each row's vector, (n,).

    Parameters
    ----------
    proba : (n, K) array
        Rows sum to one.
    y : (n,) int array
        True classes, 0 to K - 1.

    Examples
    --------
    >>> log_losses(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 1])).round(2).tolist()
    [0.69, 27.63]
    """
    return surprisal(proba[np.arange(len(y)), y])


def brier_losses(proba: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Squared distance of each row's vector from the true class's indicator, (n,), 0 to 2.

    Parameters as in :func:`log_losses`.

    Examples
    --------
    >>> brier_losses(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 1])).tolist()
    [0.5, 2.0]
    """
    true = proba[np.arange(len(y)), y]
    return np.asarray(np.maximum(np.square(proba).sum(axis=1) - 2.0 * true + 1.0, 0.0))


def top_label_log_losses(
    confidence: NDArray[np.float64], correct: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Log loss of "the predicted class is right", (n,): Salamon et al., Eq. 14, of each row.

    Parameters
    ----------
    confidence : (n,) array
        Stated probability that the predicted class is right.
    correct : (n,) array
        1 where it is, else 0.

    Examples
    --------
    >>> top_label_log_losses(np.array([0.75, 1.0]), np.array([1.0, 0.0])).round(3).tolist()
    [0.288, 27.631]
    """
    return surprisal(np.where(correct > 0, confidence, 1.0 - confidence))


def top_label_brier_losses(
    confidence: NDArray[np.float64], correct: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Squared distance of confidence and outcome, (n,): Salamon et al., Eq. 15, of each row.

    Parameters as in :func:`top_label_log_losses`.

    Examples
    --------
    >>> top_label_brier_losses(np.array([0.75, 1.0]), np.array([1.0, 0.0])).tolist()
    [0.0625, 1.0]
    """
    return np.asarray(np.square(correct - confidence))


def __dir__() -> list[str]:
    return sorted(__all__)


def step_down(statistic: NDArray[np.float64], null: NDArray[np.float64]) -> NDArray[np.float64]:
    """p values corrected by the step-down largest statistic (Westfall and Young 1993), (c,).

    Less strict than :func:`holm` where the tests depend on one another.

    Parameters
    ----------
    statistic : (c,) array
        Larger values are evidence against a hypothesis.
    null : (B, c) array
        The same statistics in B draws in which all hypotheses are true.

    Examples
    --------
    >>> null = np.array([[1.0, 5.0], [4.0, 1.0], [2.0, 2.0]])
    >>> step_down(np.array([4.5, 3.0]), null).tolist()
    [0.5, 0.5]
    """
    order = np.argsort(statistic, kind="stable")
    # the largest over a hypothesis and all with smaller statistics
    largest = np.maximum.accumulate(null[:, order], axis=1)
    p = (1 + (largest >= statistic[order]).sum(axis=0)) / (len(null) + 1)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p[::-1])[::-1]
    return adjusted
