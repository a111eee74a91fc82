"""A test of whether the outcomes agree with the stated probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy.stats import rankdata

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.targets import Target, confidence_target, overall_effect
from kdcal_core.statistics import binomial_draws, whole_rows

DEGREES = 8
"""Shapes of a fault that are tried: an offset, a slope, and six polynomials of the rank."""

_REDRAWN = 5_000  # outcomes are redrawn up to this many rows; above, projections are normal
_DRAWS, _NORMAL_DRAWS = 1_999, 19_999
_CLIP = 1e-6
_NEAR_ENDS = (0.005, 0.995)


def calibration_test(score: Any, hit: Any, *, seed: int = 0, sample_weight: Any = None) -> float:
    """p value of the hypothesis that every event happens with its stated probability.

    Parameters
    ----------
    score : (n,) array in [0, 1]
        Stated probabilities.
    hit : (n,) array of 0 and 1
        Whether the event happened.
    seed : int
        Seed of the redrawn outcomes.
    sample_weight : (n,) array, optional
        Positive row weights. Of a :class:`kdcal_core.statistics.RowDesign` the projections are
        divided by the root of the design effect (Rao and Scott 1981, first order).

    Returns
    -------
    float
        Above 0, at most 1. At least 1/2,000 with up to 5,000 rows, and 1/20,000 with more.

    Raises
    ------
    InputError
        As in :func:`kdcal_core.diagnostics.confidence_calibration_error`.

    Notes
    -----
    This is Fan's adaptive Neyman test (1996). The residuals are projected on orthonormal shapes:
    an offset and a slope in the log odds, as in Cox's test, then Legendre polynomials of the
    score's rank. With squared projections z_j^2 the statistic is the largest of
    ``(z_1^2 + ... + z_m^2 - m) / sqrt(2 m)`` over m. Simple faults are thus found with the power
    of few shapes, others with that of many. The null distribution comes from outcomes redrawn from
    the stated probabilities, so the level is exact; with many rows the projections are normal.

    Spiegelhalter's contrast (1986), residuals weighted by ``1 - 2 score``, is a further projection
    z, which stands beside the sums as ``(z^2 - 1) / sqrt(2)``. Log odds that are too large or too
    small are thus found more often; the redrawn outcomes, which go through the same statistic,
    keep the level. Other faults lose at most 3 points of power (tests/benchmarks/
    RESULTS_checks.md).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 1000)
    >>> hit = (rng.random(1000) < p).astype(int)
    >>> calibration_test(p, hit) > 0.05, calibration_test(np.sqrt(p), hit) < 0.01
    (True, True)
    """
    return target_test(confidence_target(score, hit, sample_weight), seed)


def target_test(target: Target, seed: int = 0) -> float:
    """As :func:`calibration_test`, for one target."""
    score = np.clip(target.score, _CLIP, 1.0 - _CLIP)
    spread = np.sqrt(score * (1.0 - score)) * target.weight
    scaled = target.weight / spread  # gives a residual variance 1
    away = (target.hit - score) * scaled / overall_effect(target) ** 0.5

    def redrawn(rng: np.random.Generator, n: int) -> FloatArray:
        return np.asarray(((rng.random((n, len(score))) < score) - score) * scaled)

    shapes = _shapes(score, spread)
    return _p_value(away, score, spread, shapes, len(score), redrawn, seed)


def cells_test(
    score: FloatArray, count: FloatArray, hits: FloatArray, seed: int = 0, effect: float = 1.0
) -> float:
    """As :func:`calibration_test`, for cells of rows of one score each, in increasing order.

    Parameters
    ----------
    score, count, hits : (c,) arrays
        Score, rows, and events among them. Every cell has rows.
    effect : float
        The design effect of rows that depend on one another.

    Examples
    --------
    >>> cells_test(np.array([0.2, 0.5]), np.array([500.0, 500.0]), np.array([101.0, 262.0])) > 0.05
    True
    """
    score = np.clip(score, _CLIP, 1.0 - _CLIP)
    n, rows = int(count.sum()), whole_rows(count)
    spread = np.sqrt(score * (1.0 - score) * count)
    last = np.cumsum(count)
    near = np.searchsorted(last, np.ceil(np.array(_NEAR_ENDS) * n))
    rank = (last - 0.5 * count) / n

    def redrawn(rng: np.random.Generator, draws: int) -> FloatArray:
        drawn = binomial_draws(rng, rows, score, draws)
        return np.asarray((drawn - rows * score) / spread)

    shapes = _placed_shapes(score, spread, rank, _log_odds(score)[near])
    away = (hits - count * score) / spread / effect**0.5
    return _p_value(away, score, spread, shapes, n, redrawn, seed)


def _p_value(
    away: FloatArray,
    score: FloatArray,
    spread: FloatArray,
    shapes: FloatArray,
    n: int,
    redrawn: Callable[[np.random.Generator, int], FloatArray],
    seed: int,
) -> float:
    """How often chance gives a statistic as large as that of the residuals ``away`` of ``n`` rows.

    ``redrawn`` gives so many draws of residuals under the hypothesis, each as long as ``away``.
    """
    contrast, shared, rest = _contrast(score, spread, shapes)
    seen = _largest((away @ shapes)[None, :], (away @ contrast)[None])[0]
    rng = np.random.default_rng(seed)
    if n > _REDRAWN:
        normal = rng.normal(size=(_NORMAL_DRAWS, shapes.shape[1]))
        drawn = _largest(normal, normal @ shared + rest * rng.normal(size=_NORMAL_DRAWS))
    else:
        parts = []
        for _ in range(4):  # blocks, to save memory
            residuals = redrawn(rng, _DRAWS // 4 + 1)
            parts.append(_largest(residuals @ shapes, residuals @ contrast))
        drawn = np.concatenate(parts)[:_DRAWS]
    return float((1 + (drawn >= seen).sum()) / (1 + len(drawn)))


def _log_odds(score: FloatArray) -> FloatArray:
    return np.asarray(np.log(score) - np.log1p(-score))


def _shapes(score: FloatArray, spread: FloatArray) -> FloatArray:
    """Orthonormal columns (n, m) for residuals of variance 1 of rows; m is at most 8."""
    ends = np.quantile(_log_odds(score), _NEAR_ENDS)
    return _placed_shapes(score, spread, (rankdata(score) - 0.5) / len(score), ends)


def _placed_shapes(
    score: FloatArray, spread: FloatArray, share: FloatArray, ends: FloatArray
) -> FloatArray:
    """As `_shapes`, of rows or of cells of them.

    ``share`` is each score's place among the rows, from 0 to 1, and ``ends`` are log odds near
    both ends of them.
    """
    odds = _log_odds(score)
    # clipped, so that a few rows near 0 or 1 do not determine the slope alone
    low, high = ends
    rank = share * 2.0 - 1.0
    higher = legendre.legvander(rank, DEGREES - 1)[:, 2:]
    columns = np.column_stack([np.ones(len(score)), np.clip(odds, low, high), higher])
    scaled = columns * spread[:, None]
    # zeros below fewer rows than columns keep one size for each column
    basis, triangle = np.linalg.qr(np.pad(scaled, ((0, max(DEGREES - len(score), 0)), (0, 0))))
    size = np.abs(np.diag(triangle))
    return np.asarray(basis[: len(score), size > 1e-8 * np.linalg.norm(scaled, axis=0)])


def _contrast(
    score: FloatArray, spread: FloatArray, shapes: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Spiegelhalter's contrast (n,) of length 1, its parts along the shapes (m,), and the rest.

    All zeros where every score is one half: then it says nothing.
    """
    column = (1.0 - 2.0 * score) * spread
    size = float(np.linalg.norm(column))
    if size < 1e-8 * float(np.linalg.norm(spread)):
        return np.zeros_like(column), np.zeros(shapes.shape[1]), 0.0
    contrast = column / size
    shared = contrast @ shapes
    return contrast, shared, max(1.0 - float(shared @ shared), 0.0) ** 0.5


def _largest(projections: FloatArray, contrast: FloatArray) -> FloatArray:
    """The statistic of each row of projections (B, m) and of contrasts (B,), (B,)."""
    order = np.arange(1, projections.shape[1] + 1)
    total = np.cumsum(np.square(projections), axis=1)
    sums = ((total - order) / np.sqrt(2.0 * order)).max(axis=1)
    return np.asarray(np.maximum(sums, (np.square(contrast) - 1.0) / np.sqrt(2.0)))
