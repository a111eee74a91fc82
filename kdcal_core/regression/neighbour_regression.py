"""Nearest neighbour regression, which Torres et al. compare with: the neighbours' outcomes."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.distributions import PredictiveDistribution, Weighted
from kdcal_core.errors import InputError
from kdcal_core.regression.base import check_outcomes, check_space
from kdcal_core.regression.kernels import kernel_weights
from kdcal_core.regression.scaling import Scaling
from kdcal_core.regression.search import NeighbourSearch


class NeighbourRegression(BaseEstimator):
    """The k nearest rows' outcomes, weighted by distance (Torres et al., section 4.3).

    It predicts from the calibration set alone: what local recalibration would be without
    the model's predictions. ``distribution`` is accepted, as by every recalibrator, and ignored.

    Parameters
    ----------
    k : int, default=1000
        Capped at the rows of the fit.
    kernel : {"epanechnikov", "uniform"}, default="epanechnikov"

    Attributes
    ----------
    k_ : int
        Neighbours used.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(10.0)
    >>> fitted = NeighbourRegression(k=3, kernel="uniform").fit(None, 2 * x, x)
    >>> fitted.predict(None, np.array([[4.0]])).samples.tolist()
    [[6.0, 8.0, 10.0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "k": [Interval(Integral, 1, None, closed="left")],
        "kernel": [StrOptions({"epanechnikov", "uniform"})],
    }

    def __init__(
        self, k: int = 1000, kernel: Literal["epanechnikov", "uniform"] = "epanechnikov"
    ) -> None:
        self.k = k
        self.kernel = kernel

    def fit(
        self, distribution: PredictiveDistribution | None, y: Any, space: NDArray[Any] | None = None
    ) -> Self:
        """Keep the outcomes (n,) and the space (n, d); the distribution is not used.

        Raises
        ------
        InputError
            Where outcomes or space are not n rows of finite numbers.
        """
        self._validate_params()
        self._y = check_outcomes(y, len(np.asarray(y)))
        checked = check_space(space, len(self._y))
        self._scaling = Scaling.of(checked)
        self._search = NeighbourSearch(self._scaling(checked))
        self.k_ = min(self.k, len(self._y))
        return self

    def predict(
        self, distribution: PredictiveDistribution | None, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """Weighted outcomes of the neighbours of m new rows; the distribution is not used."""
        check_is_fitted(self, "k_")
        if space is None:
            raise InputError(
                "The space in which neighbours are searched is missing",
                fix="Give the inputs, or a hidden layer of the model, one row of numbers a row.",
            )
        new = check_space(space, len(np.asarray(space)), len(self._scaling.mean))
        found = self._search.query(self._scaling(new), self.k_)
        return Weighted(self._y[found.index], kernel_weights(found.distance, self.kernel))
