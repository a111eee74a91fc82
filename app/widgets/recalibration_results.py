"""What follows from a recalibration, computed once for each run, method and setting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import streamlit as st

from app.widgets import job_results
from app.widgets.kept import kept_by_bytes
from app.widgets.map_region import Box
from app.widgets.regression_results import RegressionRows
from kdcal_core.charts import DensityPanel, MissPanel, SelectionCurve, density_curve, misses_of
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import (
    CoverageRow,
    Estimate,
    Fault,
    PitHistogram,
    QuantileReliability,
    column_regions,
    coverage,
    fault,
    neighbourhoods,
    pit_histogram,
    quantile_reliability,
)
from kdcal_core.distributions import PredictiveDistribution, Quantiles
from kdcal_core.jobs import JobSnapshot
from kdcal_core.review import Review
from kdcal_core.tasks import (
    AXES,
    MEAN,
    OUTCOME,
    PARENT,
    MethodResult,
    RecalibrationRun,
    RowAnswers,
    Selection,
)
from kdcal_core.tasks.recalibration_results import GRID

COLUMN_BINS = 10
LEVELS = tuple(i / 20 for i in range(1, 20))
_NORMAL_95 = 1.96


@dataclass(frozen=True, eq=False)
class View:
    """A finished recalibration with the method that is looked at.

    Attributes
    ----------
    review : Review
    key : str
        Of the run.
    run : RecalibrationRun
    chosen : str
        The method's key.
    """

    review: Review
    key: str
    run: RecalibrationRun
    chosen: str

    @cached_property
    def judged(self) -> RegressionRows:
        """The rows that all methods are judged on."""
        return RegressionRows(
            self.review, "evaluation" if self.run.record.has_evaluation else "calibration"
        )

    @property
    def parent(self) -> MethodResult:
        """The model as it is."""
        return self.run.result(PARENT)

    @property
    def method(self) -> MethodResult:
        """The method that is looked at."""
        return self.run.result(self.chosen)

    @cached_property
    def before(self) -> RowAnswers:
        """The model's answers."""
        return self.run.answers(PARENT)

    @cached_property
    def after(self) -> RowAnswers:
        """The method's answers."""
        return self.run.answers(self.chosen)


def run_of(job: JobSnapshot) -> tuple[str, RecalibrationRun] | None:
    """The recalibration of a job that is done; None, and why, where it cannot be read."""
    return job_results.answer_of(job, _run)


@st.cache_resource(max_entries=4, show_spinner="Reading the recalibration")
def _run(key: str, _at: Path) -> tuple[str, RecalibrationRun]:
    return key, RecalibrationRun.read(_at)


def values_of(view: View, name: str) -> Any:
    """A column of the judged rows, their prediction or outcome, or an axis of the space, (n,)."""
    if name in AXES:
        return view.run.axes[:, AXES.index(name)]
    if name == MEAN:
        return view.before.mean
    return view.run.y if name == OUTCOME else view.judged.values_of(name)


def places(view: View, across: str, up: str) -> FloatArray:
    """Where the rows lie on the map, (n, 2); rows without a value there are NaN."""
    return np.column_stack(
        [np.asarray(values_of(view, name), dtype=np.float64) for name in (across, up)]
    )


def misses(view: View, level: float) -> tuple[MissPanel, MissPanel]:
    """Outcomes outside their intervals before and after."""
    y = view.run.y
    return (
        misses_of("Model", y, *view.before.interval(level)),
        misses_of(view.method.title, y, *view.after.interval(level)),
    )


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Central intervals of one level: all that `coverage` asks of a distribution."""

    low: FloatArray
    high: FloatArray

    def __len__(self) -> int:
        return len(self.low)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        return self.low, self.high


@dataclass(frozen=True)
class Bins:
    """Coverage in the bins of a column, before and after."""

    names: list[str]
    before: list[CoverageRow]
    after: list[CoverageRow]


def coverage_over(view: View, column: str, level: float) -> Bins:
    """Coverage of the intervals of one level over a column."""
    return _coverage_over(view.key, view.chosen, column, level, view)


@st.cache_data(max_entries=64, show_spinner="Counting along the column")
def _coverage_over(key: str, chosen: str, column: str, level: float, _view: View) -> Bins:
    labels, names = column_regions(values_of(_view, column), COLUMN_BINS)
    weight = _view.judged.scored.weight
    rows = [np.flatnonzero(labels == at) for at in range(len(names))]
    held = [at for at, mine in enumerate(rows) if len(mine)]

    def covered(answers: RowAnswers) -> list[CoverageRow]:
        low, high = answers.interval(level)
        return [
            coverage(
                cast(PredictiveDistribution, _Intervals(low[rows[at]], high[rows[at]])),
                _view.run.y[rows[at]],
                (level,),
                weight=None if weight is None else weight[rows[at]],
            ).rows[0]
            for at in held
        ]

    return Bins([names[at] for at in held], covered(_view.before), covered(_view.after))


@dataclass(frozen=True, eq=False)
class PitValues:
    """PIT values of all judged rows by one method, as histogram and as quantiles come true."""

    histogram: PitHistogram
    quantiles: QuantileReliability


def pit_of(view: View, who: str) -> PitValues:
    """What the PIT values of a method, or of `PARENT`, show over all rows."""
    return _pit_of(view.key, who, view)


@st.cache_data(max_entries=32, show_spinner=False)
def _pit_of(key: str, who: str, _view: View) -> PitValues:
    pit, weight = _view.run.answers(who).pit, _view.judged.scored.weight
    return PitValues(
        pit_histogram(pit, sample_weight=weight),
        quantile_reliability(pit, LEVELS, sample_weight=weight),
    )


def near(view: View, row: int, k: int) -> IntArray:
    """The ``k`` judged rows nearest to one in the space of the repair, (k,)."""
    return _near(view.key, row, k, view.run)


@kept_by_bytes(show_spinner="Looking for the neighbours")
def _near(key: str, row: int, k: int, _run: RecalibrationRun) -> IntArray:
    return np.asarray(neighbourhoods(_run.space.judged, [row], k)[0])


def neighbourhood(answers: RowAnswers, rows: IntArray) -> tuple[PitHistogram, Fault]:
    """Where the outcomes of some rows fell, and what is wrong with them."""
    pit = answers.pit[rows]
    return pit_histogram(pit, 10), fault(pit)


def density_of(view: View, row: int) -> DensityPanel:
    """The densities of a shown row before and after."""
    outcome = float(view.run.y[row])
    at = int(np.searchsorted(view.run.shown, row))
    repaired = Quantiles(GRID, view.after.quantiles[at : at + 1].astype(np.float64))
    curves = (
        (density_curve(view.judged.scored.distribution[[row]], outcome), view.before),
        (density_curve(repaired, outcome, "calibrated"), view.after),
    )
    exact = []
    for curve, answers in curves:
        low, high = answers.interval(0.95)
        exact.append(
            replace(curve, low=float(low[row]), high=float(high[row]), pit=float(answers.pit[row]))
        )
    return DensityPanel(f"Row {row + 1:,}", outcome, tuple(exact))


def nearest_shown(view: View, row: int) -> int:
    """The row itself where its distribution is kept, else the one nearest in the table."""
    shown = view.run.shown
    return int(shown[np.argmin(np.abs(shown - row))])


def two_rows(view: View) -> tuple[int, int]:
    """Rows to begin with: at the tenth and the ninetieth percentile of the predicted means."""
    shown = view.run.shown
    order = shown[np.argsort(view.before.mean[shown], kind="stable")]
    last = len(order) - 1
    return int(order[round(0.1 * last)]), int(order[round(0.9 * last)])


def spread_rows(view: View, count: int) -> IntArray:
    """Kept rows spread evenly over the predicted means, ascending by them."""
    shown = view.run.shown
    order = shown[np.argsort(view.before.mean[shown], kind="stable")]
    at = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(np.int64)
    return np.asarray(order[at])


def kept(view: View, rows: IntArray) -> IntArray:
    """Those of the rows whose quantiles are kept, in their order."""
    return rows[np.isin(rows, view.run.shown)]


def interval_of(
    view: View, answers: RowAnswers, rows: IntArray, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lower end, median and upper end of kept rows, (m,) each."""
    low, high = answers.interval(level)
    median = answers.quantiles[np.searchsorted(view.run.shown, rows), len(GRID) // 2]
    return low[rows], median.astype(np.float64), high[rows]


def whole_map(xy: FloatArray) -> Box:
    """The box that holds all rows that have a place."""
    low, high = np.nanmin(xy, axis=0), np.nanmax(xy, axis=0)
    return Box((float(low[0]), float(high[0])), (float(low[1]), float(high[1])))


def inside(xy: FloatArray, x: tuple[float, float], y: tuple[float, float]) -> IntArray:
    """Rows in a box of the map, ascending."""
    held = (xy[:, 0] >= x[0]) & (xy[:, 0] <= x[1]) & (xy[:, 1] >= y[0]) & (xy[:, 1] <= y[1])
    return np.flatnonzero(held)


def selection_curves(selection: Selection, titles: dict[str, str]) -> list[SelectionCurve]:
    """Cross-fitted CRPS over the number of neighbours, with the interval to the best."""
    curves = []
    for at, name in enumerate(selection.spaces):
        crps = np.array(selection.crps[at])
        reach = _NORMAL_95 * np.array(selection.standard_error[at])
        ks = np.array(selection.ks, dtype=np.float64)
        curves.append(SelectionCurve(titles[name], ks, crps, crps - reach, crps + reach))
    return curves


def selection_parent(selection: Selection) -> Estimate:
    """CRPS of the model as it is, on the rows that the choice was made by."""
    value = selection.parent_crps
    return Estimate("CRPS of the model as it is", "CRPS", value, value, value, selection.n)
