"""How far stated probabilities differ between rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.statistics import quantile_interval

_ENDS = (0.01, 0.99)


def score_range(score: Any, *, level: float = 0.95) -> Estimate:
    """The distance between the 1% and the 99% quantile of stated probabilities.

    Parameters
    ----------
    score : (n,) array in [0, 1]
    level : float
        Of the interval, from order statistics of both quantiles, which share its error.

    Examples
    --------
    >>> round(score_range(np.linspace(0.0, 1.0, 1001)).value, 2)
    0.98
    """
    check_level(level)
    score = np.asarray(score, dtype=np.float64)
    (least, low), (high, most) = (quantile_interval(score, end, 0.5 + 0.5 * level) for end in _ENDS)
    range_ = float(np.ptp(np.quantile(score, _ENDS)))
    return Estimate(
        name="99% quantile minus 1% quantile of the stated probabilities",
        label="Range",
        value=range_,
        low=min(max(high - low, 0.0), range_),
        high=max(min(most, 1.0) - max(least, 0.0), range_),
        n=len(score),
        level=level,
        interval="order statistics of both quantiles",
        lower_is_better=None,
    )
