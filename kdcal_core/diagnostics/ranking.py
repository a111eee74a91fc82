"""The area under a ROC curve, each row's part of its sampling error, and its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtrit

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import clopper_pearson, kish

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
    # compared, not subtracted: the difference of two infinities would hide a tie
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
    part: FloatArray,
    side: IntArray,
    weight: FloatArray,
    lead: FloatArray | None = None,
    lone: float = 0.25,
    pseudo_row: bool = False,
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
    lead : (n,) array, optional
        Width of the range that each row's component can take; 1 by default.
    lone : float
        Variance of a component, in units of its range squared, for a sample of a single row,
        which gives no estimate. At most 1/4; for components with mean m it is m (1 - m).
    pseudo_row : bool
        Whether half a row of variance ``lone`` is averaged into every sample's variance. Five
        positives that all lie near the top have almost no variance, which says little about the
        sixth.

    Returns
    -------
    tuple of float
        DeLong's variance; Satterthwaite's degrees of freedom, because a variance estimated from
        five rows is itself uncertain; and the effective rows of the smallest sample.
    """
    mass = np.bincount(side, weights=weight)
    present = mass > 0.0
    rows = mass[present] ** 2 / np.bincount(side, weights=weight**2)[present]
    square = np.bincount(side, weights=part**2)[present]
    widest = 1.0 / rows if lead is None else np.bincount(side, weights=lead**2)[present]
    spare = np.maximum(rows - 1.0, 1e-9)
    several = rows > 1.0 + 1e-9
    each = np.where(several, square * rows / spare, lone * widest)
    variance = float(each.sum())
    least = float(rows.min())
    if variance < _NO_VARIANCE:
        return 0.0, np.inf, least
    if pseudo_row:
        each = np.where(several, each + (0.5 * lone * widest - each) / (rows + 0.5), each)
        variance = float(each.sum())
    doubt = np.where(rows > 1.0 + 1e-9, each**2 / spare, 0.0).sum()
    return variance, float(variance**2 / doubt) if doubt > 0.0 else np.inf, least


def area_interval(
    area: float,
    part: FloatArray,
    side: IntArray,
    weight: FloatArray,
    level: float,
    lead: FloatArray | None = None,
    pairs: float | None = None,
) -> tuple[float, float, str]:
    """Interval of an area, or of a mean of areas, from its structural components, and its name.

    DeLong's error on the logit scale with a t quantile; half a pseudo-row in each sample gives
    some variance to a few rows that all lie near the top. Where that error is far larger than the
    area's distance from 0 or 1, the logit scale would stretch it from 0 to 1: there it is
    Wilson's score interval for as many rows as a proportion with DeLong's variance would have
    (Kottas, Kuss and Zapf 2014). If the sides are perfectly separated or tied, the variance is
    zero: there the interval is Clopper-Pearson's for ``pairs`` independent pairs, by
    default as many as the smallest sample has rows. Other arguments as in :func:`area_variance`.
    """
    least = area_variance(part, side, weight, lead)[2]
    pairs = least if pairs is None else pairs
    middle = (area * pairs + 0.5) / (pairs + 1.0)
    variance, freedom, _ = area_variance(
        part, side, weight, lead, middle * (1.0 - middle), pseudo_row=True
    )
    if variance == 0.0 or not 0.0 < area < 1.0:
        low, high = (float(v) for v in clopper_pearson(area, pairs, level))
        return low, high, "Clopper-Pearson of pairs"
    t = stdtrit(freedom, 0.5 + level / 2.0)
    if variance**0.5 <= 1.5 * min(area, 1.0 - area):
        half = t * variance**0.5 / (area * (1.0 - area))
        low, high = (float(expit(logit(area) + sign * half)) for sign in (-1.0, 1.0))
        return min(low, area), max(high, area), "DeLong, t quantile, logit scale"
    square = t**2
    rows = area * (1.0 - area) / variance
    centre = (area + 0.5 * square / rows) / (1.0 + square / rows)
    half = (square * (area * (1.0 - area) + 0.25 * square / rows) / rows) ** 0.5
    half /= 1.0 + square / rows
    low, high = (float(np.clip(centre + sign * half, 0.0, 1.0)) for sign in (-1.0, 1.0))
    return min(low, area), max(high, area), "DeLong, t quantile, score interval"


@dataclass(frozen=True, eq=False)
class Pairing:
    """Which rows are ranked against which: one curve for each class and fold with both sides.

    The one estimator of an area for K classes: class 1 where there are two, else the mean of each
    class against the rest by the classes' weights, so that every row counts the same and a class
    of one row moves it little. Ties count half.

    Scores of different folds come from different fits, and leaving a row out moves them against
    its own class; so rows are ranked only inside their fold (Forman and Scholz 2010). A
    class counts by its weight, a fold by its pairs.
    """

    y: IntArray
    weight: FloatArray
    fold: IntArray
    n_classes: int
    curves: tuple[tuple[int, int, float], ...]

    @classmethod
    def of(
        cls, y: IntArray, weight: FloatArray, n_classes: int, fold: IntArray | None = None
    ) -> Pairing:
        """All rows against each other, or with ``fold`` (n,) those of each fold."""
        fold = np.zeros(len(y), dtype=np.int64) if fold is None else fold
        folds = np.unique(fold)
        curves: list[tuple[int, int, float]] = []
        total = 0.0
        for k in [1] if n_classes == 2 else range(n_classes):
            pairs = {
                int(f): float(
                    weight[(fold == f) & (y == k)].sum() * weight[(fold == f) & (y != k)].sum()
                )
                for f in folds
            }
            whole = sum(pairs.values())
            if whole > 0:
                share = float(weight[y == k].sum())
                total += share
                curves += [(k, f, share * p / whole) for f, p in pairs.items() if p > 0]
        return cls(y, weight, fold, n_classes, tuple((k, f, s / total) for k, f, s in curves))

    def words(self, classes: Sequence[str] | None = None) -> str:
        """Which classes the area is of; ``classes`` names them."""
        if self.n_classes == 2:
            return f"the class {classes[1]}" if classes else "the second class"
        shown = len({k for k, _, _ in self.curves})
        return f"one against the rest, {shown} classes by their share"

    @property
    def lead(self) -> FloatArray:
        """The largest part that each row can have in an area's sampling error, (n,)."""
        lead = np.zeros(len(self.y))
        for k, f, share in self.curves:
            lead += share * self._shares(k, f)
        return lead

    @property
    def pairs(self) -> float:
        """Independent pairs of a row of a class and one of the rest behind the mean area."""
        shares: dict[int, float] = {}
        for k, _, share in self.curves:
            shares[k] = shares.get(k, 0.0) + share
        return 1.0 / sum(
            share**2 / min(kish(self.weight[self.y == k]), kish(self.weight[self.y != k]))
            for k, share in shares.items()
        )

    def area(self, proba: FloatArray) -> tuple[float, FloatArray]:
        """Mean area, and each row's part of its sampling error (n,).

        Parts are centred on the class's area over all folds, not on the fold's own: a fold with
        one row of a class would show no variance of it.
        """
        value, part = 0.0, np.zeros(len(self.y))
        areas: dict[int, list[tuple[int, float, float]]] = {}
        for k, f, share in self.curves:
            rows = np.flatnonzero(self.fold == f)
            one, own = roc_area(proba[rows, k], self.y[rows] == k, self.weight[rows])
            value += share * one
            part[rows] += share * own
            areas.setdefault(k, []).append((f, share, one))
        for k, found in areas.items():
            if len(found) == 1:
                continue
            mean = sum(share * one for _, share, one in found) / sum(s for _, s, _ in found)
            for f, share, one in found:
                part += share * (one - mean) * self._shares(k, f)
        if min(value, 1.0 - value) < _ROUNDING:
            value = float(round(value))
        return value, part

    def interval(self, area: float, part: FloatArray, level: float) -> tuple[float, float, str]:
        """:func:`area_interval` of a mean area."""
        return area_interval(area, part, self.y, self.weight, level, self.lead, self.pairs)

    def _shares(self, k: int, f: int) -> FloatArray:
        """Each row's share of its side of a curve, 0 outside the fold, (n,)."""
        shares = np.zeros(len(self.y))
        for side in (self.y == k, self.y != k):
            here = (self.fold == f) & side
            shares[here] = self.weight[here] / self.weight[here].sum()
        return shares
