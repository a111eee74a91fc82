"""Summaries of rows, of fixed size: batches are added in any order, and estimates follow."""

from kdcal_core.diagnostics.summaries.class_estimates import (
    area_bound,
    summary_confusion,
    summary_decisions,
    summary_estimates,
    summary_event_estimates,
    summary_line,
    summary_reliability,
)
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary, ClassTally, summarise
from kdcal_core.diagnostics.summaries.score_grid import BINS

__all__ = [
    "BINS",
    "ClassSummary",
    "ClassTally",
    "area_bound",
    "summarise",
    "summary_confusion",
    "summary_decisions",
    "summary_estimates",
    "summary_event_estimates",
    "summary_line",
    "summary_reliability",
]
