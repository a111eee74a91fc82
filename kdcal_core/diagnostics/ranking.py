"""The area under a ROC curve, with what each row adds to its sampling error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray


def roc_area(
    score: FloatArray, positive: NDArray[np.bool_], weight: FloatArray
) -> tuple[float, FloatArray]:
    """Weighted area under one ROC curve, and each row's part of its sampling error (n,).

    A positive's part is the share of negatives below it (ties count half) less the area, times
    its share of the positives; a negative's likewise (DeLong's structural components). Scores
    are at least 0.

    Examples
    --------
    >>> score, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    >>> roc_area(score, positive, np.ones(4))[0]
    0.75
    """
    order = np.argsort(score)
    ordered = score[order]
    start = np.flatnonzero(np.diff(ordered, prepend=-1.0) != 0.0)
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
    part = np.empty(len(score))
    part[order] = weighted * (placed - area)
    return min(max(area, 0.0), 1.0), part
