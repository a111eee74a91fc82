"""How far stated probabilities reach towards 0 and 1, and how many lie exactly there."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, check_labels, check_proba, check_weight
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.statistics import (
    CLIP,
    clopper_pearson,
    dependence_of,
    effective_size,
    quantile_interval,
)

RANGE = "Range in log odds"
_ENDS = (0.01, 0.99)


def score_range(score: Any, *, level: float = 0.95) -> Estimate:
    """The distance between the 1% and the 99% quantile of stated probabilities, in log odds.

    Log odds, so that one limit suits rare events too: 1 to 20% is 3.2, and 40 to 60% is 0.8.

    Parameters
    ----------
    score : (n,) array in [0, 1]
        Clipped to [1e-12, 1 - 1e-12].
    level : float
        Of the interval, from order statistics of both quantiles, which share its error.

    Examples
    --------
    >>> round(score_range(np.linspace(0.4, 0.6, 1001)).value, 2)
    0.79
    """
    check_level(level)
    odds = _log_odds(np.asarray(score, dtype=np.float64))
    (least, low), (high, most) = (quantile_interval(odds, end, 0.5 + 0.5 * level) for end in _ENDS)
    range_ = float(np.ptp(np.quantile(odds, _ENDS)))
    farthest = float(_log_odds(np.array(1.0)))
    return Estimate(
        name="99% quantile minus 1% quantile of the stated log odds",
        label=RANGE,
        value=range_,
        low=min(max(high - low, 0.0), range_),
        high=max(min(most, farthest) - max(least, -farthest), range_),
        n=len(odds),
        level=level,
        interval="order statistics of both quantiles",
        lower_is_better=None,
    )


def _log_odds(score: FloatArray) -> FloatArray:
    clipped = np.clip(score, CLIP, 1.0 - CLIP)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def certain_share(proba: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
    """Share of rows whose largest probability is exactly 1, with Clopper and Pearson's interval.

    Parameters
    ----------
    proba : (n, K) array
    level : float
    sample_weight : (n,) array or RowDesign, optional

    Examples
    --------
    >>> certain_share([[1.0, 0.0], [0.4, 0.6]]).value
    0.5
    """
    certain = check_proba(proba).max(axis=1) >= 1.0
    name = "Share of rows stated as certain"
    return _share(certain, name, "Certain", level, sample_weight, None)


def certain_and_wrong(
    proba: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """Share of rows of which a probability of exactly 1 was stated for a class that is not true.

    Of all rows, with Clopper and Pearson's interval. In such a row something happened that was
    stated to be impossible.

    Parameters
    ----------
    proba : (n, K) array
    y : (n,) int array
        True classes.
    level : float
    sample_weight : (n,) array or RowDesign, optional

    Examples
    --------
    >>> certain_and_wrong([[1.0, 0.0], [1.0, 0.0], [0.4, 0.6], [0.0, 1.0]], [0, 1, 0, 1]).value
    0.25
    """
    stated = check_proba(proba)
    true = check_labels(y, stated.shape[1], n_rows=len(stated))
    wrong = (stated.max(axis=1) >= 1.0) & (stated.argmax(axis=1) != true)
    name = "Share of rows stated as certain, and wrong"
    return _share(wrong, name, "Certain and wrong", level, sample_weight)


def _share(
    found: Any,
    name: str,
    label: str,
    level: float,
    sample_weight: Any,
    lower_is_better: bool | None = True,
) -> Estimate:
    check_level(level)
    n = len(found)
    weight = check_weight(sample_weight, n)
    rate = float(np.average(found, weights=weight))
    rows = effective_size(found - rate, weight, dependence_of(sample_weight))
    low, high = clopper_pearson(rate, rows, level)
    return Estimate(
        name=name,
        label=label,
        value=rate,
        low=float(low),
        high=float(high),
        n=n,
        level=level,
        interval="Clopper-Pearson",
        percent=True,
        lower_is_better=lower_is_better,
    )
