"""The papers' simulations of a regression, with their true predictive distributions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.distributions import Gamma, Normal, PredictiveDistribution
from kdcal_core.errors import InputError
from kdcal_core.simulation.classification import check_count, check_points
from kdcal_core.text import formatted

SHAPE = 100.0
# The Rosenbrock function is zero at (1, 1), where a Gamma distribution has no density. No drawn
# point is there, but the node of a grid may be: it gets this mean.
LEAST_MEAN = 1e-12
CORRELATION = 0.5
N_FEATURES = 20


@dataclass(frozen=True, eq=False)
class RegressionSimulated:
    """Rows of a simulation with the true distributions of their outcomes.

    Attributes
    ----------
    X : (n, d) float64
        The points.
    y : (n,) float64
        One outcome for each point.
    distribution : PredictiveDistribution
        The true distribution of the outcome at each point, n rows.
    """

    X: FloatArray
    y: FloatArray
    distribution: PredictiveDistribution


def heteroscedastic(n: int, *, seed: int) -> RegressionSimulated:
    """A parabola whose noise widens to the right (Torres et al., Eq. 4).

    X is uniform on (2, 20), and Y is normal with mean 10 + 5 X^2 and standard deviation 30 X. The
    best straight line through it is -460 + 110 X, with a residual standard deviation of 384.4.

    Parameters
    ----------
    n : int
        Number of rows, at least 1; the paper draws 100,000.
    seed : int
        Equal seeds give equal rows.

    Raises
    ------
    InputError
        For an ``n`` below 1.

    Examples
    --------
    >>> drawn = heteroscedastic(100, seed=0)
    >>> drawn.X.shape, bool((drawn.distribution.mean() == 10 + 5 * drawn.X[:, 0] ** 2).all())
    ((100, 1), True)
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(2.0, 20.0, size=(check_count("n", n), 1))
    return _outcomes(X, normal_of_parabola(X), rng.standard_normal)


def rosenbrock_gamma(n: int, *, seed: int) -> RegressionSimulated:
    """Gamma outcomes around Rosenbrock's curved valley (Torres et al., section 4.2).

    X1 is uniform on (-2, 2) and X2 on (-1, 5); the mean is (1 - x1)^2 + 10 (x2 - x1^2)^2 and the
    shape 100, so that the standard deviation is a tenth of the mean. Arguments and errors as for
    :func:`heteroscedastic`.

    Examples
    --------
    >>> drawn = rosenbrock_gamma(100, seed=0)
    >>> drawn.X.shape, bool((drawn.y > 0).all())
    ((100, 2), True)
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform((-2.0, -1.0), (2.0, 5.0), size=(check_count("n", n), 2))
    y = rng.gamma(SHAPE, rosenbrock(X) / SHAPE)
    return RegressionSimulated(X, y, gamma_of_rosenbrock(X))


def nonlinear20(n: int, *, seed: int) -> RegressionSimulated:
    """Twenty correlated features, ten of them informative (Torres et al., Eq. 6).

    The features are standard normal with correlation 0.5^abs(i - j); the outcome is
    5 + 10 x1 + 10/(x2^2 + 1) + 5 x3 x4 + 2 x4 + 5 x4^2 + 5 x5 + 2 x6 + 10/(x7^2 + 1) + 5 x8 x9
    + 5 x9^2 + 5 x10 plus standard normal noise. Arguments and errors as for
    :func:`heteroscedastic`.

    Examples
    --------
    >>> drawn = nonlinear20(100, seed=0)
    >>> drawn.X.shape, float(drawn.distribution.std().max())
    ((100, 20), 1.0)
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((check_count("n", n), N_FEATURES))
    # Each feature depends on the one before it, which gives exactly the printed correlations.
    for j in range(1, N_FEATURES):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1.0 - CORRELATION**2) * X[:, j]
    return _outcomes(X, normal_of_nonlinear(X), rng.standard_normal)


def normal_of_parabola(X: FloatArray) -> Normal:
    """True distribution of :func:`heteroscedastic` at points (m, 1) above zero."""
    x = X[:, 0]
    return Normal(10.0 + 5.0 * x**2, 30.0 * x)


def gamma_of_rosenbrock(X: FloatArray) -> Gamma:
    """True distribution of :func:`rosenbrock_gamma` at points (m, 2)."""
    return Gamma(SHAPE, rosenbrock(X))


def normal_of_nonlinear(X: FloatArray) -> Normal:
    """True distribution of :func:`nonlinear20` at points (m, 20)."""
    x1, x2, x3, x4, x5, x6, x7, x8, x9, x10 = X.T[:10]
    mean = (
        5.0
        + 10.0 * x1
        + 10.0 / (x2**2 + 1.0)
        + 5.0 * x3 * x4
        + 2.0 * x4
        + 5.0 * x4**2
        + 5.0 * x5
        + 2.0 * x6
        + 10.0 / (x7**2 + 1.0)
        + 5.0 * x8 * x9
        + 5.0 * x9**2
        + 5.0 * x10
    )
    return Normal(mean, np.ones(len(X)))


def rosenbrock(X: FloatArray) -> FloatArray:
    """Rosenbrock's function (m,) with a = 1 and b = 10 at points (m, 2)."""
    x1, x2 = X.T
    value = (1.0 - x1) ** 2 + 10.0 * (x2 - x1**2) ** 2
    return np.asarray(np.maximum(value, LEAST_MEAN))


def _outcomes(
    X: FloatArray, distribution: Normal, noise: Callable[[int], FloatArray]
) -> RegressionSimulated:
    y = distribution.mean() + distribution.std() * noise(len(X))
    return RegressionSimulated(X, y, distribution)


class RegressionSimulator(Protocol):
    def __call__(self, n: int, *, seed: int) -> RegressionSimulated: ...


@dataclass(frozen=True)
class RegressionSimulation:
    """One simulation of a regression, with the truth behind it.

    Attributes
    ----------
    name, title, sentence : str
        Key, short title, and a description in one plain sentence.
    function : callable
        ``function(n, *, seed) -> RegressionSimulated``.
    truth : callable
        The true predictive distribution at points (m, d) already checked.
    n_features : int
        Columns of its points.
    least : float or None
        Lower bound of the coordinates; None if there is no bound.
    positive : bool
        Whether every outcome is above zero.
    """

    name: str
    title: str
    sentence: str
    function: RegressionSimulator
    truth: Callable[[FloatArray], PredictiveDistribution]
    n_features: int
    least: float | None = None
    positive: bool = False

    def distribution(self, X: Any) -> PredictiveDistribution:
        """As :func:`true_distribution` for this simulation."""
        points = check_points(X, self.n_features)
        if self.least is not None and (points <= self.least).any():
            row, column = divmod(int((points <= self.least).argmax()), self.n_features)
            raise InputError(
                f"The outcome has no distribution at {formatted(points[row, column], 'g')}",
                fix=f"Give coordinates above {formatted(self.least, 'g')}.",
                row=row + 1,
                column=str(column + 1),
            )
        return self.truth(points)


REGRESSION_SIMULATIONS: dict[str, RegressionSimulation] = {
    each.name: each
    for each in (
        RegressionSimulation(
            "heteroscedastic",
            "Widening parabola",
            "Outcomes follow a parabola and scatter more widely to the right.",
            heteroscedastic,
            normal_of_parabola,
            1,
            least=0.0,  # the standard deviation is 30 x
        ),
        RegressionSimulation(
            "rosenbrock_gamma",
            "Rosenbrock's valley",
            "Outcomes rise steeply on both sides of a curved valley and scatter in proportion.",
            rosenbrock_gamma,
            gamma_of_rosenbrock,
            2,
            positive=True,
        ),
        RegressionSimulation(
            "nonlinear20",
            "Twenty features",
            "Ten of twenty correlated features act on the outcome, not linearly; ten are noise.",
            nonlinear20,
            normal_of_nonlinear,
            N_FEATURES,
        ),
    )
}


def true_distribution(name: str, X: Any) -> PredictiveDistribution:
    """The true distribution of the outcome at any points of a simulation, m rows.

    Parameters
    ----------
    name : str
        A key of :data:`REGRESSION_SIMULATIONS`.
    X : (m, d) array-like
        Points, also outside the range of the simulation's draws; for "heteroscedastic", whose noise
        is 30 x wide, above zero.

    Raises
    ------
    InputError
        For an unknown name, a wrong number of columns, or a value that is not finite or at which
        the simulation has no distribution.

    Examples
    --------
    >>> truth = true_distribution("heteroscedastic", [[2.0], [10.0]])
    >>> truth.mean().tolist(), truth.std().tolist()
    ([30.0, 510.0], [60.0, 300.0])
    """
    if name not in REGRESSION_SIMULATIONS:
        raise InputError(
            f"There is no simulation {name!r}",
            fix=f"Choose one of: {', '.join(REGRESSION_SIMULATIONS)}.",
        )
    return REGRESSION_SIMULATIONS[name].distribution(X)
