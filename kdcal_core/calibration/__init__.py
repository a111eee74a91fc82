"""Calibrators: top-label, temperature, standard, by regions, kernel density graphs."""

from __future__ import annotations

from kdcal_core.calibration.calibrated_model import CalibratedModel
from kdcal_core.calibration.calibrator_base import Calibrator, TopLabelCalibrator, spread, top_label
from kdcal_core.calibration.calibrators import (
    CALIBRATOR_FAMILIES,
    CALIBRATORS,
    CalibratorEntry,
    Family,
    calibrator_entry,
    methods_by_class,
    score_calibrator,
)
from kdcal_core.calibration.centred_isotonic import CentredIsotonic
from kdcal_core.calibration.class_rates import (
    CumulativeConfidence,
    TopLabelConfidence,
    TopLabelHistogram,
    UncalibratedConfidence,
)
from kdcal_core.calibration.confidence_curve import ConfidenceCurve, EventCurve
from kdcal_core.calibration.ensemble_temperature import EnsembleTemperature
from kdcal_core.calibration.fitting import Calibrated, calibrated, fit_calibrator
from kdcal_core.calibration.graph import (
    KernelDensityForest,
    KernelDensityGraph,
    KernelDensityNetwork,
    Located,
    Selection,
)
from kdcal_core.calibration.graph.forest_and_network import LEAST_LOG_FLOOR, KernelDensityCalibrator
from kdcal_core.calibration.graph.graph import PAPERS_LOG_FLOOR
from kdcal_core.calibration.kde import TopLabelKDE
from kdcal_core.calibration.log_odds_maps import BetaCalibration, PlattScaling, QuadraticScaling
from kdcal_core.calibration.one_vs_rest import (
    ClasswiseHistogram,
    IsotonicConfidence,
    SigmoidConfidence,
)
from kdcal_core.calibration.recommended import RecommendedCalibrator
from kdcal_core.calibration.settings import BY_TREE, INNER_MAPS
from kdcal_core.calibration.softmax_maps import DirichletScaling, VectorScaling
from kdcal_core.calibration.spline_map import SplineCalibration
from kdcal_core.calibration.structured_scaling import (
    StructuredMatrixScaling,
    StructuredVectorScaling,
)
from kdcal_core.calibration.temperature import TemperatureScaling
from kdcal_core.calibration.venn_abers import VennAbers
from kdcal_core.offers import import_modules

# the folder export defines no calibrators
import_modules(__path__, __name__, without=("export",))

__all__ = [
    "BY_TREE",
    "CALIBRATORS",
    "CALIBRATOR_FAMILIES",
    "INNER_MAPS",
    "LEAST_LOG_FLOOR",
    "PAPERS_LOG_FLOOR",
    "BetaCalibration",
    "Calibrated",
    "CalibratedModel",
    "Calibrator",
    "CalibratorEntry",
    "CentredIsotonic",
    "ClasswiseHistogram",
    "ConfidenceCurve",
    "CumulativeConfidence",
    "DirichletScaling",
    "EnsembleTemperature",
    "EventCurve",
    "Family",
    "IsotonicConfidence",
    "KernelDensityCalibrator",
    "KernelDensityForest",
    "KernelDensityGraph",
    "KernelDensityNetwork",
    "Located",
    "PlattScaling",
    "QuadraticScaling",
    "RecommendedCalibrator",
    "Selection",
    "SigmoidConfidence",
    "SplineCalibration",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "TopLabelCalibrator",
    "TopLabelConfidence",
    "TopLabelHistogram",
    "TopLabelKDE",
    "UncalibratedConfidence",
    "VectorScaling",
    "VennAbers",
    "calibrated",
    "calibrator_entry",
    "fit_calibrator",
    "methods_by_class",
    "score_calibrator",
    "spread",
    "top_label",
]


def __dir__() -> list[str]:
    return sorted(__all__)
