"""kdcal: how far can a model's confidence be trusted?

Public names are loaded on first use, so that ``import kdcal_core`` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "InputError": "errors",
    "InputWarning": "errors",
    "Table": "data",
    "Roles": "data",
    "ScoredSet": "data",
    "read_table": "data",
    "load_model": "models",
    "wrap_model": "models",
    "reliability": "diagnostics",
    "calibration_error": "diagnostics",
    "compare": "evaluation",
    "find_regions": "diagnostics",
    "smooth_calibration_error": "diagnostics",
    "TopLabelHistogram": "calibration",
    "TopLabelConfidence": "calibration",
    "TopLabelKDE": "calibration",
    "CentredIsotonic": "calibration",
    "CumulativeConfidence": "calibration",
    "EnsembleTemperature": "calibration",
    "QuadraticScaling": "calibration",
    "RecommendedCalibrator": "calibration",
    "SplineCalibration": "calibration",
    "StructuredMatrixScaling": "calibration",
    "StructuredVectorScaling": "calibration",
    "TemperatureScaling": "calibration",
    "HeterogeneousCalibrator": "calibration.regions",
    "UncalibratedConfidence": "calibration",
    "IsotonicConfidence": "calibration",
    "BetaCalibration": "calibration",
    "ClasswiseHistogram": "calibration",
    "DirichletScaling": "calibration",
    "PlattScaling": "calibration",
    "VectorScaling": "calibration",
    "VennAbers": "calibration",
    "CalibratedModel": "calibration",
    "calibrated": "calibration",
    "fit_calibrator": "calibration",
    "load_calibrator": "calibration.export",
    "save_calibrator": "calibration.export",
    "load_recalibrator": "regression",
    "save_recalibrator": "regression",
    "KernelDensityForest": "calibration",
    "KernelDensityGraph": "calibration",
    "KernelDensityNetwork": "calibration",
    "SigmoidConfidence": "calibration",
    "ConfidenceDisplay": "displays",
    "MMCDisplay": "displays",
    "PITDisplay": "displays",
    "RegionsDisplay": "displays",
    "ReliabilityDisplay": "displays",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"kdcal_core.{_HOME[name]}"), name)
    raise AttributeError(f"module 'kdcal_core' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
