"""A fitted calibrator on the page, read once for each run."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from app.shared import job_results, waiting
from kdcal_core.errors import InputError
from kdcal_core.evaluation import Comparison
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review
from kdcal_core.tasks import (
    ExportRun,
    TriedRun,
    compare_calibrators,
    export_calibrator,
    try_calibrator,
)

LAST_COMPARISON = "compare_last"  # of the Compare page: the key of each review's last job


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
    """The last comparison of this review that was shown, if it is still stored."""
    key = st.session_state.get(LAST_COMPARISON, {}).get(review.id)
    job = None if key is None else waiting.find(key)
    if job is None or job.state != "done" or job.folder is None:
        return None
    try:
        run = job_results.task_result(job.key, task=compare_calibrators, folder=job.folder)
        return run.comparison
    except InputError:  # the Compare page reports it
        return None
