"""The papers' simulations with their true posteriors or true predictive distributions."""

from __future__ import annotations

from kdcal_core.simulation.base import Simulated
from kdcal_core.simulation.images import (
    SHAPES,
    Images,
    circles,
    ellipse,
    mixture,
    rectangles,
    shapes,
    shifted_intensity,
)
from kdcal_core.simulation.overconfident import (
    BEST_WEIGHTS,
    OverconfidentScores,
    auc_of_weight,
    overconfident_scores,
)
from kdcal_core.simulation.planar import circle, gaussian_xor, polynomial, sinewave, spiral
from kdcal_core.simulation.registry import SIMULATIONS, Simulation, true_posterior
from kdcal_core.simulation.regression import (
    RegressionSimulated,
    heteroscedastic,
    nonlinear20,
    rosenbrock_gamma,
)
from kdcal_core.simulation.regression_registry import (
    REGRESSION_SIMULATIONS,
    RegressionSimulation,
    true_distribution,
)
from kdcal_core.simulation.trunk import trunk

__all__ = [
    "BEST_WEIGHTS",
    "REGRESSION_SIMULATIONS",
    "SHAPES",
    "SIMULATIONS",
    "Images",
    "OverconfidentScores",
    "RegressionSimulated",
    "RegressionSimulation",
    "Simulated",
    "Simulation",
    "auc_of_weight",
    "circle",
    "circles",
    "ellipse",
    "gaussian_xor",
    "heteroscedastic",
    "mixture",
    "nonlinear20",
    "overconfident_scores",
    "polynomial",
    "rectangles",
    "rosenbrock_gamma",
    "shapes",
    "shifted_intensity",
    "sinewave",
    "spiral",
    "true_distribution",
    "true_posterior",
    "trunk",
]
