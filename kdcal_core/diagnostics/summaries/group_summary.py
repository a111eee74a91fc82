"""Scores by declared group, of fixed size: batches of rows are added in any order.

Rows are counted by combination of the declared columns' values and by cell of the grid. Which
values make a group is decided only when all rows are counted (`GroupSummary.divisions`), from the
number of rows of each, so it does not depend on the order of the files. Each different value is
kept for this. A column of numbers is cut at its quantiles, as that of a table is, which follow
exactly from such counts. A column of very many different numbers is refused. Its quantiles would
need another pass over all files, and cuts from the first files would depend on their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.blocks import cores, on_all_cores
from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.data.array_checks import digest_arrays
from kdcal_core.diagnostics.group_measures import Division, declared_divisions
from kdcal_core.diagnostics.summaries.by_time import Question
from kdcal_core.diagnostics.summaries.cluster_blocks import (
    SCORE_BITS,
    RowClusters,
    coarse_ends,
    group_pit_ends,
)
from kdcal_core.diagnostics.summaries.group_times import GroupTimes, sum_of_group_times
from kdcal_core.diagnostics.summaries.score_grid import GRID, bucket_starts, cell_index, upper_ends
from kdcal_core.errors import InputError

MOST_VALUES = 200
"""Different values of a column that are counted."""
MOST_GROUPS = 500
"""Combinations of the columns' values that are counted."""

GROUP_BLOCKS = 128
"""Random blocks of clusters, of which every combination has its own sums."""

_MANY_ROWS = 2**22
_MOST_CELLS = 2**22  # counted at once, 128 MB
_SMALL_KEYS = 2**20
_BITS, _LOW = 53, 26  # of a sum of scores, as in `ClassSummary.cells`


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """The different values of a declared column.

    Attributes
    ----------
    name : str
        Untrusted text.
    numbers : (v,) float64
        Ascending; none of a column of texts.
    words : tuple of str
        In order; truth values are "False" and "True". None of a column of numbers. Untrusted text.
    ordered : bool
        Whether the words have an order of their own, as stretches of a number, and not that of
        their letters.
    """

    name: str
    numbers: FloatArray
    words: tuple[str, ...] = ()
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.numbers) + len(self.words)

    def at(self, places: IntArray) -> pd.Series:
        """Values at places (g,), of which -1 has none."""
        kept = np.concatenate([self.numbers, [np.nan]])
        if self.words:
            kept = np.array([*self.words, None], dtype=object)
        if self.ordered:
            found = pd.Categorical(kept[places], self.words, ordered=True)
            return pd.Series(found, name=self.name)
        return pd.Series(kept[places], name=self.name)


@dataclass(frozen=True, eq=False)
class GroupSummary:
    """Integer counts and sums of scores by combination of the declared columns' values.

    Summaries add: ``a + b`` is that of both batches, with the same bytes in every order and for
    every cut of the same rows. At most `MOST_GROUPS` combinations are counted, each in the cells
    of the grid that hold rows, so that its size is bounded: 0.5 MB a combination and target at
    most.

    Attributes
    ----------
    columns : tuple of GroupColumn
    targets : tuple of int or None
        What is scored: the probability of a class, or the confidence for None. PIT values have the
        one target None, and no events.
    values : (g, c) int64
        Combinations that occur, in order: the place of each column's value, -1 without a value.
    place : (m,) int64
        Ascending: the combination times the number of targets, plus the target, times the number
        of cells, plus the cell.
    count : (m, 4) int64
        At each place rows, rows of which it is true, and the sum of their scores as two integers.
    grid : int
        Version of the grid.
    weights : (g, 2) int64 or None
        Rows of each combination and sum of their squared units, where rows have weights. All counts
        are then of units.
    block_place : (b,) int64 or None
        Where rows have clusters. Ascending: the combination times 128, plus the random block of the
        row's cluster, times the number of bins, plus the bin: of PIT values as of `group_pit_ends`,
        else as of `coarse_ends`, for both targets of two classes or the first of more.
    block_cells : (b, 3) int64 or None
        At each such place rows, rows of which it is true, and sum of their scores; rows alone of
        PIT values, (b, 1).
    n_times : int
        As of `RowClusters`; blocks are then stretches of times in their order.
    by_time : GroupTimes or None
        Where rows have an order in time.

    Examples
    --------
    >>> frame = pd.DataFrame({"ward": ["A", "B", "A"]})
    >>> one = pit_groups(frame, np.array([0.1, 0.2, 0.9]))
    >>> two = pit_groups(frame[1:], np.array([0.4, 0.5]))
    >>> (one + two).rows.tolist(), (one + two).digest == (two + one).digest
    ([3, 2], True)
    """

    columns: tuple[GroupColumn, ...]
    targets: tuple[int | None, ...]
    values: IntArray
    place: IntArray
    count: IntArray
    grid: int = GRID
    weights: IntArray | None = None
    block_place: IntArray | None = None
    block_cells: IntArray | None = None
    n_times: int = 0
    by_time: GroupTimes | None = None

    def __post_init__(self) -> None:
        g, last = len(self.values), len(self.values) * self._each
        if (
            self.grid != GRID
            or any(part.dtype != np.int64 for part in (self.values, self.place, self.count))
            or self.values.shape != (g, len(self.columns))
            or self.count.shape != (len(self.place), 4)
            or (self.count < 0).any()
            or (np.diff(self.place, prepend=-1) <= 0).any()
            or (len(self.place) > 0 and self.place[-1] >= last)
            or not (self.weights is None or self.weights.shape == (g, 2))
            or (self.block_place is None) != (self.block_cells is None)
            or any(
                ((at < -1) | (at >= len(column))).any()
                for at, column in zip(self.values.T, self.columns, strict=True)
            )
        ):
            raise InputError(
                "The summary of groups is damaged, or of another version",
                fix="Summarise the rows again.",
            )

    def __add__(self, other: GroupSummary) -> GroupSummary:
        """The summary of the rows of both.

        Raises
        ------
        InputError
            If other columns or targets were counted, a column holds text in one and numbers in the
            other, or there are too many values or combinations.
        """
        if not isinstance(other, GroupSummary):
            return NotImplemented
        both = (self, other)
        asked = [
            (
                one.targets,
                [column.name for column in one.columns],
                one.weights is None,
                one.block_place is None,
                one.n_times,
            )
            for one in both
        ]
        if asked[0] != asked[1]:
            raise InputError(
                "Two summaries have different groups", fix="Summarise the rows of each alone."
            )
        columns = tuple(_together(*pair) for pair in zip(self.columns, other.columns, strict=True))
        moved = [
            np.column_stack(
                [
                    _moved(column, whole, at)
                    for column, whole, at in zip(one.columns, columns, one.values.T, strict=True)
                ]
            )
            for one in both
        ]
        values, inverse = _different(np.concatenate(moved), columns)
        combination = np.split(inverse, [len(self.values)])
        place = np.concatenate(
            [
                to[one.place // self._each] * self._each + one.place % self._each
                for one, to in zip(both, combination, strict=True)
            ]
        )
        added = _added(place, np.concatenate([self.count, other.count]))
        weights: IntArray | None = None
        blocks: tuple[IntArray, IntArray] | None = None
        if self.weights is not None and other.weights is not None:
            weights = np.zeros((len(values), 2), np.int64)
            for to, one in zip(combination, (self.weights, other.weights), strict=True):
                weights[to] += one
        counted = [
            (to[one.block_place // self._each_block], one.block_place, one.block_cells)
            for to, one in zip(combination, both, strict=True)
            if one.block_place is not None and one.block_cells is not None
        ]
        if counted:
            places = [to * self._each_block + at % self._each_block for to, at, _ in counted]
            blocks = _added(np.concatenate(places), np.concatenate([one for *_, one in counted]))
        block_place, block_cells = blocks or (None, None)
        in_time = [
            None if part.by_time is None else part.by_time.moved(to)
            for to, part in zip(combination, both, strict=True)
        ]
        return GroupSummary(
            columns,
            self.targets,
            values,
            *added,
            self.grid,
            weights,
            block_place,
            block_cells,
            self.n_times,
            sum_of_group_times(*in_time),
        )

    @property
    def _each(self) -> int:
        """Places of a combination."""
        return len(self.targets) * len(upper_ends())

    @property
    def of_forecasts(self) -> bool:
        """Whether PIT values are counted."""
        return self.block_cells is not None and self.block_cells.shape[1] == 1

    @property
    def _each_block(self) -> int:
        """Places of a combination by block."""
        bins = len(group_pit_ends()) if self.of_forecasts else len(coarse_ends())
        return GROUP_BLOCKS * len(_in_blocks(self.targets)) * bins

    def by_block(self, label: IntArray, group: int, target: int = 0) -> IntArray | None:
        """Counts of the rows of a group by block of clusters and bin, (128, U, 3 or 1).

        ``label`` (g,) is the group of each combination, and ``target`` the number of one of those
        that blocks count. None of rows without clusters.
        """
        if self.block_place is None or self.block_cells is None:
            return None
        combination, place = np.divmod(self.block_place, self._each_block)
        mine = label[combination] == group
        found = np.zeros((self._each_block, self.block_cells.shape[1]), np.int64)
        np.add.at(found, place[mine], self.block_cells[mine])
        shape = GROUP_BLOCKS, len(_in_blocks(self.targets)), -1, found.shape[1]
        return found.reshape(shape)[:, target]

    @property
    def rows(self) -> IntArray:
        """Rows of each combination, (g,)."""
        if self.weights is not None:
            return self.weights[:, 0]
        combination, target, _ = self.places
        found = np.zeros(len(self.values), np.int64)
        np.add.at(found, combination[target == 0], self.count[target == 0, 0])
        return found

    @property
    def places(self) -> tuple[IntArray, IntArray, IntArray]:
        """Combination, number of the target and cell of each count, each (m,)."""
        combination, rest = np.divmod(self.place, self._each)
        target, cell = np.divmod(rest, len(upper_ends()))
        return combination, target, cell

    @property
    def digest(self) -> str:
        """SHA-256 of names, values and numbers."""
        named: list[str | FloatArray] = []
        for one in self.columns:
            named += [one.name, *one.words, one.numbers]
        head = f"groups {self.grid} {self.targets} {[len(one.words) for one in self.columns]}"
        more = (self.weights, self.block_place, self.block_cells)
        some = [one for one in more if one is not None]
        some += [] if self.by_time is None else self.by_time.arrays
        return digest_arrays(head, *named, self.values, self.place, self.count, *some)

    def divisions(self) -> list[Division]:
        """Group of each combination (g,), and the groups' names, by each column and by all.

        As :func:`kdcal_core.diagnostics.declared_divisions` of the rows. Of texts that are equally
        frequent the first in order is kept, where there are more than twelve.
        """
        frame = pd.DataFrame(
            {
                one.name: one.at(places)
                for one, places in zip(self.columns, self.values.T, strict=True)
            }
        )
        return declared_divisions(frame, self.rows)


def asked_targets(
    n_classes: int, event: int | None, *, every_class: bool = False
) -> tuple[int | None, ...]:
    """What is scored where an event or, for None, the confidence is judged.

    With two classes the probability of the second is too, for the area under the ROC curve. With
    more, those of all classes are if they are asked for.

    Examples
    --------
    >>> asked_targets(2, 1), asked_targets(2, None), asked_targets(3, None)
    ((1,), (None, 1), (None,))
    >>> asked_targets(3, 1, every_class=True)
    (1, 0, 2)
    """
    also = [1] if n_classes == 2 else range(n_classes) if every_class else []
    return (event, *(one for one in also if one != event))


def class_groups(
    frame: pd.DataFrame,
    scored: ScoredSet,
    event: int | None = None,
    *,
    every_class: bool = False,
    times: IntArray | None = None,
    cluster: RowClusters | None = None,
    questions: Sequence[Question] = (),
) -> GroupSummary:
    """The summary of a batch of a classifier's rows.

    Parameters
    ----------
    frame : DataFrame of n rows
        The declared columns alone: text, truth values or numbers, at least one.
    scored : ScoredSet of n rows
    event : int, optional
        The class whose probability is judged; the confidence in the predicted class by default.
    every_class : bool
        Whether to count every class's probability too, for areas under ROC curves of more than
        two classes.
    times : (n,) int64, optional
        Units of each row, where rows have weights.
    cluster : RowClusters, optional
        Which rows depend on one another.
    questions : sequence of (seen, stated, own)
        What is asked of the latest rows, where rows have an order in time.

    Raises
    ------
    InputError
        For a column of dates, one of more than `MOST_VALUES` different values, or more than
        `MOST_GROUPS` combinations.

    Examples
    --------
    >>> rows = ScoredSet(np.array([[0.9, 0.1]] * 2), np.array([0, 1]), ("no", "yes"), "", "x")
    >>> found = class_groups(pd.DataFrame({"old": [True, False]}), rows, 1)
    >>> found.columns[0].words, found.rows.tolist(), found.count[:, 1].tolist()
    (('False', 'True'), [1, 1], [1, 0])
    """
    asked = asked_targets(len(scored.classes), event, every_class=every_class)
    return _summary(frame, asked, scored.proba, scored.y, times, cluster, questions)


def pit_groups(
    frame: pd.DataFrame,
    pit: FloatArray,
    times: IntArray | None = None,
    cluster: RowClusters | None = None,
    questions: Sequence[Question] = (),
) -> GroupSummary:
    """As `class_groups`, of PIT values (n,) in [0, 1]."""
    nothing = np.full(len(pit), -1)
    return _summary(
        frame, (None,), pit[:, np.newaxis], nothing, times, cluster, questions, pit=True
    )


def _summary(
    frame: pd.DataFrame,
    asked: tuple[int | None, ...],
    proba: FloatArray,
    y: IntArray,
    times: IntArray | None,
    cluster: RowClusters | None,
    questions: Sequence[Question],
    *,
    pit: bool = False,
) -> GroupSummary:
    """The summary of rows; very many are cut into parts, one for each core."""

    def of_part(rows: slice) -> GroupSummary:
        some = None if times is None else times[rows]
        mine = None if cluster is None else cluster.only(rows)
        parts = [tuple(one[rows] for one in each) for each in questions]
        return _of_rows(frame.iloc[rows], asked, proba[rows], y[rows], some, mine, parts, pit=pit)

    n = len(frame)
    size = -(-n // cores()) if n > _MANY_ROWS else max(n, 1)
    parts = [slice(start, start + size) for start in range(0, max(n, 1), size)]
    return reduce(add, on_all_cores(of_part, parts, note=str))


def _of_rows(
    frame: pd.DataFrame,
    asked: tuple[int | None, ...],
    proba: FloatArray,
    y: IntArray,
    times: IntArray | None,
    cluster: RowClusters | None,
    questions: Sequence[Any],
    *,
    pit: bool,
) -> GroupSummary:
    found = [_values_of(frame[name], str(name)) for name in frame.columns]
    columns = tuple(column for column, _ in found)
    values, combination = _combinations(found)
    added = _counted(combination, len(values), proba, y, asked, times)
    weights, blocks = None, None
    if times is not None:
        weights = np.zeros((len(values), 2), np.int64)
        for at, part in enumerate((np.ones_like(times), np.square(times))):
            np.add.at(weights[:, at], combination, part)
    if cluster is not None:
        block = combination.astype(np.int64) * GROUP_BLOCKS + cluster.blocks(GROUP_BLOCKS)
        known = _in_blocks(asked)
        many = np.ones(len(block), np.int64) if times is None else times
        if pit:
            bins = np.searchsorted(group_pit_ends(), proba[:, 0])
            blocks = _added(block * len(group_pit_ends()) + bins, many[:, np.newaxis])
        else:
            counted = []
            for number, label in enumerate(known):
                said = proba.argmax(axis=1) if label is None else np.full(len(y), label)
                score = np.minimum(proba[np.arange(len(y)), said], 1.0)
                fixed = np.rint(score * 2.0**SCORE_BITS).astype(np.int64)
                place = (block * len(known) + number) * len(coarse_ends())
                place += np.searchsorted(coarse_ends(), score)
                parts = [many, many * (y == said), many * fixed]
                counted.append(_added(place, np.column_stack(parts)))
            places, counts = zip(*counted, strict=True)
            blocks = _added(np.concatenate(places), np.concatenate(counts))
    n_times, by_time = 0 if cluster is None else cluster.n_times, None
    if cluster is not None and n_times and questions:
        by_time = GroupTimes.of(combination, cluster, questions, times)
    block_place, block_cells = blocks or (None, None)
    return GroupSummary(
        columns, asked, values, *added, GRID, weights, block_place, block_cells, n_times, by_time
    )


def _in_blocks(targets: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """The targets that blocks of clusters count: both of two classes, else the one judged."""
    return targets if len(targets) <= 2 else targets[:1]


def _combinations(
    found: Sequence[tuple[GroupColumn, NDArray[Any]]],
) -> tuple[IntArray, NDArray[np.int16]]:
    """Combinations that occur, in order, (g, c), and that of each row, (n,)."""
    columns = [column for column, _ in found]
    values, key = np.zeros((1, 0), np.int64), np.zeros(1, np.int16)
    for column, at in found:
        each = len(column) + 1
        small = len(values) * each < 2**15  # smaller arrays are faster to read and to make
        kind = np.dtype(np.int16 if small else np.int64)
        place = np.multiply(key, each, dtype=kind) if values.shape[1] else 0
        every, key = _used(np.add(at, np.add(place, 1, dtype=kind), dtype=kind))
        values = np.column_stack([values[every // each], every % each - 1])
    _check_combinations(len(values), columns)
    return values, key.astype(np.int16)


def _used(key: NDArray[Any]) -> tuple[IntArray, NDArray[Any]]:
    """The different numbers of at least 0, ascending, and the place of each among them."""
    every = np.unique(key).astype(np.int64)
    if len(every) and every[-1] == len(every) - 1:
        return every, key
    if len(every) and every[-1] < _SMALL_KEYS:
        place = np.zeros(int(every[-1]) + 1, key.dtype)
        place[every] = np.arange(len(every))
        return every, place[key]
    return every, np.searchsorted(every, key)


def load_group_kernel() -> None:
    """Compile the count of rows by group, or load it: of arrays in memory and of kept ones."""
    n = len(upper_ends())
    proba, y = np.zeros((n, 1)), np.zeros(n, np.int64)
    _counted(np.zeros(n, np.int16), 1, proba, y, (None,), None)
    proba.flags.writeable = y.flags.writeable = False  # as those of a set that is read
    _counted(np.zeros(n, np.int16), 1, proba, y, (None,), None)


def _counted(
    group: NDArray[np.int16],
    n_groups: int,
    proba: FloatArray,
    y: IntArray,
    asked: tuple[int | None, ...],
    times: IntArray | None,
) -> tuple[IntArray, IntArray]:
    """Places and counts (m, 4) of rows, as of `GroupSummary`; of few rows each for itself."""
    n_cells, n_targets = len(upper_ends()), len(asked)
    many = np.empty(0, np.int64) if times is None else times
    places, counts = [], []
    if len(group) < n_groups * n_cells:
        many = np.ones(len(group), np.int64) if times is None else times
        for number, label in enumerate(asked):
            said = proba.argmax(axis=1) if label is None else np.full(len(y), label)
            score = np.minimum(proba[np.arange(len(y)), said], 1.0)
            fixed = (score * 2.0**_BITS).astype(np.int64)
            high, low = fixed >> _LOW, fixed & ((1 << _LOW) - 1)
            parts = np.column_stack([np.ones_like(many), y == said, high, low])
            row = group.astype(np.int64) * n_targets + number
            places.append(row * n_cells + cell_index(score))
            counts.append(parts * many[:, np.newaxis])
        return _added(np.concatenate(places), np.concatenate(counts))
    from kdcal_core.diagnostics.summaries._summary_kernels import add_groups

    rows = np.ascontiguousarray(proba, dtype=np.float64), y.astype(np.int64, copy=False)
    labels = np.array([-1 if one is None else one for one in asked])
    at_once = max(1, _MOST_CELLS // (n_groups * n_cells))
    for first in range(0, n_targets, at_once):
        some = labels[first : first + at_once]
        total = np.zeros((n_groups, len(some), n_cells, 4), np.int64)
        add_groups(group, *rows, many, some, upper_ends(), bucket_starts(), total)
        at, target, cell = np.nonzero(total[..., 0])
        places.append((at * n_targets + first + target) * n_cells + cell)
        counts.append(total[at, target, cell])
    return _added(np.concatenate(places), np.concatenate(counts))


def _added(place: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Different places, and the sums of the counts (m, 4) there."""
    every, inverse = _used(place)
    total = np.zeros((count.shape[1], len(every)), np.int64)
    for at, part in enumerate(count.T):
        np.add.at(total[at], inverse, part)
    return every, np.ascontiguousarray(total.T)


def _codes_of(column: pd.Series[Any]) -> tuple[NDArray[Any], Any]:
    """Which of the different values each row has, -1 for none, and these values."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return pd.factorize(column)
    code, every = column.cat.codes.to_numpy(), column.cat.categories
    used = np.unique(code)  # of small integers, which are not sorted
    used = used[used >= 0]
    if len(used) == len(every):
        return code, every
    place = np.full(len(every) + 1, -1)  # the last is of code -1
    place[used] = np.arange(len(used))
    return place.astype(code.dtype)[code], every[used]


def _values_of(values: Any, name: str) -> tuple[GroupColumn, NDArray[Any]]:
    """The different values of a column, and the place of each row's, -1 without one."""
    column = pd.Series(values)
    if pd.api.types.is_datetime64_any_dtype(column):
        raise InputError(
            "A column of dates cannot be a declared group of a folder",
            fix="Write a column of text, such as the month of each date, and declare that one.",
            column=name,
        )
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        # all of them, because another part of the rows may have the others
        known = GroupColumn(name, np.empty(0), tuple(map(str, column.cat.categories)), True)
        _check_values(len(known), name)
        return known, column.cat.codes.to_numpy()
    code, found = _codes_of(column)
    _check_values(len(found), name)
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if numeric:
        every, inverse = np.unique(
            np.asarray(found, dtype=np.float64) + 0.0, return_inverse=True
        )  # 0.0 makes -0 the same as 0
        known = GroupColumn(name, every)
    else:
        words, inverse = np.unique([str(one) for one in found], return_inverse=True)
        known = GroupColumn(name, np.empty(0), tuple(str(one) for one in words))
    if (np.diff(inverse) == 1).all():  # in order already
        return known, code
    return known, np.append(inverse, -1).astype(code.dtype)[code]  # the last is of code -1


def _together(one: GroupColumn, other: GroupColumn) -> GroupColumn:
    """The different values of both."""
    if (len(one.words) and len(other.numbers)) or (len(one.numbers) and len(other.words)):
        raise InputError(
            "A declared group holds text in one part of the table and numbers in another",
            fix="Write the column with the same type in all files.",
            column=one.name,
        )
    if one.ordered and one.words == other.words:
        return one
    words = tuple(sorted({*one.words, *other.words}))
    found = GroupColumn(one.name, np.union1d(one.numbers, other.numbers), words)
    _check_values(len(found), one.name)
    return found


def _moved(column: GroupColumn, whole: GroupColumn, at: IntArray) -> IntArray:
    """Places of values among those of the whole column."""
    if column.words:
        known = {word: place for place, word in enumerate(whole.words)}
        to = np.array([known[word] for word in column.words], dtype=np.int64)
    else:
        to = np.searchsorted(whole.numbers, column.numbers)
    return np.concatenate([to, [-1]])[at]


def _different(values: IntArray, columns: Sequence[GroupColumn]) -> tuple[IntArray, IntArray]:
    every, inverse = np.unique(values, axis=0, return_inverse=True)
    _check_combinations(len(every), columns)
    return every, inverse.ravel()


def _check_values(n: int, name: str) -> None:
    if n > MOST_VALUES:
        raise InputError(
            f"A declared group of a folder has more than {MOST_VALUES} different values",
            fix="Write a column with fewer, such as ranges of a number, and declare that one.",
            column=name,
        )


def _check_combinations(n: int, columns: Sequence[GroupColumn]) -> None:
    if n > MOST_GROUPS:
        widest = max(columns, key=len)
        raise InputError(
            f"The declared groups of a folder have more than {MOST_GROUPS} combinations of values, "
            f"{len(widest)} of this column alone",
            fix="Declare fewer columns, or write this one with fewer values, such as ranges.",
            column=widest.name,
        )
