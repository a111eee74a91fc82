"""Calibrators of the confidence in the predicted class (paper 002)."""

from __future__ import annotations

from kdcal_core.calibration.base import TopLabelCalibrator, spread, top_label
from kdcal_core.calibration.class_confidence import TopLabelConfidence
from kdcal_core.calibration.cumulative import CumulativeConfidence
from kdcal_core.calibration.histogram import TopLabelHistogram
from kdcal_core.calibration.kde import TopLabelKDE
from kdcal_core.calibration.results import ConfidenceCurve, HistogramAnchor
from kdcal_core.calibration.uncalibrated import UncalibratedConfidence

__all__ = [
    "ConfidenceCurve",
    "CumulativeConfidence",
    "HistogramAnchor",
    "TopLabelCalibrator",
    "TopLabelConfidence",
    "TopLabelHistogram",
    "TopLabelKDE",
    "UncalibratedConfidence",
    "spread",
    "top_label",
]
