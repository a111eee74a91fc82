"""What stands below the maps of the Recalibration page, by title."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from app.recalibration import recalibration_compare as compare
from app.recalibration import recalibration_results as results
from app.recalibration import recalibration_rows as rows
from app.recalibration.recalibration_answer import Places, over_a_column
from app.recalibration.recalibration_results import View


def further(view: View, places: Places | None) -> dict[str, Callable[[], None]]:
    """What draws each section; without those that this run has nothing for."""
    record = view.run.record
    found: dict[str, Callable[[], None]] = {
        "Along a column": partial(over_a_column, view),
        "Two rows": partial(_two_rows, view),
    }
    if places is not None:
        found["Intervals"] = partial(_intervals, view, places)
    found |= {
        "PIT and quantiles": partial(compare.pit_and_quantiles, view),
        "Every measure": partial(compare.every_method, view),
    }
    if record.selection is not None:
        found["Neighbours"] = partial(compare.choice, view)
    if record.has_truth:
        found["True means"] = partial(compare.truth, view)
    found["Before you rely on it"] = compare.advice
    return found


def _two_rows(view: View) -> None:
    shown = results.shown_of(view)
    if shown is not None:
        rows.densities(view, shown)


def _intervals(view: View, places: Places) -> None:
    shown = results.shown_of(view)
    if shown is not None:
        rows.intervals(view, shown, places)
