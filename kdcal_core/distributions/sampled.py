"""Predicted quantiles, and samples with equal or individual weights, as predictive distributions.

Recalibration gives weighted samples (Torres et al., Alg. 1).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from kdcal_core.data import FloatArray
from kdcal_core.distributions.distribution import (
    PredictiveDistribution,
    Rows,
    checked_levels,
    checked_table,
    numbers_of,
)
from kdcal_core.distributions.parametric import LOG_ROOT_TWO_PI, log_normal_density, refuse
from kdcal_core.distributions.piecewise import (
    NormalTail,
    ParetoTail,
    Piecewise,
    Tail,
    count_up_to,
    pick,
    rows_ascend,
)
from kdcal_core.errors import InputError, warn
from kdcal_core.text import formatted, listed

BELOW_ONE = 1 - 2.0**-53
SMALLEST = float(np.nextafter(0.0, 1.0))


class Weighted(PredictiveDistribution):
    """k weighted samples for each row (Torres et al., Alg. 1, Eq. 3).

    Parameters
    ----------
    samples : (n, k) array
    weights : (n, k) or (k,) array
        Zero or positive, in any unit; every row has a positive weight.

    Attributes
    ----------
    samples : (n, k)
        Ascending in every row.
    weights : (n, k), or (1, k) if all rows share them
        In the samples' order, scaled by a power of two.

    Raises
    ------
    InputError
        If a sample or weight is not finite, a weight is negative, or a row has no positive weight;
        the message names the row.

    Notes
    -----
    The distribution function is the weighted ECDF. Its inverse is left-continuous, inf{y : F(y)
    >= p}, so equal whole-number weights give exact order statistics. Samples with weight 0 are
    ignored, also at the ends of the support. ``std`` is that of the ECDF itself (no n - 1).

    Samples have no density: ``log_density`` is a Gaussian kernel estimate with Silverman's
    bandwidth 0.9 min(std, IQR / 1.34) m^(-1/5), where m is Kish's effective number of samples. If
    all samples are equal it is infinite there and minus infinity elsewhere.

    Examples
    --------
    >>> repaired = Weighted([[1.0, 2.0, 4.0]], [0.25, 0.5, 0.25])
    >>> repaired.cdf(2.0).tolist(), repaired.cdf_left(2.0).tolist(), repaired.ppf(0.75).tolist()
    ([0.75], [0.25], [2.0])
    >>> repaired.mean().tolist(), repaired.crps(2.0).tolist()
    ([2.25], [0.1875])
    """

    family: ClassVar[str] = "weighted"
    samples: FloatArray
    weights: FloatArray

    def __init__(self, samples: ArrayLike, weights: ArrayLike) -> None:
        values = checked_table(samples, "sample")
        shares = numbers_of(weights, "Weights")
        if shares.ndim == 1:
            shares = shares[np.newaxis]
        if shares.shape not in {values.shape, (1, values.shape[1])}:
            raise InputError(
                f"Weights of shape {shares.shape} do not match samples of shape {values.shape}",
                fix="Give one weight for each sample.",
            )
        least, greatest = shares.min(axis=1), shares.max(axis=1)
        refuse(np.isnan(least) | (least < 0), least, "weight", "zero or positive")
        refuse((greatest == 0) | (greatest == np.inf), greatest, "greatest weight", "positive")
        # scaling by a power of two is exact, and afterwards no sum of weights can overflow
        _, exponent = np.frexp(greatest[:, np.newaxis])
        if exponent.any():
            shares = np.ldexp(shares, -exponent)
        if not rows_ascend(values):
            order = np.argsort(values, axis=1, kind="stable")
            values = np.take_along_axis(values, order, axis=1)
            shares = np.take_along_axis(np.broadcast_to(shares, values.shape), order, axis=1)
        self.samples, self.weights = values, shares

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.samples = self.samples[rows]
        chosen.weights = self.weights if len(self.weights) == 1 else self.weights[rows]
        return chosen

    @property
    def continuous(self) -> bool:
        return False

    @property
    def has_density(self) -> bool:
        return False

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"samples": self.samples, "weights": self.weights}

    def cumulative(self) -> FloatArray:
        """The distribution function at the samples, (n, k) or (1, k); exactly 1 at the last.

        Examples
        --------
        >>> Weighted([[1.0, 2.0, 3.0]], [1, 1, 0]).cumulative().tolist()
        [[0.5, 1.0, 1.0]]
        """
        summed = np.cumsum(self.weights, axis=1)
        summed /= summed[:, -1:].copy()
        # a last sample of tiny weight is the support's end although its share rounds to zero
        last = self.weights.shape[1] - 1 - np.argmax(self.weights[:, ::-1] > 0, axis=1)
        over = np.arange(self.weights.shape[1]) >= last[:, np.newaxis]
        return np.where(over, 1.0, np.minimum(summed, BELOW_ONE))

    def shares(self) -> FloatArray:
        """The weights of every row, with sum 1, (n, k) or (1, k)."""
        shares: FloatArray = self.weights / self.weights.sum(axis=1, keepdims=True)
        return shares

    @property
    def _width(self) -> int:
        return int(self.samples.shape[1])

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._up_to(count_up_to(self.samples, y, "right"))

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        return self._up_to(count_up_to(self.samples, y, "left"))

    def _up_to(self, count: NDArray[np.int64]) -> FloatArray:
        return np.where(count == 0, 0.0, pick(self.cumulative(), np.maximum(count - 1, 0)))

    def _ppf(self, p: FloatArray) -> FloatArray:
        # level 0 is the first sample with positive weight
        place = count_up_to(self.cumulative(), np.maximum(p, SMALLEST), "left")
        return pick(self.samples, place)

    def _mean(self) -> FloatArray:
        mean: FloatArray = (self.shares() * self.samples).sum(axis=1)
        return mean

    def _std(self) -> FloatArray:
        # around the heaviest sample, so that rounding gives equal samples no spread
        heaviest = pick(self.samples, self.weights.argmax(axis=1)[:, np.newaxis])
        shares, around = self.shares(), self.samples - heaviest
        away = around - (shares * around).sum(axis=1, keepdims=True)
        std: FloatArray = np.sqrt((shares * away**2).sum(axis=1))
        return std

    def _crps(self, y: FloatArray) -> FloatArray:
        to_outcome = (self.shares() * np.abs(self.samples - y)).sum(axis=1)
        below = self.cumulative()[:, :-1]
        # half the mean distance of two draws: each gap counts for the pairs on both sides of it
        between = (np.diff(self.samples, axis=1) * below * (1 - below)).sum(axis=1)
        crps: FloatArray = (to_outcome - between)[:, np.newaxis]
        return crps

    def _log_density(self, y: FloatArray) -> FloatArray:
        width = self._bandwidth()[:, np.newaxis]
        log_share = np.log(self.shares())
        spread = width[:, 0] > 0
        safe = np.where(width > 0, width, 1.0)
        answer = np.empty((len(self), y.shape[1]))
        for column, at in enumerate(y.T):  # a loop over arguments: (rows, k) at a time
            away = self.samples - at[:, np.newaxis]
            terms = log_share - 0.5 * (away / safe) ** 2
            largest = terms.max(axis=1)
            finite = np.where(np.isfinite(largest), largest, 0.0)
            total = np.log(np.exp(terms - finite[:, np.newaxis]).sum(axis=1)) + finite
            smooth = total - LOG_ROOT_TWO_PI - np.log(safe[:, 0])
            point = np.where((away == 0).any(axis=1), np.inf, -np.inf)
            answer[:, column] = np.where(spread, smooth, point)
        return answer

    def _bandwidth(self) -> FloatArray:
        low, high = self._ppf(np.array([[0.25, 0.75]])).T
        std, robust = self._std(), (high - low) / 1.34
        effective = 1 / (self.shares() ** 2).sum(axis=1)
        spread = np.where(robust > 0, np.minimum(std, robust), std)
        width: FloatArray = 0.9 * spread * effective**-0.2
        return width


MANY_ROWS = 20
"""With this many rows, a crossing at the same step in all of them is not chance."""


class Quantiles(Piecewise):
    """Quantiles at q levels for each row.

    Parameters
    ----------
    levels : (q,) array
        At least two different levels strictly between 0 and 1, in any order.
    values : (n, q) array
        The quantiles, in the order of ``levels``.

    Attributes
    ----------
    levels : (q,)
        Ascending.
    values : (n, q)
        Ascending in every row.

    Raises
    ------
    InputError
        If a level is impossible, given twice or the only one, or a quantile is not finite. Also if
        quantiles descend in most rows, cross at half of the steps of every row, or cross at the
        same step in all of 20 or more rows, because the columns are then reversed or swapped.

    Warns
    -----
    InputWarning
        If quantiles cross otherwise. The message names the first row and the shares of rows and of
        neighbouring levels. The quantiles are sorted.

    Notes
    -----
    Between the levels the quantile function is linear. Beyond the outermost levels it is the tail
    of the normal distribution through the two outermost quantiles on that side. Outcomes outside
    thus have a place inside (0, 1), which is uniform for a normal prediction. Mean, standard
    deviation and CRPS are exact for this distribution. Two equal quantiles make an atom; at the end
    of the row they end the support. :meth:`pit` does without the line and the tails: between two
    levels it draws, because only the levels are stated. Such PIT values are uniform if and only if
    every stated quantile holds: a lone 90% interval, for example, states nothing about where inside
    it an outcome lies.

    Examples
    --------
    >>> Quantiles([0.05, 0.95], [[-1.0, 1.0]] * 2).pit([0.3, 2.0], [0.5, 0.5]).round(4).tolist()
    [0.5, 0.975]
    >>> predicted = Quantiles([0.1, 0.5, 0.9], [[-1.0, 0.0, 2.0]])
    >>> predicted.cdf([[-1.0, 0.0, 1.0]]).round(4).tolist()
    [[0.1, 0.5, 0.7]]
    >>> predicted.ppf(0.3).round(4).tolist()
    [-0.5]
    """

    family: ClassVar[str] = "quantiles"
    levels: FloatArray
    values: FloatArray

    def __init__(self, levels: ArrayLike, values: ArrayLike) -> None:
        given = np.atleast_1d(checked_levels(levels, open_ended=True))
        table = checked_table(values, "quantile")
        if given.shape != table.shape[1:]:
            raise InputError(
                f"There are {given.size} levels but {table.shape[1]} quantiles in each row",
                fix="Give one column of quantiles for each level.",
            )
        order = np.argsort(given)
        if (order[:-1] > order[1:]).any():
            given, table = given[order], table[:, order]
        _check_levels(given)
        if not rows_ascend(table):
            _judge_crossing(table)
            table = np.sort(table, axis=1)
        self.levels, self.values = given, table

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.levels, chosen.values = self.levels, self.values[rows]
        return chosen

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"levels": self.levels, "values": self.values}

    @property
    def _levels(self) -> FloatArray:
        return self.levels

    @property
    def _points(self) -> FloatArray:
        return self.values

    @property
    def resolved(self) -> float:
        return 1 - 2 * float(max(self.levels[0], 1 - self.levels[-1]))

    @property
    def stated_levels(self) -> tuple[float, ...]:
        return tuple(self.levels.tolist())

    def _jump(self, y: FloatArray) -> tuple[FloatArray, FloatArray | float, FloatArray | float]:
        outcomes = np.broadcast_to(y, len(self))
        around = np.r_[0.0, self.levels, 1.0]
        heights = np.diff(around)
        foot, step = np.empty(len(self)), np.empty(len(self))

        def compute(rows: slice, part: Quantiles) -> None:
            at = outcomes[rows]
            below, up_to = (
                count_up_to(part.values, at[:, np.newaxis], side)[:, 0]
                for side in ("left", "right")
            )
            start, height = around[below], heights[below]
            # an outcome that equals a quantile has that quantile's level
            equal = np.flatnonzero(up_to > below)
            start[equal], height[equal] = self.levels[below[equal]], 0.0
            atoms = equal[up_to[equal] > below[equal] + 1]
            if len(atoms):
                tied, tied_at = part[atoms], at[atoms]
                start[atoms] = tied.cdf_left(tied_at)
                height[atoms] = tied.cdf(tied_at) - start[atoms]
            foot[rows], step[rows] = start, height

        self._in_blocks(self._width, compute)
        return foot, step, 1.0

    def _tails(self) -> tuple[Tail, Tail]:
        z = ndtri(self.levels)
        lower = (self.values[:, [1]] - self.values[:, [0]]) / (z[1] - z[0])
        upper = (self.values[:, [-1]] - self.values[:, [-2]]) / (z[-1] - z[-2])
        ends = float(self.levels[0]), float(1 - self.levels[-1])
        return NormalTail(ends[0], lower), NormalTail(ends[1], upper)

    def _log_density(self, y: FloatArray) -> FloatArray:
        count = count_up_to(self.values, y, "right")
        after = np.clip(count, 1, len(self.levels) - 1)
        gap = pick(self.values, after) - pick(self.values, after - 1)
        answer = np.log(self.levels[after] - self.levels[after - 1]) - np.log(gap)
        lower, upper = self._tails()
        below = lower.log_density(np.maximum(self.values[:, :1] - y, 0.0))
        above = upper.log_density(np.maximum(y - self.values[:, -1:], 0.0))
        answer = np.where(count == 0, below, np.where(count == len(self.levels), above, answer))
        atom = count - count_up_to(self.values, y, "left") > 1
        return np.where(atom, np.inf, answer)

    def _mean(self) -> FloatArray:
        return self._moments()[0]

    def _std(self) -> FloatArray:
        return np.sqrt(self._moments()[1])

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Exact mean and variance, computed around a value in the middle of each row."""
        centre = self.values[:, [len(self.levels) // 2]]
        around = self.values - centre
        low, high, step = around[:, :-1], around[:, 1:], np.diff(self.levels)
        first = ((low + high) / 2 * step).sum(axis=1)
        second = ((low**2 + low * high + high**2) / 3 * step).sum(axis=1)
        for tail, end, side in zip(self._tails(), (0, -1), (-1.0, 1.0), strict=True):
            assert isinstance(tail, NormalTail)
            # mass, first and second moment of the normal tail from its end outwards
            height = side * float(np.exp(log_normal_density(np.array(tail.start))))
            scale = tail.scale[:, 0]
            location = around[:, end] - side * scale * tail.start
            first += location * tail.mass + scale * height
            second += (
                location**2 * tail.mass
                + 2 * location * scale * height
                + scale**2 * (tail.mass + side * tail.start * height)
            )
        return centre[:, 0] + first, np.maximum(second - first**2, 0)


def _check_levels(ascending: FloatArray) -> None:
    if ascending.size < 2:
        raise InputError(
            "One quantile does not give a spread", fix="Give quantiles at two or more levels."
        )
    twice = np.flatnonzero(np.diff(ascending) == 0)
    if twice.size:
        raise InputError(
            f"The level {formatted(ascending[twice[0]], 'g')} is given twice",
            fix="Keep one column for each level.",
        )


def _judge_crossing(values: FloatArray) -> None:
    """Refuse quantiles whose columns seem to have wrong levels; warn if quantiles cross a little.

    The quantiles of a model with 99 levels may well cross somewhere in every row. Columns are in a
    wrong order if in most rows the highest lies below the lowest, if every row crosses at half of
    its steps, or if many rows all cross at the same step.
    """
    falls = np.diff(values, axis=1) < 0
    crossing, reversed_ = falls.any(axis=1), values[:, -1] < values[:, 0]
    n, count = len(values), int(crossing.sum())
    swapped = n >= MANY_ROWS and bool(falls.all(axis=0).any())
    if reversed_.mean() > 0.5 or (count == n and (swapped or falls.mean() >= 0.5)):
        reverse = int(reversed_.sum())
        what = (
            f"The quantile of the highest level lies below that of the lowest in {reverse:,} of "
            f"{n:,} rows"
            if reverse > n / 2
            else f"The quantiles cross in all {n:,} rows"
        )
        raise InputError(
            what,
            fix="Check the level of each column: are the columns reversed? If the model does "
            "predict quantiles that cross, sort those of each row first.",
        )
    warn(
        f"The quantiles cross in {crossing.mean():.1%} of the rows ({count:,} of {n:,}), first in "
        f"row {int(np.flatnonzero(crossing)[0]) + 1:,}, and {falls.mean():.2%} of all "
        "neighbouring levels descend. They were sorted.",
        stacklevel=3,
    )


FEWEST, MOST = 2, 8
"""Limits of the number of outermost samples for a tail: the square root of their total number."""
STEP = 0.5
"""Smallest scale of the tails of whole numbers."""


class Empirical(Piecewise):
    """m equally likely samples per row, as from dropout or ensembles (Torres et al., section 4.2).

    If outcome and samples are drawn from the same distribution, the outcome is equally likely to
    fall into each of the m + 1 gaps between and beyond the samples. The distribution function is
    therefore i / (m + 1) at the i-th smallest sample and linear between samples. Beyond the
    outermost samples are tails, each of mass 1 / (m + 1).

    Parameters
    ----------
    samples : (n, m) array

    Attributes
    ----------
    samples : (n, m)
        Ascending in every row.

    Raises
    ------
    InputError
        If a sample is not finite; the message names the row.

    Notes
    -----
    A tail is generalised Pareto, 1 / (m + 1) (1 + e / (k s))^(-k) at distance e. This is the
    predictive distribution of the next excess if the tail is exponential and s is the mean excess
    of its outermost k = sqrt(m) samples, 2 to 8, over the next one. It adapts to skewed,
    heavy-tailed and two-peaked samples. For normal samples, 95% intervals cover about 95% with five
    samples or more (tests/benchmarks/RESULTS_ensembles.md). A row whose outermost k + 1 samples are
    equal has no tail at that end: its support ends there. Equal samples make an atom.

    If the samples of all rows are whole numbers, and not all equal, they are counts. Ties do not
    then mean that there is no tail: s is at least half a step, unless m is 1. (Rows of zeros among
    fractions, such as rainfall, are not counts.) With five counts per row, recalibrated 95%
    intervals cover 93 to 98% with this rule and 86 to 94% without it.

    ``mean`` and ``std`` are those of an ensemble: the mean of the samples, and the square root of
    (1 + 1/m) times their variance (with m - 1). That is the mean square of outcome minus mean if
    both come from the same distribution. Samples have no density: ``log_density`` is a Gaussian
    kernel estimate as for :class:`Weighted`, with the tails' densities added.

    PIT values come from ranks; see :func:`randomised_pit`.

    Examples
    --------
    >>> ensemble = Empirical([[3.0, 1.0, 2.0, 4.0]])
    >>> ensemble.cdf([[1.0, 2.5, 4.0]]).tolist(), ensemble.ppf(0.3).tolist()
    ([[0.2, 0.5, 0.8]], [1.5])
    >>> bool(0.9 < ensemble.cdf(9.0)[0] < 1)
    True
    """

    family: ClassVar[str] = "samples"
    samples: FloatArray

    def __init__(self, samples: ArrayLike) -> None:
        values = checked_table(samples, "sample")
        self.samples = values if rows_ascend(values) else np.sort(values, axis=1)
        self._least_scale = STEP if _are_counts(self.samples) else 0.0

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.samples, chosen._least_scale = self.samples[rows], self._least_scale
        return chosen

    @property
    def has_density(self) -> bool:
        return False

    @property
    def resolved(self) -> float:
        m = int(self.samples.shape[1])
        return (m - 1) / (m + 1)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"samples": self.samples}

    def _jump(self, y: FloatArray) -> tuple[FloatArray, FloatArray | float, FloatArray | float]:
        outcomes = np.broadcast_to(y, len(self))[:, np.newaxis]
        ends = (count_up_to(self.samples, outcomes, side) for side in ("left", "right"))
        below, up_to = (end[:, 0].astype(np.float64) for end in ends)
        return below, up_to - below + 1.0, self.samples.shape[1] + 1.0

    @property
    def _levels(self) -> FloatArray:
        m = self.samples.shape[1]
        levels: FloatArray = np.arange(1, m + 1) / (m + 1)
        return levels

    @property
    def _points(self) -> FloatArray:
        return self.samples

    def _tails(self) -> tuple[Tail, Tail]:
        m = self.samples.shape[1]
        k = min(max(FEWEST, round(m**0.5)), MOST)
        used, mass = min(k, m - 1), 1 / (m + 1)
        # the mean of differences is exactly zero for equal samples
        lower = self.samples[:, [used]] - self.samples[:, : max(used, 1)]
        upper = self.samples[:, m - max(used, 1) :] - self.samples[:, [m - 1 - used]]
        ends = (excess.mean(axis=1, keepdims=True) for excess in (lower, upper))
        least = self._least_scale if m > 1 else 0.0
        below, above = (ParetoTail(mass, np.maximum(scale, least), k) for scale in ends)
        return below, above

    def _mean(self) -> FloatArray:
        mean: FloatArray = self.samples.mean(axis=1)
        return mean

    def _std(self) -> FloatArray:
        m = self.samples.shape[1]
        spread: FloatArray = self.samples.std(axis=1)
        predictive: FloatArray = spread * ((m + 1) / max(m - 1, 1)) ** 0.5
        return predictive

    def _log_density(self, y: FloatArray) -> FloatArray:
        inside = object.__new__(Weighted)
        inside.samples, inside.weights = self.samples, np.ones((1, self.samples.shape[1]))
        density, kernels = np.full((len(self), y.shape[1]), -np.inf), np.ones((len(self), 1))
        ends = self.samples[:, :1] - y, y - self.samples[:, -1:]
        for distance, tail in zip(ends, self._tails(), strict=True):
            beyond = np.where(distance > 0, tail.log_density(np.maximum(distance, 0.0)), -np.inf)
            density = np.logaddexp(density, beyond)
            kernels = kernels - np.where(tail.scale > 0, tail.mass, 0.0)
        total: FloatArray = np.logaddexp(density, np.log(kernels) + inside._log_density(y))
        return total


def _are_counts(samples: FloatArray) -> bool:
    """Whether all samples are whole numbers, not all equal."""
    whole = bool((samples == np.rint(samples)).all())
    return whole and bool((samples != samples[:1, :1]).any())


def drawn_note(distribution: PredictiveDistribution) -> str:
    """How PIT values of quantiles are made; empty for other predictions.

    Examples
    --------
    >>> drawn_note(Quantiles([0.1, 0.9], [[1.0, 2.0]]))
    'Only the 10% and 90% quantiles are stated: between two of them, and beyond, PIT values are \
drawn evenly.'
    """
    if not isinstance(distribution, Quantiles):
        return ""
    named = listed((f"{100 * at:g}%" for at in distribution.levels), 8)
    return (
        f"Only the {named} quantiles are stated: between two of them, and beyond, PIT values are "
        "drawn evenly."
    )


def resolution_note(distribution: PredictiveDistribution, level: float = 0.95) -> str:
    """Why central intervals of probability ``level`` are not the prediction's own; may be empty.

    Examples
    --------
    >>> resolution_note(Empirical([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]]))
    '10 samples per row resolve central intervals up to 82%; 39 would resolve 95%. Intervals wider \
than 82% end in tails that kdcal fits beyond the samples.'
    >>> resolution_note(Quantiles([0.1, 0.9], [[1.0, 2.0]]))
    'Quantiles from 10% to 90% state central intervals up to 80%; 2.5% and 97.5% would state 95%. \
Intervals wider than 80% end in normal tails that kdcal adds beyond the quantiles.'
    """
    own = distribution.resolved
    if own >= level - 1e-9:
        return ""
    up_to, wanted = f"{100 * own:.0f}%", f"{100 * level:g}%"
    if isinstance(distribution, Empirical):
        m = distribution.samples.shape[1]
        enough = math.ceil(2 / (1 - level) - 1 - 1e-6)
        return (
            f"{m} samples per row resolve central intervals up to {up_to}; {enough} would resolve "
            f"{wanted}. Intervals wider than {up_to} end in tails that kdcal fits beyond the "
            "samples."
        )
    if isinstance(distribution, Quantiles):
        first, last = (f"{100 * at:g}%" for at in distribution.levels[[0, -1]])
        ends = f"{50 * (1 - level):g}% and {50 * (1 + level):g}%"
        return (
            f"Quantiles from {first} to {last} state central intervals up to {up_to}; {ends} would "
            f"state {wanted}. Intervals wider than {up_to} end in normal tails that kdcal adds "
            "beyond the quantiles."
        )
    return ""
