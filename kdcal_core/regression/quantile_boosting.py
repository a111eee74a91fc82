"""Boosted trees for the outcome's quantiles: a second model, fitted on the calibration set.

It is no repair. Where it beats every repaired model, the columns hold signal that the model does
not use, and the answer is a better model, not a better calibration.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from kdcal_core.blocks import on_all_cores, one_thread
from kdcal_core.data.schema import FloatArray
from kdcal_core.distributions import PredictiveDistribution, Quantiles, moments
from kdcal_core.regression.recalibrators import (
    RecalibratorSpec,
    check_outcomes,
    check_space,
    given_weight,
)

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


class QuantileBoosting(BaseEstimator):
    """Gradient-boosted trees for five quantiles, from the inputs and the model's prediction.

    Each quantile has its own histogram-based trees, grown by the check loss (scikit-learn). Columns
    are those of ``space``, with the mean and standard deviation of the model's distributions beside
    them. Quantiles of a row that cross are sorted.

    Parameters
    ----------
    max_iter : int, default=40
        Number of trees for each quantile.
    seed : int, default=0

    Attributes
    ----------
    models_ : tuple
        The trees of each quantile.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 1000))
    >>> blind = Normal(np.zeros(1000), 4.0)  # the model does not use x
    >>> fitted = QuantileBoosting().fit(blind, 3 * x + noise, x)
    >>> fitted.predict(blind[:2], [-1.0, 1.0]).mean().round().tolist()
    [-3.0, 3.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, max_iter: int = 40, seed: int = 0) -> None:
        self.max_iter = max_iter
        self.seed = seed

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: NDArray[Any] | None = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Grow the trees on n rows, their outcomes (n,) and their columns (n, d).

        ``sample_weight`` (n,) are positive row weights. scikit-learn takes the quantile of weighted
        rows in another way than that of rows, so weights of one do not give the same trees.

        Raises
        ------
        InputError
            If outcomes or columns do not match the rows or are not finite.
        """
        from sklearn.ensemble import HistGradientBoostingRegressor

        self._validate_params()
        y = check_outcomes(y, len(distribution))
        columns = check_space(space, len(distribution))
        self._n_columns = columns.shape[1]
        X = np.hstack([columns, moments(distribution)])
        weight = given_weight(sample_weight, len(y))

        def grown(level: float) -> HistGradientBoostingRegressor:
            with one_thread("openmp"):  # threads of one fit wait actively for each other
                return HistGradientBoostingRegressor(
                    loss="quantile",
                    quantile=level,
                    max_iter=self.max_iter,
                    learning_rate=0.25,
                    early_stopping=False,
                    random_state=self.seed,
                ).fit(X, y, sample_weight=weight)

        self.models_ = tuple(on_all_cores(grown, LEVELS, note=lambda at: f"Quantile {LEVELS[at]}"))
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """Quantiles of m new rows with the columns (m, d)."""
        check_is_fitted(self, "models_")
        columns = check_space(space, len(distribution), self._n_columns)
        X = np.hstack([columns, moments(distribution)])
        with one_thread("openmp"):
            found: list[FloatArray] = [model.predict(X) for model in self.models_]
        return Quantiles(LEVELS, np.sort(np.column_stack(found), axis=1))


RecalibratorSpec(
    "boosting",
    "Quantile boosting",
    "A second model, not a repair: boosted trees predict the outcome's quantiles from the inputs "
    "and the model's prediction. If it beats every repair, a better model is the answer.",
    QuantileBoosting,
    family="comparison",
    needs_space=True,
    reads_inputs=True,
    reference="Friedman 2001; Koenker and Bassett 1978",
    settings=("seed",),
).offer()
