"""Rows with their predictive distributions and outcomes, and the PIT values of these outcomes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kdcal_core.data import FloatArray
from kdcal_core.distributions.distribution import PredictiveDistribution, checked_outcomes


@dataclass(frozen=True, eq=False)
class RegressionSet:
    """The regression counterpart of :class:`kdcal_core.data.ScoredSet`.

    Attributes
    ----------
    distribution : PredictiveDistribution
        Of the n rows.
    y : (n,) float64
        Outcomes.
    digest : str
        SHA-256 of the arrays: the key of every cached result.
    name : str
        "calibration" or "evaluation".
    weight : (n,) float64 or None
        Positive row weights.
    true_mean : (n,) float64 or None
        The true conditional mean, where a simulation knows it.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> RegressionSet(Normal([0.0, 1.0], 1.0), np.array([0.3, 0.8]), "", "calibration").n_rows
    2
    """

    distribution: PredictiveDistribution
    y: FloatArray
    digest: str
    name: str
    weight: FloatArray | None = None
    true_mean: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        return int(self.y.shape[0])


_GOLDEN = (5.0**0.5 - 1.0) / 2.0


def randomised_pit(distribution: PredictiveDistribution, y: ArrayLike, seed: int) -> FloatArray:
    """PIT values p_i = F^_i(y_i), (n,) in [0, 1] (Torres et al., section 2).

    Where the distribution function jumps at the outcome, the value lies between the jump's foot and
    its top, so that a calibrated prediction still has uniform PIT values. Rows with the same
    jump, or one near it, are spread evenly over it rather than drawn one by one (:func:`even`): any
    share of rows, in a bin or in a stated interval, is then the one expected of such draws, to
    within about a row a jump, whatever the seed.
    Of m samples it is (r + U) / (m + 1), r being the outcome's rank among them (Hamill 2001; ties
    are broken at random) and U uniform: exactly uniform wherever the outcome is as likely to take
    any place among the samples, and never 0 or 1 for an outcome beyond them all.

    Parameters
    ----------
    distribution : PredictiveDistribution of n rows
    y : (n,) array
    seed : int
        Of which of the rows with the same jump gets which place on it.

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
    n = len(distribution)
    foot = distribution.pit(outcomes, np.zeros(n))
    return even(foot, distribution.pit(outcomes, np.ones(n)), seed)


def even(foot: FloatArray, top: FloatArray, seed: int) -> FloatArray:
    """Values between each row's ``foot`` and ``top``, spread evenly over rows with the same two.

    Rows are ordered by the two, those that share both at random, and get multiples of the golden
    ratio modulo one, of which any run is evenly spread.

    Parameters
    ----------
    foot, top : (n,) arrays
    seed : int

    Examples
    --------
    >>> even(np.full(4, 0.5), np.full(4, 0.6), seed=0).round(3).tolist()
    [0.512, 0.574, 0.55, 0.535]
    """
    shuffled = np.random.default_rng(seed).permutation(len(foot))
    order = shuffled[np.lexsort((top[shuffled], foot[shuffled]))]
    place = np.empty(len(foot))
    place[order] = (0.5 + _GOLDEN * np.arange(len(foot))) % 1.0
    values: FloatArray = foot + place * (top - foot)
    return values
