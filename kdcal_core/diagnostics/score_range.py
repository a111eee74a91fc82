"""How far stated probabilities reach towards 0 and 1, and how many lie exactly there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, check_columns, check_rows, check_weight
from kdcal_core.diagnostics.estimate import Estimate, share_estimate
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.statistics import (
    CLIP,
    dependence_of,
    effective_size,
    quantile_interval,
    weighted_quantile,
)

RANGE = "Range in log odds"
RANGE_ENDS = (0.01, 0.99)
"""Shares of the rows below both quantiles."""


def score_range(score: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
    """The distance between the 1% and the 99% quantile of stated probabilities, in log odds.

    Log odds, so that one limit suits rare events too: 1 to 20% is 3.2, and 40 to 60% is 0.8.

    Parameters
    ----------
    score : (n,) array in [0, 1]
        Clipped to [1e-12, 1 - 1e-12].
    level : float
        Of the interval, from order statistics of both quantiles, which share its error.
    sample_weight : (n,) array or RowDesign, optional
        With weights, or of dependent rows, as many rows count as :func:`quantile_interval` says.

    Examples
    --------
    >>> round(score_range(np.linspace(0.4, 0.6, 1001)).value, 2)
    0.79
    """
    odds = stated_log_odds(np.asarray(score, dtype=np.float64))
    weight, dependence = unequal(sample_weight, len(odds)), dependence_of(sample_weight)
    each = level_of_each(level)
    ends = [quantile_interval(odds, end, each, weight, dependence) for end in RANGE_ENDS]
    low, high = (weighted_quantile(odds, end, weight) for end in RANGE_ENDS)
    return range_of(high - low, ends, len(odds), level)


def unequal(sample_weight: Any, n: int) -> FloatArray | None:
    """Weights of ``n`` rows; None where all rows count alike."""
    weight = check_weight(sample_weight, n)
    return None if not n or np.ptp(weight) == 0.0 else weight


def level_of_each(level: float) -> float:
    """Level of the interval of either quantile, where both share the error."""
    check_level(level)
    return 0.5 + 0.5 * level


def range_of(range_: float, ends: Sequence[tuple[float, float]], n: int, level: float) -> Estimate:
    """:func:`score_range` from its value and the intervals of both quantiles, in log odds."""
    (least, low), (high, most) = ends
    farthest = float(stated_log_odds(np.array(1.0)))
    return Estimate(
        name="99% quantile minus 1% quantile of the stated log odds",
        label=RANGE,
        value=range_,
        low=min(max(high - low, 0.0), range_),
        high=max(min(most, farthest) - max(least, -farthest), range_),
        n=n,
        level=level,
        interval="order statistics of both quantiles",
        lower_is_better=None,
    )


def stated_log_odds(score: FloatArray) -> FloatArray:
    """Log odds of clipped scores."""
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
    certain = check_columns(proba).max(axis=1) >= 1.0
    return certain_of(*_rate(certain, sample_weight), len(certain), level)


def certain_of(rate: float, rows: float, n: int, level: float) -> Estimate:
    """:func:`certain_share` from the share, in so many effective ones of ``n`` rows."""
    name = "Share of rows stated as certain"
    return _share(rate, rows, n, level, name, "Certain", None)


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
    stated, true, _ = check_rows(proba, y)
    wrong = (stated.max(axis=1) >= 1.0) & (stated.argmax(axis=1) != true)
    return certain_and_wrong_of(*_rate(wrong, sample_weight), len(wrong), level)


def certain_and_wrong_of(rate: float, rows: float, n: int, level: float) -> Estimate:
    """:func:`certain_and_wrong` from the share, as for :func:`certain_of`."""
    name = "Share of rows stated as certain, and wrong"
    return _share(rate, rows, n, level, name, "Certain and wrong", True)


def _rate(found: Any, sample_weight: Any) -> tuple[float, float]:
    """Share of rows, and the effective number of them."""
    weight = check_weight(sample_weight, len(found))
    rate = float(np.average(found, weights=weight))
    return rate, effective_size(found - rate, weight, dependence_of(sample_weight))


def _share(
    rate: float,
    rows: float,
    n: int,
    level: float,
    name: str,
    label: str,
    lower_is_better: bool | None,
) -> Estimate:
    check_level(level)
    return share_estimate(name, label, rate, rows, n, level, lower_is_better=lower_is_better)
