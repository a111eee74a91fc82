"""The measures of the Recalibration page on the judged rows, made as in `set_measures`.

Each reads the finished `RecalibrationRun` in the folder ``run``. The size of the results does not
depend on the number of rows: maps show a uniform sample of at most `MAX_LOCAL` rows, and tables of
rows hold at most `MAX_ROWS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import (
    CoverageRow,
    DensityCurve,
    Fault,
    Misses,
    PitHistogram,
    QuantileReliability,
    column_regions,
    coverage,
    density_curve,
    fault,
    misses_of,
    neighbourhoods,
    pit_histogram,
    quantile_reliability,
)
from kdcal_core.distributions import PredictiveDistribution, Quantiles
from kdcal_core.evaluation import GRID, MODEL, RowAnswers
from kdcal_core.review import Which
from kdcal_core.statistics import RowDesign, of_rows
from kdcal_core.store import load
from kdcal_core.tasks.decorators import Keep, Sets, review_task
from kdcal_core.tasks.pit_measures import (
    AXES,
    LEVELS,
    MAX_ROWS,
    MEAN,
    OUTCOME,
    PANEL_BINS,
    column_title,
    column_values,
    local_rows,
)
from kdcal_core.tasks.recalibration import RecalibrationRun
from kdcal_core.tasks.spaces import SPACE_READS

COLUMN_BINS = 10


def opened_run(keep: Keep, run: str) -> RecalibrationRun:
    """The finished run in a folder, whose files are checked once while it is kept.

    Raises
    ------
    InputError
        Where it is missing or damaged.
    """
    found: RecalibrationRun = keep(("recalibration", run), lambda: load(run, RecalibrationRun))
    return found


@dataclass(frozen=True, eq=False)
class RecalibratedMap:
    """Outcomes outside their intervals before and after recalibration, on a map of m rows.

    Attributes
    ----------
    rows : (m,) int64
        Their positions in the set, ascending: all, or a uniform sample.
    xy : (m, 2) float64
        NaN where a row has no value on an axis.
    before, after : Misses
    """

    rows: IntArray
    xy: FloatArray
    before: Misses
    after: Misses


@review_task("Recalibration: finding missed outcomes", reads=SPACE_READS)
def recalibrated_map(
    sets: Sets, *, which: Which, run: str, method: str, across: str, up: str, level: float
) -> RecalibratedMap:
    """The judged rows on a map of two columns, `AXES`, `MEAN` or `OUTCOME`."""
    opened = _run(sets, run)
    rows = local_rows(len(opened.y))
    xy = np.column_stack(
        [
            np.asarray(_values(sets, which, run, name), dtype=np.float64)[rows]
            for name in (across, up)
        ]
    )
    before, after = (
        misses_of(name, opened.y, *_answers(sets, run, who).interval(level), rows)
        for name, who in (("Model", MODEL), (opened.result(method).title, method))
    )
    return RecalibratedMap(rows, xy, before, after)


@dataclass(frozen=True, eq=False)
class CoverageAlong:
    """Coverage in the bins of a column, before and after; names are untrusted text."""

    names: tuple[str, ...]
    before: tuple[CoverageRow, ...]
    after: tuple[CoverageRow, ...]


@review_task(
    lambda arguments: f"Recalibration: counting along {column_title(arguments['column'])}",
    reads=SPACE_READS,
)
def coverage_along(
    sets: Sets, *, which: Which, run: str, method: str, column: str, level: float
) -> CoverageAlong:
    """Coverage of the intervals of one level over a column."""
    opened = _run(sets, run)
    labels, names = column_regions(_values(sets, which, run, column), COLUMN_BINS)
    weight = sets.distributions(which).design
    rows = [np.flatnonzero(labels == at) for at in range(len(names))]
    held = [at for at, mine in enumerate(rows) if len(mine)]

    def covered(who: str) -> tuple[CoverageRow, ...]:
        low, high = _answers(sets, run, who).interval(level)
        return tuple(
            coverage(
                cast(PredictiveDistribution, _Intervals(low[rows[at]], high[rows[at]])),
                opened.y[rows[at]],
                (level,),
                weight=of_rows(weight, rows[at]),
            ).rows[0]
            for at in held
        )

    return CoverageAlong(tuple(names[at] for at in held), covered(MODEL), covered(method))


@dataclass(frozen=True, eq=False)
class PitValues:
    """One method's PIT values on all judged rows, as histogram and as quantile reliability."""

    histogram: PitHistogram
    quantiles: QuantileReliability


@review_task("Recalibration: counting PIT values", reads=SPACE_READS)
def recalibrated_pit(sets: Sets, *, which: Which, run: str, method: str) -> PitValues:
    """The PIT values of a method, or of `MODEL`, on all rows."""
    pit, weight = _answers(sets, run, method).pit, sets.distributions(which).design
    return PitValues(
        pit_histogram(pit, sample_weight=weight),
        quantile_reliability(pit, LEVELS, sample_weight=weight),
    )


@dataclass(frozen=True, eq=False)
class ShownRows:
    """The rows whose distributions are kept, ascending, and their predicted means, (r,)."""

    rows: IntArray
    mean: FloatArray

    @property
    def by_mean(self) -> IntArray:
        """The rows sorted by ascending predicted mean."""
        return self.rows[np.argsort(self.mean, kind="stable")]


@review_task("Recalibration: reading the rows", reads=SPACE_READS)
def shown_rows(sets: Sets, *, run: str) -> ShownRows:
    """The rows that can be shown one by one."""
    shown = _run(sets, run).shown
    return ShownRows(shown, np.asarray(_answers(sets, run, MODEL).mean[shown]))


@dataclass(frozen=True, eq=False)
class RowClosely:
    """One row and the rows around it, before and after recalibration.

    Attributes
    ----------
    outcome : float
    curves : tuple of two DensityCurve
    around : tuple of two PitHistogram
        PIT values of the nearest rows.
    faults : tuple of two Fault
        Faults of the nearest rows.
    """

    outcome: float
    curves: tuple[DensityCurve, DensityCurve]
    around: tuple[PitHistogram, PitHistogram]
    faults: tuple[Fault, Fault]


@review_task(
    lambda arguments: f"Recalibration: looking around row {arguments['row'] + 1:,}",
    reads=SPACE_READS,
)
def row_closely(sets: Sets, *, which: Which, run: str, method: str, row: int, k: int) -> RowClosely:
    """The densities of a shown row, and the ``k`` rows nearest to it in the repair's space."""
    opened, after = _run(sets, run), _answers(sets, run, method)
    outcome = float(opened.y[row])
    at = int(np.searchsorted(opened.shown, row))
    repaired = Quantiles(GRID, after.quantiles[at : at + 1].astype(np.float64))
    of_model = density_curve(sets.distributions(which).distribution[[row]], outcome)
    of_repaired = density_curve(repaired, outcome, "calibrated")

    def look() -> IntArray:
        return np.asarray(neighbourhoods(opened.space.judged, [row], k)[0])

    near: IntArray = sets.keep(("near", run, row, k), look)
    before = _answers(sets, run, MODEL)
    pits = before.pit[near], after.pit[near]
    together = sets.distributions(which).grouping
    design = None if together is None else RowDesign(None, together.only(near))
    return RowClosely(
        outcome,
        (_exact(of_model, before, row), _exact(of_repaired, after, row)),
        (
            pit_histogram(pits[0], PANEL_BINS, sample_weight=design),
            pit_histogram(pits[1], PANEL_BINS, sample_weight=design),
        ),
        (fault(pits[0], sample_weight=design), fault(pits[1], sample_weight=design)),
    )


@dataclass(frozen=True, eq=False)
class IntervalRows:
    """Intervals of rows, before and after recalibration.

    Attributes
    ----------
    rows : (m,) int64
        Positions in the set.
    table : DataFrame
        As returned by `RecalibrationRun.intervals`.
    before, after : (m,) float64
        Medians; NaN where the row's whole distribution is not kept.
    """

    rows: IntArray
    table: pd.DataFrame
    before: FloatArray
    after: FloatArray


@review_task("Recalibration: reading intervals", reads=SPACE_READS)
def recalibrated_intervals(
    sets: Sets, *, run: str, method: str, rows: Sequence[int] | None = None
) -> IntervalRows:
    """Intervals of these rows in the given order, or of all rows; at most `MAX_ROWS`."""
    opened = _run(sets, run)
    chosen = np.arange(len(opened.y)) if rows is None else np.asarray(rows, dtype=np.int64)
    chosen = chosen[:MAX_ROWS]
    before, after = (_medians(opened, _answers(sets, run, who), chosen) for who in (MODEL, method))
    return IntervalRows(chosen, opened.intervals(method, chosen), before, after)


@dataclass(frozen=True, eq=False)
class TrueMeans:
    """True and estimated means of m rows.

    Attributes
    ----------
    rows : (m,) int64
        Their positions in the set, ascending: all, or a uniform sample.
    exact : (m,) float64
    means : dict of str to (m,) float64
        By method.
    distance : dict of str to float
        Root mean squared distance from the true mean, over all rows.
    """

    rows: IntArray
    exact: FloatArray
    means: dict[str, FloatArray]
    distance: dict[str, float]


@review_task("Recalibration: comparing means", reads=SPACE_READS)
def true_means(sets: Sets, *, run: str, methods: Sequence[str]) -> TrueMeans:
    """The means of some methods and the true means, for a run that has these."""
    exact = _run(sets, run).true_mean
    assert exact is not None  # the record says whether there are true means
    rows = local_rows(len(exact))
    means = {key: _answers(sets, run, key).mean for key in methods}
    return TrueMeans(
        rows,
        np.asarray(exact[rows]),
        {key: np.asarray(mean[rows]) for key, mean in means.items()},
        {key: float(np.sqrt(np.mean((mean - exact) ** 2))) for key, mean in means.items()},
    )


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Central intervals of one level, which is all that `coverage` needs of a distribution."""

    low: FloatArray
    high: FloatArray

    def __len__(self) -> int:
        return len(self.low)

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        return self.low, self.high


def _run(sets: Sets, run: str) -> RecalibrationRun:
    return opened_run(sets.keep, run)


def _answers(sets: Sets, run: str, who: str) -> RowAnswers:
    found: RowAnswers = sets.keep(("recalibrated", run, who), lambda: _run(sets, run).answers[who])
    return found


def _values(sets: Sets, which: Which, run: str, name: str) -> Any:
    """A column of the judged rows, their prediction or outcome, or an axis of the space, (n,)."""
    if name in AXES:
        return _run(sets, run).axes[:, AXES.index(name)]
    if name == MEAN:
        return _answers(sets, run, MODEL).mean
    return _run(sets, run).y if name == OUTCOME else column_values(sets, which, name)


def _exact(curve: DensityCurve, answers: RowAnswers, row: int) -> DensityCurve:
    """The curve with the row's stored interval and PIT value."""
    low, high = answers.interval(0.95)
    return replace(curve, low=float(low[row]), high=float(high[row]), pit=float(answers.pit[row]))


def _medians(run: RecalibrationRun, answers: RowAnswers, rows: IntArray) -> FloatArray:
    found = np.full(len(rows), np.nan)
    held = np.isin(rows, run.shown)
    at = np.searchsorted(run.shown, rows[held])
    found[held] = answers.quantiles[at, len(GRID) // 2]
    return found
