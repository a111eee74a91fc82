"""AUROC of one score with its interval, and of two scores of the same rows compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, stdtr, stdtrit

from kdcal_core.data import FloatArray, IntArray, check_labels, check_weight
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.ranking import area_interval, area_variance, roc_area
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError

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
        (b - a) / a, the relative lift of Durfee et al., Tables 1 and 2 (decision D108).
    p_value : float
        Against "both areas are equal", two-sided.
    """

    a: Estimate
    b: Estimate
    difference: Estimate
    lift: Estimate
    p_value: float


def auc(score: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None) -> Estimate:
    """Chance that a positive row scores above a negative one, ties counting half.

    Durfee et al., Def. 2.1, as one sort: O(n log n).

    Parameters
    ----------
    score : (n,) array-like
        Any numbers; infinities rank like any other.
    y : (n,) array-like
        0 or 1.
    level : float
        Of the interval: DeLong's standard error (DeLong, DeLong and Clarke-Pearson 1988) on the
        logit scale (near 0 and 1 a score interval) with the t quantile of Satterthwaite's degrees
        of freedom. Where the
        classes are perfectly separated or tied it would have no width: there it is
        Clopper-Pearson's for as many independent pairs of one row of each class as there are.
    sample_weight : (n,) array-like, optional
        Positive row weights; each class counts by Kish's effective number of rows.

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
    return _one_area(*roc_area(score, y == 1, weight), y, weight, level)


def paired_auc(
    score_a: Any, score_b: Any, y: Any, *, level: float = 0.95, sample_weight: Any = None
) -> PairedAuc:
    """AUROC of two scores of the same rows, their difference and the relative lift of b over a.

    DeLong, DeLong and Clarke-Pearson's paired test (1988), with the t quantile of Satterthwaite's
    degrees of freedom; the lift's interval is Fieller's, which excludes 0 exactly if the
    difference's does. Scores with the same order of rows differ by exactly 0. Two scores that
    separate the classes equally well with different orders keep some uncertainty: the interval is
    then that of no change in as many independent pairs as there are. Arguments and errors as in
    :func:`auc`.

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
    gap = _Gap.of(area_a, area_b, part_a, part_b, y, weight, level)
    low, high, how = gap.difference(same=bool(np.array_equal(_ranks(a), _ranks(b))))
    lift_low, lift_high, lift_how = gap.lift(low, high)
    lift = (area_b - area_a) / area_a if area_a > 0.0 else np.nan
    return PairedAuc(
        a=_one_area(area_a, part_a, y, weight, level),
        b=_one_area(area_b, part_b, y, weight, level),
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
    ) -> _Gap:
        # the components of a difference lie between -1 and 1
        var_gap, freedom, least = area_variance(part_b - part_a, y, weight, lone=1.0)
        var_a, var_b = (area_variance(part, y, weight)[0] for part in (part_a, part_b))
        return cls(a, b, var_a, var_b, var_gap, freedom, least, level)

    @property
    def t(self) -> float:
        return float(stdtrit(self.freedom, 0.5 + self.level / 2.0))

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
            # pairs that all change: a share of them lost counts twice, not gained and turned round
            most *= max(2.0 * abs(gap), 1.0)
            return max(gap - most, -1.0), min(gap + most, 1.0), "Clopper-Pearson of pairs"
        half = self.t * self.var_gap**0.5
        return max(gap - half, -1.0), min(gap + half, 1.0), "DeLong, t quantile"

    def lift(self, low: float, high: float) -> tuple[float, float, str]:
        """Fieller's interval of b / a - 1: the ratios r for which b - r a may be 0."""
        if self.a == 0.0:
            return np.nan, np.nan, "not defined: the first area is 0"
        if self.var_gap == 0.0:
            return low / self.a, high / self.a, "that of the difference, divided"
        square = self.t**2
        covariance = 0.5 * (self.var_a + self.var_b - self.var_gap)
        lead = self.a**2 - square * self.var_a
        middle = self.a * self.b - square * covariance
        root = middle**2 - lead * (self.b**2 - square * self.var_b)
        if lead <= 0.0 or root < 0.0:
            return -1.0, np.inf, "Fieller: the first area does not differ from 0 beyond chance"
        ends = [(middle + sign * root**0.5) / lead - 1.0 for sign in (-1.0, 1.0)]
        return max(ends[0], -1.0), ends[1], "Fieller, DeLong, t quantile"


def _one_area(
    area: float, part: FloatArray, y: IntArray, weight: FloatArray, level: float
) -> Estimate:
    low, high, how = area_interval(area, part, y, weight, level)
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
        name=name,
        label=label,
        value=value,
        low=low,
        high=high,
        n=n,
        level=level,
        interval=how,
        percent=percent,
        lower_is_better=False,
    )


def _ranks(score: FloatArray) -> IntArray:
    _, rank = np.unique(score, return_inverse=True)
    return np.asarray(rank, dtype=np.int64)


def _checked(y: Any, sample_weight: Any, level: float) -> tuple[IntArray, FloatArray]:
    check_level(level)
    y = check_labels(y, 2)
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
