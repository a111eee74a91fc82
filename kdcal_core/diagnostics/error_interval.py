"""Intervals of calibration errors: a test, inverted along the gaps that the rows support."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from scipy.special import ndtr, ndtri

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.targets import with_doubt

STEPS = 16  # true errors tried up to the largest that noise could explain, and above it
SMALLEST = 1e-6  # no smaller error is tried
FEW = 20  # with fewer hits or misses the size of the noise is uncertain
UNSHAPED = 100  # with fewer hits or misses the relation of gaps to the score is uncertain


def tried_errors(value: float, noise: FloatArray, level: float, stride: int = 1) -> FloatArray:
    """True errors to try, increasing from 0; a higher level adds errors to those of a lower one.

    Parameters
    ----------
    value : float
        The observed error.
    noise : (B,) array
        Draws of the error of a calibrated model.
    level : float
    stride : int
        Keep only every ``stride``-th error, if each is costly.

    Notes
    -----
    Limits are interpolated between the errors tried. If each level had its own errors, the
    interval of a higher level could end below that of a lower one.

    Examples
    --------
    >>> noise = np.linspace(0.0, 0.4, 1001)
    >>> few, many = (tried_errors(0.1, noise, level) for level in (0.8, 0.999))
    >>> len(few), len(many), bool(np.all(many[:33] == few))
    (33, 34, True)
    """
    usual, most = np.quantile(noise, [0.975, 0.5 + 0.5 * level])
    largest = max(value, float(usual), SMALLEST)
    steps = 2 * STEPS * max(1.0, float(most) / largest)
    return np.asarray(np.arange(0, int(np.ceil(steps)) + 1, stride) / STEPS * largest)


def inverted_test(
    value: float,
    truth: FloatArray,
    drawn: Iterable[FloatArray],
    level: float,
    shown: float | None = None,
) -> tuple[float, float]:
    """True errors for which the observed one is not an outlier: (low, high) in [0, 1].

    Parameters
    ----------
    value : float
        The observed error.
    truth : (T,) increasing array from 0
        True errors tried.
    drawn : iterable of (B,) arrays, one for each true error
        Draws of the statistic if that is the true error.
    level : float
    shown : float, optional
        The number shown with the interval, if it is not ``value`` (a debiased one).

    Notes
    -----
    Likelihood ratios decide which values are outliers (:func:`lower_tail`). Equal tails would
    contain a calibrated model's error, 0, in 97.5% of the samples at a level of 95%.

    Noise adds to a magnitude, and may raise the shown number above all errors in the interval. The
    interval then ends at that number, which cannot be too low. Its lower end has the whole error
    probability 1 - level, so that the coverage stays ``level``.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=1000)
    >>> truth = np.linspace(0.0, 1.0, 21)
    >>> low, high = inverted_test(0.5, truth, (np.abs(t + 0.1 * noise) for t in truth), 0.95)
    >>> round(low, 1), round(high, 1)
    (0.3, 0.7)
    """
    shown = value if shown is None else shown
    every = np.array(list(drawn))
    spread = np.maximum(every.std(axis=1), 1e-12)
    lower = lower_tail((every.mean(axis=1) - every[0].mean()) / spread, level)
    levels = np.column_stack([lower, lower + level, np.full(len(lower), level)])
    limits = row_quantiles(every, levels)
    if value == 0.0:  # errors that noise could hide
        return 0.0, min(float(limits[0, 1]), 1.0)
    high = _crossing(truth, limits[:, 0], value)
    one_sided = high <= shown
    low = _crossing(truth, limits[:, 2 if one_sided else 1], value)
    return min(low, shown), min(max(high, shown), 1.0)


def row_quantiles(values: FloatArray, levels: FloatArray) -> FloatArray:
    """Quantiles of each row of (T, B) at its own levels, (T, L).

    The result equals, to the last bit, :func:`numpy.quantile` with ``method="weibull"``. That
    function takes the same levels for all rows; calling it row by row takes ten times as long as
    one sort of all rows.

    Examples
    --------
    >>> row_quantiles(np.array([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]]), np.array([[0.25], [0.5]]))
    array([[1.],
           [5.]])
    """
    n = values.shape[1]
    ordered = np.sort(values, axis=1)
    place = np.clip(n * levels + levels - 1.0, 0.0, n - 1.0)
    below = np.floor(place).astype(np.intp)
    share = place - below
    low = np.take_along_axis(ordered, below, axis=1)
    high = np.take_along_axis(ordered, np.minimum(below + 1, n - 1), axis=1)
    step = high - low
    return np.asarray(np.where(share < 0.5, low + step * share, high - step * (1.0 - share)))


def lower_tail(shift: FloatArray, level: float) -> FloatArray:
    """Probability below the accepted values, (T,), by the rule of likelihood ratios.

    A true error is never negative, so values that only a negative one would explain are evidence
    for 0. Values are accepted in the order of a likelihood ratio (Feldman and Cousins 1998): their
    likelihood over that of the error, at 0 or above, that explains them best. For a normal value
    ``shift`` standard deviations above that of 0, the lower tail grows from none of 1 - level to
    half of it.

    Examples
    --------
    >>> lower_tail(np.array([0.0, 1.0, 2.0]), 0.95).round(4)
    array([0.    , 0.0156, 0.025 ])
    """
    mean, half = np.maximum(shift, 1e-9), 0.5 * (1.0 - level)
    largest = ndtri(1.0 - half)
    tail, near = np.full(mean.shape, half), mean < largest
    mean = mean[near]
    low, high, back = np.full(mean.shape, ndtri(level)), np.full(mean.shape, largest), -0.5 * mean
    for _ in range(40):  # the upper end, minus the mean, at which both ends are equally likely
        end = 0.5 * (low + high)
        short = ndtr(end) - ndtr(back - 0.5 * end**2 / mean) < level
        np.copyto(low, end, where=short)
        np.copyto(high, end, where=~short)
    tail[near] = np.maximum(ndtr(high) - level, 0.0)
    return tail


def likely_gaps(score: FloatArray, gap: FloatArray, variance: FloatArray) -> FloatArray:
    """Gaps (M,) shrunk by their noise towards those of a logistic map of the scores.

    Observed gaps scatter more than true ones. The map has two parameters, an offset and a slope in
    the log odds, which move a score s by s (1 - s) (a + b logit s) to first order. They are fitted
    by weighted least squares. The remainder is shrunk by the rule of James and Stein (1961) and by
    one further standard deviation, so that noise alone leaves almost nothing.

    Examples
    --------
    >>> score = np.array([0.2, 0.4, 0.6, 0.8])
    >>> likely_gaps(score, 0.2 * score * (1 - score), np.full(4, 0.01)).round(3)
    array([0.032, 0.048, 0.048, 0.032])
    """
    if len(score) <= 2:
        return gap
    inner = np.clip(score, 1e-4, 1.0 - 1e-4)
    slope = offset_gaps(score)
    basis = np.column_stack([slope, slope * (np.log(inner) - np.log1p(-inner))])
    root = 1.0 / np.sqrt(variance)
    found = np.linalg.lstsq(basis * root[:, None], gap * root, rcond=None)[0]
    fitted = basis @ found
    left = gap - fitted
    square = float(np.square(left * root).sum())
    free = len(score) - 2
    kept = max(0.0, 1.0 - (free + np.sqrt(2.0 * free)) / square) if square > 0.0 else 0.0
    return np.asarray(fitted + kept * left)


def gap_directions(
    score: FloatArray, gap: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Two shapes that the true gaps (M,) may have: spread over all scores, or in a few bins.

    A fault in a few bins adds fully to the error; a fault spread over all bins is partly hidden
    by their noise. The same true error can therefore give a larger or a smaller value. The first
    shape is :func:`likely_gaps`; the second keeps the part of each gap beyond its own noise.

    Examples
    --------
    >>> score, gap = np.array([0.3, 0.5, 0.7, 0.9]), np.array([0.01, -0.01, -0.2, 0.01])
    >>> gap_directions(score, gap, np.full(4, 0.0004))[1].round(3)
    array([ 0.   , -0.   , -0.196,  0.   ])
    """
    square = np.square(gap)
    kept = np.maximum(square - 2.0 * variance, 0.0)
    sharp = gap * np.divide(kept, square, out=np.zeros_like(square), where=square > 0.0)
    return likely_gaps(score, gap, variance), sharp


def even_gaps(gaps: FloatArray) -> FloatArray:
    """Gaps (M,) of one size, with the signs of those given.

    Of all shapes with one mean magnitude, this is the one to which noise adds least. Without it, an
    interval ended below a constant gap of 0.05 in 4.0% of 2,000 samples with 2,000 rows, where 2.5%
    is nominal; with it in 2.5%.

    Examples
    --------
    >>> even_gaps(np.array([0.02, -0.3, 0.0]))
    array([ 1., -1.,  1.])
    """
    return np.where(gaps >= 0.0, 1.0, -1.0)


def offset_gaps(score: FloatArray) -> FloatArray:
    """Gaps (M,), up to a factor, if the odds of all scores are off by one small factor.

    Few hits or misses lie in few bins, often not in the bins whose squared gaps have most weight.

    Examples
    --------
    >>> offset_gaps(np.array([0.1, 0.5])).round(2)
    array([0.09, 0.25])
    """
    inner = np.clip(score, 1e-4, 1.0 - 1e-4)
    return np.asarray(inner * (1.0 - inner))


def rarer(rate: FloatArray, rows: FloatArray) -> float:
    """Number of hits or misses, whichever is smaller, in bins with ``rate`` and ``rows`` (M,).

    Examples
    --------
    >>> rarer(np.array([0.5, 0.75]), np.array([100.0, 100.0]))
    75.0
    """
    return float(min(rate @ rows, (1.0 - rate) @ rows))


def noise_scale(
    score: FloatArray,
    gaps: FloatArray,
    rows: FloatArray,
    chance: FloatArray,
    doubt: FloatArray | float = 1.0,
) -> FloatArray:
    """Noise of outcomes with true gaps (..., M) relative to that with ``chance`` (M,), (..., M).

    A rate far above the observed one scatters more. An interval whose noise comes from few
    observed hits alone would end too low. ``doubt`` as in
    :func:`kdcal_core.diagnostics.targets.bin_chance`.

    Examples
    --------
    >>> few = np.array([0.03])
    >>> noise_scale(few, np.array([0.06]), np.array([300.0]), few).round(2)
    array([1.69])
    """
    true = with_doubt(np.clip(score + gaps, 0.0, 1.0), rows, doubt)
    return np.asarray(np.sqrt(true * (1.0 - true) / (chance * (1.0 - chance))))


def over_shapes(
    along: Callable[[FloatArray], tuple[float, float]],
    shapes: Iterable[FloatArray],
    rate: FloatArray,
    rows: FloatArray,
) -> tuple[float, float]:
    """The shortest interval that contains those ``along`` all shapes of the gaps (M,).

    If hits or misses are few, in bins with observed ``rate`` and ``rows``, there may by chance be
    too few, which shows too little noise. If an interval then reaches 0, the other sign is tried
    too.
    """
    few = rarer(rate, rows) < FEW
    found = []
    for shape in shapes:
        found.append(along(shape))
        if few and found[-1][0] == 0.0:
            found.append(along(-shape))
    low, high = zip(*found, strict=True)
    return min(low), max(high)


def _crossing(truth: FloatArray, limit: FloatArray, value: float) -> float:
    """Where the increasing ``limit`` first reaches ``value``; 0 if it starts above."""
    rising = np.maximum.accumulate(limit)
    return float(np.interp(value, rising, truth)) if rising[0] < value else 0.0
