"""A regression's sets of which only drawn rows are read, for what needs few of very many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from kdcal_core.data import at_most
from kdcal_core.distributions import RegressionSet
from kdcal_core.once import Once
from kdcal_core.review import ReviewReader, Which
from kdcal_core.review.review import TableInfo
from kdcal_core.tasks.decorators import Sets


class DrawnReader(ReviewReader):
    """Reads at most ``most`` rows of each table, those of `kdcal_core.data.at_most`."""

    def __init__(self, reader: ReviewReader, most: int) -> None:
        super().__init__(reader.workspace, reader.review.id, reader.reads, review=reader.review)
        self._most = most

    def distributions(self, which: Which) -> RegressionSet:
        """Drawn rows of a scored set, without weights or dependence."""
        whole = super().distributions(which)
        rows = at_most(len(whole.y), self._most)
        mean = None if whole.true_mean is None else whole.true_mean[rows]
        distribution = whole.distribution[rows]
        return RegressionSet(distribution, whole.y[rows], whole.digest, which, true_mean=mean)

    def _of_table(
        self,
        table: TableInfo,
        columns: Sequence[str] | None = None,
        most: int | None = None,
        coded: bool = False,
    ) -> pd.DataFrame:
        frame = super()._of_table(table, columns, self._most, coded)
        if columns is None and isinstance(frame.index, pd.RangeIndex):
            frame.index = pd.Index(at_most(table.n_rows, self._most))  # errors name the file's row
        return frame


def drawn_sets(sets: Sets, most: int) -> Sets:
    """The sets with at most so many rows of each, kept beside the whole ones."""

    def make() -> Sets:
        given: dict[str, Any] = {"reader": DrawnReader(sets.reader, most), "keep": Once()}
        return replace(sets, **given)

    found: Sets = sets.keep(("drawn rows", most), make)
    return found
