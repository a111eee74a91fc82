"""Recalibration by density estimation: a quantile network on features of the model's forecast."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data.schema import FloatArray
from kdcal_core.distributions import PredictiveDistribution, Quantiles
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of
from kdcal_core.regression._quantile_network import QuantileCurves, train_curves
from kdcal_core.regression.base import (
    check_outcomes,
    count_outside,
    drawn_inside,
    pit_values,
)

FEATURE_LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
FEWEST_ROWS = 20
# PIT values of 0 and 1 have no normal score; beyond 8 a double rounds 1 - p to 1
_FARTHEST = 8.0
_GRID = ndtr(np.linspace(-3.5, 3.5, 141))


class DensityRecalibration(BaseEstimator):
    """Quantiles of the outcome given the model's forecast (Kuleshov and Deshpande 2022).

    A small network learns, by the check loss, every quantile of the outcome given features of
    the model's predictive distribution: the ranks of its median, width and skewness among the
    calibration rows. So, unlike one map for all rows, it can widen large predictions and narrow
    small ones. 80% of the calibration rows train it and 20% stop it (Torres et al., section 4.3).

    Quantiles are learnt on the scale of the normal scores of PIT values, where a calibrated
    model is the standard normal and the untrained network is the model itself, and carried
    back by the model's quantile function. The check loss finds the same quantiles on either
    scale, and no quantile leaves the model's support (beyond the outermost levels, 0.0002 and
    0.9998, the tails of :class:`Quantiles` may). The curves rise in the level by construction,
    so quantiles never cross.

    Parameters
    ----------
    width : int, default=32
        Units of each of the two hidden layers. Torres et al. do not describe their network
        (decision D87).
    max_epochs : int, default=200
    patience : int, default=20
        Training stops after this many epochs without a better loss on the 20%, and the best
        network is kept. If no epoch is better, that is the untrained one, which is the model.
    learning_rate : float, default=0.005
    seed : int, default=0
        Of the split, the network and the order of rows. The same seed gives the same numbers.

    Attributes
    ----------
    n_epochs_ : int
        Epochs until the network that was kept; 0 where the model itself was best.
    loss_, model_loss_ : float
        Mean check loss on the 20%, of the network and of the model.
    n_outside_ : int
        Outcomes outside their predictive support: PIT within 1e-16 of 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.uniform(0, 10, 2000)
    >>> model = Normal(mean, np.full(2000, 5.0))  # the truth widens with the mean
    >>> recalibrated = DensityRecalibration(max_epochs=30).fit(model, rng.normal(mean, mean))
    >>> small, large = recalibrated.predict(Normal([2.0, 8.0], 5.0)).std()
    >>> bool(small < 4 and large > 6)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "width": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        width: int = 32,
        max_epochs: int = 200,
        patience: int = 20,
        learning_rate: float = 0.005,
        seed: int = 0,
    ) -> None:
        self.width = width
        self.max_epochs = max_epochs
        self.patience = patience
        self.learning_rate = learning_rate
        self.seed = seed

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: NDArray[Any] | None = None,
        *,
        progress: Progress | None = None,
    ) -> Self:
        """Train on n rows and their outcomes (n,); ``space`` is not used.

        Raises
        ------
        InputError
            Where there are fewer than 20 rows, or the outcomes are not n finite numbers.
        """
        self._validate_params()
        pit = pit_values(distribution, y, self.seed)
        if len(pit) < FEWEST_ROWS:
            raise InputError(
                f"A quantile network cannot be trained on {len(pit):,} rows",
                fix=f"Give at least {FEWEST_ROWS} calibration rows, or recalibrate globally.",
            )
        self.n_outside_ = count_outside(pit)
        pit = drawn_inside(distribution, check_outcomes(y, len(pit)), pit, self.seed)
        score = np.clip(ndtri(pit), -_FARTHEST, _FARTHEST)
        shape = _shape(distribution)
        self._reference = np.sort(shape, axis=0)
        self.curves_: QuantileCurves
        self.curves_, self.n_epochs_, self.loss_, self.model_loss_ = train_curves(
            self._features(shape),
            score,
            width=self.width,
            max_epochs=self.max_epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            seed=self.seed,
            report=part_of(progress, 0.0, 1.0),
        )
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """Quantiles at 141 levels, 0.0002 to 0.9998, of m new rows; ``space`` is not used."""
        check_is_fitted(self, "curves_")
        score = self.curves_(self._features(_shape(distribution)), ndtri(_GRID))
        level = np.clip(ndtr(score), np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
        return Quantiles(_GRID, distribution.ppf(level))

    def _features(self, shape: FloatArray) -> FloatArray:
        """Ranks among the calibration rows, (n, 3) in [-1, 1]; new extremes become the ends."""
        n = len(self._reference)
        ranks = [
            np.searchsorted(reference, values, "left") + np.searchsorted(reference, values, "right")
            for reference, values in zip(self._reference.T, shape.T, strict=True)
        ]
        return np.stack(ranks, axis=1) / n - 1.0


def _shape(distribution: PredictiveDistribution) -> FloatArray:
    """Median, width and skewness of each row's predictive distribution, (n, 3)."""
    q = distribution.ppf(FEATURE_LEVELS[np.newaxis])
    width = q[:, 4] - q[:, 0]
    skewness = np.divide(
        q[:, 4] + q[:, 0] - 2 * q[:, 2], width, out=np.zeros_like(width), where=width > 0
    )
    # rows of one shape share a rank, whatever their rounding errors
    digits, exponent = np.frexp(width)
    width = np.ldexp(np.round(digits, 9), exponent)
    return np.stack([q[:, 2], width, np.round(skewness, 9)], axis=1)
