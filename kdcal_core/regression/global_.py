"""Global recalibration: every new row uses all PIT values (Torres et al., section 3)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.regression.base import check_outcomes, count_outside, drawn_inside, pit_values
from kdcal_core.regression.recalibrated import Recalibrated
from kdcal_core.regression.widening import widened, widening_of


class GlobalRecalibration(BaseEstimator):
    """Algorithm 1 of Torres et al. with k = n neighbours of constant weight.

    Parameters
    ----------
    seed : int, default=0
        Of the randomised PIT values, where the base's distribution function has jumps.

    Attributes
    ----------
    pit_ : (n,) array
        PIT values of the calibration rows, under the widened distributions.
    widening_ : float
        As of :class:`LocalRecalibration`.
    n_outside_ : int
        Calibration rows whose outcome lies outside their distribution: PIT within 1e-16 of 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> y = np.random.default_rng(0).normal(1, 2, 5000)
    >>> fitted = GlobalRecalibration().fit(Normal(np.zeros(5000), 1.0), y)
    >>> recalibrated = fitted.predict(Normal([0.0], 1.0))
    >>> recalibrated.mean().round(1).tolist(), recalibrated.std().round(1).tolist()
    ([1.0], [2.0])
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, distribution: PredictiveDistribution, y: Any, space: Any = None) -> Self:
        """Keep the PIT values of the calibration set; ``space`` is ignored.

        Raises
        ------
        InputError
            Where the outcomes do not fit the rows or are not finite.
        """
        y = check_outcomes(y, len(distribution))
        self.widening_ = widening_of(distribution, y)
        base = widened(distribution, self.widening_)
        pit = pit_values(base, y, self.seed)
        self.n_outside_ = count_outside(pit)
        self.pit_ = np.sort(drawn_inside(base, y, pit, self.seed))
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: Any = None
    ) -> PredictiveDistribution:
        """The recalibrated distributions of m new rows."""
        check_is_fitted(self, "pit_")
        base = widened(distribution, self.widening_)
        return Recalibrated(base, self.pit_[None, :], np.ones((1, len(self.pit_))))
