"""Summaries of rows, of fixed size: batches are added in any order, and estimates follow."""

from dataclasses import replace

from kdcal_core.diagnostics.summaries.class_areas import area_bound, summary_auroc
from kdcal_core.diagnostics.summaries.class_diagrams import (
    summary_confusion,
    summary_decisions,
    summary_reliability,
    summary_scores,
)
from kdcal_core.diagnostics.summaries.class_estimates import (
    summary_brier,
    summary_calibration_error,
    summary_confidence_on_errors,
    summary_estimates,
    summary_event_estimates,
    summary_gap,
    summary_line,
    summary_log_loss,
    summary_smooth_error,
    summary_tiles,
)
from kdcal_core.diagnostics.summaries.class_questions import (
    certain_rows,
    summary_certain_and_wrong,
    summary_certain_share,
    summary_class_gaps,
    summary_gain_over_most_frequent,
    summary_gains_over_shares,
    summary_question_estimates,
    summary_range,
    summary_risk,
    summary_test,
)
from kdcal_core.diagnostics.summaries.class_shift import summary_shift
from kdcal_core.diagnostics.summaries.class_summary import (
    ClassSummary,
    ClassTally,
    effective_rows,
    summarise,
)
from kdcal_core.diagnostics.summaries.drawn_rows import DRAWN, DrawnRows
from kdcal_core.diagnostics.summaries.group_estimates import (
    summary_group_regions,
    summary_groups,
    summary_pit_group_search,
    summary_pit_groups,
)
from kdcal_core.diagnostics.summaries.group_summary import GroupSummary, class_groups, pit_groups
from kdcal_core.diagnostics.summaries.predicted_class import (
    distinct_rows,
    summary_anchor,
    summary_halves,
    summary_of_predicted,
)
from kdcal_core.diagnostics.summaries.regression_estimates import (
    summary_bias,
    summary_coverage,
    summary_ecdf,
    summary_fault,
    summary_pit_histogram,
    summary_quantiles,
    summary_regression_estimates,
    summary_scale,
    summary_skill,
    summary_uniformity,
    summary_wasserstein,
)
from kdcal_core.diagnostics.summaries.regression_summary import (
    RegressionSummary,
    effective_forecasts,
    summarise_regression,
)
from kdcal_core.diagnostics.summaries.score_grid import BINS

Summary = ClassSummary | RegressionSummary
"""What is kept of the rows of either task."""


def judged_rows(summary: Summary) -> Summary:
    """The summary from which estimates follow: of weighted rows, one of Kish's number of rows.

    Clusters of one row each say nothing, as in a table: they are left out where they were counted
    exactly.
    """
    clusters = summary.clusters
    names = None if clusters is None else clusters.names
    if names is not None and names.exact and not names.n_times and names.count == rows_of(summary):
        summary = replace(summary, clusters=None)
    if isinstance(summary, ClassSummary):
        return effective_rows(summary)
    return effective_forecasts(summary)


def n_clusters(summary: Summary) -> int:
    """Clusters of the rows, of more than some thousand about; 0 where no column names them."""
    return 0 if summary.clusters is None else summary.clusters.names.count


def rows_of(summary: Summary) -> int:
    """Rows that were counted."""
    return summary.n if summary.weights is None else summary.weights.rows


__all__ = [
    "BINS",
    "DRAWN",
    "ClassSummary",
    "ClassTally",
    "DrawnRows",
    "GroupSummary",
    "RegressionSummary",
    "Summary",
    "area_bound",
    "certain_rows",
    "class_groups",
    "distinct_rows",
    "effective_forecasts",
    "effective_rows",
    "judged_rows",
    "n_clusters",
    "pit_groups",
    "rows_of",
    "summarise",
    "summarise_regression",
    "summary_anchor",
    "summary_auroc",
    "summary_bias",
    "summary_brier",
    "summary_calibration_error",
    "summary_certain_and_wrong",
    "summary_certain_share",
    "summary_class_gaps",
    "summary_confidence_on_errors",
    "summary_confusion",
    "summary_coverage",
    "summary_decisions",
    "summary_ecdf",
    "summary_estimates",
    "summary_event_estimates",
    "summary_fault",
    "summary_gain_over_most_frequent",
    "summary_gains_over_shares",
    "summary_gap",
    "summary_group_regions",
    "summary_groups",
    "summary_halves",
    "summary_line",
    "summary_log_loss",
    "summary_of_predicted",
    "summary_pit_group_search",
    "summary_pit_groups",
    "summary_pit_histogram",
    "summary_quantiles",
    "summary_question_estimates",
    "summary_range",
    "summary_regression_estimates",
    "summary_reliability",
    "summary_risk",
    "summary_scale",
    "summary_scores",
    "summary_shift",
    "summary_skill",
    "summary_smooth_error",
    "summary_test",
    "summary_tiles",
    "summary_uniformity",
    "summary_wasserstein",
]


def __dir__() -> list[str]:
    return sorted(__all__)
