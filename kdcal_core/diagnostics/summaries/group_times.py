"""What a summary keeps of declared groups in the order of time: sums by combination and time.

From them follows whether the latest rows of a group show what those before them do, as from
:class:`~kdcal_core.diagnostics.summaries.by_time.TimeTable` for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
        Its times are combinations times ``n_times``, plus the place of the time. None where there
        are more than `MOST_TIMES` such pairs: then nothing is known of groups in time.

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
        place = combination.astype(np.int64) * cluster.n_times + cluster.number
        if len(pd.unique(place)) > MOST_TIMES:
            return cls(cluster.n_times, None)
        return cls(cluster.n_times, TimeTable.of(place, cluster.column, questions, times))

    def __add__(self, other: GroupTimes) -> GroupTimes:
        one, two = self.table, other.table
        if one is None or two is None or len(np.union1d(one.times, two.times)) > MOST_TIMES:
            return GroupTimes(self.n_times, None)
        return GroupTimes(self.n_times, one + two)

    def moved(self, to: IntArray) -> GroupTimes:
        """The same with other numbers of the combinations, those of ``to`` (g,)."""
        if self.table is None:
            return self
        combination, time = self._places(self.table)
        return GroupTimes(self.n_times, self.table.regrouped(to[combination] * self.n_times + time))

    def of_group(self, mine: NDArray[np.bool_]) -> TimeTable | None:
        """Sums of some combinations (g,) together, by the places of their times."""
        if self.table is None:
            return None
        combination, time = self._places(self.table)
        return self.table.regrouped(time, mine[combination])

    def _places(self, table: TimeTable) -> tuple[IntArray, IntArray]:
        """Combination of each sum, and the place of its time."""
        combination, time = np.divmod(table.times.astype(np.int64), self.n_times)
        return combination, time

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What stands for them in a digest."""
        return () if self.table is None else (*self.table.arrays, self.table.sums)


def sum_of_group_times(one: GroupTimes | None, other: GroupTimes | None) -> GroupTimes | None:
    """Those of the rows of both, if they are counted in both."""
    return None if one is None or other is None else one + other
