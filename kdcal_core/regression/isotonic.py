"""One nondecreasing map of probabilities for all rows: Kuleshov et al.'s recalibration."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions import Mapped, PredictiveDistribution
from kdcal_core.regression.base import check_outcomes, pit_values
from kdcal_core.regression.widening import widened, widening_of


class IsotonicRecalibration(BaseEstimator):
    """``F~ = R o F^`` with R fitted by isotonic regression on (p, ECDF(p)) (paper 003 section 2).

    p are the PIT values of the calibration set. Their ECDF (denominator n, decision D77) is
    nondecreasing already, so isotonic regression returns it unchanged, and R joins its corners
    by straight lines, as Kuleshov et al. (2018) and scikit-learn do.

    Parameters
    ----------
    ends : {"open", "printed"}, default="open"
        As printed, R reaches 1 at the largest PIT: no outcome above the corresponding quantile
        is held possible, however few rows were seen. "open" uses n + 1 for n: the i-th smallest
        PIT maps to i / (n + 1), which is the exact probability that a new row of the same kind
        falls below it, and both tails beyond the data keep the parent's shape.
    seed : int, default=0
        For the randomised PIT values of distributions with jumps.

    Attributes
    ----------
    knots_, values_ : (g,) arrays
        R goes through these points, from (0, 0) to (1, 1).
    n_outside_ : int
        Outcomes outside their predictive support: PIT exactly 0 or 1. Their mass is spread
        between the end and the next PIT value.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> rng = np.random.default_rng(0)
    >>> parent = Normal(np.zeros(1000), np.full(1000, 0.5))  # the truth is twice as wide
    >>> mended = IsotonicRecalibration().fit(parent, rng.normal(size=1000)).predict(parent[:1])
    >>> bool(abs(mended.cdf(1.0)[0] - 0.841) < 0.03)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ends": [StrOptions({"open", "printed"})],
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(self, ends: Literal["open", "printed"] = "open", seed: int = 0) -> None:
        self.ends = ends
        self.seed = seed

    def fit(
        self, distribution: PredictiveDistribution, y: Any, space: NDArray[Any] | None = None
    ) -> Self:
        """Learn R from n rows and their outcomes (n,); ``space`` is not used.

        Raises
        ------
        InputError
            Where the outcomes are not n finite numbers.
        """
        self._validate_params()
        y = check_outcomes(y, len(distribution))
        self.widening_ = widening_of(distribution, y)
        pit = pit_values(widened(distribution, self.widening_), y, self.seed)
        self.n_outside_ = int(((pit == 0.0) | (pit == 1.0)).sum())
        self.knots_, self.values_ = _corners(pit, len(pit) + (self.ends == "open"))
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """``R o F^`` for m new rows; ``space`` is not used."""
        check_is_fitted(self, "knots_")
        return Mapped(widened(distribution, self.widening_), self.knots_, self.values_)


def _corners(pit: FloatArray, denominator: int) -> tuple[FloatArray, FloatArray]:
    """Corners of the ECDF inside (0, 1), pinned at (0, 0) and (1, 1)."""
    knots, counts = np.unique(pit, return_counts=True)
    values = np.cumsum(counts) / denominator
    inside = (knots > 0.0) & (knots < 1.0)
    return (
        np.concatenate([[0.0], knots[inside], [1.0]]),
        np.concatenate([[0.0], values[inside], [1.0]]),
    )
