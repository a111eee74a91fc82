"""The measures of the PIT page: of a regression's scored set, made as in `set_measures`.

Each is a pure function from rows to a result whose size does not depend on their number: the local
view uses a uniform sample of at most `MAX_LOCAL` rows, and tables of rows hold at most `MAX_ROWS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray, at_most
from kdcal_core.diagnostics import (
    Coverage,
    CoverageRow,
    EcdfDifference,
    Estimate,
    Fault,
    LocalPit,
    PitHistogram,
    QuantileReliability,
    RegionPit,
    RegressionScores,
    UniformityTest,
    coverage,
    ecdf_difference,
    fault,
    interval_coverage,
    local_pit,
    mean_scale,
    pit_by_column,
    pit_histogram,
    quantile_reliability,
    uniformity_tests,
)
from kdcal_core.diagnostics.influence import row_groups, sums_by_name
from kdcal_core.diagnostics.summaries import (
    RegressionSummary,
    summary_coverage,
    summary_ecdf,
    summary_fault,
    summary_pit_histogram,
    summary_quantiles,
    summary_scale,
    summary_uniformity,
)
from kdcal_core.distributions import (
    PredictiveDistribution,
    RegressionSet,
    drawn_note,
    randomised_pit,
    resolution_note,
)
from kdcal_core.errors import InputError
from kdcal_core.evaluation import (
    MEASURES,
    distribution_influences,
    regression_scores,
    summary_scores,
)
from kdcal_core.regression.spaces import LAYER, PREDICTION
from kdcal_core.review import Part, Review, Which
from kdcal_core.statistics import Dependence, GroupSums, design_of, of_rows
from kdcal_core.tasks.decorators import (
    BOTH_SETS,
    LARGE,
    Sets,
    review_task,
    the_set,
    the_set_and_its_scale,
)
from kdcal_core.tasks.drawn_sets import drawn_of, drawn_sets, positions_in
from kdcal_core.tasks.set_measures import Refused
from kdcal_core.tasks.spaces import SPACE_READS, principal_axes, space_of

SEED = 0  # seed of randomised PIT values, bootstraps and tests
CENTRES, DRAWS = 300, 199
PANEL_BINS = 10  # bins of the histogram of a group
ALL_BINS = 20
"""Bins of the histogram of all rows, until others are chosen."""
MAX_LOCAL = 20_000  # maximum number of rows among which neighbours are searched
MAX_ROWS = LARGE  # maximum number of rows of a table on screen or in a download
LEVELS = tuple(i / 20 for i in range(1, 20))
MEAN, SPREAD, OUTCOME = "\0mean", "\0spread", "\0outcome"  # never names of a file's columns
AXES = ("\0axis 1", "\0axis 2")

_COLUMNS = {MEAN: "the predicted mean", SPREAD: "the predicted standard deviation"}


def column_title(name: str) -> str:
    """A column, or the predicted quantity, in words. Untrusted text."""
    return _COLUMNS.get(name, name[:60])


def _placed(arguments: dict[str, Any]) -> tuple[Part, ...]:
    """Both sets, which are located in a space; a hidden layer also needs the model."""
    return SPACE_READS if arguments["space"].startswith(LAYER) else BOTH_SETS


def pit_values(sets: Sets, which: Which) -> FloatArray:
    """PIT values of a set, (n,)."""

    def make() -> FloatArray:
        scored = sets.distributions(which)
        return randomised_pit(scored.distribution, scored.y, SEED)

    pit: FloatArray = sets.keep(("pit", which), make)
    return pit


def scale_of(sets: Sets) -> float | None:
    """Mean absolute outcome of the calibration set, the unit of sMIS."""
    summary = sets.regression_summary("calibration")
    if summary is not None:
        return summary_scale(summary)
    found: float = sets.keep(("scale",), lambda: mean_scale(sets.distributions("calibration").y))
    return found if found > 0 else None


def column_values(sets: Sets, which: Which, column: str) -> Any:
    """The values of a column of the table, of the prediction, or of the outcome, (n,)."""
    if column in (MEAN, SPREAD):
        distribution = sets.distributions(which).distribution
        return distribution.mean() if column == MEAN else distribution.std()
    if column == OUTCOME:
        return sets.distributions(which).y
    return sets.frame(which, (column,))[column]


@dataclass(frozen=True, eq=False)
class PitOverview:
    """Results for all rows together.

    Attributes
    ----------
    histogram, ecdf, tests, fault, coverage, quantiles, scores
        Results for all rows; the histogram has the bins of the groups' histograms.
    resolution : str
        Why 95% intervals are not the prediction's own, and how PIT values of quantiles are drawn;
        empty where neither holds.
    scale : float or None
        Mean absolute outcome of the calibration set; None where all outcomes are zero.
    """

    histogram: PitHistogram
    ecdf: EcdfDifference
    tests: tuple[UniformityTest, ...]
    fault: Fault
    coverage: Coverage
    quantiles: QuantileReliability
    scores: RegressionScores
    resolution: str
    scale: float | None


@review_task(
    "PIT: measuring all rows, with intervals",
    reads=the_set_and_its_scale,
    edition=lambda: " ".join(("band of weighted rows", *MEASURES)),
)
def pit_overview(sets: Sets, *, which: Which) -> PitOverview:
    """Everything about all rows together, except the histogram with a choice of bins."""
    rows = sets.regression_summary(which)
    if rows is not None:
        some = drawn_of(sets, which).distributions(which).distribution[:1]  # of one kind all
        return overview_of_summary(rows, _resolution(some), scale_of(sets))
    scored, scale = sets.distributions(which), scale_of(sets)
    sets.progress(0.05, "Placing the outcomes in their distributions")
    pit, weight = pit_values(sets, which), scored.design
    sets.progress(0.2, "Testing")
    tests = uniformity_tests(pit, seed=SEED, sample_weight=weight)
    levels = scored.distribution.stated_levels
    whole = fault(pit, sample_weight=weight, stated=levels)
    sets.progress(0.4, "Counting the outcomes inside intervals")
    covered = coverage(scored.distribution, scored.y, scale=scale, weight=weight)
    sets.progress(0.6, "Measuring, with intervals")
    return PitOverview(
        histogram=pit_histogram(pit, PANEL_BINS, sample_weight=weight),
        ecdf=ecdf_difference(pit, sample_weight=weight),
        tests=tests,
        fault=whole,
        coverage=covered,
        quantiles=quantile_reliability(pit, levels or LEVELS, sample_weight=weight),
        scores=regression_scores(
            scored.distribution,
            scored.y,
            scale=scale or 1.0,
            true_mean=scored.true_mean,
            pit=pit,
            weight=weight,
            seed=SEED,
        ),
        resolution=_resolution(scored.distribution),
        scale=scale,
    )


def _resolution(distribution: PredictiveDistribution) -> str:
    return " ".join(note(distribution) for note in (resolution_note, drawn_note)).strip()


def score_sums(sets: Sets, which: Which, scores: Mapping[str, Estimate]) -> dict[str, GroupSums]:
    """What pairs the scores of `pit_overview` (by key) with another model's, by their names."""
    rows = sets.distributions(which)
    groups = row_groups(rows, sets.reader.review.tables[which].digest)
    if groups is None:
        return {}
    scale = scale_of(sets) or 1.0
    known = distribution_influences(rows, scale=scale, pit=pit_values(sets, which))
    return sums_by_name(groups, ((one, known.get(key)) for key, one in scores.items()))


def overview_of_summary(
    summary: RegressionSummary, resolution: str = "", scale: float | None = None
) -> PitOverview:
    """As `pit_overview`, of a summary of the rows.

    Parameters
    ----------
    resolution : str
        As of `PitOverview`: it follows from single rows.
    scale : float or None
        As of `PitOverview`, by default of these rows.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise_regression
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(4), 1.0), [0.0, 0.5, -0.5, 3.0])
    >>> overview_of_summary(one).coverage.at(0.95).coverage.value
    0.75
    """
    scale = scale or summary_scale(summary)
    return PitOverview(
        histogram=summary_pit_histogram(summary, PANEL_BINS),
        ecdf=summary_ecdf(summary),
        tests=summary_uniformity(summary, SEED),
        fault=summary_fault(summary),
        coverage=summary_coverage(summary, scale=scale),
        quantiles=summary_quantiles(summary, LEVELS),
        scores=summary_scores(summary, scale=scale, seed=SEED),
        resolution=resolution,
        scale=scale,
    )


@dataclass(frozen=True, eq=False)
class PitHistograms:
    """Histograms of the same PIT values by their number of bins."""

    by_bins: tuple[PitHistogram, ...]

    def with_bins(self, bins: int) -> PitHistogram:
        """The histogram with this number of bins."""
        return next(one for one in self.by_bins if len(one.counts) == bins)


@review_task("PIT: counting PIT values", reads=the_set)
def pit_histograms(sets: Sets, *, which: Which, bins: Sequence[int]) -> PitHistograms:
    """The PIT histogram of all rows for each of these numbers of bins."""
    rows = sets.regression_summary(which)
    if rows is not None:
        return PitHistograms(tuple(summary_pit_histogram(rows, one) for one in bins))
    pit, weight = pit_values(sets, which), sets.distributions(which).design
    return PitHistograms(tuple(pit_histogram(pit, one, sample_weight=weight) for one in bins))


@dataclass(frozen=True, eq=False)
class PitAlong:
    """PIT values over the regions of a column."""

    regions: tuple[RegionPit, ...]


@review_task(
    lambda arguments: f"PIT: looking along {column_title(arguments['column'])}",
    reads=the_set_and_its_scale,
    edition="drawn rows of very many",
)
def pit_along(sets: Sets, *, which: Which, column: str, bins: int) -> PitAlong:
    """PIT values over a column of the table, or over the prediction (`MEAN`, `SPREAD`).

    Of very many rows they are those of drawn ones.
    """
    scale, sets = scale_of(sets), drawn_of(sets, which)
    scored = sets.distributions(which)
    return PitAlong(
        pit_by_column(
            pit_values(sets, which),
            column_values(sets, which, column),
            bins,
            distribution=scored.distribution,
            y=scored.y,
            scale=scale,
            sample_weight=scored.design,
        )
    )


@dataclass(frozen=True, eq=False)
class PitPlaces:
    """The m rows of the local view, their positions on a map, and its neighbourhoods.

    Attributes
    ----------
    local : LocalPit or None
        Its row numbers refer to the m rows; None where all have the same coordinates.
    rows : (m,) int64
        Their positions in the set, ascending: all, or a uniform sample.
    across, up : str
        The axes of the map, as in `pit_places`.
    xy : (m, 2) float64
        NaN where a row has no value on an axis.
    pit, y, low, high : (m,) float64
        PIT values, outcomes and the ends of intervals.
    weight : (m,) float64 or None
    refused : Refused or None
        Why the requested space has no coordinates; then the space of the predictions is used.
    dependence : Dependence or None
        How the m rows depend on one another.
    interval : float
        Probability of the intervals: 0.95, or what the prediction states nearest to it.
    stated : tuple of float or None
        Levels of the quantiles that the prediction states; None where it states all.
    """

    local: LocalPit | None
    rows: IntArray
    across: str
    up: str
    xy: FloatArray
    pit: FloatArray
    y: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray | None
    refused: Refused | None
    dependence: Dependence | None = None
    interval: float = 0.95
    stated: tuple[float, ...] | None = None

    def group(self, rows: IntArray) -> PitGroup:
        """Results for some of the m rows, at least one."""
        pit, weight = self.pit[rows], of_rows(design_of(self.weight, self.dependence), rows)
        low, high, y = self.low[rows], self.high[rows], self.y[rows]
        return PitGroup(
            self.rows[rows],
            pit_histogram(pit, PANEL_BINS, sample_weight=weight),
            fault(pit, place="here", sample_weight=weight, stated=self.stated),
            interval_coverage(low, high, y, self.interval, weight=weight),
        )


@dataclass(frozen=True, eq=False)
class PitGroup:
    """Some rows of a set, with the distribution of their PIT values and its fault.

    Attributes
    ----------
    rows : (m,) int64
        Positions in the set.
    histogram, fault
    coverage : CoverageRow
        Coverage of their intervals of 95%, or of what the prediction states nearest to it.
    """

    rows: IntArray
    histogram: PitHistogram
    fault: Fault
    coverage: CoverageRow


@review_task(
    lambda arguments: f"PIT: testing places of {arguments['k']:,} rows",
    reads=_placed,
    edition="drawn rows of very many",
)
def pit_places(sets: Sets, *, which: Which, space: str, k: int, across: str, up: str) -> PitPlaces:
    """Tests of the neighbourhoods of ``k`` rows in a space, on a map of two columns.

    ``across`` and ``up`` are columns, `MEAN`, `SPREAD`, `OUTCOME`, or both of `AXES`: the
    principal axes of the space.
    """
    rows = local_rows(sets.reader.review.sets[which].n_rows)
    if sets.regression_summary(which) is not None:  # of very many, only these are read
        sets, rows = drawn_sets(sets, MAX_LOCAL), np.arange(len(rows))
    positions = positions_in(sets, which, rows)
    scored = sets.distributions(which)
    pit = pit_values(sets, which)[rows]
    sets.progress(0.1, "Placing the rows")
    refused = None
    try:
        at = _coordinates(sets, which, space, rows)
    except InputError as error:
        refused = Refused.of(error)
        space = PREDICTION
        at = _coordinates(sets, which, space, rows)
    if (across, up) == AXES and space == PREDICTION:
        across, up = MEAN, SPREAD
    if (across, up) == AXES:
        xy = sets.keep(
            ("principal", which, space), lambda: principal_axes(_reference(sets, space), at)
        )
    else:
        xy = np.column_stack(
            [
                np.asarray(column_values(sets, which, name), dtype=np.float64)[rows]
                for name in (across, up)
            ]
        )
    sets.progress(0.5, "Testing the neighbourhoods")
    local, together = None, scored.grouping
    together = None if together is None else together.only(rows)
    some = scored.distribution[rows]
    (interval,) = some.stated_intervals((0.95,))
    if (at != at[:1]).any():
        local = sets.keep(
            ("local", which, space, k), lambda: _tested(pit, at, k, together, interval)
        )
    low, high = some.interval(interval)
    return PitPlaces(
        local=None if local is None else replace(local, xy=xy[local.rows]),
        rows=positions,
        across=across,
        up=up,
        xy=xy,
        pit=pit,
        y=np.asarray(scored.y[rows]),
        low=low,
        high=high,
        weight=None if scored.weight is None else np.asarray(scored.weight[rows]),
        refused=refused,
        dependence=together,
        interval=interval,
        stated=some.stated_levels,
    )


def local_rows(n: int) -> IntArray:
    """Rows of the local view, ascending: all of ``n``, or a uniform sample of many.

    Examples
    --------
    >>> local_rows(3).tolist(), len(local_rows(10**6))
    ([0, 1, 2], 20000)
    """
    return at_most(n, MAX_LOCAL, SEED)


def _coordinates(sets: Sets, which: Which, space: str, rows: IntArray) -> FloatArray:
    found = space_of(sets, space)
    all_rows = found.calibration if which == "calibration" else found.evaluation
    assert all_rows is not None  # the set is there, so its space is too
    return np.asarray(all_rows[rows], dtype=np.float64)


def _reference(sets: Sets, space: str) -> FloatArray:
    """The calibration rows on which principal axes are fitted, thinned evenly where many."""
    all_rows = space_of(sets, space).calibration
    return np.asarray(all_rows[:: -(-len(all_rows) // MAX_LOCAL)], dtype=np.float64)


def _tested(
    pit: FloatArray, at: FloatArray, k: int, together: Dependence | None, interval: float
) -> LocalPit:
    nowhere = np.zeros((len(at), 2))
    return local_pit(
        pit,
        at,
        nowhere,
        k,
        centres=CENTRES,
        draws=DRAWS,
        seed=SEED,
        interval=interval,
        dependence=together,
    )


@dataclass(frozen=True, eq=False)
class PitRows:
    """Rows with their predictions, sorted so that the most extreme outcomes come first.

    Attributes
    ----------
    n : int
        Number of rows that match.
    rows : (m,) int64
        Positions in the set.
    y, mean, middle, low, high, pit : (m,) float64
        Outcome, mean, median, interval and PIT value.
    own : DataFrame
        Their columns in the table, without the outcome. Untrusted names and texts.
    """

    n: int
    rows: IntArray
    y: FloatArray
    mean: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    pit: FloatArray
    own: pd.DataFrame


@review_task("PIT: picking rows", reads=the_set)
def pit_rows(
    sets: Sets,
    *,
    which: Which,
    level: float,
    missed_only: bool = False,
    among: Sequence[int] | None = None,
    most: int = MAX_ROWS,
) -> PitRows:
    """The first rows of a set, or of the rows in ``among``.

    Parameters
    ----------
    level : float
        Level of the central interval.
    missed_only : bool
        Only rows whose outcome lies outside it.
    among : sequence of int, optional
        Positions in the set; None for all rows.
    most : int
        Maximum number of rows to return.
    """
    scored, pit = sets.distributions(which), pit_values(sets, which)
    rows = np.arange(scored.n_rows) if among is None else np.asarray(among, dtype=np.int64)
    away = np.abs(pit[rows] - 0.5)
    if missed_only:
        rows, away = rows[away > level / 2], away[away > level / 2]
    first = rows[np.argsort(-away, kind="stable")[: min(most, MAX_ROWS)]]
    found = rows_read(scored, pit, sets.frame(which), sets.reader.review, first, level)
    return replace(found, n=len(rows))


def rows_read(
    scored: RegressionSet,
    pit: FloatArray,
    frame: pd.DataFrame,
    review: Review,
    rows: IntArray,
    level: float,
) -> PitRows:
    """These rows of a set in the given order, with their central intervals of ``level``."""
    some = scored.distribution[rows]
    low, high = some.interval(level)
    target = review.roles.target if review.roles else None
    own = frame.iloc[rows].reset_index(drop=True)
    return PitRows(
        n=len(rows),
        rows=rows,
        y=np.asarray(scored.y[rows]),
        mean=some.mean(),
        middle=some.ppf(0.5),
        low=low,
        high=high,
        pit=pit[rows],
        own=own.drop(columns=[name for name in (target,) if name in own]),
    )
