"""What is measured: reliability diagrams, calibration errors, scores; frozen results."""

from __future__ import annotations

from kdcal_core.diagnostics.calibration_error import (
    calibration_error,
    confidence_calibration_error,
)
from kdcal_core.diagnostics.confusion import confusion
from kdcal_core.diagnostics.decomposition import (
    brier_decomposition,
    confidence_brier_decomposition,
)
from kdcal_core.diagnostics.findings import (
    confusion_finding,
    estimate_text,
    number_text,
    reliability_finding,
    telling,
)
from kdcal_core.diagnostics.histogram import confidence_histogram, score_histogram
from kdcal_core.diagnostics.reliability import confidence_reliability, reliability
from kdcal_core.diagnostics.results import (
    Confusion,
    Estimate,
    Kind,
    Norm,
    Reliability,
    ReliabilityCurve,
    ScoreHistogram,
    Strategy,
)
from kdcal_core.diagnostics.scores import (
    accuracy,
    auroc,
    brier,
    confidence_brier,
    confidence_gap,
    confidence_log_loss,
    log_loss,
    mean_max_confidence,
    top_label_brier,
    top_label_log_loss,
)
from kdcal_core.diagnostics.smooth_error import (
    confidence_smooth_calibration_error,
    smooth_calibration_error,
)
from kdcal_core.diagnostics.summary import all_estimates, summary

__all__ = [
    "Confusion",
    "Estimate",
    "Kind",
    "Norm",
    "Reliability",
    "ReliabilityCurve",
    "ScoreHistogram",
    "Strategy",
    "accuracy",
    "all_estimates",
    "auroc",
    "brier",
    "brier_decomposition",
    "calibration_error",
    "confidence_brier",
    "confidence_brier_decomposition",
    "confidence_calibration_error",
    "confidence_gap",
    "confidence_histogram",
    "confidence_log_loss",
    "confidence_reliability",
    "confidence_smooth_calibration_error",
    "confusion",
    "confusion_finding",
    "estimate_text",
    "log_loss",
    "mean_max_confidence",
    "number_text",
    "reliability",
    "reliability_finding",
    "score_histogram",
    "smooth_calibration_error",
    "summary",
    "telling",
    "top_label_brier",
    "top_label_log_loss",
]
