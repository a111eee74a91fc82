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
from kdcal_core.diagnostics.foreign_distance import (
    confidence_by_distance,
    max_confidence_by_distance,
    sphere_points,
)
from kdcal_core.diagnostics.foreign_results import DistanceCurve, KernelSimilarity
from kdcal_core.diagnostics.foreign_scores import (
    fpr_at_95_tpr,
    mmc_star,
    ood_auroc,
    ood_calibration_error,
    unknown_share,
)
from kdcal_core.diagnostics.hellinger import hellinger_distance, hellinger_distances
from kdcal_core.diagnostics.histogram import confidence_histogram, score_histogram
from kdcal_core.diagnostics.improvement import (
    median_improvement,
    one_sided_wilcoxon,
    relative_improvement,
)
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
from kdcal_core.diagnostics.similarity import kernel_similarity
from kdcal_core.diagnostics.smooth_error import (
    confidence_smooth_calibration_error,
    smooth_calibration_error,
)
from kdcal_core.diagnostics.summary import all_estimates, summary

__all__ = [
    "Confusion",
    "DistanceCurve",
    "Estimate",
    "KernelSimilarity",
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
    "confidence_by_distance",
    "confidence_calibration_error",
    "confidence_gap",
    "confidence_histogram",
    "confidence_log_loss",
    "confidence_reliability",
    "confidence_smooth_calibration_error",
    "confusion",
    "confusion_finding",
    "estimate_text",
    "fpr_at_95_tpr",
    "hellinger_distance",
    "hellinger_distances",
    "kernel_similarity",
    "log_loss",
    "max_confidence_by_distance",
    "mean_max_confidence",
    "median_improvement",
    "mmc_star",
    "number_text",
    "one_sided_wilcoxon",
    "ood_auroc",
    "ood_calibration_error",
    "relative_improvement",
    "reliability",
    "reliability_finding",
    "score_histogram",
    "smooth_calibration_error",
    "sphere_points",
    "summary",
    "telling",
    "top_label_brier",
    "top_label_log_loss",
    "unknown_share",
]
