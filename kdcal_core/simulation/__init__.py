"""The papers' simulations with their true posteriors."""

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
from kdcal_core.simulation.planar import circle, gaussian_xor, polynomial, sinewave, spiral
from kdcal_core.simulation.registry import SIMULATIONS, Simulation, true_posterior
from kdcal_core.simulation.trunk import trunk

__all__ = [
    "SHAPES",
    "SIMULATIONS",
    "Images",
    "Simulated",
    "Simulation",
    "circle",
    "circles",
    "ellipse",
    "gaussian_xor",
    "mixture",
    "polynomial",
    "rectangles",
    "shapes",
    "shifted_intensity",
    "sinewave",
    "spiral",
    "true_posterior",
    "trunk",
]
