"""The simulations by name, for pages, commands and studies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.simulation import planar
from kdcal_core.simulation.base import LogDensity, Simulated, check_points, posterior_of
from kdcal_core.simulation.trunk import log_density_trunk, trunk


class Simulator(Protocol):
    def __call__(self, n: int, *, seed: int) -> Simulated: ...


@dataclass(frozen=True)
class Simulation:
    """One simulation as it is offered to people.

    Attributes
    ----------
    name, title, sentence : str
        Key, short title, and what it looks like in one plain sentence.
    function : callable
        ``function(n, *, seed) -> Simulated``; "trunk" takes ``n_features`` as
        well, and "spiral" ``noise``.
    log_density : callable
        Log densities of the classes (m, K) at points (m, d), up to a constant they share; minus
        infinity outside the region that the simulation lives in.
    n_features : int
        Columns of its points; of "trunk" the default.
    in_box : bool
        Whether its points are restricted to [-1, 1]^2.
    """

    name: str
    title: str
    sentence: str
    function: Simulator
    log_density: LogDensity
    n_features: int
    in_box: bool

    def posterior(self, X: Any, **settings: float) -> FloatArray:
        """As :func:`true_posterior` for this simulation."""
        points = check_points(X, self.n_features if self.in_box else None)
        if self.in_box:
            # outside is outside, and the square of a large coordinate would overflow
            points = np.clip(points, -2.0, 2.0)
        return posterior_of(self.log_density(points, **settings))


SIMULATIONS: dict[str, Simulation] = {
    each.name: each
    for each in (
        Simulation(
            "gaussian_xor",
            "Gaussian XOR",
            "Each class fills two opposite corners of a square.",
            planar.gaussian_xor,
            planar.log_density_xor,
            2,
            True,
        ),
        Simulation(
            "spiral",
            "Spiral",
            "Two arms wind around each other for two turns.",
            planar.spiral,
            planar.log_density_spiral,
            2,
            True,
        ),
        Simulation(
            "circle",
            "Circle",
            "One ring lies inside the other, and the outer one is cut off by the square.",
            planar.circle,
            planar.log_density_circle,
            2,
            True,
        ),
        Simulation(
            "sinewave",
            "Sinewave",
            "One class follows a cosine and the other a sine, so that they cross twice.",
            planar.sinewave,
            planar.log_density_sinewave,
            2,
            True,
        ),
        Simulation(
            "polynomial",
            "Polynomial",
            "One class follows a line and the other a cubic, which touch in the middle.",
            planar.polynomial,
            planar.log_density_polynomial,
            2,
            True,
        ),
        Simulation(
            "trunk",
            "Trunk",
            "Two Gaussian clouds, parted ever less by each further dimension.",
            trunk,
            log_density_trunk,
            10,
            False,
        ),
    )
}


def true_posterior(name: str, X: Any, **settings: float) -> FloatArray:
    """True probability of each class (m, 2) at any points, with equal priors.

    Parameters
    ----------
    name : str
        A key of :data:`SIMULATIONS`.
    X : (m, d) array-like
        Points; of "trunk" in any dimension. Outside the region where a simulation has points
        ([-1, 1]^2, for "spiral" the unit disc) the prior, one half each.
    **settings
        What the points were drawn with, where it was not the default: ``noise`` of "spiral".

    Raises
    ------
    InputError
        For an unknown name, a wrong number of columns, or a value that is not finite.

    Examples
    --------
    >>> true_posterior("gaussian_xor", [[-0.5, 0.5], [0.0, 0.0], [3.0, 3.0]]).round(2).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    """
    if name not in SIMULATIONS:
        raise InputError(
            f"There is no simulation {name!r}", fix=f"Choose one of: {', '.join(SIMULATIONS)}."
        )
    return SIMULATIONS[name].posterior(X, **settings)
