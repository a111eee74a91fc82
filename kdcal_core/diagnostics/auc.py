"""The area under a ROC curve: its sampling error, its interval, and a comparison of two scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit, stdtr

from kdcal_core.data import FloatArray, IntArray, check_hits, check_weight
from kdcal_core.data.binning import bin_sums
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    clopper_pearson,
    dependence_of,
    kish,
    pooled,
    ratio_interval,
    small_sample_factor,
    t_quantile,
    units,
)

_ROUNDING = 1e-12  # an area this close to 0 or 1 is 0 or 1
_NO_VARIANCE = 1e-18


def roc_area(
    score: FloatArray, positive: NDArray[np.bool_], weight: FloatArray
) -> tuple[float, FloatArray]:
    """Weighted area under one ROC curve, and each row's part of its sampling error (n,).

    A positive's part is the share of negatives below it (ties count half) minus the area, times
    its share of the positives. A negative's part is defined in the same way (DeLong's structural
    components). Infinite scores are ranked like any number. Each side needs at least one row.
    O(n log n).

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
    dependence: Dependence | None = None,
) -> tuple[float, float, float]:
    """Variance of a sum of structural components, its degrees of freedom, and its smallest sample.

    Parameters
    ----------
    part : (n,) array
        Components of one area, of a mean of areas, or of a difference of two.
    side : (n,) array of int
        The independent sample each row comes from: positives and negatives, or the true classes.
    weight : (n,) array
        Row weights; each sample counts by Kish's effective number of rows.
    lead : (n,) array, optional
        Width of the range of each row's component; 1 by default.
    lone : float
        Variance of a component, in units of its range squared, for a sample of a single row,
        which gives no estimate. At most 1/4; for components with mean m it is m (1 - m).
    pseudo_row : bool
        Whether half a row of variance ``lone`` is averaged into every sample's variance. Five
        positives that all lie near the top have almost no variance, which says little about the
        sixth.
    dependence : Dependence, optional
        Of the rows. The variance is multiplied by the ratio of that of the clusters' totals to that
        of the rows, both samples together (Obuchowski 1997), and the degrees of freedom are at most
        the clusters less one.

    Returns
    -------
    tuple of float
        DeLong's variance; Satterthwaite's degrees of freedom, because a variance estimated from
        five rows is itself uncertain; and the effective rows of the smallest sample.
    """
    mass = np.bincount(side, weights=weight)
    present = mass > 0.0
    rows = mass[present] ** 2 / np.bincount(side, weights=weight**2)[present]
    square = bin_sums(side, len(mass), part**2)[present]
    widest = 1.0 / rows if lead is None else bin_sums(side, len(mass), lead**2)[present]
    clusters = None if dependence is None else _of_clusters(part, weight, dependence)
    return variance_of_samples(rows, square, widest, lone, pseudo_row, clusters)


def variance_of_samples(
    rows: FloatArray,
    square: FloatArray,
    widest: FloatArray,
    lone: float = 0.25,
    pseudo_row: bool = False,
    clusters: tuple[float, tuple[float, float]] | None = None,
) -> tuple[float, float, float]:
    """:func:`area_variance` from sums over each sample, (S,).

    Parameters
    ----------
    rows : (S,) array
        Effective rows of each sample.
    square, widest : (S,) array
        Sums of the squared components, and of the squared widths of their ranges.
    lone, pseudo_row
        As in :func:`area_variance`.
    clusters : tuple, optional
        Design effect of the sum, clusters for each row, and their degrees of freedom.
    """
    spare = np.maximum(rows - 1.0, 1e-9)
    several = rows > 1.0 + 1e-9
    each = np.where(several, square * rows / spare, lone * widest)
    variance = float(each.sum())
    least = float(rows.min())
    most_freedom = np.inf
    if clusters is not None:
        effect, few = clusters
        least, most_freedom, variance, each = (
            least * few[0],
            few[1],
            variance * effect,
            each * effect,
        )
    if variance < _NO_VARIANCE:
        return 0.0, np.inf, least
    if pseudo_row:
        each = np.where(several, each + (0.5 * lone * widest - each) / (rows + 0.5), each)
        variance = float(each.sum())
    doubt = np.where(rows > 1.0 + 1e-9, each**2 / spare, 0.0).sum()
    freedom = float(variance**2 / doubt) if doubt > 0.0 else np.inf
    return variance, min(freedom, most_freedom), least


def _of_clusters(
    part: FloatArray, weight: FloatArray, dependence: Dependence
) -> tuple[float, tuple[float, float]]:
    """The design effect of a sum of parts; clusters for each row, and their degrees of freedom."""
    mass, n = units(weight, dependence), len(part)
    if len(mass) < 2:  # one cluster says nothing of others
        return float(n), (kish(mass) / kish(weight), 1.0)
    own = float(np.square(part).sum()) * small_sample_factor(n)
    together = float(np.square(pooled(part, dependence)).sum())
    together *= small_sample_factor(len(mass), dependence.lags)
    effect = together / own if own > 0.0 else 1.0
    return effect, (kish(mass) / kish(weight), max(kish(mass) - 1.0, 1.0))


def area_interval(
    area: float,
    part: FloatArray,
    side: IntArray,
    weight: FloatArray,
    level: float,
    lead: FloatArray | None = None,
    pairs: float | None = None,
    dependence: Dependence | None = None,
) -> tuple[float, float, str]:
    """Interval of an area, or of a mean of areas, from its structural components, and its name.

    The interval uses DeLong's error on the logit scale with a t quantile. Half a pseudo-row in each
    sample gives some variance to a few rows that all lie near the top. If that error is far larger
    than the area's distance from 0 or 1, the logit scale would stretch the interval from 0 to 1.
    It is then Wilson's score interval, for the number of rows at which a proportion has DeLong's
    variance (Kottas, Kuss and Zapf 2014). If the sides are perfectly separated or tied, the
    variance is zero. The interval is then Clopper-Pearson's for ``pairs`` independent pairs, by
    default the number of rows of the smallest sample. Other arguments as in
    :func:`area_variance`.
    """
    if dependence is not None and len(units(weight, dependence)) < 2:
        return 0.0, 1.0, f"any: all rows are of one {dependence.kind}"
    least = area_variance(part, side, weight, lead, dependence=dependence)[2]
    if pairs is not None and dependence is not None:
        pairs *= _of_clusters(part, weight, dependence)[1][0]
    pairs = least if pairs is None else pairs
    middle = (area * pairs + 0.5) / (pairs + 1.0)
    variance, freedom, _ = area_variance(
        part, side, weight, lead, middle * (1.0 - middle), pseudo_row=True, dependence=dependence
    )
    return _limits(area, variance, freedom, pairs, level)


def interval_of_samples(
    area: float,
    rows: FloatArray,
    square: FloatArray,
    widest: FloatArray,
    pairs: float,
    level: float,
    clusters: tuple[float, tuple[float, float]] | None = None,
) -> tuple[float, float, str]:
    """:func:`area_interval` from sums over each sample, as in :func:`variance_of_samples`."""
    if clusters is not None:
        pairs *= clusters[1][0]
    middle = (area * pairs + 0.5) / (pairs + 1.0)
    lone = middle * (1.0 - middle)
    variance, freedom, _ = variance_of_samples(
        rows, square, widest, lone, pseudo_row=True, clusters=clusters
    )
    return _limits(area, variance, freedom, pairs, level)


def _limits(
    area: float, variance: float, freedom: float, pairs: float, level: float
) -> tuple[float, float, str]:
    if variance == 0.0 or not 0.0 < area < 1.0:
        low, high = (float(v) for v in clopper_pearson(area, pairs, level))
        return low, high, "Clopper-Pearson of pairs"
    t = t_quantile(level, freedom)
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

    With two classes the area is that of class 1. With more it is the mean over each class against
    the rest, weighted by class, so that every row counts the same and a class of one row has
    little influence. Ties count half.

    Scores of different folds come from different fits, and leaving a row out biases its score
    against its own class. Rows are therefore ranked only within their fold (Forman and Scholz
    2010). A class counts by its weight, a fold by its number of pairs.
    """

    y: IntArray
    weight: FloatArray
    fold: IntArray
    n_classes: int
    curves: tuple[tuple[int, int, float], ...]
    dependence: Dependence | None = None

    @classmethod
    def of(
        cls,
        y: IntArray,
        weight: FloatArray,
        n_classes: int,
        fold: IntArray | None = None,
        dependence: Dependence | None = None,
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
        shares = tuple((k, f, s / total) for k, f, s in curves)
        return cls(y, weight, fold, n_classes, shares, dependence)

    def words(self, classes: Sequence[str] | None = None) -> str:
        """Which classes the area concerns; ``classes`` names them."""
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
        """Number of independent pairs (a row of a class, a row of the rest) behind the mean."""
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
        one row of a class would otherwise show no variance for it.
        """
        value, part = 0.0, np.zeros(len(self.y))
        areas: dict[int, list[tuple[int, float, float]]] = {}
        for k, f, share in self.curves:
            rows = self._members(f)
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
        return area_interval(
            area, part, self.y, self.weight, level, self.lead, self.pairs, self.dependence
        )

    def _shares(self, k: int, f: int) -> FloatArray:
        """Each row's share of its side of a curve, 0 outside the fold, (n,)."""
        shares = np.zeros(len(self.y))
        rows = self._members(f)
        side, weight = self.y[rows] == k, self.weight[rows]
        shares[rows] = weight / np.where(side, weight[side].sum(), weight[~side].sum())
        return shares

    def _members(self, f: int) -> IntArray | slice:
        """The rows of a fold; a slice, which copies nothing, if the fold holds all rows."""
        inside = self.fold == f
        return slice(None) if inside.all() else np.flatnonzero(inside)


_ONE_CLASS = "not defined: only one true class"


@dataclass(frozen=True)
class PairedAuc:
    """Two scores of the same rows, ranked against the same outcomes.

    Attributes
    ----------
    a, b : Estimate
        AUROC of the first score (the model) and of the second (calibrated).
    difference : Estimate
        b minus a.
    lift : Estimate
        (b - a) / a, the relative lift of Durfee et al., Tables 1 and 2.
    p_value : float
        Two-sided, of the hypothesis that both areas are equal.
    """

    a: Estimate
    b: Estimate
    difference: Estimate
    lift: Estimate
    p_value: float


def auc(score: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
    """Probability that a positive row scores above a negative one; ties count half.

    Durfee et al., Def. 2.1, as one sort: O(n log n).

    Parameters
    ----------
    score : (n,) array-like
        Any numbers; infinities are ranked like any other.
    y : (n,) array-like
        0 or 1.
    level : float
        Level of the interval. It uses DeLong's standard error (DeLong, DeLong and Clarke-Pearson
        1988) on the logit scale (near 0 and 1 a score interval) and the t quantile of
        Satterthwaite's degrees of freedom. If the classes are perfectly separated or tied, that
        interval would have no width. It is then Clopper-Pearson's for the number of independent
        pairs of one row of each class.
    sample_weight : (n,) array-like, optional
        Positive row weights; each class counts by Kish's effective number of rows. A
        :class:`kdcal_core.statistics.RowDesign` also says how rows depend on one another.

    Returns
    -------
    Estimate
        NaN where one of the classes has no rows.

    Raises
    ------
    InputError
        For a missing score, a label that is not 0 or 1, or a faulty weight (the row is named).

    Examples
    --------
    >>> auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).value
    0.75
    """
    y, weight = _checked(y, sample_weight, level)
    score = _score(score, len(y), "score")
    if len(np.unique(y)) < 2:
        return _estimate("AUROC", "AUROC", (np.nan,) * 3, len(y), level, _ONE_CLASS)
    dependence = dependence_of(sample_weight)
    return _one_area(*roc_area(score, y == 1, weight), y, weight, level, dependence)


def paired_auc(
    score_a: Any, score_b: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None
) -> PairedAuc:
    """AUROC of two scores of the same rows, their difference and the relative lift of b over a.

    The test is DeLong, DeLong and Clarke-Pearson's paired one (1988), with the t quantile of
    Satterthwaite's degrees of freedom. The lift's interval is Fieller's, which excludes 0 exactly
    if the difference's interval does. Scores that order the rows alike differ by exactly 0. If two
    scores separate the classes equally well with different orders, the interval is that of no
    change in the number of independent pairs. Arguments and errors as in :func:`auc`.

    Examples
    --------
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> found = paired_auc([1, 3, 2, 6, 4, 5, 2, 7], [1, 2, 3, 4, 4, 5, 6, 7], y)
    >>> found.a.value, found.b.value, found.difference.value
    (0.71875, 0.96875, 0.25)
    """
    y, weight = _checked(y, sample_weight, level)
    a, b = (_score(s, len(y), noun) for s, noun in ((score_a, "first"), (score_b, "second")))
    n = len(y)
    if len(np.unique(y)) < 2:
        nothing = _estimate("AUROC", "AUROC", (np.nan,) * 3, n, level, _ONE_CLASS)
        return PairedAuc(nothing, nothing, nothing, nothing, np.nan)
    (area_a, part_a), (area_b, part_b) = (roc_area(s, y == 1, weight) for s in (a, b))
    dependence = dependence_of(sample_weight)
    gap = _Gap.of(area_a, area_b, part_a, part_b, y, weight, level, dependence)
    low, high, how = gap.difference(same=bool(np.array_equal(_ranks(a), _ranks(b))))
    lift_low, lift_high, lift_how = gap.lift(low, high)
    lift = (area_b - area_a) / area_a if area_a > 0.0 else np.nan
    return PairedAuc(
        a=_one_area(area_a, part_a, y, weight, level, dependence),
        b=_one_area(area_b, part_b, y, weight, level, dependence),
        difference=_estimate(
            "AUROC, second score minus first",
            "AUROC difference",
            (area_b - area_a, low, high),
            n,
            level,
            how,
        ),
        lift=_estimate(
            "Relative lift of the AUROC, (b - a) / a",
            "AUROC lift",
            (lift, lift_low, lift_high),
            n,
            level,
            lift_how,
            percent=True,
        ),
        p_value=gap.p_value,
    )


@dataclass(frozen=True)
class _Gap:
    """Two areas, their joint sampling error, and its t quantile."""

    a: float
    b: float
    var_a: float
    var_b: float
    var_gap: float
    freedom: float
    least: float
    level: float

    @classmethod
    def of(
        cls,
        a: float,
        b: float,
        part_a: FloatArray,
        part_b: FloatArray,
        y: IntArray,
        weight: FloatArray,
        level: float,
        dependence: Dependence | None,
    ) -> _Gap:
        # the components of a difference lie between -1 and 1
        var_gap, freedom, least = area_variance(
            part_b - part_a, y, weight, lone=1.0, dependence=dependence
        )
        var_a, var_b = (
            area_variance(part, y, weight, dependence=dependence)[0] for part in (part_a, part_b)
        )
        return cls(a, b, var_a, var_b, var_gap, freedom, least, level)

    @property
    def t(self) -> float:
        return t_quantile(self.level, self.freedom)

    @property
    def p_value(self) -> float:
        if self.var_gap == 0.0:  # consistent with the interval: 0 lies on its edge at this level
            return float(min(1.0, 2.0 * (1.0 - min(abs(self.b - self.a), 0.5)) ** self.least))
        return float(2.0 * stdtr(self.freedom, -abs(self.b - self.a) / self.var_gap**0.5))

    def difference(self, same: bool) -> tuple[float, float, str]:
        gap = self.b - self.a
        if same:
            return gap, gap, "both scores order the rows alike"
        if self.var_gap == 0.0:
            most = float(betaincinv(1.0, max(self.least, 1e-9), 0.5 + self.level / 2.0))
            # every pair may change: a pair that is lost and not gained counts twice
            most *= max(2.0 * abs(gap), 1.0)
            return max(gap - most, -1.0), min(gap + most, 1.0), "Clopper-Pearson of pairs"
        half = self.t * self.var_gap**0.5
        return max(gap - half, -1.0), min(gap + half, 1.0), "DeLong, t quantile"

    def lift(self, low: float, high: float) -> tuple[float, float, str]:
        """Fieller's interval of (b - a) / a: the ratios r for which b - a - r a may be 0."""
        if self.a == 0.0:
            return np.nan, np.nan, "not defined: the first area is 0"
        if self.var_gap == 0.0:
            return low / self.a, high / self.a, "that of the difference, divided"
        # written with the gap, because the difference of two nearly equal areas would lose digits
        covariance = 0.5 * (self.var_b - self.var_a - self.var_gap)  # of the gap and the first
        least, most = ratio_interval(
            self.b - self.a, self.a, self.var_gap, covariance, self.var_a, self.t
        )
        if np.isinf(most):
            return -1.0, np.inf, "Fieller: the first area does not differ from 0 beyond chance"
        return max(least, -1.0), most, "Fieller, DeLong, t quantile"


def _one_area(
    area: float,
    part: FloatArray,
    y: IntArray,
    weight: FloatArray,
    level: float,
    dependence: Dependence | None,
) -> Estimate:
    low, high, how = area_interval(area, part, y, weight, level, dependence=dependence)
    return _estimate("AUROC", "AUROC", (area, low, high), len(y), level, how)


def _estimate(
    name: str,
    label: str,
    values: tuple[float, ...],
    n: int,
    level: float,
    how: str,
    percent: bool = False,
) -> Estimate:
    value, low, high = (float(v) for v in values)
    return Estimate(
        name, label, value, low, high, n, level, how, percent=percent, lower_is_better=False
    )


def _ranks(score: FloatArray) -> IntArray:
    _, rank = np.unique(score, return_inverse=True)
    return np.asarray(rank, dtype=np.int64)


def _checked(y: Any, sample_weight: Any, level: float) -> tuple[IntArray, FloatArray]:
    check_level(level)
    y = check_hits(y)
    return y, check_weight(sample_weight, len(y))


def _score(score: Any, n: int, noun: str) -> FloatArray:
    values = np.asarray(score, dtype=np.float64)
    lead = "The score" if noun == "score" else f"The {noun} score"
    if values.shape != (n,):
        raise InputError(
            f"{lead} has shape {values.shape}, but there are {n:,} labels",
            fix="Give one score for each row.",
        )
    missing = np.isnan(values)
    if missing.any():
        raise InputError(
            f"{lead} is missing",
            fix="Remove the row or score it again.",
            row=int(np.argmax(missing)) + 1,
        )
    return values
