"""What is wrong with predictions: too low, too high, too narrow, too wide, in words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import binom, chi2

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.dependent_pit import share_rows
from kdcal_core.diagnostics.regression.pit_curves import checked_pit, effective_rows
from kdcal_core.diagnostics.regression.uniformity import kolmogorov_smirnov
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.distributions import central_intervals
from kdcal_core.statistics import (
    Dependence,
    bounded_mean_interval,
    clopper_pearson,
    dependence_of,
    design_effect,
    design_of,
)
from kdcal_core.text import counted

UNIFORM_SPREAD = 12.0**-0.5
HELD = 0.95
"""Central interval whose coverage has its own test."""
TESTS = 3
_QUANTILES = (0.5, 0.75, 0.25, 0.9, 0.1, 0.95, 0.05)
_INTERVALS = (0.9, 0.5, 0.8, 0.95)


FaultKind = Literal["none", "too low", "too high", "too narrow", "too wide", "other"]


@dataclass(frozen=True)
class Fault:
    """The fault of the predictions of some rows, as one word and one sentence.

    Attributes
    ----------
    kind : str
        "too low" and "too high" concern the predicted values, "too narrow" and "too wide" the
        stated spread; "other" is a fault in neither; "none" if no test rejects.
    words : str
        A sentence with numbers.
    bias : Estimate
        Mean PIT minus 1/2, in [-0.5, 0.5]: above 0 the predictions are too low.
    spread : Estimate
        Standard deviation of the PIT values over that of uniform ones (0.2887), minus 1: above
        0 the stated spread is too narrow.
    p_value : float
        Of the test of uniformity; adjusted if several regions were tested.
    n : int
    """

    kind: FaultKind
    words: str
    bias: Estimate
    spread: Estimate
    p_value: float
    n: int


def fault(
    pit: Any,
    *,
    level: float = 0.95,
    place: str = "",
    sample_weight: Any = None,
    stated: Sequence[float] | None = None,
) -> Fault:
    """The fault of predictions by their PIT values, with its size and a sentence.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    level : float
        Level of the intervals; a fault is named if the p value is below 1 - level.
    place : str
        Where the rows lie, for the sentence: "here", "in region A". May be empty.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights; tests and intervals then use Kish's effective number of rows. Of a
        :class:`kdcal_core.statistics.RowDesign` clusters, or neighbouring times, count together.
    stated : sequence of float, optional
        Levels of the quantiles that the predictions state
        (:attr:`kdcal_core.distributions.PredictiveDistribution.stated_levels`); the sentence names
        no other. By default they state every quantile.

    Raises
    ------
    InputError
        For values outside [0, 1] (the message names the row), or a level outside (0, 1).

    Notes
    -----
    Three tests share the level (Bonferroni). The first is Neyman's smooth test of the first two
    Legendre components of the PIT values, location and spread around 1/2. The second is the exact
    test of the coverage of central 95% intervals, so that no fault is missed that the coverage
    shows. The third is Kolmogorov-Smirnov's, for other departures.

    If the first test rejects, the larger departure, in standard errors, names the fault. A mean
    PIT above 1/2 means that predictions are too low. A variance of the PIT around its mean above
    1/12 (U shape) means that the stated spread is too narrow. The variance is taken around the
    mean because PIT values all near 1 are evidence of low predictions, not of a narrow spread.

    If it does not reject, the smaller p value of the other two decides: either the stated spread
    is too narrow or too wide, as the coverage shows, or the fault is "other". The fault is also
    "other" if spread and coverage contradict each other.

    Examples
    --------
    >>> found = fault(np.linspace(0.6, 1.0, 50))
    >>> found.kind, found.words
    ('too low', 'Predictions are too low: outcomes fall above the stated median in 100% of 50 \
rows (93 to 100%), not 50%.')
    """
    return named_fault(fault_parts(pit, level, sample_weight, stated), place=place)


class PitSample(ABC):
    """PIT values of rows, or of cells that hold counted rows: what a fault is named by.

    Attributes
    ----------
    pit : (m,) float64
        A value of each row, or of each cell.
    weight : (m,) float64
        Shares of the rows, which sum to one.
    n : int
        Rows.
    """

    pit: FloatArray
    weight: FloatArray

    @property
    @abstractmethod
    def n(self) -> int: ...

    @abstractmethod
    def smooth(self, bias: float, square: float) -> tuple[float, FloatArray]:
        """p value of both Legendre components, and one over their standard errors (2,).

        ``bias`` and ``square`` are the means of the PIT minus 1/2 and of its square.
        """

    @abstractmethod
    def kolmogorov(self) -> float:
        """p value of Kolmogorov and Smirnov's test."""

    @abstractmethod
    def share_rows(self, hit: Any, rate: float) -> float:
        """Independent rows that say as much of the share of ``hit`` (m,), which is ``rate``."""

    @property
    def effective(self) -> float:
        """As how many independent rows they count for their mean, where that is known."""
        return float(self.n)

    @abstractmethod
    def bounded_mean(
        self, values: FloatArray, least: float, most: float, level: float
    ) -> tuple[float, float, float]:
        """Mean of values (m,) in [least, most], with its interval."""


@dataclass(frozen=True, eq=False)
class PitOfRows(PitSample):
    """One PIT value a row."""

    pit: FloatArray
    weight: FloatArray
    together: Dependence | None = None

    @property
    def n(self) -> int:
        return len(self.pit)

    def smooth(self, bias: float, square: float) -> tuple[float, FloatArray]:
        if self.together is None:
            return smooth_test(bias, square, effective_rows(self.weight))
        if self.together.kind == "time":
            return smooth_of_times(smooth_parts(self.pit), self.weight, self.together)
        return smooth_of_units(self.weight * smooth_parts(self.pit), self.together)

    def kolmogorov(self) -> float:
        design = design_of(self.weight, self.together)
        return kolmogorov_smirnov(self.pit, sample_weight=design).p_value

    def share_rows(self, hit: Any, rate: float) -> float:
        return share_rows(np.asarray(hit), self.weight, rate, self.together)

    def bounded_mean(
        self, values: FloatArray, least: float, most: float, level: float
    ) -> tuple[float, float, float]:
        return bounded_mean_interval(values, self.weight, least, most, level, self.together)


@dataclass(frozen=True, eq=False)
class FaultParts:
    """The statistics of a fault, before any correction for the number of tests.

    ``location`` and ``scale`` are the departures of mean and variance in standard errors.
    """

    sample: PitSample
    location: float
    scale: float
    smooth_p: float
    held: float
    held_p: float
    rest_p: float
    p_value: float
    level: float
    stated: Sequence[float] | None = None

    @property
    def intervals(self) -> Sequence[float]:
        """The central intervals that a sentence may name."""
        return central_intervals(self.stated) or _INTERVALS

    def quantiles(self, otherwise: Sequence[float]) -> Sequence[float]:
        """The quantiles that a sentence may name: ``otherwise`` where all are stated."""
        if not self.stated:
            return otherwise
        return sorted(self.stated, key=lambda one: abs(one - 0.5))


def fault_parts(
    pit: Any, level: float, sample_weight: Any = None, stated: Sequence[float] | None = None
) -> FaultParts:
    """Components and p values of one set of PIT values."""
    check_level(level)
    values, weight = checked_pit(pit, sample_weight)
    return parts_of_sample(PitOfRows(values, weight, dependence_of(sample_weight)), level, stated)


def parts_of_sample(
    sample: PitSample, level: float, stated: Sequence[float] | None = None
) -> FaultParts:
    """As `fault_parts`, of rows or of counts."""
    centred, weight = sample.pit - 0.5, sample.weight
    bias, square = float(weight @ centred), float(weight @ np.square(centred))
    smooth, roots = sample.smooth(bias, square)
    inside = np.abs(centred) <= HELD / 2.0
    held = min(float(weight @ inside), 1.0)
    rest = sample.kolmogorov()
    held_p = _share_p(held, sample.share_rows(inside, HELD))
    return FaultParts(
        sample=sample,
        location=float(roots[0]) * standard_location(bias),
        scale=float(roots[1]) * standard_scale(square - bias**2),
        smooth_p=smooth,
        held=held,
        held_p=held_p,
        rest_p=rest,
        p_value=min(1.0, TESTS * min(smooth, rest, held_p)),
        level=level,
        stated=stated,
    )


def smooth_test(bias: float, square: float, effective: float) -> tuple[float, FloatArray]:
    """Neyman's smooth test of independent rows: its p value, and the roots of their number."""
    roots = np.full(2, effective**0.5)
    first, second = roots[0] * standard_location(bias), roots[1] * standard_scale(square)
    return float(chi2.sf(first**2 + second**2, 2)), roots


def smooth_parts(pit: FloatArray) -> FloatArray:
    """What each PIT value (n,) adds to both components of Neyman's smooth test, (2, n)."""
    centred = pit - 0.5
    return np.stack([12.0**0.5 * centred, 5.0**0.5 * (6.0 * np.square(centred) - 0.5)])


def smooth_of_units(
    parts: FloatArray, together: Dependence, sums: FloatArray | None = None
) -> tuple[float, FloatArray]:
    """p value of both components' sums over dependent rows, and one over their errors (2,).

    ``parts`` (2, n) have mean 0 for uniform values; so the squares of totals, without a correction
    for their mean, estimate the variance. ``sums`` (2,) are those of all rows, if the parts are of
    rows that stand for others.

    Totals of the second component are skewed. So with 20 clusters of a correlation of 0.5 or 0.8
    this test alone rejects calibrated rows in 9 to 10% of runs at 5%, with 60 in 6 to 8%; the
    three tests of a fault together reject them in 2 to 6%.
    """
    totals, sums = together.totals(parts), parts.sum(axis=1) if sums is None else sums
    covariance = totals @ totals.T
    statistic = float(sums @ np.linalg.pinv(covariance, hermitian=True) @ sums)
    return float(chi2.sf(statistic, 2)), 1.0 / np.sqrt(np.maximum(np.diag(covariance), 1e-300))


def smooth_of_times(
    parts: FloatArray, weight: FloatArray, together: Dependence
) -> tuple[float, FloatArray]:
    """As `smooth_of_units`, of rows in order of time; ``weight`` (n,) are their shares.

    Squares of totals without a correction for their mean bound the statistic by how many times
    lie farther apart than they depend on one another: those of a month find no fault, however
    large. So the variance is that of the components about their own means, at least that of uniform
    values, times their design effects. With an autocorrelation of days of 0.5 this test alone
    rejects calibrated rows in 5 to 8% of runs at 5%; with 0.8 in 6 to 10% from 100 days on, and in
    17% with 31.
    """
    means = parts @ weight
    away = parts - means[:, None]
    effects = np.array([design_effect(one, weight, together) for one in away])
    return smooth_of_effects(means, np.square(away) @ weight, effects * float(weight @ weight))


def smooth_of_effects(
    means: FloatArray, variance: FloatArray, effects: FloatArray
) -> tuple[float, FloatArray]:
    """As `smooth_of_times`, from means and variances of both components, each (2,).

    ``effects`` are their design effects over the effective number of rows.
    """
    errors = np.sqrt(np.maximum(variance, 1.0) * effects)
    return float(chi2.sf(np.square(means / errors).sum(), 2)), 1.0 / errors


def _share_p(held: float, rows: float) -> float:
    """Two-sided exact p value of the coverage of 95% intervals."""
    n = max(round(rows), 1)
    count = round(held * n)
    tails = binom.cdf(count, n, HELD), binom.sf(count - 1, n, HELD)
    return float(min(1.0, 2.0 * min(tails)))


def named_fault(parts: FaultParts, *, adjusted_p: float | None = None, place: str = "") -> Fault:
    """The fault in words, judged by ``adjusted_p`` if several sets were tested."""
    p_value = parts.p_value if adjusted_p is None else adjusted_p
    kind: FaultKind = "none"
    if p_value < 1.0 - parts.level:
        kind = _kind(parts)
    return Fault(
        kind=kind,
        words=_words(parts, kind, f" {place}" if place else ""),
        bias=bias_estimate(parts),
        spread=spread_estimate(parts),
        p_value=p_value,
        n=parts.sample.n,
    )


def _kind(parts: FaultParts) -> FaultKind:
    """The kind of a fault, given that there is one."""
    alpha = (1.0 - parts.level) / TESTS
    by_share: FaultKind = "too narrow" if parts.held < HELD else "too wide"
    if parts.smooth_p < alpha:
        kind = leading_fault(parts.location, parts.scale)
        contradicted = kind in ("too narrow", "too wide") and kind != by_share
        return "other" if contradicted and parts.held_p < alpha else kind
    return by_share if parts.held_p < parts.rest_p else "other"


def standard_location(bias: float) -> float:
    """First normalised Legendre component of one row, from its PIT minus 1/2."""
    return float(12.0**0.5 * bias)


def standard_scale(square: float) -> float:
    """Second normalised Legendre component of one row, from the square of its PIT minus 1/2."""
    return float(5.0**0.5 * (6.0 * square - 0.5))


def leading_fault(location: float, scale: float) -> FaultKind:
    """The fault named by the larger of the two departures."""
    if abs(location) >= abs(scale):
        return "too low" if location > 0 else "too high"
    return "too narrow" if scale > 0 else "too wide"


def bias_estimate(parts: FaultParts) -> Estimate:
    """Mean PIT minus 1/2."""
    sample = parts.sample
    value, low, high = sample.bounded_mean(sample.pit - 0.5, -0.5, 0.5, parts.level)
    return Estimate(
        name="Mean PIT minus 1/2; above 0 the predictions are too low",
        label="Location",
        value=value,
        low=low,
        high=high,
        n=sample.n,
        level=parts.level,
        interval="normal, four rows at the ends of the range added",
        expected=0.0,
        lower_is_better=None,
    )


def spread_estimate(parts: FaultParts) -> Estimate:
    """Standard deviation of the PIT over uniform's 0.2887, minus 1."""
    sample = parts.sample
    square = np.square(sample.pit - sample.weight @ sample.pit)
    found = sample.bounded_mean(square, 0.0, 0.25, parts.level)
    value, low, high = (float(s**0.5 / UNIFORM_SPREAD - 1.0) for s in found)
    return Estimate(
        name="Standard deviation of the PIT over uniform's, minus 1; above 0 too narrow",
        label="Spread",
        value=value,
        low=low,
        high=high,
        n=sample.n,
        level=parts.level,
        interval="normal of the variance, four rows at the ends of the range added",
        expected=0.0,
        percent=True,
        lower_is_better=None,
    )


@dataclass(frozen=True)
class _Share:
    """A stated share of rows, and the observed share with its interval."""

    stated: float
    seen: float
    low: float
    high: float
    level: float

    @property
    def clear(self) -> bool:
        return not self.low <= self.stated <= self.high

    @property
    def pull(self) -> float:
        """Departure from the stated share, in standard errors."""
        return float((self.seen - self.stated) / (self.stated * (1.0 - self.stated)) ** 0.5)


def _words(parts: FaultParts, kind: FaultKind, place: str) -> str:
    rows = counted(parts.sample.n, "row")
    if kind in ("too low", "too high"):
        sign = 1.0 if kind == "too low" else -1.0
        share = _clearest([_above(parts, q) for q in parts.quantiles(_QUANTILES)], sign)
        where = "median" if share.level == 0.5 else f"{100 * share.level:g}% quantile"
        return (
            f"Predictions are {kind}{place}: outcomes fall above the stated {where} in "
            f"{_share_text(share, rows)}."
        )
    if kind in ("too narrow", "too wide"):
        sign = 1.0 if kind == "too narrow" else -1.0
        share = _clearest([_out_of(parts, c) for c in parts.intervals], sign)
        return (
            f"The stated spread is {kind}{place}: outcomes fall outside the stated "
            f"{100 * share.level:g}% interval in {_share_text(share, rows)}."
        )
    if kind == "other":
        shares = [_above(parts, float(q)) for q in parts.quantiles([*np.arange(1, 20) / 20])]
        share = max(shares, key=lambda found: abs(found.pull))
        return (
            f"The stated distribution has the wrong shape{place}, in neither location nor spread "
            f"alone: outcomes fall above the stated {100 * share.level:g}% quantile in "
            f"{_share_text(share, rows)}."
        )
    if parts.stated and 0.5 not in parts.stated and (own := central_intervals(parts.stated)):
        outside = _out_of(parts, own[-1])
        return (
            f"No fault beyond chance{place}: outcomes fall outside the stated "
            f"{100 * outside.level:g}% interval in {_share_text(outside, rows)}."
        )
    median = _above(parts, 0.5)
    return (
        f"No fault beyond chance{place}: outcomes fall above the stated median in "
        f"{_share_text(median, rows)}."
    )


def _clearest(shares: list[_Share], sign: float) -> _Share:
    """The first share whose interval shows the fault, else the one that departs most."""
    clear = [share for share in shares if share.clear and sign * share.pull > 0]
    return clear[0] if clear else max(shares, key=lambda share: sign * share.pull)


def _above(parts: FaultParts, quantile: float) -> _Share:
    return _share(parts, parts.sample.pit > quantile, 1.0 - quantile, quantile)


def _out_of(parts: FaultParts, interval: float) -> _Share:
    outside = np.abs(parts.sample.pit - 0.5) > interval / 2.0
    return _share(parts, outside, 1.0 - interval, interval)


def _share(parts: FaultParts, hit: Any, stated: float, level: float) -> _Share:
    seen = min(float(parts.sample.weight @ hit), 1.0)
    rows = parts.sample.share_rows(hit, seen)
    low, high = clopper_pearson(seen, rows, parts.level)
    return _Share(stated, seen, float(low), float(high), float(level))


def _share_text(share: _Share, rows: str) -> str:
    digits = 0 if share.high - share.low > 0.02 else 1
    seen, low, high = (f"{100 * v:.{digits}f}" for v in (share.seen, share.low, share.high))
    return f"{seen}% of {rows} ({low} to {high}%), not {100 * share.stated:g}%"
