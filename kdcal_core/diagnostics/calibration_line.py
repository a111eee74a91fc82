"""Cox's recalibration line: intercept and slope of the outcome's log odds over the stated ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import chi2

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.targets import Target, check_level, confidence_target
from kdcal_core.statistics import (
    CLIP,
    Dependence,
    kish,
    pooled,
    small_sample_factor,
    t_quantile_of_rows,
    units,
)

CELLS = 4096
"""Most points of a line; with more rows, neighbouring scores are merged."""

_HOW = "profile likelihood, widened for scatter about the line"
_STEPS = 100
_FLAT = 1e-6  # share of an information matrix's determinant below which no step can start
_FARTHEST = 60.0  # standard errors within which a limit is searched for


def calibration_intercept(
    score: Any, hit: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """Offset of the log odds of all stated probabilities; above 0 they are too low.

    The intercept of a logistic regression of the outcome with the stated log odds as an offset
    (Cox 1958; Van Calster et al. 2019 call it calibration in the large).

    Parameters
    ----------
    score : (n,) array in [0, 1]
        Stated probabilities, clipped to [1e-12, 1 - 1e-12].
    hit : (n,) array of 0 and 1
        Whether the event happened.
    level : float
        Level of the interval: that of the profile likelihood, widened where outcomes scatter about
        the line more than a logistic regression says (Kent 1982).
    sample_weight : (n,) array, optional
        Positive row weights; the interval then uses Kish's effective number of rows. A
        :class:`kdcal_core.statistics.RowDesign` also says how rows depend on one another; their
        scatter is then that of clusters or of neighbouring times.

    Returns
    -------
    Estimate
        In log odds. NaN if the event happened in all rows or in none.

    Raises
    ------
    InputError
        As in :func:`kdcal_core.diagnostics.confidence_calibration_error`.

    Examples
    --------
    >>> said = np.full(400, 0.5)
    >>> happened = np.arange(400) % 4 == 0
    >>> round(calibration_intercept(said, happened.astype(int)).value, 3)  # log(1 / 3)
    -1.099
    """
    return target_intercept(confidence_target(score, hit, sample_weight), level)


def calibration_slope(
    score: Any, hit: Any, *, level: float = 0.95, sample_weight: Any = None
) -> Estimate:
    """Factor of the stated log odds that fits the outcomes: below 1 they are too extreme.

    The slope of a logistic regression of the outcome on the stated log odds, with an intercept
    (Cox 1958). Arguments and errors as for :func:`calibration_intercept`.

    Returns
    -------
    Estimate
        NaN if the event happened in all rows or in none, if the score separates the outcomes
        without error, or if all scores are equal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=20_000)
    >>> hit = rng.random(20_000) < expit(z)
    >>> found = calibration_slope(expit(2.0 * z), hit.astype(int))
    >>> round(found.value, 1), found.low < 0.5 < found.high
    (0.5, True)
    """
    return target_slope(confidence_target(score, hit, sample_weight), level)


def target_intercept(target: Target, level: float) -> Estimate:
    """As :func:`calibration_intercept`, for one target."""
    return line_intercept(Line.of(target), len(target.hit), level)


def line_intercept(line: Line, n: int, level: float) -> Estimate:
    """As :func:`calibration_intercept`, of ``n`` rows merged to points."""
    check_level(level)
    if (why_not := line.one_outcome) is not None:
        return _estimate("intercept", (np.nan,) * 3, n, level, why_not)

    def profile(intercept: float) -> float:
        return line.loss(intercept, 1.0)

    best = line.best_intercept(1.0)
    information = line.information(best, 1.0)[0, 0]
    excess = line.scatter(best, 1.0)[0, 0] / information
    found = _limits(profile, best, information**-0.5, line.reach(level), excess)
    return _estimate("intercept", (best, *found), n, level, _HOW)


def target_slope(target: Target, level: float) -> Estimate:
    """As :func:`calibration_slope`, for one target."""
    return line_slope(Line.of(target), len(target.hit), level)


def line_slope(line: Line, n: int, level: float) -> Estimate:
    """As :func:`calibration_slope`, of ``n`` rows merged to points."""
    check_level(level)
    if (why_not := line.no_slope) is not None:
        return _estimate("slope", (np.nan,) * 3, n, level, why_not)

    def profile(slope: float) -> float:
        return line.loss(line.best_intercept(slope), slope)

    best = line.best_slope()
    at = line.best_intercept(best), best
    inverse = np.linalg.inv(line.information(*at))
    variance = inverse[1, 1]
    excess = (inverse @ line.scatter(*at) @ inverse)[1, 1] / variance
    found = _limits(profile, best, float(variance**0.5), line.reach(level), excess)
    return _estimate("slope", (best, *found), n, level, _HOW)


def row_log_odds(target: Target) -> FloatArray:
    """The stated log odds of each row, clipped, (n,)."""
    score = np.clip(target.score, CLIP, 1.0 - CLIP)
    return np.asarray(np.log(score) - np.log1p(-score))


@dataclass(frozen=True, eq=False)
class _DependentRows:
    """Log odds, outcome and weight of each row (n,), and how the rows depend on one another."""

    odds: FloatArray
    hit: FloatArray
    weight: FloatArray
    dependence: Dependence

    def scatter(self, intercept: float, slope: float) -> FloatArray:
        """As :meth:`Line.scatter`, from the totals of dependent rows."""
        away = self.weight * (self.hit - expit(intercept + slope * self.odds))
        totals = pooled(np.stack([away, away * self.odds]), self.dependence)
        n = len(units(self.weight, self.dependence))
        factor = small_sample_factor(n, self.dependence.lags)
        return np.asarray(totals @ totals.T) * min(factor, 1e9)


@dataclass(frozen=True, eq=False)
class Line:
    """Log odds (m,), and the weight of rows with and without the event at each, and its square."""

    odds: FloatArray
    with_event: FloatArray
    without: FloatArray
    with_square: FloatArray
    without_square: FloatArray
    rows: _DependentRows | None = None

    @classmethod
    def of(cls, target: Target) -> Line:
        odds = row_log_odds(target)
        weight = target.weight * (kish(target.weight) / target.weight.sum())
        order = np.argsort(odds, kind="stable")
        cell = np.arange(len(odds)) * min(CELLS, len(odds)) // len(odds)
        mass = np.bincount(cell, weights=weight[order])
        middle = np.bincount(cell, weights=(weight * odds)[order]) / mass
        with_event, without, with_square, without_square = (
            np.bincount(cell, weights=(each * side)[order]).astype(np.float64)
            for each in (weight, np.square(weight))
            for side in (target.hit, 1.0 - target.hit)
        )
        rows = None
        if target.dependence is not None:
            rows = _DependentRows(odds, target.hit, weight, target.dependence)
        place = np.asarray(middle, dtype=np.float64)
        return cls(place, with_event, without, with_square, without_square, rows)

    @classmethod
    def of_cells(cls, score: FloatArray, hits: FloatArray, misses: FloatArray) -> Line:
        """Of rows with and without the event, counted by their mean score, each (m,)."""
        inner = np.clip(score, CLIP, 1.0 - CLIP)
        return cls(np.log(inner) - np.log1p(-inner), hits, misses, hits, misses)

    def with_effect(self, effect: float) -> Line:
        """The line of rows whose dependence multiplies their scatter so many times."""
        return replace(
            self,
            with_square=self.with_square * effect,
            without_square=self.without_square * effect,
        )

    @property
    def mass(self) -> float:
        """Weight of all rows."""
        return float(self.with_event.sum() + self.without.sum())

    def reach(self, level: float) -> float:
        """Chi-square quantile of the profile; for few clusters the square of Student's."""
        if self.rows is None:
            return float(chi2.ppf(level, 1))
        return t_quantile_of_rows(level, self.rows.weight, self.rows.dependence) ** 2

    @property
    def one_outcome(self) -> str | None:
        """Why there is no intercept."""
        if self.with_event.sum() <= 0.0:
            return "not defined: it never happened"
        if self.without.sum() <= 0.0:
            return "not defined: it always happened"
        return None

    @property
    def no_slope(self) -> str | None:
        """Why there is no slope."""
        if (why_not := self.one_outcome) is not None:
            return why_not
        if np.ptp(self.odds) < 1e-9:
            return "not defined: all stated probabilities are equal"
        yes, no = self.odds[self.with_event > 0.0], self.odds[self.without > 0.0]
        if yes.min() >= no.max() or no.min() >= yes.max():
            return "not defined: the score separates the outcomes without error"
        return None

    def loss(self, intercept: float, slope: float) -> float:
        """Negative log likelihood."""
        at = intercept + slope * self.odds
        return float(
            self.with_event @ np.logaddexp(0.0, -at) + self.without @ np.logaddexp(0.0, at)
        )

    def information(self, intercept: float, slope: float) -> FloatArray:
        """Fisher's information of intercept and slope, (2, 2)."""
        p = expit(intercept + slope * self.odds)
        spread = (self.with_event + self.without) * p * (1.0 - p)
        first = float(spread @ self.odds)
        return np.array([[spread.sum(), first], [first, spread @ self.odds**2]])

    def scatter(self, intercept: float, slope: float) -> FloatArray:
        """Variance of the score that the outcomes show, (2, 2): the information, if it is true."""
        if self.rows is not None:
            return self.rows.scatter(intercept, slope)
        p = expit(intercept + slope * self.odds)
        spread = self.with_square * np.square(1.0 - p) + self.without_square * np.square(p)
        first = float(spread @ self.odds)
        return np.array([[spread.sum(), first], [first, spread @ self.odds**2]])

    def best_intercept(self, slope: float) -> float:
        """The likeliest intercept at a slope; it reproduces the event's rate."""
        rate = self.with_event.sum()
        mass = self.with_event + self.without

        def excess(intercept: float) -> float:
            return float(mass @ expit(intercept + slope * self.odds) - rate)

        far = 1.0 + abs(slope) * float(np.abs(self.odds).max()) + 50.0
        return float(brentq(excess, -far, far, xtol=1e-10))

    def best_slope(self) -> float:
        """The likeliest slope, by Newton steps, halved if they fail."""
        slope, intercept = 1.0, self.best_intercept(1.0)
        known = self.information(intercept, slope)
        if np.linalg.det(known) <= _FLAT * known[0, 0] * known[1, 1]:  # almost all are 0 or 1
            slope = 1.0 / float(np.abs(self.odds).max())
            intercept = self.best_intercept(slope)
        for _ in range(_STEPS):
            information = self.information(intercept, slope)
            p = expit(intercept + slope * self.odds)
            away = self.with_event - (self.with_event + self.without) * p
            gain = away @ self.odds  # the slope's score; the intercept's is 0
            inverse = np.linalg.inv(information)
            step = float(inverse[1, 1] * gain)
            before = self.loss(intercept, slope)
            while True:
                tried = self.best_intercept(slope + step)
                if self.loss(tried, slope + step) <= before + 1e-12 or abs(step) < 1e-12:
                    break
                step *= 0.5
            slope, intercept = slope + step, tried
            if abs(step) < 1e-9 * max(abs(slope), 1.0):
                break
        return slope


def _limits(
    profile: Callable[[float], float], best: float, error: float, reach: float, excess: float
) -> tuple[float, float]:
    """Where twice the profile's rise above its minimum reaches ``reach``, a chi-square quantile.

    The rise is chi-square only if the line is true. Otherwise it is ``excess`` times chi-square:
    the ratio of the robust variance to that of the line (Kent 1982), here at least 1.
    """
    widened = max(excess, 1.0)
    least, allowed = profile(best), widened * reach / 2.0
    error *= widened**0.5

    def rise(value: float) -> float:
        return profile(value) - least - allowed

    ends = []
    for sign in (-1.0, 1.0):
        reach = 2.0 * error
        while rise(best + sign * reach) < 0.0 and reach < _FARTHEST * error:
            reach *= 1.5
        far = best + sign * reach
        ends.append(sign * np.inf if rise(far) < 0.0 else brentq(rise, best, far, xtol=1e-8))
    return float(ends[0]), float(ends[1])


def _estimate(what: str, values: tuple[float, ...], n: int, level: float, how: str) -> Estimate:
    value, low, high = values
    return Estimate(
        name=f"Calibration {what} (Cox), log odds of outcome over stated",
        label=f"Calibration {what}",
        value=value,
        low=low,
        high=high,
        n=n,
        level=level,
        interval=how,
        lower_is_better=None,
        target=1.0 if what == "slope" else 0.0,
    )
