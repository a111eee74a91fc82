"""The papers' simulations with their true posteriors or true predictive distributions."""

from __future__ import annotations

from kdcal_core.simulation.classification import (
    CODED,
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
from kdcal_core.simulation.images import IMAGE_SHIFTS, Images, ImageShift, shapes
from kdcal_core.simulation.overconfident import (
    BEST_WEIGHTS,
    auc_of_weight,
    overconfident_scores,
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
    "BEST_WEIGHTS",
    "CODED",
    "IMAGE_SHIFTS",
    "REGRESSION_SIMULATIONS",
    "SIMULATIONS",
    "ImageShift",
    "Images",
    "RegressionSimulated",
    "RegressionSimulation",
    "Simulated",
    "Simulation",
    "auc_of_weight",
    "circle",
    "gaussian_xor",
    "heteroscedastic",
    "nonlinear20",
    "overconfident_scores",
    "polynomial",
    "rosenbrock_gamma",
    "shapes",
    "sinewave",
    "spiral",
    "true_distribution",
    "true_posterior",
    "trunk",
]


def __dir__() -> list[str]:
    return sorted(__all__)
