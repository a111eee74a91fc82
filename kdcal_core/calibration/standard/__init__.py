"""Calibrators known outside the five papers, all on the whole probability vector."""

from __future__ import annotations

from kdcal_core.calibration.standard.histogram_classes import ClasswiseHistogram
from kdcal_core.calibration.standard.log_odds_maps import BetaCalibration, PlattScaling
from kdcal_core.calibration.standard.softmax_maps import DirichletScaling, VectorScaling
from kdcal_core.calibration.standard.venn_abers import VennAbers

__all__ = [
    "BetaCalibration",
    "ClasswiseHistogram",
    "DirichletScaling",
    "PlattScaling",
    "VectorScaling",
    "VennAbers",
]
