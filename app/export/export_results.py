"""A fitted calibrator on the page, read once for each run."""

from __future__ import annotations

from dataclasses import dataclass

from app.shared import job_results
from app.shared.last_compared import last_comparison
from kdcal_core.evaluation import Comparison
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review
from kdcal_core.tasks import (
    ExportRun,
    TriedRun,
    export_calibrator,
    try_calibrator,
)


@dataclass(frozen=True, eq=False)
class View:
    """A fitted calibrator of the open review."""

    review: Review
    key: str
    run: ExportRun

    @property
    def binary(self) -> bool:
        """Whether scores are the probability of the second class."""
        return len(self.review.classes) == 2


def run_of(job: JobSnapshot) -> ExportRun | None:
    """The calibrator of a finished job; if it cannot be read, None and an error on the page."""
    return job_results.result_of(job, export_calibrator)


def tried_of(job: JobSnapshot) -> TriedRun | None:
    """The tried file of a finished job; if it cannot be read, None and an error on the page."""
    return job_results.result_of(job, try_calibrator)


def comparison_of(review: Review) -> Comparison | None:
    """The last comparison of this review, if it is still stored and of the review as it is."""
    run = last_comparison(review)
    return None if run is None else run.comparison
