"""What is asked on the Regions page, and who answers; see `app.shared.set_results`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from app.regions.regions_rows import Looked
from app.shared import set_results
from kdcal_core.diagnostics import RegionSearch
from kdcal_core.tasks import (
    FoundRegions,
    ModelEstimates,
    PitRows,
    RegionPanels,
    RegionQuestion,
    RegionRows,
    RegionsAtOnce,
    model_estimates,
    region_panels,
    region_pit_rows,
    region_rows,
    region_search,
    regions_at_once,
)

LEVEL = 0.95  # of the intervals of a regression's rows


@dataclass(frozen=True, eq=False)
class Found:
    """A partition with its judgement, and what distinguishes it from every other."""

    key: str
    search: RegionSearch
    ranked: bool  # the regions stand by evidence; else as a number's stretches follow
    asked: dict[str, Any]  # what `kdcal_core.tasks.region_measures` is asked for the same

    @property
    def short(self) -> str:
        """For the keys of widgets."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]


def search_of(
    looked: Looked, question: RegionQuestion, *, key: str = "", run: str | None = None
) -> Found | None:
    """The partition and what is wrong in each of its regions; None while a job looks for it.

    Parameters
    ----------
    key, run : str, optional
        Of the finished thorough search, and its folder; without them the quick one.

    Raises
    ------
    InputError
        Where there are too few rows, or a column holds what cannot be cut.
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
    """The region closely, with the maps of all; many rows are looked at once for all regions."""
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
    """What gives all rows of a region for a download; ``label`` is that of the button to ask."""
    at = {**found.asked, "leaf": leaf}
    if looked.regression:
        return set_results.on_demand(looked.review, region_pit_rows, label=label, **at, level=LEVEL)
    return set_results.on_demand(looked.review, region_rows, label=label, **at)
