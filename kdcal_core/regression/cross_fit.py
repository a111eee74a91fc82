"""Recalibrated distributions of rows that the recalibrator has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data.splits import stratified_folds
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.distributions.wrapped import concatenate
from kdcal_core.errors import InputWarning
from kdcal_core.progress import Progress, part_of
from kdcal_core.regression.base import Recalibrator, check_outcomes, check_space


def cross_fitted(
    recalibrator_factory: Callable[[], Recalibrator],
    distribution: PredictiveDistribution,
    y: Any,
    space: NDArray[Any] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> PredictiveDistribution:
    """Each row's distribution from a recalibrator fitted on the other folds, in the rows' order.

    Parameters
    ----------
    recalibrator_factory : callable
        Makes a fresh recalibrator for every fold.
    distribution : PredictiveDistribution of n rows
    y : (n,) array
        Outcomes, finite.
    space : (n, d) array, optional
        Where neighbours are searched.
    folds : int, default=5
        Random parts of equal size, 2 to n.
    seed : int, default=0
        Of the division into folds.
    progress : callable, optional
        Called with the share done in [0, 1] and a sentence; may raise to cancel.

    Raises
    ------
    InputError
        Where the outcomes or the space do not fit the rows, or there are fewer rows than folds.

    Notes
    -----
    Warnings of single folds are not repeated: a fit on all rows gives them once.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> from kdcal_core.regression import IsotonicRecalibration
    >>> y = np.random.default_rng(0).normal(1.0, 1.0, 500)  # one higher than predicted
    >>> recalibrated = cross_fitted(IsotonicRecalibration, Normal(np.zeros(500), 1.0), y)
    >>> bool(abs(recalibrated.cdf(y).mean() - 0.5) < 0.02)
    True
    """
    y = check_outcomes(y, len(distribution))
    if space is not None:
        space = check_space(space, len(distribution))
    fold = stratified_folds(np.zeros(len(y), dtype=np.int64), folds, seed)
    report = part_of(progress, 0.0, 1.0)
    parts, places = [], []
    for i in range(folds):
        report(i / folds, f"Fold {i + 1} of {folds}")
        held, kept = np.flatnonzero(fold == i), np.flatnonzero(fold != i)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            fitted = recalibrator_factory().fit(
                distribution[kept], y[kept], None if space is None else space[kept]
            )
            parts.append(fitted.predict(distribution[held], None if space is None else space[held]))
        places.append(held)
    report(1.0, "Cross-fitting done")
    return concatenate(parts, np.concatenate(places))
