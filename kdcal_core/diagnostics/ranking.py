"""The area under a ROC curve, what each row adds to its sampling error, and its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtrit

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.intervals import clopper_pearson

_ROUNDING = 1e-12  # an area this close to 0 or 1 is 0 or 1
_NO_VARIANCE = 1e-18


def roc_area(
    score: FloatArray, positive: NDArray[np.bool_], weight: FloatArray
) -> tuple[float, FloatArray]:
    """Weighted area under one ROC curve, and each row's part of its sampling error (n,).

    A positive's part is the share of negatives below it (ties count half) less the area, times
    its share of the positives; a negative's likewise (DeLong's structural components). Infinite
    scores rank like any number; each side needs a row. O(n log n).

    Examples
    --------
    >>> score, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    >>> roc_area(score, positive, np.ones(4))[0]
    0.75
    """
    order = np.argsort(score)
    ordered = score[order]
    # compared, not subtracted: an infinity less an infinity would hide that they tie
    start = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    size = np.diff(np.append(start, len(ordered)))
    share = np.where(positive, weight, 0.0)[order], np.where(positive, 0.0, weight)[order]
    below = []
    for side in share:
        tied = np.add.reduceat(side, start)
        below.append(np.repeat(np.cumsum(tied) - 0.5 * tied, size) / tied.sum())
    hit = positive[order]
    placed = np.where(hit, below[1], 1.0 - below[0])
    weighted = np.where(hit, share[0] / share[0].sum(), share[1] / share[1].sum())
    area = float(weighted @ np.where(hit, placed, 0.0))
    if min(area, 1.0 - area) < _ROUNDING:
        area = float(round(area))
    part = np.empty(len(score))
    part[order] = weighted * (placed - area)
    return area, part


def area_variance(
    part: FloatArray, side: IntArray, weight: FloatArray, widest: float = 1.0
) -> tuple[float, float, float]:
    """Variance of a sum of structural components, its degrees of freedom, and the least side.

    Parameters
    ----------
    part : (n,) array
        Of one area, a mean of areas, or a difference of two.
    side : (n,) array of int
        The independent samples the rows come from: positives and negatives, or the true classes.
    weight : (n,) array
        Row weights; each sample counts by Kish's effective number of rows.
    widest : float
        Width of the range that one sample's components can take. A sample of a single row tells
        no variance and counts with the largest there is, a quarter of the square of this.

    Returns
    -------
    tuple of float
        DeLong's variance; Satterthwaite's degrees of freedom, because a variance told by five
        rows is itself in doubt; and the effective rows of the smallest sample.
    """
    mass = np.bincount(side, weights=weight)
    present = mass > 0.0
    rows = mass[present] ** 2 / np.bincount(side, weights=weight**2)[present]
    square = np.bincount(side, weights=part**2)[present]
    spare = np.maximum(rows - 1.0, 1e-9)
    each = np.where(rows > 1.0 + 1e-9, square * rows / spare, 0.25 * widest**2)
    variance = float(each.sum())
    least = float(rows.min())
    if variance < _NO_VARIANCE:
        return 0.0, np.inf, least
    doubt = np.where(rows > 1.0 + 1e-9, each**2 / spare, 0.0).sum()
    return variance, float(variance**2 / doubt) if doubt > 0.0 else np.inf, least


def area_interval(
    area: float,
    part: FloatArray,
    side: IntArray,
    weight: FloatArray,
    level: float,
    widest: float = 1.0,
) -> tuple[float, float, str]:
    """Interval of an area, or of a mean of areas, from its structural components, and its name.

    DeLong's error on the logit scale with a t quantile. Where the sides are wholly parted or
    tied that has no width: there it is Clopper-Pearson's for as many independent pairs as the
    smallest sample has rows. Arguments as in :func:`area_variance`.
    """
    variance, freedom, least = area_variance(part, side, weight, widest)
    if variance == 0.0 or not 0.0 < area < 1.0:
        low, high = (float(v) for v in clopper_pearson(area, least, level))
        return low, high, "Clopper-Pearson of pairs"
    half = stdtrit(freedom, 0.5 + level / 2.0) * variance**0.5 / (area * (1.0 - area))
    low, high = (float(expit(logit(area) + sign * half)) for sign in (-1.0, 1.0))
    return min(low, area), max(high, area), "DeLong, t quantile, logit scale"
