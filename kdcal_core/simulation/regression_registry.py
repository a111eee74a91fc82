"""The simulations of a regression by name, for pages, commands and studies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kdcal_core.data import FloatArray
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.errors import InputError
from kdcal_core.simulation import regression
from kdcal_core.simulation.base import check_points
from kdcal_core.simulation.regression import RegressionSimulated


class RegressionSimulator(Protocol):
    def __call__(self, n: int, *, seed: int) -> RegressionSimulated: ...


@dataclass(frozen=True)
class RegressionSimulation:
    """One simulation of a regression as it is offered to people.

    Attributes
    ----------
    name, title, sentence : str
        Key, short title, and what it looks like in one plain sentence.
    function : callable
        ``function(n, *, seed) -> RegressionSimulated``.
    truth : callable
        The true predictive distribution at points (m, d) already checked.
    n_features : int
        Columns of its points.
    least : float or None
        The points' coordinates lie above this; None where they may be any.
    """

    name: str
    title: str
    sentence: str
    function: RegressionSimulator
    truth: Callable[[FloatArray], PredictiveDistribution]
    n_features: int
    least: float | None = None

    def distribution(self, X: Any) -> PredictiveDistribution:
        """As :func:`true_distribution` for this simulation."""
        points = check_points(X, self.n_features)
        if self.least is not None and (points <= self.least).any():
            row, column = divmod(int((points <= self.least).argmax()), self.n_features)
            raise InputError(
                f"The outcome has no distribution at {points[row, column]:g}",
                fix=f"Give coordinates above {self.least:g}.",
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
            "Outcomes follow a parabola, and the further right they lie the wider they scatter.",
            regression.heteroscedastic,
            regression.normal_of_parabola,
            1,
            least=0.0,  # the standard deviation is 30 x
        ),
        RegressionSimulation(
            "rosenbrock_gamma",
            "Rosenbrock's valley",
            "Outcomes rise steeply on both sides of a bent valley and scatter in proportion.",
            regression.rosenbrock_gamma,
            regression.gamma_of_rosenbrock,
            2,
        ),
        RegressionSimulation(
            "nonlinear20",
            "Twenty features",
            "Ten of twenty correlated features bend and multiply into the outcome; ten are noise.",
            regression.nonlinear20,
            regression.normal_of_nonlinear,
            regression.N_FEATURES,
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
        Points, also outside the range that the simulation draws from; for "heteroscedastic",
        whose noise is 30 x wide, above zero.

    Raises
    ------
    InputError
        For an unknown name, a wrong number of columns, or a value that is not finite or that the
        simulation has no distribution at.

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
