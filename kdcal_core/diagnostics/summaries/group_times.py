"""What a summary keeps of declared groups in the order of time: sums by combination and time.

From them follows whether the latest rows of a group show what those before them do, as from
:class:`~kdcal_core.diagnostics.summaries.by_time.TimeTable` for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import IntArray
from kdcal_core.diagnostics.summaries.by_time import MOST_TIMES, Question, TimeTable
from kdcal_core.diagnostics.summaries.cluster_blocks import RowClusters


@dataclass(frozen=True, eq=False)
class GroupTimes:
    """Sums over the rows of each combination at each time; they add, in any order.

    Attributes
    ----------
    n_times : int
        Different times of the whole table.
    table : TimeTable or None
        Its times are combinations times ``n_times``, plus the place of the time. None where
        combinations alone are more than `MOST_TIMES`: then nothing is known of groups in time.
    level : int
        So that there are at most `MOST_TIMES` such pairs, 2^level neighbouring times are counted as
        the first of them. It is the lowest that serves, whatever the order of the rows.

    Examples
    --------
    >>> half = np.full(3, 0.5)
    >>> days = RowClusters(np.array([0, 1, 1]), "day", n_times=2)
    >>> one = GroupTimes.of(np.array([0, 0, 1]), days, [(half, half, half / 2)])
    >>> both = one + one
    >>> [found.rows.tolist() for found in (both.table, both.of_group(np.array([True, False])))]
    [[2, 2, 2], [2, 2]]
    """

    n_times: int
    table: TimeTable | None
    level: int = 0

    @classmethod
    def of(
        cls,
        combination: NDArray[Any],
        cluster: RowClusters,
        questions: Sequence[Question],
        times: IntArray | None = None,
    ) -> GroupTimes:
        """Of a batch of rows, from the combination of each (n,).

        ``questions`` and ``times`` are as of
        :meth:`~kdcal_core.diagnostics.summaries.by_time.TimeTable.of`.
        """
        n = cluster.n_times
        place = combination.astype(np.int64) * n + cluster.number
        level = _lowest_level(pd.unique(place), n)
        if level is None:
            return cls(n, None)
        place = _merged(place, n, level)
        return cls(n, TimeTable.of(place, cluster.column, questions, times), level)

    def __add__(self, other: GroupTimes) -> GroupTimes:
        n, one, two = self.n_times, self.table, other.table
        if one is None or two is None:
            return GroupTimes(n, None)
        pairs = np.union1d(one.times, two.times).astype(np.int64)
        level = _lowest_level(pairs, n, max(self.level, other.level))
        if level is None:
            return GroupTimes(n, None)
        if self.level < level:
            one = one.regrouped(_merged(_pairs(one), n, level))
        if other.level < level:
            two = two.regrouped(_merged(_pairs(two), n, level))
        return GroupTimes(n, one + two, level)

    def moved(self, to: IntArray) -> GroupTimes:
        """The same with other numbers of the combinations, those of ``to`` (g,)."""
        if self.table is None:
            return self
        combination, time = np.divmod(_pairs(self.table), self.n_times)
        return replace(self, table=self.table.regrouped(to[combination] * self.n_times + time))

    def of_group(self, mine: NDArray[np.bool_]) -> TimeTable | None:
        """Sums of some combinations (g,) together, by the places of their times."""
        if self.table is None:
            return None
        combination, time = np.divmod(_pairs(self.table), self.n_times)
        return self.table.regrouped(time, mine[combination])

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What stands for them in a digest."""
        return () if self.table is None else (*self.table.arrays, self.table.sums)


def _pairs(table: TimeTable) -> IntArray:
    return table.times.astype(np.int64)


def _merged(pairs: IntArray, n_times: int, level: int) -> IntArray:
    """Pairs of combination and time with 2^level neighbouring times counted as the first."""
    return pairs - pairs % n_times % (1 << level)


def _lowest_level(pairs: IntArray, n_times: int, level: int = 0) -> int | None:
    """The lowest level from ``level`` on that leaves at most `MOST_TIMES` pairs, if one does."""
    while True:
        pairs = np.unique(_merged(pairs, n_times, level))
        if len(pairs) <= MOST_TIMES:
            return level
        if 1 << level >= n_times:
            return None
        level += 1


def sum_of_group_times(one: GroupTimes | None, other: GroupTimes | None) -> GroupTimes | None:
    """Those of the rows of both, if they are counted in both."""
    return None if one is None or other is None else one + other
