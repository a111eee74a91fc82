"""What checks look at where of the rows only a summary of fixed size is held."""

from __future__ import annotations

from dataclasses import dataclass

from kdcal_core.data import Task
from kdcal_core.diagnostics.summaries import ClassSummary, RegressionSummary, Summary, rows_of

NEEDS_ROWS = (
    "It cannot be computed because it needs the rows themselves. The rows lie in many files, "
    "which may be larger than memory, so that only counts and sums of all rows are kept."
)


@dataclass(frozen=True, eq=False)
class SummaryEvidence:
    """The summary of the rows that checks judge.

    Attributes
    ----------
    summary : ClassSummary or RegressionSummary
    event : int or None
        As of `kdcal_core.checks.Evidence`.
    calibration : ClassSummary or RegressionSummary, optional
        Of the calibration set, where the judged rows are others.
    seed : int
        Of every random step.
    """

    summary: Summary
    event: int | None = None
    calibration: Summary | None = None
    seed: int = 0

    @property
    def task(self) -> Task:
        """Classification or regression."""
        return self.summary.task

    @property
    def n_rows(self) -> int:
        """Rows that are judged."""
        return rows_of(self.summary)

    @property
    def scored(self) -> ClassSummary:
        """The judged rows of a classification."""
        assert isinstance(self.summary, ClassSummary)
        return self.summary

    @property
    def predicted(self) -> RegressionSummary:
        """The judged rows of a regression."""
        assert isinstance(self.summary, RegressionSummary)
        return self.summary

    @property
    def known(self) -> ClassSummary | None:
        """The calibration set of a classification, where the judged rows are others."""
        return self.calibration if isinstance(self.calibration, ClassSummary) else None

    @property
    def past(self) -> RegressionSummary | None:
        """As `known`, of a regression."""
        return self.calibration if isinstance(self.calibration, RegressionSummary) else None
