"""Measures and rows of the Regions page; see `app.shared.set_results`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from app.shared import job_results, set_results
from app.shared.kept import by_digest
from app.shared.pit_results import Judged
from kdcal_core.diagnostics import RegionSearch
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review, Which, identity
from kdcal_core.tasks import (
    FoundRegions,
    ModelEstimates,
    PitRows,
    RegionColumns,
    RegionPanels,
    RegionQuestion,
    RegionRows,
    RegionsAtOnce,
    RegionSearchSettings,
    RegionsRun,
    RepairScores,
    calibrate_regions,
    model_estimates,
    region_columns,
    region_panels,
    region_pit_rows,
    region_rows,
    region_search,
    regions_at_once,
    repair_scores,
    search_regions,
)


@dataclass(frozen=True, eq=False)
class Looked:
    """The rows on the page, and the columns that describe them."""

    review: Review
    which: Which
    known: RegionColumns

    @property
    def regression(self) -> bool:
        return self.review.task == "regression"

    @property
    def judged(self) -> Judged:
        """The rows, in the form that the PIT page uses."""
        return Judged(self.review, self.which)

    @cached_property
    def key(self) -> str:
        """A key that distinguishes these rows from all others."""
        return json.dumps(identity(self.review, (self.which, "training")), sort_keys=True)

    @property
    def n_rows(self) -> int:
        return self.review.tables[self.which].n_rows

    @property
    def binary(self) -> bool:
        return not self.regression and len(self.review.classes) == 2

    @property
    def inputs(self) -> tuple[str, ...]:
        """Columns on which trees can be grown."""
        return self.known.inputs

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to look along: the inputs, then those without a role."""
        return self.known.columns


def looked_at(review: Review, which: Which) -> Looked | None:
    """The rows of a set with their columns; None while a job reads them."""
    known = set_results.of(review, region_columns, which=which)
    return None if known is None else Looked(review, which, known)


LEVEL = 0.95  # of the intervals of a regression's rows


@dataclass(frozen=True, eq=False)
class Found:
    """A judged partition, and a key that distinguishes it from all others."""

    key: str
    search: RegionSearch
    ranked: bool  # whether regions are ordered by evidence, or by the ranges of a number
    asked: dict[str, Any]  # the arguments of `kdcal_core.tasks.region_search`

    @property
    def short(self) -> str:
        """A short key for widgets."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]


def search_of(
    looked: Looked, question: RegionQuestion, *, key: str = "", run: str | None = None
) -> Found | None:
    """The partition and the fault of each of its regions; None while a job computes it.

    Parameters
    ----------
    key, run : str, optional
        Key and folder of the finished thorough search; without them the quick search is used.

    Raises
    ------
    InputError
        If there are too few rows, or a column cannot be divided.
    """
    asked: dict[str, Any] = {"which": looked.which, "asked": asdict(question), "run": run}
    if set_results.in_worker(looked.review, regions_at_once, asked):
        at_once = set_results.of(looked.review, regions_at_once, **asked)
        found: FoundRegions | None = None if at_once is None else at_once.found
    else:
        found = set_results.of(looked.review, region_search, **asked)
    if found is None:
        return None
    if found.search is None:
        assert found.refused is not None
        raise found.refused.error()
    return Found(key or f"{looked.key} {question}", found.search, found.ranked, asked)


def panels_of(looked: Looked, found: Found, leaf: int) -> RegionPanels | None:
    """A region in detail, with the maps of all; with many rows, one job covers all regions."""
    if not set_results.in_worker(looked.review, regions_at_once, found.asked):
        return set_results.of(looked.review, region_panels, **found.asked, leaves=[leaf])
    at_once: RegionsAtOnce | None = set_results.of(looked.review, regions_at_once, **found.asked)
    return None if at_once is None else at_once.panels


def whole_of(looked: Looked) -> ModelEstimates | None:
    """The model as it is, on all rows of a classification."""
    return set_results.of(looked.review, model_estimates, which=looked.which)


def rows_of(looked: Looked, found: Found, leaf: int, most: int) -> RegionRows | PitRows | None:
    """The first rows of a region."""
    if looked.regression:
        return set_results.of(
            looked.review, region_pit_rows, **found.asked, leaf=leaf, level=LEVEL, most=most
        )
    return set_results.of(looked.review, region_rows, **found.asked, leaf=leaf, most=most)


def every_row_of(
    looked: Looked, found: Found, leaf: int, label: str
) -> Callable[[], RegionRows | PitRows] | None:
    """A function that returns all rows of a region; ``label`` is that of the button."""
    at = {**found.asked, "leaf": leaf}
    if looked.regression:
        return set_results.on_demand(looked.review, region_pit_rows, label=label, **at, level=LEVEL)
    return set_results.on_demand(looked.review, region_rows, label=label, **at)


def search_run_of(looked: Looked, asked: RegionQuestion, job: JobSnapshot) -> Found | None:
    """The search of a finished job; if it is missing, None and an error on the page."""

    def read(key: str, folder: Path) -> Found | None:
        _checked(key, folder=folder)
        return search_of(looked, asked, key=key, run=str(folder))

    return job_results.answer_of(job, read)


@by_digest
def _checked(key: str, *, folder: Path) -> RegionSearchSettings:
    """The settings of a search, after a check that all of it can be read."""
    return search_regions.read(folder).settings


def run_of(job: JobSnapshot) -> RegionsRun | None:
    """The run of a finished job; if it cannot be read, None and an error on the page."""
    return job_results.result_of(job, calibrate_regions)


def scores_of(
    review: Review, run: RegionsRun, label: int | None, *methods: str
) -> list[RepairScores] | None:
    """Scores of these methods on the judged rows of a run; None while jobs read them."""
    each = [{"run": str(run.folder), "method": one, "label": label} for one in methods]
    return set_results.all_of(review, repair_scores, each)
