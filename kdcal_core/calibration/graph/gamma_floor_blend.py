"""The settings of a graph: gamma, floor, prior and blend, given or chosen.

The exponent of the kernel is chosen from the grid by held-out log loss, and the held-out densities
give the floor; those of rows made far away say how much lower the posterior's constant may lie.
Inside the data the model's probabilities and the graph's class ratios are blended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.partition import default_exponents
from kdcal_core.text import formatted


def log_n(n: int) -> float:
    """Natural log n, or log 3 for fewer than 3 rows."""
    return float(np.log(max(n, 3)))


def chosen_exponents(gamma: Any, n: int) -> FloatArray:
    """The grid of gamma * log n, ascending: the default one for "auto", else of the given gammas.

    Raises
    ------
    InputError
        If a gamma is not a finite number above zero, or there is none.
    """
    if isinstance(gamma, str):
        return default_exponents()
    gammas = np.unique(_numbers(gamma))
    if not len(gammas) or not (np.isfinite(gammas) & (gammas > 0)).all():
        raise InputError(
            "A gamma is not a finite number above zero",
            fix='Give one, a list of them, or "auto".',
        )
    return np.asarray(gammas * log_n(n))


UNSEEN = 0.5
"""Count of a class without rows, where no class is to be ruled out."""


def class_shares(counts: NDArray[Any], *, rules_out: bool, effect: float = 1.0) -> FloatArray:
    """Share of each class among the fit rows, (K,).

    Parameters
    ----------
    counts : (K,) array
        Numbers of rows, or sums of their weights.
    rules_out : bool
        Whether a class without rows has share 0, as in the papers. Otherwise it counts as half a
        row, because few rows do not show that a class is absent.
    effect : float
        How many times fewer rows these count for, because they depend on one another or have
        unequal weights.

    Examples
    --------
    >>> import numpy as np
    >>> class_shares(np.array([12, 7, 0]), rules_out=False).round(3).tolist()
    [0.615, 0.359, 0.026]
    """
    rows = counts if rules_out else np.where(counts > 0, counts, UNSEEN * effect)
    share: FloatArray = rows / rows.sum()
    return share


def checked_prior(prior: Any, empirical: FloatArray) -> FloatArray:
    """The given prior, or the empirical one, (K,).

    Raises
    ------
    InputError
        If it is not a distribution over the K classes.

    Examples
    --------
    >>> import numpy as np
    >>> checked_prior([0.2, 0.8], np.array([0.5, 0.5])).tolist()
    [0.2, 0.8]
    """
    if prior is None:
        return empirical
    given = _numbers(prior)
    if given.shape != empirical.shape:
        raise InputError(
            f"The prior has {len(given):,} values, the model has {len(empirical):,} classes",
            fix="Give one probability for each class, in the model's order.",
        )
    if not ((given >= 0).all() and abs(given.sum() - 1.0) <= 1e-6):
        raise InputError(
            "The prior is not a distribution: its values must not be negative and must sum to 1",
            fix="Divide the values by their sum.",
        )
    return np.asarray(given / given.sum())


def checked_variance(given: float | None, present: float) -> float:
    if given is None:
        return present
    if not 0 < given < np.inf:
        raise InputError(
            f"The variance floor is {formatted(given, 'g')}",
            fix="Give a number above zero, such as 1e-6.",
        )
    return float(given)


def checked_quantile(quantile: float) -> float:
    if not 0 < quantile < 1:
        raise InputError(
            f"The floor's quantile is {formatted(quantile, 'g')}",
            fix="Give a share between 0 and 1.",
        )
    return float(quantile)


def checked_log_floor(log_floor: float) -> float:
    if np.isnan(log_floor):
        raise InputError("The floor is not a number", fix="Give log b, or minus infinity.")
    return float(log_floor)


def _numbers(values: Any) -> FloatArray:
    """A number or a list of numbers as an array; NaN for anything else."""
    return np.asarray(pd.to_numeric(pd.Series(np.ravel(values)), errors="coerce"), dtype=np.float64)


_SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Selection:
    """Held-out log loss for each exponent of the grid.

    Attributes
    ----------
    exponents : (G,) array
        Exponents gamma * log n of the kernel, ascending (Dey et al., Eq. 18).
    gammas : (G,) array
        The same exponents as gamma.
    log_loss : (G,) array
        Mean over the held-out rows, in nats; NaN where no rows are held out.
    standard_error : (G,) array
        Standard error of that mean; NaN for fewer than two rows.
    n : int
        Number of held-out rows.
    chosen : int
        Index of the exponent in use.
    """

    exponents: FloatArray
    gammas: FloatArray
    log_loss: FloatArray
    standard_error: FloatArray
    n: int
    chosen: int

    @property
    def best(self) -> int:
        """Index of the smallest loss; the largest exponent of equal ones."""
        if self.n == 0:
            return len(self.exponents) - 1
        equal = self.log_loss <= self.log_loss.min() + _SAME
        return int(np.flatnonzero(equal)[-1])

    @property
    def best_gamma(self) -> float:
        """Gamma with the smallest loss."""
        return float(self.gammas[self.best])


def data_floor(
    log_marginal: FloatArray,
    alpha: float,
    effect: float = 1.0,
    weight: FloatArray | None = None,
) -> FloatArray:
    """The k-th smallest held-out log density, k = max(1, floor(alpha (h + 1))), on the last axis.

    A new row like the held-out ones lies strictly below it with probability at most max(alpha, 1 /
    (h + 1)), because the rank of one of h + 1 exchangeable rows is uniform.

    Parameters
    ----------
    log_marginal : (..., h) array, h >= 1
    alpha : float in (0, 1)
    effect : float
        How many times fewer rows these count for, because they depend on one another. The k-th of
        h / effect rows then begins at the rank 1 + (k - 1) effect of all rows, so that the floor is
        lower, never higher; the guarantee holds for h / effect rows, and is approximate.
    weight : (h,) array, optional
        Weights of the rows with mean 1, which then count in ranks. ``effect`` says too by how much
        unequal weights are worth fewer rows.

    Examples
    --------
    >>> float(data_floor(np.arange(99.0), 0.05))
    4.0
    >>> float(data_floor(np.arange(99.0), 0.05, weight=np.repeat([5.0, 94 / 98], [1, 98])))
    0.0
    """
    h = log_marginal.shape[-1]
    k = max(1, int(np.floor(alpha * (h / effect + 1) + 1e-9)))
    k = min(1 + int(np.floor((k - 1) * effect + 1e-9)), h)
    if weight is None:
        floor: FloatArray = np.partition(log_marginal, k - 1, axis=-1)[..., k - 1]
        return floor
    order = np.argsort(log_marginal, axis=-1, kind="stable")
    reached = np.cumsum(weight[order], axis=-1) >= k - 1e-9
    at = np.take_along_axis(order, reached.argmax(axis=-1)[..., np.newaxis], axis=-1)
    return np.take_along_axis(log_marginal, at, axis=-1)[..., 0]


FAR_WEIGHT = 0.0015
"""Largest mean weight that the polytopes keep over the rows made far away."""
TENTH = 10.0
"""The posterior's constant lies where a tenth of the flagged ordinary rows would be below it."""


def fallback(
    held: FloatArray,
    far: FloatArray,
    alpha: float,
    effect: float = 1.0,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Logarithm of the constant that the posterior adds to each density, on the last axis.

    The floor flags a share alpha of rows like the held-out ones. If all of these fell back to the
    prior, accuracy would suffer where nothing is foreign. So the constant is smaller: as far below
    the floor as the floor is below the density of ten times as many rows. A tail that falls
    exponentially has a tenth of the flagged rows there; counting so few directly would leave the
    choice to the most extreme row. The constant is larger where rows far away need it, and never
    above the floor.

    Parameters
    ----------
    held : (..., h) array
        Log densities of held-out rows.
    far : (..., m) array
        Log densities of rows made far outside the data. With these M and the result c, the mean of
        ``M / (M + c)`` is at most 0.0015 where c is below the floor: it is less than ``M / c``.
    alpha : float in (0, 1)
        Above 0.05 the upper density is the median, and the step from it is shortened accordingly.
    effect, weight
        As of `data_floor`.

    Examples
    --------
    >>> held, far = np.log(np.arange(1.0, 1000.0)), np.full(20, -100.0)
    >>> [int(np.exp(each(held)).round()) for each in (
    ...     lambda rows: data_floor(rows, 0.01), lambda rows: fallback(rows, far, 0.01))]
    [10, 1]
    >>> float(fallback(held, far + 200.0, 0.01).round(1)) == float(data_floor(held, 0.01).round(1))
    True
    """
    needed = logsumexp(far, axis=-1) - np.log(FAR_WEIGHT * far.shape[-1])
    floor, many = data_floor(held, alpha, effect, weight), min(TENTH * alpha, 0.5)
    step = np.log(TENTH) / np.log(many / alpha) if many > alpha else 0.0
    upper = data_floor(held, many, effect, weight)
    least = np.maximum(needed, floor - step * (upper - floor))
    constant: FloatArray = np.minimum(least, floor)
    return constant


LARGEST_WEIGHT = 20.0
# Few held-out rows determine the weights poorly, so they are shrunk, more strongly with fewer rows.
# Over three tables and 15 seeds shrinking to one half lowered the log loss, from 0.99 to 0.83 with
# 10 rows, and changed nothing from 200 rows on.
PULL = 3.0
# A temperature must gain this many nats over all rows, and the graph's weight twice as many.
_NATS = 0.5

_PRIOR_SHARE = 1e-3
_LEAST_RATIO = 1e-6


@dataclass(frozen=True)
class Blend:
    """Softmax of ``model log p' + graph log g'``: a weighted combination of two estimates.

    ``p'`` is the model's vector with a thousandth of the prior mixed in, and ``g'`` the class ratio
    of the row's polytope, at least 1e-6, because a forest's votes and a polytope of one class give
    exactly zero. The blend replaces the class ratio, not the density, so floor and prior act
    outside the data as before.

    The polytopes have no information about a class without fit rows (prior 0). It keeps the model's
    probability, and the other classes share the rest.

    Attributes
    ----------
    model, graph : float in [0, 20]
        The weights. (1, 0) is the model itself, (0, 1) the graph.
    """

    model: float
    graph: float

    def mix(self, model_proba: FloatArray, local: FloatArray, prior: FloatArray) -> FloatArray:
        """Blended probabilities, (m, K), rows summing to one.

        Parameters
        ----------
        model_proba : (m, K) array
        local : (m, K) array
            Class ratio of each row's polytope.
        prior : (K,) array

        Examples
        --------
        >>> import numpy as np
        >>> sure, unsure = np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]])
        >>> Blend(0.5, 1.0).mix(sure, unsure, unsure[0]).round(2).tolist()
        [[0.75, 0.25]]
        """
        known = prior > 0
        logs = opinions(model_proba, local, prior)[:, :, known]
        mixed: FloatArray = softmax(_weighted((self.model, self.graph), logs), axis=1)
        if known.all():
            return mixed
        whole: FloatArray = model_proba.copy()
        whole[:, known] = mixed * (1.0 - model_proba[:, ~known].sum(axis=1, keepdims=True))
        return whole


def fit_blend(
    model_proba: FloatArray,
    local: FloatArray,
    y: IntArray,
    prior: FloatArray,
    effect: float = 1.0,
    weight: FloatArray | None = None,
) -> Blend:
    """The weights with the smallest log loss on held-out rows, where they earn their place.

    Three steps: the model as it is; a weight of its own, which is one temperature and leaves every
    row's class as it is; a weight for the graph too. The second step is taken if it lowers the log
    loss by more than half a nat over all rows; one standard error of the paired differences would
    keep a model as it is where a few rows with large losses cause the whole gain. The third is
    taken beyond two standard errors and one nat, because it can change classes: with one standard
    error it cost more than .005 of accuracy in 9 of 100 runs.

    The weights are drawn to the step before by ``3 / h`` times a penalty that is added to the mean
    log loss: ``a + 1 / a - 2`` in the second step, the same for a weight and its inverse; in the
    third the squared distance from one half of the graph and of the second step's weight, as a
    share of that weight. The sums are convex, so every minimum is global. Rows of a class with
    prior 0 carry no information about the weights and are left out.

    Parameters
    ----------
    model_proba, local : (h, K) arrays
        As for :meth:`Blend.mix`, of h >= 1 rows that neither model nor graph was fitted on.
    y : (h,) array of int
        Classes of these rows.
    prior : (K,) array
    effect : float
        How many times fewer rows these count for in the pull and in the gains, because they depend
        on one another or have unequal weights.
    weight : (h,) array, optional
        Positive weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> y, prior = np.tile([0, 0, 0, 1], 2000), np.array([0.5, 0.5])
    >>> model, local = np.tile([0.75, 0.25], (8000, 1)), np.full((8000, 2), 0.5)
    >>> fit_blend(model, local, y, prior).mix(model[:1], local[:1], prior).round(3).tolist()
    [[0.75, 0.25]]
    """
    known = prior > 0
    used = known[y]
    if not used.any():
        return _MODEL_ALONE
    logs = opinions(model_proba, local, prior)[:, used][:, :, known]
    y = (np.cumsum(known) - 1)[y[used]]
    mass = np.ones(len(y)) if weight is None else weight[used] / weight[used].mean()
    pull, rows = PULL * effect / len(y), (logs, y, mass)
    scaled = _fitted_weights(rows, _inverse_alike, pull, (1.0, 0.0), _MODEL_ONLY)
    gain = _losses(_MODEL_ALONE, logs, y) - _losses(scaled, logs, y)
    found = scaled if (mass * gain).sum() / effect > _NATS else _MODEL_ALONE
    halves = (0.5 * found.model, 0.5)
    penalty = partial(_away, centre=np.array(halves), unit=np.array([found.model, 1.0]))
    both = _fitted_weights(rows, penalty, pull, halves, _BOTH)
    gain = _losses(found, logs, y) - _losses(both, logs, y)
    total = (mass * gain).sum()
    spread = np.sqrt((mass * (gain - total / len(y)) ** 2).mean())
    chance = 2.0 * spread * np.sqrt(len(y) / effect)
    return both if total / effect > max(chance, 2.0 * _NATS) else found


_MODEL_ALONE = Blend(1.0, 0.0)
_Bounds = tuple[tuple[float, float], tuple[float, float]]  # of the model's and the graph's weight
_MODEL_ONLY: _Bounds = ((1.0 / LARGEST_WEIGHT, LARGEST_WEIGHT), (0.0, 0.0))
_BOTH: _Bounds = ((0.0, LARGEST_WEIGHT), (0.0, LARGEST_WEIGHT))
_Penalty = Callable[[FloatArray], tuple[float, FloatArray]]


def _fitted_weights(
    rows: tuple[FloatArray, IntArray, FloatArray],
    penalty: _Penalty,
    pull: float,
    start: tuple[float, float],
    bounds: _Bounds,
) -> Blend:
    def drawn(weights: FloatArray) -> tuple[float, FloatArray]:
        loss, slope = log_loss_and_slope(weights, *rows)
        cost, cost_slope = penalty(weights)
        return loss + pull * cost, slope + pull * cost_slope

    found = minimize(
        drawn,
        x0=np.array(start),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    return Blend(float(found.x[0]), float(found.x[1]))


def _inverse_alike(weights: FloatArray) -> tuple[float, FloatArray]:
    """a + 1 / a - 2 of the model's weight a, and its gradient."""
    model = weights[0]
    return float(model + 1.0 / model - 2.0), np.array([1.0 - 1.0 / model**2, 0.0])


def _away(weights: FloatArray, centre: FloatArray, unit: FloatArray) -> tuple[float, FloatArray]:
    """Squared distance from a centre, each weight in its own unit, and its gradient."""
    away = (weights - centre) / unit
    return float(away @ away), 2.0 * away / unit


def _losses(blend: Blend, logs: FloatArray, y: IntArray) -> FloatArray:
    """Log loss of each row, in nats, (h,)."""
    log_proba = log_softmax(_weighted((blend.model, blend.graph), logs), axis=1)
    return np.asarray(-log_proba[np.arange(len(y)), y])


def opinions(model_proba: FloatArray, local: FloatArray, prior: FloatArray) -> FloatArray:
    """log p' and log g', (2, m, K), finite also for excluded classes."""
    mixed = (1 - _PRIOR_SHARE) * model_proba + _PRIOR_SHARE * prior
    # A class with prior 0 that the model rules out stays finite too.
    logs: FloatArray = np.log(np.maximum(np.stack([mixed, local]), _LEAST_RATIO))
    return logs


def log_loss_and_slope(
    weights: FloatArray, logs: FloatArray, y: IntArray, mass: FloatArray
) -> tuple[float, FloatArray]:
    """Mean log loss of the blend at two weights, in nats, and its gradient, (2,).

    ``mass`` (h,) are weights of the rows with mean 1.
    """
    rows = np.arange(len(y))
    log_proba = log_softmax(_weighted(weights, logs), axis=1)
    expected = (np.exp(log_proba) * logs).sum(axis=2)
    slope = (mass * (expected - logs[:, rows, y])).mean(axis=1)
    return -float((mass * log_proba[rows, y]).mean()), slope


def _weighted(weights: FloatArray | tuple[float, float], logs: FloatArray) -> FloatArray:
    # No matrix product, whose order of summation may depend on the number of threads.
    total: FloatArray = weights[0] * logs[0] + weights[1] * logs[1]
    return total
