"""The papers' simulations with their true posteriors or true predictive distributions."""

from __future__ import annotations

from kdcal_core.simulation.classification import (
    SIMULATIONS,
    Simulated,
    Simulation,
    circle,
    gaussian_xor,
    polynomial,
    sinewave,
    spiral,
    true_posterior,
    trunk,
)
from kdcal_core.simulation.regression import (
    REGRESSION_SIMULATIONS,
    RegressionSimulated,
    RegressionSimulation,
    heteroscedastic,
    nonlinear20,
    rosenbrock_gamma,
    true_distribution,
)

__all__ = [
    "REGRESSION_SIMULATIONS",
    "SIMULATIONS",
    "RegressionSimulated",
    "RegressionSimulation",
    "Simulated",
    "Simulation",
    "circle",
    "gaussian_xor",
    "heteroscedastic",
    "nonlinear20",
    "polynomial",
    "rosenbrock_gamma",
    "sinewave",
    "spiral",
    "true_distribution",
    "true_posterior",
    "trunk",
]
