"""A test of stated against observed rates, based on each row's stated probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtr, ndtri

from kdcal_core.data import FloatArray
from kdcal_core.statistics import Dependence, design_effect, normal_quantile

CERTAIN = 1e-9  # stated probabilities are clipped this far from 0 and 1, so they can be shifted
POWER = 0.8
_CLOSE = 1e-6  # accuracy of a root, in standard errors
_MANY = 20.0  # a sum with at least this standard deviation, in rows, counts as normal
_MORE = 2.0  # standard errors by which outcomes must scatter more than stated to count as such
_NEAR = 1e-2  # signed roots this close to 0 need no correction, and allow none


@dataclass(frozen=True)
class Shift:
    """Observed minus stated rate of some rows.

    Attributes
    ----------
    stated, observed : float
        Weighted means.
    low, high : float
        Interval of ``observed`` minus ``stated``. It excludes 0 exactly if ``p_value`` is below
        1 - level.
    p_value : float
        Two-sided, of the hypothesis that there is no gap.
    minimum_detectable : float
        The gap that is found in four of five samples of these rows, in the harder of the two
        directions; a direction in which no gap can be found is left out. Infinite if none is left.
    """

    stated: float
    observed: float
    low: float
    high: float
    p_value: float
    minimum_detectable: float


def shift_test(
    score: FloatArray,
    hit: FloatArray,
    weight: FloatArray,
    level: float,
    found_at: float,
    dependence: Dependence | None = None,
) -> Shift:
    """Test, interval and minimum detectable gap of one set of rows.

    Parameters
    ----------
    score : (n,) in [0, 1], n >= 1
        Stated probabilities.
    hit : (n,) of 0 and 1
    weight : (n,) positive
    level : float
        Level of the interval.
    found_at : float
        p value below which a gap counts as found, for ``minimum_detectable``.
    dependence : Dependence, optional
        Of the rows. Deviates are then divided by the root of the design effect of the residuals
        about the rows' own gap, and logarithms of extreme probabilities by that effect.

    Notes
    -----
    Under the hypothesis T = sum w h is a weighted sum of independent events with the rows' own
    probabilities (Poisson-binomial if weights are equal), so the stated probabilities may differ.
    The p value is twice the smaller mid-p tail. Tails are Lugannani and Rice's (1980) saddlepoint
    approximation in its form for whole numbers; they are exact if all events happen or none does.

    The interval inverts the same test along the family that shifts all log odds: logit p_i +
    theta w_i, with w of mean one, which tilts T exponentially. Where outcomes scatter more than
    the shifted probabilities say, as those of a model that is too sure in both directions do, the
    interval is widened by the ratio of the two standard deviations, and deviates are divided by
    it for the p value. Without it, the 95% interval of a model that states its log odds three times
    too large contained the true gap in 82% of simulated samples of 200 rows; with it, in 97%.
    Time O(n).

    The minimum detectable gap is the gap of the member of this family whose T falls beyond the
    test's critical value in four of five samples. Gaps of this size were found in 74 to 88% of
    simulated samples of 40 to 2,000 rows, including rows that state 0.99 or 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.uniform(0.2, 0.4, 500)
    >>> found = shift_test(score, (rng.random(500) < score - 0.1) * 1.0, np.ones(500), 0.95, 0.05)
    >>> round(found.stated, 3), round(found.observed, 3), found.p_value < 1e-5
    (0.306, 0.182, True)
    """
    share = weight / weight.sum()
    stated, observed = (min(_dot(share, values), 1.0) for values in (score, hit))
    sum_ = _Sum.of(score, hit, weight * (len(weight) / weight.sum()))
    if dependence is not None:
        away = hit - score - (observed - stated)
        sum_ = replace(sum_, effect=design_effect(away, weight, dependence))
    tail = sum_.above(0.0)
    alpha = 1.0 - level
    ends = sum_.theta_at(1.0 - alpha / 2.0), sum_.theta_at(alpha / 2.0)
    low, high = (sum_.gap(theta) for theta in sorted(ends))
    return Shift(
        stated=stated,
        observed=observed,
        low=min(low, observed - stated),
        high=max(high, observed - stated),
        p_value=min(1.0, 2.0 * min(tail, 1.0 - tail)),
        minimum_detectable=sum_.least_found(found_at),
    )


@dataclass(frozen=True, eq=False)
class _Sum:
    """The weighted sum of events T and its distribution if all log odds are shifted by theta w.

    ``best`` is the theta whose mean sum is T, plus or minus infinity if all events happen or none
    does; ``scale`` is the standard deviation there, and ``excess`` that of the outcomes over it.
    ``effect`` is the design effect of dependent rows.
    """

    odds: FloatArray
    weight: FloatArray
    stated: float
    total: float
    best: float
    scale: float
    excess: float = 1.0
    effect: float = 1.0

    @classmethod
    def of(cls, score: FloatArray, hit: FloatArray, weight: FloatArray) -> _Sum:
        odds = logit(np.clip(score, CERTAIN, 1.0 - CERTAIN))
        total = _dot(weight, hit)
        stated = _dot(weight / weight.sum(), score)
        if hit.all() or not hit.any():
            return cls(odds, weight, stated, total, np.inf if hit.all() else -np.inf, 0.0)
        sum_ = cls(odds, weight, stated, total, 0.0, 0.0)
        step = min(1.0, 2.0 / sum_._spread(0.0))
        best = _root(lambda theta: sum_._mean(theta) - total, 0.0, step)
        rate = expit(odds + best * weight)
        each = rate * (1.0 - rate)
        variance, seen = _dot(weight**2, each), _dot(weight**2, np.square(hit - rate))
        noise = _dot(weight**4, each * np.square(1.0 - 2.0 * rate)) ** 0.5
        more = (seen / variance) ** 0.5 if seen > variance + _MORE * noise else 1.0
        return replace(sum_, best=best, scale=variance**0.5, excess=more)

    def gap(self, theta: float) -> float:
        """Mean probability after the shift of the log odds, minus the stated one."""
        if np.isinf(theta):
            return float(theta > 0) - self.stated
        shifted = expit(self.odds + theta * self.weight)
        return _dot(self.weight, shifted) / float(self.weight.sum()) - self.stated

    def above(self, theta: float) -> float:
        """Probability of a sum above T; sums equal to T count half."""
        if np.isinf(self.best):
            half = 0.5 * float(np.exp(self._log_extreme(theta) / self.effect))
            return half if self.best > 0 else 1.0 - half
        return float(ndtr(-self._deviate(theta) / (self.excess * self.effect**0.5)))

    def theta_at(self, chance: float) -> float:
        """The shift at which a sum above T has this probability."""
        if np.isinf(self.best):
            half = chance if self.best > 0 else 1.0 - chance
            if half >= 0.5:  # no shift reaches this: all events, or none, remain possible
                return self.best
            sign, log_wanted = np.sign(self.best), float(np.log(2.0 * half)) * self.effect
            return _root(lambda theta: sign * (self._log_extreme(theta) - log_wanted), 0.0)
        wanted = float(ndtri(1.0 - chance)) * self.excess * self.effect**0.5
        start = self.best - wanted / self.scale
        return _root(lambda theta: wanted - self._deviate(theta), start, 0.5 / self.scale)

    def least_found(self, found_at: float) -> float:
        """The gap whose p value is below ``found_at`` with probability ``POWER``."""
        scale = self._spread(0.0)
        if scale >= _MANY:
            both = normal_quantile(1.0 - found_at) + float(ndtri(POWER))
            return float(both * scale * self.effect**0.5 / self.weight.sum())
        mirrored = replace(self, odds=-self.odds, stated=1.0 - self.stated)
        gaps = [one._least_below(found_at, scale) for one in (self, mirrored)]
        return max((gap for gap in gaps if np.isfinite(gap)), default=np.inf)

    def _least_below(self, found_at: float, scale: float) -> float:
        """The smallest drop of the rate that would be found; infinite if none would."""
        none = replace(self, total=0.0, best=-np.inf)
        if none._log_extreme(0.0) / self.effect >= np.log(found_at):
            return np.inf
        wanted = float(ndtri(found_at / 2.0)) * self.effect**0.5
        single = self._with_mean(1.0, -1.0)
        if single.best >= 0.0 or single._deviate(0.0) > wanted:
            seen = 0.0
        else:
            critical = brentq(
                lambda best: self._tilted(best)._deviate(0.0) - wanted, single.best, 0.0
            )
            seen = self._mean(critical)
            if np.ptp(self.weight) == 0.0:  # sums are whole numbers: continuity correction
                seen = float(np.floor(seen + _CLOSE)) + 0.5
        if seen < 1.0:
            return -none.gap(none.theta_at(1.0 - POWER / 2.0))
        found = self._with_mean(seen, -1.0 / scale)
        return -self.gap(found.theta_at(1.0 - POWER))

    def _with_mean(self, mean: float, start: float) -> _Sum:
        return self._tilted(_root(lambda theta: self._mean(theta) - mean, start, abs(start)))

    def _tilted(self, best: float) -> _Sum:
        """The same rows with another sum: its mean after log odds are shifted by ``best``."""
        return replace(
            self, best=best, total=self._mean(best), scale=self._spread(best), excess=1.0
        )

    def _mean(self, theta: float) -> float:
        return _dot(self.weight, expit(self.odds + theta * self.weight))

    def _spread(self, theta: float) -> float:
        rate = expit(self.odds + theta * self.weight)
        return float(_dot(self.weight**2, rate * (1.0 - rate)) ** 0.5)

    def _log_mass(self, theta: float) -> float:
        return _log_sum(self.odds + theta * self.weight)

    @cached_property
    def _best_mass(self) -> float:
        return self._log_mass(self.best)

    def _log_extreme(self, theta: float) -> float:
        """Log probability of the outcome seen, if all events happen or none does."""
        sign = 1.0 if self.best < 0 else -1.0
        shifted = self.odds + theta * self.weight
        return -_log_sum(sign * shifted)

    def _deviate(self, theta: float) -> float:
        """The normal deviate of the probability of a sum below T: the modified signed root."""
        step = self.best - theta
        fit = step * self.total - self._best_mass + self._log_mass(theta)
        root = float(np.sign(step) * np.sqrt(max(2.0 * fit, 0.0)))
        if abs(root) < _NEAR:
            return root
        # 2 tanh(step / 2) in place of the step: the mean of the two sums next to T in a lattice
        wald = 2.0 * float(np.tanh(0.5 * step)) * self.scale
        return root + float(np.log(wald / root)) / root


def _log_sum(odds: FloatArray) -> float:
    """Sum of log(1 + exp(odds)), in half the time of ``np.logaddexp``."""
    return float((np.maximum(odds, 0.0) + np.log1p(np.exp(-np.abs(odds)))).sum())


def _dot(a: FloatArray, b: FloatArray) -> float:
    # not a @ b, which starts a thread pool that costs more than the sum
    return float((a * b).sum())


def _root(increasing: Callable[[float], float], start: float, step: float = 1.0) -> float:
    """Zero of a non-decreasing function, searched for outwards from ``start``."""
    low, high, first = start, start, step
    at = increasing(start)
    while at < 0.0:
        low, high, step = high, high + step, 2.0 * step
        at = increasing(high)
    if high == start:
        while at > 0.0:
            high, low, step = low, low - step, 2.0 * step
            at = increasing(low)
    return float(brentq(increasing, low, high, xtol=_CLOSE * first)) if low < high else start
