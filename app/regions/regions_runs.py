"""What the jobs of the Regions page have left, read once."""

from __future__ import annotations

from pathlib import Path

from app.regions.regions_rows import Looked
from app.regions.regions_search import Found, search_of
from app.shared import job_results, set_results
from app.shared.kept import by_digest
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review
from kdcal_core.tasks import (
    RegionQuestion,
    RegionSearchSettings,
    RegionsRun,
    RepairScores,
    calibrate_regions,
    repair_scores,
    search_regions,
)


def search_run_of(looked: Looked, asked: RegionQuestion, job: JobSnapshot) -> Found | None:
    """The search of a job that is done; None, and why, where it is not there."""

    def read(key: str, folder: Path) -> Found | None:
        _checked(key, folder=folder)
        return search_of(looked, asked, key=key, run=str(folder))

    return job_results.answer_of(job, read)


@by_digest
def _checked(key: str, *, folder: Path) -> RegionSearchSettings:
    """The settings of a search, once the whole of it could be read."""
    return search_regions.read(folder).settings


def run_of(job: JobSnapshot) -> RegionsRun | None:
    """The run of a job that is done; None, and why, where it cannot be read."""
    return job_results.result_of(job, calibrate_regions)


def scores_of(review: Review, run: RegionsRun, *methods: str) -> list[RepairScores] | None:
    """How these methods of a run state its judged rows; None while jobs read them."""
    each = [{"run": str(run.folder), "method": one} for one in methods]
    return set_results.all_of(review, repair_scores, each)
