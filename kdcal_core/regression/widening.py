"""Normal distributions that are far too narrow, widened so that PIT values do not saturate."""

from __future__ import annotations

import numpy as np

from kdcal_core.data.schema import FloatArray
from kdcal_core.distributions import Normal, PredictiveDistribution

FARTHEST = 8.0
"""Standard deviations from the mean; slightly farther out, a PIT value rounds to 0 or 1."""
COMFORTABLE = 5.0
"""Standard deviations from the mean up to which a PIT value near 1 keeps ten digits of them."""


def widening_of(distribution: PredictiveDistribution, y: FloatArray) -> float:
    """The factor of the spread with which every outcome has a PIT inside (0, 1).

    Algorithm 1 of Torres et al. maps the PIT values of some rows to others, F^_j^-1(F^_i(y_i)).
    For normal distributions that is mu_j + sigma_j (y_i - mu_i) / sigma_i, whatever common factor
    multiplies every sigma. So a factor changes only the precision, which ends 8.2 sigma from the
    mean. A network's spread may be ten times too narrow.

    Parameters
    ----------
    distribution : PredictiveDistribution of n rows
    y : (n,) array
        Outcomes, finite.

    Returns
    -------
    float
        1 if no outcome lies so far out, and for all other families than the normal one.

    Examples
    --------
    >>> widening_of(Normal([0.0, 0.0], 1.0), np.array([1.0, 40.0]))
    8.0
    """
    if not isinstance(distribution, Normal):
        return 1.0
    farthest = float(np.abs((y - distribution.mean()) / distribution.std()).max())
    return farthest / COMFORTABLE if farthest > FARTHEST else 1.0


def widened(distribution: PredictiveDistribution, factor: float) -> PredictiveDistribution:
    """The same normal distributions with ``factor`` times the spread; others as they are.

    Examples
    --------
    >>> widened(Normal([1.0], 2.0), 3.0).std().tolist()
    [6.0]
    """
    if factor == 1.0 or not isinstance(distribution, Normal):
        return distribution
    return Normal(distribution.mean(), factor * distribution.std())
