"""Exact intervals of shares, and a test of a stated one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

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
