"""Results of a finished run for the Recalibration page; see `app.shared.set_results`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.shared import job_results, set_results
from app.shared.box_selection import Box
from app.shared.kept import by_digest
from app.shared.pit_results import Judged
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.evaluation import MODEL, RecalibratorScores
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review
from kdcal_core.store import load_part
from kdcal_core.tasks import (
    CoverageAlong,
    IntervalRows,
    PitValues,
    RecalibratedMap,
    RecalibrationRecord,
    RowClosely,
    ShownRows,
    TrueMeans,
    coverage_along,
    recalibrated_intervals,
    recalibrated_map,
    recalibrated_pit,
    row_closely,
    shown_rows,
    true_means,
)


@dataclass(frozen=True, eq=False)
class Finished:
    """A finished recalibration: the folder of its files, and its record.

    Measures read its arrays.
    """

    folder: Path
    record: RecalibrationRecord


@dataclass(frozen=True, eq=False)
class View:
    """A finished recalibration with the chosen method.

    Attributes
    ----------
    review : Review
    key : str
        Key of the run.
    run : Finished
    chosen : str
        Key of the method.
    """

    review: Review
    key: str
    run: Finished
    chosen: str

    @property
    def judged(self) -> Judged:
        """The rows on which all methods are judged."""
        return Judged(
            self.review, "evaluation" if self.run.record.has_evaluation else "calibration"
        )

    @property
    def model(self) -> RecalibratorScores:
        """The model as it is."""
        return self.run.record.result(MODEL)

    @property
    def method(self) -> RecalibratorScores:
        """The chosen method."""
        return self.run.record.result(self.chosen)

    @property
    def asked(self) -> dict[str, Any]:
        """The run and rows that every measure reads."""
        return {"run": str(self.run.folder), "method": self.chosen}


def run_of(job: JobSnapshot) -> tuple[str, Finished] | None:
    """The recalibration of a finished job; if unreadable, None and an error on the page."""

    return job_results.answer_of(job, lambda key, folder: (key, _finished(key, folder=folder)))


@by_digest
def _finished(key: str, *, folder: Path) -> Finished:
    return Finished(folder, load_part(folder, "record", RecalibrationRecord))


def map_of(view: View, across: str, up: str, level: float) -> RecalibratedMap | None:
    """Outcomes outside their intervals before and after, on a map."""
    return set_results.of(
        view.review,
        recalibrated_map,
        which=view.judged.which,
        **view.asked,
        across=across,
        up=up,
        level=level,
    )


def coverage_over(view: View, column: str, level: float) -> CoverageAlong | None:
    """Coverage of the intervals of one level over a column."""
    return set_results.of(
        view.review,
        coverage_along,
        which=view.judged.which,
        **view.asked,
        column=column,
        level=level,
    )


def pit_of(view: View) -> tuple[PitValues, PitValues] | None:
    """PIT histograms and quantiles over all rows, before and after."""
    each = [{**view.asked, "method": one, "which": view.judged.which} for one in _both(view)]
    found = set_results.all_of(view.review, recalibrated_pit, each)
    return None if found is None else (found[0], found[-1])


def _both(view: View) -> tuple[str, ...]:
    return MODEL, view.chosen


def shown_of(view: View) -> ShownRows | None:
    """The rows whose whole distributions are stored."""
    return set_results.of(view.review, shown_rows, run=str(view.run.folder))


def closely(view: View, rows: Sequence[int], k: int) -> list[RowClosely] | None:
    """Shown rows with the ``k`` judged rows nearest to each."""
    each = [{"which": view.judged.which, **view.asked, "row": row, "k": k} for row in rows]
    return set_results.all_of(view.review, row_closely, each)


def intervals_of(view: View, *groups: IntArray) -> list[IntervalRows] | None:
    """Intervals of several groups of rows."""
    each = [{**view.asked, "rows": rows.tolist()} for rows in groups]
    return set_results.all_of(view.review, recalibrated_intervals, each)


def every_interval_of(
    view: View, rows: IntArray | None, label: str
) -> Callable[[], IntervalRows] | None:
    """A function that returns intervals of rows, or of all; ``label`` is that of the button."""
    asked = None if rows is None else rows.tolist()
    return set_results.on_demand(
        view.review, recalibrated_intervals, label=label, **view.asked, rows=asked
    )


def truth_of(view: View, methods: Sequence[str]) -> TrueMeans | None:
    """True and estimated means."""
    return set_results.of(view.review, true_means, run=str(view.run.folder), methods=list(methods))


def nearest_shown(shown: ShownRows, row: int) -> int:
    """The row itself if its distribution is stored, otherwise the nearest one in the table."""
    return int(shown.rows[np.argmin(np.abs(shown.rows - row))])


def two_rows(shown: ShownRows) -> tuple[int, int]:
    """Initial rows: at the tenth and the ninetieth percentile of the predicted means."""
    order = shown.by_mean
    last = len(order) - 1
    return int(order[round(0.1 * last)]), int(order[round(0.9 * last)])


def spread_rows(shown: ShownRows, count: int) -> IntArray:
    """Stored rows spread evenly over the predicted means, in ascending order."""
    order = shown.by_mean
    at = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(np.int64)
    return np.asarray(order[at])


def kept(shown: ShownRows, rows: IntArray) -> IntArray:
    """The given rows whose quantiles are stored, in order."""
    return rows[np.isin(rows, shown.rows)]


def whole_map(xy: FloatArray) -> Box:
    """The box that contains all rows with a place."""
    low, high = np.nanmin(xy, axis=0), np.nanmax(xy, axis=0)
    return Box((float(low[0]), float(high[0])), (float(low[1]), float(high[1])))
