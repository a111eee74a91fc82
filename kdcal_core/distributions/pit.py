"""PIT values: where the outcomes lie in their predictive distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions._shapes import checked_outcomes
from kdcal_core.distributions.base import PredictiveDistribution


def randomised_pit(distribution: PredictiveDistribution, y: ArrayLike, seed: int) -> FloatArray:
    """PIT values p_i = F^_i(y_i), (n,) in [0, 1] (paper 003 section 2).

    Where the distribution function jumps at the outcome, the value is drawn uniformly between the
    jump's foot and its top, so that a calibrated prediction has uniform PIT values all the same.
    Of m samples it is (r + U) / (m + 1), r being the outcome's rank among them (Hamill 2001; ties
    are broken at random) and U uniform: exactly uniform wherever the outcome is as likely to take
    any place among the samples, and never 0 or 1 for an outcome beyond them all.

    Raises
    ------
    InputError
        Where ``y`` is not one number a row.

    Examples
    --------
    >>> from kdcal_core.distributions import Empirical, Normal
    >>> randomised_pit(Normal([0.0, 0.0], 1.0), [0.0, -3.0], seed=0).round(4).tolist()
    [0.5, 0.0013]
    >>> bool(0.2 <= randomised_pit(Empirical([[1, 2, 3, 4]]), [1.5], seed=0)[0] <= 0.4)
    True
    """
    outcomes = checked_outcomes(y, one_a_row=True)
    return distribution.pit(outcomes, np.random.default_rng(seed).random(len(distribution)))
