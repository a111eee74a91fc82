"""The distributions of the test statistics for uniform PIT values, which give the p values."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.stats import chi2

from kdcal_core.data import FloatArray

_TERMS = 400
_BLOCK = 2**22  # floats of a block of draws: 32 MB


def cramer_von_mises_tail(statistic: float) -> float:
    """Limit law: chance that n times the integral of (F - u)^2 du is larger.

    Examples
    --------
    >>> round(cramer_von_mises_tail(0.46136), 4)
    0.05
    """
    j = np.arange(1, _TERMS + 1)
    return _mixture_tail(statistic, tuple(1.0 / (np.pi * j) ** 2), 1.0 / 6.0, 2.0**0.5)


def anderson_darling_tail(statistic: float) -> float:
    """Limit law: chance that n times the integral of (F - u)^2 / (u (1 - u)) du is larger.

    Examples
    --------
    >>> round(anderson_darling_tail(2.492), 4)
    0.05
    """
    j = np.arange(1, _TERMS + 1)
    return _mixture_tail(statistic, tuple(1.0 / (j * (j + 1.0))), 1.0, 3.0**0.5)


@lru_cache(maxsize=64)
def frosini_law(n: int, draws: int, seed: int) -> FloatArray:
    """Frosini's statistic of n uniform values, drawn and sorted, (draws,).

    Examples
    --------
    >>> law = frosini_law(50, 10_000, 0)
    >>> bool(abs(law[9_500] - 0.58) < 0.02)
    True
    """
    rng = np.random.default_rng(seed)
    middle = (np.arange(n) + 0.5) / n
    law = np.empty(draws)
    size = max(1, _BLOCK // (n + 1))
    for start in range(0, draws, size):
        # partial sums of exponential times over their total: uniform values already in order
        times = rng.standard_exponential((min(size, draws - start), n + 1))
        np.cumsum(times, axis=1, out=times)
        ordered = times[:, :-1] / times[:, -1:]
        law[start : start + size] = np.abs(ordered - middle).sum(axis=1) / n**0.5
    law.sort()
    law.flags.writeable = False
    return law


def _mixture_tail(x: float, weights: tuple[float, ...], mean: float, factor: float) -> float:
    """Chance that a weighted sum of independent chi-squares of one degree exceeds ``x``.

    Imhof's inversion (1961) of the first terms, the mean of the others taken off x. Where it
    falls below its accuracy the largest weight alone decides: factor * P(chi2 > x / weight),
    factor the product of (1 - weight_j / weight_1)^(-1/2) over the others (Zolotarev 1961).
    """
    far = factor * float(chi2.sf(x / weights[0], 1))
    if far < 1e-5:
        return far
    u, angle, damping, step = _characteristic(weights)
    rest = mean - sum(weights)
    wave = np.sin(angle - (x - rest) * u / 2.0) * damping
    return float(np.clip(0.5 + step * wave.sum() / np.pi, 0.0, 1.0))


@lru_cache(maxsize=2)
def _characteristic(weights: tuple[float, ...]) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Arguments on a log scale; half the angle and 1 / modulus of the characteristic function."""
    step = 0.004
    u = np.exp(np.arange(-35.0, 8.5, step))
    angle, log_modulus = np.zeros(len(u)), np.zeros(len(u))
    for weight in weights:
        angle += np.arctan(weight * u) / 2.0
        log_modulus += np.log1p((weight * u) ** 2) / 4.0
    return u, angle, np.exp(-log_modulus), step
