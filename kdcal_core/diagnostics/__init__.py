"""What is measured: reliability diagrams, calibration errors, scores; frozen results."""

from __future__ import annotations

from kdcal_core.diagnostics.calibration_error import (
    calibration_error,
    confidence_calibration_error,
)
from kdcal_core.diagnostics.reliability import confidence_reliability, reliability
from kdcal_core.diagnostics.results import (
    Confusion,
    Estimate,
    Reliability,
    ReliabilityCurve,
    ScoreHistogram,
)

__all__ = [
    "Confusion",
    "Estimate",
    "Reliability",
    "ReliabilityCurve",
    "ScoreHistogram",
    "calibration_error",
    "confidence_calibration_error",
    "confidence_reliability",
    "reliability",
]
