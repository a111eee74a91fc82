"""Measures of the Posterior map page; see `app.shared.set_results`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.shared import graph_results, set_results
from app.shared.box_selection import Box
from app.shared.graph_results import Version
from app.shared.job_results import answer_of, task_result
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review
from kdcal_core.tasks import (
    BoxRows,
    GridRun,
    RowsInBox,
    VersionMap,
    posterior_grid,
    rows_in_box,
    table_of_box,
    version_map,
)


@dataclass(frozen=True, eq=False)
class Map:
    """A map and the folder of its files; measures read its rows."""

    folder: Path
    run: GridRun


def map_of(job: JobSnapshot) -> Map | None:
    """The map of a finished job; if it cannot be read, None and an error on the page."""

    def read(key: str, folder: Path) -> Map:
        return Map(folder, task_result(key, task=posterior_grid, folder=folder))

    return answer_of(job, read)


def version_of(
    review: Review, drawn: Map, version: Version | None, label: int | None
) -> VersionMap | None:
    """The kernel density version's map; None without a version, or while a job computes it."""
    if version is None:
        return None
    return set_results.of(
        review, version_map, run=str(drawn.folder), **graph_results.asked(version), label=label
    )


@dataclass(frozen=True, eq=False)
class Boxed:
    """A box on a map of a review, with the kernel density version if there is one."""

    review: Review
    drawn: Map
    box: Box
    version: Version | None

    @property
    def asked(self) -> dict[str, Any]:
        """The rows that every measure reads."""
        return {
            "which": "evaluation" if self.review.has_evaluation else "calibration",
            "run": str(self.drawn.folder),
            "x": list(self.box.x),
            "y": list(self.box.y),
            **graph_results.asked(self.version),
        }


def inside(boxed: Boxed, most: int) -> RowsInBox | None:
    """The rows in the box, and the first of them."""
    return set_results.of(boxed.review, rows_in_box, **boxed.asked, most=most)


def every_row_of(boxed: Boxed, label: str) -> Callable[[], BoxRows] | None:
    """A function that returns all rows of the box; ``label`` is that of the button."""
    return set_results.on_demand(boxed.review, table_of_box, label=label, **boxed.asked)
