"""The summary of a regression's rows, of fixed size, to which batches are added in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.array_checks import digest_arrays
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.coverage import (
    STATED,
    Coverage,
    checked_outcome,
    interval_scores,
    row_of_means,
)
from kdcal_core.diagnostics.regression.pit_curves import PitHistogram, histogram_of_counts
from kdcal_core.diagnostics.summaries.exact_sums import SHAPE, exact_sum, float_of
from kdcal_core.diagnostics.summaries.score_grid import (
    GRID,
    bins_of_cells,
    cell_index,
    upper_ends,
)
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.errors import InputError
from kdcal_core.statistics import normal_quantile

MOST_ROWS = 2**33
_ROW = ("pit", "crps", "error", "squared error", "outcome")
_QUANTITIES = (*_ROW, *(f"{what} {one:g}" for one in STATED for what in ("width", "score")))


@dataclass(frozen=True, eq=False)
class RegressionSummary:
    """Integer counts and exact sums of a regression's rows, from which estimates follow.

    Summaries add: ``a + b`` is that of both batches, with the same bytes in every order and for
    every cut of the same rows into batches.

    Attributes
    ----------
    n : int
        Rows.
    pit : (C,) int64
        Rows by cell of the grid that holds their PIT value.
    inside : (5,) int64
        Outcomes inside the central intervals of `STATED`, their ends included.
    sums : (30, 2098, 2) int64
        Exact sums of a row's PIT value, CRPS, error (predicted mean minus outcome), squared error
        and absolute outcome, and of the width and score of each central interval; each followed by
        that of the squares.
    grid : int
        Version of the grid.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(3), 1.0), [0.0, 0.5, -0.5])
    >>> two = summarise_regression(Normal(np.zeros(1), 1.0), [3.0], first=3)
    >>> (one + two).n, (one + two).digest == (two + one).digest
    (4, True)
    """

    n: int
    pit: IntArray
    inside: IntArray
    sums: IntArray
    grid: int = GRID

    def __post_init__(self) -> None:
        shapes = (len(upper_ends()),), (len(STATED),), (2 * len(_QUANTITIES), *SHAPE)
        parts = self.pit, self.inside, self.sums
        if (
            self.grid != GRID
            or any(part.shape != shape for part, shape in zip(parts, shapes, strict=True))
            or any(part.dtype != np.int64 for part in parts)
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
            If there are more rows than `MOST_ROWS`.
        """
        if not isinstance(other, RegressionSummary):
            return NotImplemented
        n = self.n + other.n
        if n > MOST_ROWS:
            raise InputError(f"There are {n:,} rows", fix=f"A summary takes {MOST_ROWS:,}.")
        return RegressionSummary(
            n, self.pit + other.pit, self.inside + other.inside, self.sums + other.sums
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the numbers."""
        return digest_arrays(f"regression {self.grid}", self.pit, self.inside, self.sums)

    def moments(self, what: str) -> tuple[float, float]:
        """Sum of a quantity over the rows, and of its squares."""
        at = 2 * _QUANTITIES.index(what)
        return float_of(self.sums[at]), float_of(self.sums[at + 1])


def summarise_regression(
    distribution: PredictiveDistribution, y: Any, *, first: int = 0
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

    Raises
    ------
    InputError
        For outcomes that do not match or are not finite; the message names the row.

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
    pit = np.clip(distribution.pit(outcome, _places(first, n)), 0.0, 1.0)
    error = distribution.mean() - outcome
    rows = [pit, distribution.crps(outcome), error, np.square(error), np.abs(outcome)]
    inside = np.zeros(len(STATED), np.int64)
    for at, stated in enumerate(STATED):
        low, high = distribution.interval(stated)
        inside[at] = np.count_nonzero((low <= outcome) & (outcome <= high))
        rows += [high - low, interval_scores(low, high, outcome, stated)]
    sums = [exact_sum(part) for row in rows for part in (row, np.square(row))]
    count = np.bincount(cell_index(pit), minlength=len(upper_ends()))
    return RegressionSummary(n, count.astype(np.int64), inside, np.stack(sums))


def summary_pit_histogram(
    summary: RegressionSummary, bins: int = 20, level: float = 0.95
) -> PitHistogram:
    """Counts of PIT values, as :func:`kdcal_core.diagnostics.pit_histogram`.

    Parameters
    ----------
    bins : int
        1 to 50, or 100: these follow exactly.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(2), 1.0), [-1.0, 3.0])
    >>> summary_pit_histogram(one, 2).counts.tolist()
    [1.0, 1.0]
    """
    _check(summary, level)
    counts = np.bincount(bins_of_cells(bins), summary.pit.astype(np.float64), bins)
    return histogram_of_counts(
        counts.astype(np.float64), summary.n, float(summary.n), level, "simultaneous"
    )


def summary_coverage(
    summary: RegressionSummary, *, scale: float | None = None, level: float = 0.95
) -> Coverage:
    """Coverage, width and score of the central intervals of 50, 80, 90, 95 and 99%.

    As :func:`kdcal_core.diagnostics.coverage`; without a ``scale`` sMIS is left out.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(4), 1.0), [0.0, 0.5, -0.5, 3.0])
    >>> summary_coverage(one).at(0.95).coverage.value
    0.75
    """
    _check(summary, level)
    if scale is not None and not 0.0 < scale < np.inf:
        raise InputError(f"The scale of the outcomes is {scale:g}", fix="Give one above zero.")
    rows = []
    for at, stated in enumerate(STATED):
        means = [_mean(summary, f"{what} {stated:g}", level) for what in ("width", "score")]
        if scale is not None:
            mean, low, high = (value / scale for value in means[1])
            means.append((mean, low, high))
        share = int(summary.inside[at]) / summary.n
        rows.append(row_of_means(stated, share, float(summary.n), means, summary.n, level))
    return Coverage(tuple(rows), summary.n, scale)


def summary_regression_estimates(
    summary: RegressionSummary, *, level: float = 0.95
) -> tuple[Estimate, ...]:
    """CRPS, mean squared error, its root, bias of the mean, and mean PIT minus one half.

    Values are exact sums, rounded once; intervals are normal, that of the root by its square.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> one = summarise_regression(Normal(np.zeros(4), 1.0), [0.0, 0.5, -0.5, 3.0])
    >>> [(each.label, round(each.value, 3)) for each in summary_regression_estimates(one)]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('CRPS', 0.833), ('MSE', 2.375), ('RMSE', 1.541), ('Bias', -0.75), ('PIT bias', 0.125)]
    """
    _check(summary, level)
    square = _mean(summary, "squared error", level)
    root = tuple(max(value, 0.0) ** 0.5 for value in square)
    pit = tuple(value - 0.5 for value in _mean(summary, "pit", level))
    rows: tuple[tuple[str, str, Sequence[float], bool | None], ...] = (
        ("Continuous ranked probability score", "CRPS", _mean(summary, "crps", level), True),
        ("Mean squared error of the predicted mean", "MSE", square, True),
        ("Root mean squared error of the predicted mean", "RMSE", root, True),
        ("Mean of predicted mean minus outcome", "Bias", _mean(summary, "error", level), None),
        ("Mean PIT value minus 1/2", "PIT bias", pit, None),
    )
    return tuple(
        Estimate(
            name=name,
            label=label,
            value=values[0],
            low=values[1],
            high=values[2],
            n=summary.n,
            level=level,
            interval="normal",
            lower_is_better=better,
        )
        for name, label, values, better in rows
    )


def _check(summary: RegressionSummary, level: float) -> None:
    check_level(level)
    if summary.n < 1:
        raise InputError("The summary has no rows", fix="Add at least one row.")


def _mean(summary: RegressionSummary, what: str, level: float) -> tuple[float, float, float]:
    total, square = summary.moments(what)
    n = summary.n
    mean = total / n
    if n < 2:
        return mean, -np.inf, np.inf
    variance = max(square / n - mean * mean, 0.0) / (n - 1)
    half = normal_quantile(level) * variance**0.5
    return mean, mean - half, mean + half


def _places(first: int, n: int) -> FloatArray:
    """A number in [0, 1) for each row by its position (SplitMix64), (n,)."""
    z = (np.arange(first, first + n, dtype=np.uint64) + np.uint64(1)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53)
