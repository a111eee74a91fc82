"""One measure of all methods on the same rows, with what is needed to compare any two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.statistics import kish

GRID = 16
PLAUSIBLE = 3.0  # standard errors within which a true error is held possible


@dataclass(frozen=True, eq=False)
class Spread:
    """Values of M methods, and how they vary together over the rows.

    A calibration error is a magnitude, so that noise adds to it, and adds more where the true
    error is small. Bias and covariance are therefore kept for T true errors, those of the grid;
    a mean has no bias, and T is 1.

    Attributes
    ----------
    value : (M,)
        The statistic as observed.
    shown : (M,)
        The estimate of each method that stands beside the difference, where it is another
        estimator of the same thing (debiased, or on a finer lattice).
    bias : (M, T)
        Mean of the statistic less the true error, where that is the grid's.
    possible : (M, T) bool
        Whether the observed value could come from this true error.
    covariance : (M, T, M, T)
        Of the statistics; a row holds a method at a true error.
    freedom : float
        Degrees of freedom of t quantiles.
    floor : float
        Least standard error of a difference.
    """

    value: FloatArray
    shown: FloatArray
    bias: FloatArray
    possible: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    covariance: FloatArray
    freedom: float = np.inf
    floor: float = 0.0


def of_means(losses: FloatArray, weight: FloatArray, floor: float = 0.0) -> Spread:
    """Weighted means of row losses (M, n), paired by row.

    ``floor`` is the range of one row's difference where rows that agree must not look certain:
    as if half a row at each end of it were added, which for a share of right rows is the
    interval of Agresti and Min (2005) for matched pairs.
    """
    n = losses.shape[1]
    value = losses @ weight / weight.sum()
    away = (losses - value[:, None]) * (weight / weight.sum())
    covariance = away @ away.T * (n / max(n - 1, 1))
    effective = kish(weight)
    return unbiased(value, covariance, max(effective - 1.0, 1.0), floor / effective)


def of_areas(
    value: FloatArray, part: FloatArray, lead: FloatArray, side: IntArray, weight: FloatArray
) -> Spread:
    """Areas under ROC curves (M,) from the parts of the rows (M, n) in their sampling error.

    Each true class is a sample of its own, as in :func:`kdcal_core.diagnostics.auc
    .area_variance`; the degrees of freedom are those of the pair of methods that has the fewest.
    A class of one row tells no variance: a difference is then as uncertain as its ``lead`` lets
    it be.
    """
    m = len(value)
    covariance, doubt, lone = np.zeros((m, m)), np.zeros((m, m)), 0.0
    for one in np.unique(side):
        here = side == one
        spare = kish(weight[here]) - 1.0
        if spare < 1e-9:
            lone += float(np.square(lead[here]).sum())
            continue
        each = part[:, here] @ part[:, here].T * ((spare + 1.0) / spare)
        covariance += each
        doubt += _of_gaps(each) ** 2 / spare
    gap = _of_gaps(covariance)
    varies = (gap > 1e-18) & (doubt > 0.0)
    freedom = float((gap[varies] ** 2 / doubt[varies]).min(initial=np.inf))
    return unbiased(value, covariance, freedom, lone**0.5)


def _of_gaps(covariance: FloatArray) -> FloatArray:
    """Variance of the difference of each pair, (M, M)."""
    variance = np.diag(covariance)
    return np.asarray(variance[:, None] + variance - 2.0 * covariance)


def unbiased(
    value: FloatArray, covariance: FloatArray, freedom: float = np.inf, floor: float = 0.0
) -> Spread:
    """Statistics (M,) without bias, with their covariance (M, M)."""
    m = len(value)
    return Spread(
        value,
        value,
        np.zeros((m, 1)),
        np.ones((m, 1), dtype=bool),
        covariance.reshape(m, 1, m, 1),
        freedom,
        floor,
    )


def of_errors(value: FloatArray, truth: FloatArray, draws: FloatArray) -> Spread:
    """Magnitudes (M,), drawn (M, T, B) at true errors (M, T) that rise along T."""
    mean = draws.mean(axis=2)
    m, t, n_draws = draws.shape
    flat = (draws - mean[:, :, None]).reshape(m * t, n_draws)
    covariance = (flat @ flat.T / (n_draws - 1)).reshape(m, t, m, t)
    error = np.sqrt(np.einsum("itit->it", covariance))
    # between two neighbours of the grid, or within the noise of one
    above = mean >= value[:, None]
    next_to = np.zeros_like(above)
    next_to[:, 1:] |= above[:, 1:] & ~above[:, :-1]
    next_to[:, :-1] |= above[:, 1:] & ~above[:, :-1]
    next_to[:, 0] |= above[:, 0]
    next_to[:, -1] |= ~above[:, -1]
    possible = next_to | (np.abs(value[:, None] - mean) <= PLAUSIBLE * error)
    return Spread(value, value, mean - truth, possible, covariance)


def error_grid(most: float) -> FloatArray:
    """True errors from 0 to ``most``, closer to each other near 0, (T,)."""
    return most * (np.arange(GRID) / (GRID - 1)) ** 2
