"""The summary of a regression's rows, of fixed size, to which batches are added in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray, Task, check_weight
from kdcal_core.data.array_checks import digest_arrays
from kdcal_core.diagnostics.regression.coverage import STATED, checked_outcome, interval_scores
from kdcal_core.diagnostics.regression.distribution_scores import log_scores
from kdcal_core.diagnostics.summaries.by_time import Question, TimeTable
from kdcal_core.diagnostics.summaries.cluster_blocks import (
    BLOCKS,
    BlockSums,
    ClusterNames,
    ForecastBlocks,
    RowClusters,
    block_sums,
    pit_ends,
    stretches,
)
from kdcal_core.diagnostics.summaries.drawn_rows import row_numbers
from kdcal_core.diagnostics.summaries.exact_sums import SHAPE, exact_sum, exact_value
from kdcal_core.diagnostics.summaries.group_summary import GroupSummary, pit_groups
from kdcal_core.diagnostics.summaries.optional_parts import sum_of_parts
from kdcal_core.diagnostics.summaries.pit_cells import ClusteredPit, PitCells
from kdcal_core.diagnostics.summaries.row_weights import RowWeights, times_of, unit_of_weights
from kdcal_core.diagnostics.summaries.score_grid import GRID, cell_index, upper_ends
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.distributions.distribution import nearest_intervals
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence

MOST_ROWS = 2**33
DRAWN = 65_536
"""Rows that a summary keeps, drawn at random."""

BY_TIME = 0.8
"""Level of the intervals whose coverage is counted by time, or the nearest stated one."""

_MAIN = 0.95  # intervals of this level have estimates, whatever the prediction states
_ROW = (
    "PIT value",
    "CRPS",
    "log score",
    "error",
    "squared error",
    "outcome",
    "square's rest",
    "size",
)
_OF_CELLS = ("PIT value", "outcome", "square's rest", "size")
"""Quantities whose sums by cluster nothing asks for."""


@dataclass(frozen=True, eq=False)
class RegressionSummary:
    """Integer counts and exact sums of a regression's rows, from which estimates follow.

    Summaries add: ``a + b`` is that of both batches, with the same bytes in every order and for
    every cut of the same rows into batches.

    Attributes
    ----------
    family : str
        Of the predictive distributions.
    stated : tuple of float or None
        Levels of the quantiles that the predictions state; None where they state every quantile.
    n : int
        Rows.
    pit : (C,) int64
        Rows by cell of the grid that holds their PIT value.
    below : (L,) int64
        Rows whose PIT value is at most each level of ``stated``.
    inside : (I,) int64
        Outcomes inside the central intervals of ``intervals``, their ends included.
    impossible : int
        Outcomes with a density below 1e-300, which the sum of log scores leaves out.
    has_density : bool
        As of the distributions.
    has_truth : bool
        Whether the true conditional means are known.
    sums : (16 + 4 I, 2098, 2) int64, two more with the truth
        Exact sums of a row's PIT value, CRPS, log score, error (predicted mean minus outcome),
        squared error, outcome, what rounding takes from the squared outcome, and absolute outcome,
        and of the width and score of each central interval; with the truth, of the squared distance
        of both means. Each is followed by the sum of the squares.
    ends : (2,) float64
        The smallest and the largest outcome.
    order : (m,) int64
        Random numbers of rows that follow from their positions: the smallest, at most `DRAWN`,
        ascending.
    drawn : (m, 3) float64
        Outcome, CRPS and error of these rows.
    grid : int
        Version of the grid.
    groups : GroupSummary or None
        PIT values by declared group, where groups are declared. The digest, which stands for the
        rows, leaves them out.
    weights : RowWeights or None
        As of :class:`~kdcal_core.diagnostics.summaries.ClassSummary`. Sums are then rounded to a
        part in 2^53 of each row's value.
    times : (m,) int64 or None
        Units of the drawn rows, where rows have weights.
    clusters : ForecastBlocks or None
        Where rows of one cluster, or of near times, depend on one another.
    drawn_clusters : (m,) int64 or None
        Numbers of the clusters of the drawn rows, or the places of their times.
    by_time : TimeTable or None
        Where rows have an order in time: of the PIT value, and of the coverage of the interval
        nearest to 80%.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(3), 1.0), [0.0, 0.5, -0.5])
    >>> two = summarise_regression(Normal(np.zeros(1), 1.0), [3.0], first=3)
    >>> (one + two).n, (one + two).digest == (two + one).digest
    (4, True)
    """

    task: ClassVar[Task] = "regression"

    family: str
    stated: tuple[float, ...] | None
    n: int
    pit: IntArray
    below: IntArray
    inside: IntArray
    impossible: int
    has_density: bool
    has_truth: bool
    sums: IntArray
    ends: FloatArray
    order: IntArray
    drawn: FloatArray
    grid: int = GRID
    groups: GroupSummary | None = None
    weights: RowWeights | None = None
    times: IntArray | None = None
    clusters: ForecastBlocks | None = None
    drawn_clusters: IntArray | None = None
    by_time: TimeTable | None = None

    def __post_init__(self) -> None:
        rows = self.n if self.weights is None else self.weights.rows
        n_intervals, m = len(self.intervals), min(rows, DRAWN)
        wanted = (
            (self.pit, (len(upper_ends()),), np.int64),
            (self.below, (len(self.stated or ()),), np.int64),
            (self.inside, (n_intervals,), np.int64),
            (self.sums, (2 * len(quantities(self.intervals, self.has_truth)), *SHAPE), np.int64),
            (self.ends, (2,), np.float64),
            (self.order, (m,), np.int64),
            (self.drawn, (m, 3), np.float64),
        )
        if (
            self.grid != GRID
            or any(part.shape != shape or part.dtype != kind for part, shape, kind in wanted)
            or self.n < 1
            or int(self.pit.sum()) != self.n
            or self.pit.min() < 0
        ):
            raise InputError(
                "The summary is damaged, or of another version", fix="Summarise the rows again."
            )

    def __add__(self, other: RegressionSummary) -> RegressionSummary:
        """The summary of the rows of both.

        Raises
        ------
        InputError
            If the distributions are of different kinds, or there are more rows than `MOST_ROWS`.
        """
        if not isinstance(other, RegressionSummary):
            return NotImplemented
        kinds = ((one.family, one.stated, one.has_density, one.has_truth) for one in (self, other))
        if len(set(kinds)) > 1:
            raise InputError(
                "Two summaries are of different kinds of predictions",
                fix="Summarise the rows of each alone.",
            )
        n = self.n + other.n
        if n > MOST_ROWS:
            raise InputError(f"There are {n:,} rows", fix=f"A summary takes {MOST_ROWS:,}.")
        order = np.concatenate([self.order, other.order])
        least = np.argsort(order)[:DRAWN]
        return RegressionSummary(
            self.family,
            self.stated,
            n,
            self.pit + other.pit,
            self.below + other.below,
            self.inside + other.inside,
            self.impossible + other.impossible,
            self.has_density,
            self.has_truth,
            self.sums + other.sums,
            np.array([min(self.ends[0], other.ends[0]), max(self.ends[1], other.ends[1])]),
            order[least],
            np.concatenate([self.drawn, other.drawn])[least],
            groups=sum_of_parts(self.groups, other.groups, "groups"),
            weights=sum_of_parts(self.weights, other.weights, "weights"),
            times=_both(self.times, other.times, least),
            clusters=sum_of_parts(self.clusters, other.clusters, "clusters"),
            drawn_clusters=_both(self.drawn_clusters, other.drawn_clusters, least),
            by_time=sum_of_parts(self.by_time, other.by_time, "times"),
        )

    @property
    def intervals(self) -> tuple[float, ...]:
        """Probabilities of the central intervals that were counted, ascending."""
        return intervals_of(self.stated)

    @property
    def cells(self) -> PitCells:
        """The PIT values."""
        if self.clusters is None:
            return PitCells(self.pit)
        blocks, n_times = self.clusters.pit.astype(np.float64) * self.unit, self._n_times
        return ClusteredPit(self.pit, blocks, n_times=n_times)

    @property
    def unit(self) -> float:
        """As how many rows a unit of the counts by cluster counts."""
        return 1.0

    @property
    def drawn_dependence(self) -> Dependence | None:
        """How the drawn rows depend on one another."""
        if self.drawn_clusters is None or self.clusters is None:
            return None
        if self._n_times:
            return stretches(self._n_times, self._n_times).only(self.drawn_clusters)
        found = Dependence.of("cluster", self.drawn_clusters, self.clusters.names.column)
        return None if found.alone else found

    @property
    def _n_times(self) -> int:
        return 0 if self.clusters is None else self.clusters.names.n_times

    @property
    def _by_block(self) -> BlockSums:
        """The rows by block of clusters."""
        assert self.clusters is not None
        return BlockSums(self.clusters.pit.sum(axis=1) * self.unit, n_times=self._n_times)

    def effect(self, what: str) -> float:
        """By how much clusters multiply the variance of the mean of a quantity."""
        if self.clusters is None:
            return 1.0
        blocks = self._by_block
        number = quantities(self.intervals, self.has_truth).index(what)
        totals = self.clusters.totals(number) * self.unit
        first, second = self.exact_moments(what)
        own = float(second - first * first / Fraction(self.n))
        # what the blocks' sums lose by rounding moves their mean
        away = totals - totals.sum() / blocks.n * blocks.mass
        return blocks.effect(away, own)

    def share_effect(self, inside: int, stated: float) -> float:
        """The same of the share of outcomes in one of the central intervals, of a stated level."""
        if self.clusters is None:
            return 1.0
        blocks = self._by_block
        share = float(self.inside[inside]) / self.n
        held, varies = self.clusters.inside[:, inside] * self.unit, share * (1.0 - share)
        about = (share, stated) if share > stated else (share,)  # as `coverage` takes it
        return max(
            blocks.effect(held - one * blocks.mass, self.n * (varies + (share - one) ** 2), "share")
            for one in about
        )

    def level_effects(self) -> FloatArray:
        """The same of the shares of rows below the stated levels, (L,)."""
        if self.clusters is None:
            return np.ones(len(self.below))
        blocks = self._by_block
        shares = self.below / self.n
        away = self.clusters.below * self.unit - blocks.mass[:, np.newaxis] * shares
        own = self.n * shares * (1.0 - shares)
        each = zip(away.T, own.tolist(), strict=True)
        return np.array([blocks.effect(one, its, "share") for one, its in each])

    @property
    def digest(self) -> str:
        """SHA-256 of the numbers."""
        arrays = self.pit, self.below, self.inside, self.sums, self.ends, self.order, self.drawn
        head = f"regression {self.grid}\n{self.family}\n{self.stated}\n{self.impossible}"
        if self.weights is not None:
            head, arrays = f"{head}\n{self.weights}", (*arrays, self.times)  # type: ignore[assignment]
        if self.clusters is not None:
            of, names = self.clusters, self.clusters.names
            more = (names.least, of.pit, of.inside, of.below, of.place, of.sums)
            arrays = (*arrays, *more, self.drawn_clusters)  # type: ignore[assignment]
            head = f"{head}\n{names.column}"
        if self.by_time is not None:
            head, arrays = f"{head}\n{self.by_time.column}", (*arrays, *self.by_time.arrays)
        return digest_arrays(head, *arrays)

    def moments(self, what: str) -> tuple[float, float]:
        """Sum of a quantity over the rows, and of its squares."""
        first, second = self.exact_moments(what)
        return float(first), float(second)

    def exact_moments(self, what: str) -> tuple[Fraction, Fraction]:
        """As `moments`, without rounding."""
        at = 2 * quantities(self.intervals, self.has_truth).index(what)
        return exact_value(self.sums[at]), exact_value(self.sums[at + 1])


def intervals_of(stated: Sequence[float] | None) -> tuple[float, ...]:
    """The central intervals that a summary counts: those of `STATED`, or the nearest stated ones.

    Examples
    --------
    >>> intervals_of(None), intervals_of((0.05, 0.5, 0.95))
    ((0.5, 0.8, 0.9, 0.95, 0.99), (0.9, 0.95))
    """
    return tuple(sorted({*nearest_intervals(stated, STATED), _MAIN}))


def interval_by_time(stated: Sequence[float] | None) -> float:
    """Level of the interval whose coverage is counted by time.

    Examples
    --------
    >>> interval_by_time(None), interval_by_time((0.05, 0.5, 0.95))
    (0.8, 0.9)
    """
    (level,) = nearest_intervals(stated, (BY_TIME,))
    return level


def quantities(intervals: Sequence[float], truth: bool = False) -> tuple[str, ...]:
    """What a row adds to the sums, with these central intervals."""
    of_intervals = (f"{what} {one:g}" for one in intervals for what in ("width", "score"))
    return (*_ROW, *of_intervals, *["squared distance from the truth"] * truth)


def summarise_regression(
    distribution: PredictiveDistribution,
    y: Any,
    *,
    first: int = 0,
    true_mean: Any = None,
    groups: pd.DataFrame | None = None,
    weight: Any = None,
    unit: float | None = None,
    cluster: RowClusters | None = None,
    when: IntArray | FloatArray | None = None,
) -> RegressionSummary:
    """The summary of a batch of rows.

    Parameters
    ----------
    distribution : PredictiveDistribution
        n rows.
    y : (n,) array
        Outcomes, finite.
    first : int
        Position of the first row in the whole table, from 0. Where a distribution function jumps at
        the outcome, the PIT value lies at a random place of the jump that follows from the row's
        position.
    true_mean : (n,) array, optional
        The true conditional means, which a simulation knows.
    groups : DataFrame of n rows, optional
        The columns of the declared groups.
    weight : (n,) array, optional
        Row weights above zero.
    unit : float, optional
        In which they are counted, by default that of this batch
        (:func:`~kdcal_core.diagnostics.summaries.row_weights.unit_of_weights`).
    cluster : RowClusters, optional
        Which rows depend on one another.
    when : (n,) array, optional
        Times of the rows, as of :func:`kdcal_core.data.time_column`, of which ``cluster`` knows
        the places.

    Raises
    ------
    InputError
        For outcomes that do not match or are not finite, and for predictions so far from their
        outcome that a square of their distance is no number; the message names the row.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> found = summarise_regression(Normal(np.zeros(2), 1.0), [0.0, 3.0])
    >>> found.moments("squared error")[0], found.inside.tolist()
    (9.0, [1, 1, 1, 1, 1])
    """
    outcome = checked_outcome(y, len(distribution))
    if first < 0:
        raise InputError(f"The first row's position is {first}", fix="Count rows from 0.")
    n = len(outcome)
    times = None
    if weight is not None:
        weight = check_weight(weight, n)
        unit = unit_of_weights(weight, n) if unit is None else unit
        times = times_of(weight, unit)
    stated = distribution.stated_levels
    random = row_numbers(np.arange(first, first + n))
    pit = np.clip(distribution.pit(outcome, (random >> np.uint64(11)) * 2.0**-53), 0.0, 1.0)
    crps, error = distribution.crps(outcome), distribution.mean() - outcome
    log_score = log_scores(distribution, outcome)
    possible = np.isfinite(log_score)
    rows = [pit, crps, np.where(possible, log_score, 0.0), error, np.square(error), outcome]
    rows += [_rest_of_square(outcome), np.abs(outcome)]
    intervals = intervals_of(stated)
    inside = np.zeros(len(intervals), np.int64)
    covered: list[NDArray[np.bool_]] = []
    for at, one in enumerate(intervals):
        low, high = distribution.interval(one)
        covered.append((low <= outcome) & (outcome <= high))
        inside[at] = _count(covered[-1], times)
        rows += [high - low, interval_scores(low, high, outcome, one)]
    truth = None if true_mean is None else checked_outcome(true_mean, n, "true mean")
    if truth is not None:
        rows.append(np.square(truth - distribution.mean()))
    with np.errstate(over="ignore"):  # such numbers are refused
        sums = [
            _sum_of(what, part, times)
            for what, row in zip(quantities(intervals, truth is not None), rows, strict=True)
            for part in (row, np.square(row))
        ]
    clusters = None
    if cluster is not None and n:
        names = quantities(intervals, truth is not None)
        clusters = _blocks(
            {at: row for at, row in enumerate(rows) if names[at] not in _OF_CELLS},
            cluster,
            pit,
            times,
            [(pit <= one) for one in stated or ()],
            covered,
        )
    by_time, asked = None, []
    if when is not None and cluster is not None:
        asked = _questions(pit, stated, covered)
        by_time = TimeTable.of(when, cluster.column, asked, times)
    order = random.view(np.int64)
    least = np.argpartition(order, DRAWN)[:DRAWN] if n > DRAWN else np.arange(n)
    least = least[np.argsort(order[least])]
    return RegressionSummary(
        distribution.family,
        stated,
        n if times is None else int(times.sum()),
        _rows_by_cell(pit, times),
        np.array([_count(pit <= one, times) for one in stated or ()], np.int64),
        inside,
        _count(~possible, times),
        distribution.has_density,
        truth is not None,
        np.stack(sums),
        np.array([outcome.min(), outcome.max()]),
        order[least],
        np.column_stack([outcome, crps, error])[least],
        groups=None if groups is None else pit_groups(groups, pit, times, cluster, asked),
        weights=None if times is None or unit is None else RowWeights.of(times, unit),
        times=None if times is None else times[least],
        clusters=clusters,
        drawn_clusters=None if cluster is None else cluster.number[least],
        by_time=by_time,
    )


def _both(one: IntArray | None, other: IntArray | None, rows: IntArray) -> IntArray | None:
    return None if one is None or other is None else np.concatenate([one, other])[rows]


def _blocks(
    rows: dict[int, FloatArray],
    cluster: RowClusters,
    pit: FloatArray,
    times: IntArray | None,
    below: Sequence[NDArray[np.bool_]],
    inside: Sequence[NDArray[np.bool_]],
) -> ForecastBlocks:
    """Sums by block of the clusters; ``rows`` holds the values (n,) of quantities by number."""
    block = cluster.blocks(BLOCKS)
    weight = None if times is None else times.astype(np.float64)

    def counted(place: IntArray, size: int, those: Any = slice(None)) -> IntArray:
        mass = None if weight is None else weight[those]
        found = np.bincount(place[those], weights=mass, minlength=size)
        return found.astype(np.int64)  # sums of whole numbers below 2^53 are exact

    def shares(flags: Sequence[NDArray[np.bool_]]) -> IntArray:
        found = np.zeros((BLOCKS, len(flags)), np.int64)
        for at, those in enumerate(flags):
            found[:, at] = counted(block, BLOCKS, those)
        return found

    size = len(pit_ends())
    by_cell = counted(block * size + np.searchsorted(pit_ends(), pit), BLOCKS * size)
    places, sums = [], []
    for number, values in rows.items():
        found = block_sums(values if weight is None else values * weight, block, number)
        places += found[0]
        sums += found[1]
    order = np.argsort(places)
    return ForecastBlocks(
        ClusterNames.of(cluster),
        by_cell.reshape(BLOCKS, size),
        shares(inside),
        shares(below),
        np.array(places, np.int64)[order],
        np.array(sums, np.int64).reshape(-1, BLOCKS)[order],
    )


def _questions(
    pit: FloatArray, stated: Sequence[float] | None, inside: Sequence[NDArray[np.bool_]]
) -> list[Question]:
    """The questions of the latest forecasts, row by row."""
    level, n = interval_by_time(stated), len(pit)
    held = inside[intervals_of(stated).index(level)].astype(np.float64)
    place = (pit, np.full(n, 0.5), np.full(n, 1.0 / 12.0))
    return [place, (held, np.full(n, level), np.full(n, level * (1.0 - level)))]


def _count(those: NDArray[np.bool_], times: IntArray | None) -> int:
    """How many rows these are, or as how many they count."""
    return int(np.count_nonzero(those) if times is None else times[those].sum())


def _rows_by_cell(pit: FloatArray, times: IntArray | None) -> IntArray:
    counted = np.bincount(cell_index(pit), weights=times, minlength=len(upper_ends()))
    return counted.astype(np.int64)  # sums of whole numbers below 2^53 are exact


@dataclass(frozen=True, eq=False)
class _EffectiveRows(RegressionSummary):
    """A summary whose counts are fractions: of weighted rows, as of Kish's number of rows."""

    share: Fraction = Fraction(1)  # of a unit
    of: str = ""  # the digest of the summary as it was counted

    def __post_init__(self) -> None:
        pass

    @property
    def digest(self) -> str:
        return self.of

    @property
    def unit(self) -> float:
        return float(self.share)

    def exact_moments(self, what: str) -> tuple[Fraction, Fraction]:
        first, second = super().exact_moments(what)
        return first * self.share, second * self.share


def effective_forecasts(summary: RegressionSummary) -> RegressionSummary:
    """As :func:`~kdcal_core.diagnostics.summaries.effective_rows`, of a regression.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(2), 1.0), [0.0, 3.0], weight=[3.0, 1.0])
    >>> found = effective_forecasts(one)
    >>> found.n, found.moments("outcome")[0] / found.n
    (2, 0.75)
    """
    if summary.weights is None or summary.times is None or isinstance(summary, _EffectiveRows):
        return summary
    n = max(round(summary.weights.effective), 1)
    share = n / summary.n
    parts = (summary.pit, summary.below, summary.inside, summary.impossible)
    fractions: Any = [part * share for part in parts]
    pit, below, inside, impossible = fractions
    # of the drawn rows as many as they count for, each in proportion to its weight
    ends = np.cumsum(summary.times)
    m = max(round(ends[-1] ** 2 / float(np.square(summary.times.astype(np.float64)).sum())), 1)
    rows = np.searchsorted(ends, (np.arange(m) + 0.5) * (ends[-1] / m))
    return _EffectiveRows(
        summary.family,
        summary.stated,
        n,
        pit,
        below,
        inside,
        impossible,
        summary.has_density,
        summary.has_truth,
        summary.sums,
        summary.ends,
        summary.order[rows],
        summary.drawn[rows],
        weights=summary.weights,
        groups=summary.groups,
        clusters=summary.clusters,
        drawn_clusters=None if summary.drawn_clusters is None else summary.drawn_clusters[rows],
        by_time=summary.by_time,
        share=Fraction(n, summary.n),
        of=summary.digest,
    )


def _rest_of_square(y: FloatArray) -> FloatArray:
    """What the squares of numbers (n,) lose by rounding (Dekker 1971).

    With it a variance is exact, however far the numbers lie from 0.
    """
    far = y * 134_217_729.0  # 2^27 + 1
    high = far - (far - y)
    low = y - high
    return np.asarray(((high * high - y * y) + 2.0 * high * low) + low * low)


def _sum_of(what: str, values: FloatArray, times: IntArray | None) -> IntArray:
    try:
        if times is None:
            return exact_sum(values)
        bits = range(int(times.max(initial=0)).bit_length())
        return np.asarray(sum(exact_sum(values * ((times >> one) & 1)) << one for one in bits))
    except InputError as error:
        raise InputError(
            f"The {what} of a row cannot be added up: {error.what[0].lower()}{error.what[1:]}",
            fix="Correct the prediction, or leave out the row.",
            row=error.row,
        ) from error
