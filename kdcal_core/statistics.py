"""What every room counts with: exact and normal intervals, corrections, rank tests, row losses.

Arrays in, numbers out: nothing here knows a model, a review or a screen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from kdcal_core.errors import InputError

__all__ = [
    "CLIP",
    "bounded_mean_interval",
    "brier_losses",
    "clopper_pearson",
    "holm",
    "kish",
    "log_losses",
    "mean_interval",
    "normal_quantile",
    "one_sided_wilcoxon",
    "surprisal",
    "top_label_brier_losses",
    "top_label_log_losses",
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
