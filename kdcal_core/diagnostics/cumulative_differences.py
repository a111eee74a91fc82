"""Stated minus seen, added up over the rows by stated probability: a diagram without bins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.targets import Kind, Target, targets
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence, small_sample_factor

_REDRAWN, _DRAWS, _BLOCK = 5_000, 1_999, 100
_MOST_UNITS = 2_000
_MOST_POINTS = 400
_TERMS = np.arange(1, 101)


@dataclass(frozen=True, eq=False)
class CumulativeDifferences:
    """The curve of cumulative differences, and whether calibration would explain its range.

    Attributes
    ----------
    kind : {"confidence", "top-label", "class"}
    label : int or None
        The class in question; None for the confidence in the predicted class.
    share : (m,) array
        Share of the rows (of the weight) with a stated probability up to here, from 0 to 1. With
        many rows, m is about 400 of the points, the highest and the lowest among them.
    score : (m,) array
        The stated probability up to which the rows are added; the smallest one at the start.
    difference : (m,) array
        Stated minus seen, added up to here, divided by the total weight; 0 at the start. Where the
        curve rises, the stated probabilities are too high; its slope says by how much.
    spread : (m,) array
        Standard deviation of the difference if the stated probabilities are right; of dependent
        rows, from the faults of their clusters or times.
    range : float
        Highest minus lowest point of the curve (ECCE-R, Kuiper's statistic), in [0, 1]. No stretch
        of stated probabilities has rows that add up to a larger difference.
    largest : float
        Largest distance of the curve from zero (ECCE-MAD, Kolmogorov and Smirnov's statistic).
    expected : float
        The range that calibrated probabilities would show on average.
    p_value : float
        Of the range, if the stated probabilities are right.
    n : int
    """

    kind: Kind
    label: int | None
    share: FloatArray
    score: FloatArray
    difference: FloatArray
    spread: FloatArray
    range: float
    largest: float
    expected: float
    p_value: float
    n: int

    @property
    def steepest(self) -> tuple[int, int]:
        """Positions of the curve's lowest and highest point, in their order along the curve."""
        ends = sorted((int(self.difference.argmin()), int(self.difference.argmax())))
        return ends[0], ends[1]

    def table(self) -> pd.DataFrame:
        """One row a point of the curve, for download."""
        return pd.DataFrame(
            {
                "share_of_rows": self.share,
                "stated_up_to": self.score,
                "cumulative_difference": self.difference,
                "standard_deviation_by_chance": self.spread,
            }
        )


def cumulative_differences(
    proba: Any,
    y: Any,
    *,
    kind: Kind = "confidence",
    label: int | None = None,
    sample_weight: Any = None,
    seed: int = 0,
) -> CumulativeDifferences:
    """Stated minus seen, added up over the rows in the order of their stated probability.

    Parameters
    ----------
    proba : (n, K) array
    y : (n,) array of int
    kind, label
        As in :func:`kdcal_core.diagnostics.reliability`; a class is needed but for "confidence".
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights, with or without the dependence of the rows.
    seed : int
        Seed of the redrawn outcomes.

    Raises
    ------
    InputError
        As in :func:`kdcal_core.diagnostics.reliability`, or if no row is predicted to be the
        class.

    Notes
    -----
    Range and largest distance are the metrics ECCE-R and ECCE-MAD of Arrieta-Ibarra, Gujral,
    Tannen, Tygert and Xu, *Metrics of calibration for probabilistic predictions*, JMLR 23 (2022).
    They have no bins to choose. Rows with equal stated probabilities are added at once, because
    their order says nothing. Up to 5,000 rows, p value and expected range come from 1,999 sets of
    outcomes redrawn from the stated probabilities; above, from the range of Brownian motion (Feller
    1951), to which the curve tends and which equal probabilities make conservative. Of dependent
    rows, the observed faults are multiplied by random normal numbers, which rows of one cluster
    share and those of near times nearly do (the wild bootstrap; Shao 2010).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> good = cumulative_differences(np.stack([1 - p, p], axis=1), y, kind="class", label=1)
    >>> sure = np.where(p > 0.5, 1 - (1 - p) / 3, p)
    >>> bad = cumulative_differences(np.stack([1 - sure, sure], axis=1), y, kind="class", label=1)
    >>> good.p_value > 0.05, bad.p_value < 0.01
    (True, True)
    """
    found = targets(proba, y, sample_weight, kind, label)[0]
    if not len(found.score):
        raise InputError("No row is predicted to be this class", fix="Choose another class.")
    return target_differences(found, kind, seed)


def target_differences(target: Target, kind: Kind, seed: int = 0) -> CumulativeDifferences:
    """As :func:`cumulative_differences`, for one target with rows."""
    score, hit, weight, together = _ascending(target)
    n = len(score)
    ends = np.append(np.flatnonzero(score[1:] != score[:-1]), n - 1)
    away = score - hit
    away *= weight
    drawn = None
    if together is not None:
        variance, drawn = _of_units(away, together, ends, seed)
    elif n <= _REDRAWN:
        drawn = _redrawn(score, weight, ends, seed)
    curve = _from_zero(np.cumsum(away, out=away)[ends])
    kept = _drawn_points(curve)
    at = np.append(0, ends + 1)[kept]
    if together is None:
        each = 1.0 - score
        each *= score
        each *= weight**2
        variance = _from_zero(np.cumsum(each, out=each))[[*at, n]]
    else:
        variance = variance[[*kept, -1]]
    seen, sigma = float(np.ptp(curve)), float(np.sqrt(variance[-1]))
    if drawn is None:
        p_value = brownian_range_tail(seen / sigma) if sigma > 0 else float(seen == 0.0)
        expected = sigma * np.sqrt(8.0 / np.pi)
    else:
        # rounding must not tell a redrawn curve from an equal one
        p_value = float((1 + (drawn >= seen - 1e-12).sum()) / (1 + len(drawn)))
        expected = float(drawn.mean())
    return CumulativeDifferences(
        kind=kind,
        label=target.label,
        share=at / n if weight.strides == (0,) else _from_zero(np.cumsum(weight))[at],
        score=score[np.maximum(at - 1, 0)],
        difference=curve[kept],
        spread=np.sqrt(variance[:-1]),
        range=seen,
        largest=float(np.abs(curve).max()),
        expected=float(expected),
        p_value=p_value,
        n=n,
    )


def _ascending(
    target: Target,
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray, Dependence | None]:
    """Scores in ascending order with their hits, shares of the weight, and dependence.

    Rows of equal weight are one integer each, the score's bits with the hit behind them, which
    numpy sorts several times as fast as it orders rows.
    """
    n, weight = len(target.score), target.weight
    if target.dependence is None and (weight == weight[0]).all():
        key = (target.score + 0.0).view(np.int64)  # a score of -0 becomes 0
        key <<= 1
        key |= target.hit == 1.0
        key.sort()
        hit = (key & 1).astype(bool)
        key >>= 1
        return key.view(np.float64), hit, np.broadcast_to(1.0 / n, n), None
    order = np.argsort(target.score, kind="stable")
    together = None if target.dependence is None else target.dependence.only(order)
    return target.score[order], target.hit[order] == 1.0, weight[order] / weight.sum(), together


def brownian_range_tail(r: float) -> float:
    """Probability that Brownian motion on [0, 1] has a range of at least ``r`` (Feller 1951).

    The integral of Feller's density: ``8 sum_k (-1)^(k-1) k Q(k r)``, with the normal tail Q.

    Examples
    --------
    >>> round(brownian_range_tail(0.3), 3), round(brownian_range_tail(2.497672), 3)
    (1.0, 0.05)
    """
    if r < 0.5:  # the sum converges slowly there; the probability is above 0.9999998
        return 1.0
    terms = (-1.0) ** (_TERMS - 1) * _TERMS * norm.sf(_TERMS * r)
    return float(np.clip(8.0 * terms.sum(), 0.0, 1.0))


def _redrawn(score: FloatArray, weight: FloatArray, ends: IntArray, seed: int) -> FloatArray:
    """Ranges of the curves of outcomes drawn from the stated probabilities."""
    rng = np.random.default_rng(seed)
    ranges = []
    for start in range(0, _DRAWS, _BLOCK):
        hits = rng.random((min(_BLOCK, _DRAWS - start), len(score))) < score
        ranges.append(_ranges(np.cumsum((score - hits) * weight, axis=1)[:, ends]))
    return np.concatenate(ranges)


def _of_units(
    away: FloatArray, together: Dependence, ends: IntArray, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Variance of the curve of dependent rows at its points, and ranges of redrawn curves.

    Both are of about 400 of its points and at most 2,000 units, between which the variance is
    interpolated.
    """
    few = together.coarser(_MOST_UNITS)
    kept = np.linspace(0, len(ends) - 1, min(len(ends), _MOST_POINTS)).astype(np.int64)
    step = np.searchsorted(ends[kept], np.arange(len(away)))
    place, cells = few.unit * len(kept) + step, few.n_units * len(kept)
    sums = np.bincount(place, weights=away, minlength=cells).reshape(few.n_units, len(kept))
    curves: FloatArray = np.cumsum(sums, axis=1)
    factor = small_sample_factor(few.n_units, few.lags)
    known = factor * np.square(few.near(curves.T)).sum(axis=1)
    variance = np.interp(np.arange(len(ends)), kept, known)
    each = replace(few, unit=np.arange(few.n_units))
    drawn = each.alike(np.random.default_rng(seed), _DRAWS)
    return _from_zero(variance), _ranges(factor**0.5 * (drawn.T @ curves))


def _ranges(curves: FloatArray) -> FloatArray:
    """Range of each curve (k, m), which begins at 0."""
    ranges: FloatArray = np.maximum(curves.max(axis=1), 0.0) - np.minimum(curves.min(axis=1), 0.0)
    return ranges


def _from_zero(sums: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], sums])


def _drawn_points(curve: FloatArray) -> IntArray:
    """Positions of at most about 400 points, with both ends, the highest and the lowest."""
    even = np.linspace(0, len(curve) - 1, min(len(curve), _MOST_POINTS)).astype(np.int64)
    return np.unique([*even, int(curve.argmin()), int(curve.argmax())])
