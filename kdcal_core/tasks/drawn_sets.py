"""Sets of which only drawn rows are read, for what needs to see rows and has very many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from kdcal_core.data import IntArray, ScoredSet, at_most
from kdcal_core.distributions import RegressionSet
from kdcal_core.once import Once
from kdcal_core.review import ReviewReader, Which
from kdcal_core.review.drawn_rows import DRAWN_ROWS, FOLDER, POSITIONS, TABLE, drawn_positions
from kdcal_core.review.review import WHICH, TableInfo
from kdcal_core.review.sealed_files import kept, regression_arrays, scored_arrays
from kdcal_core.store import read_array
from kdcal_core.tasks.decorators import Sets


class DrawnReader(ReviewReader):
    """Reads at most ``most`` rows of each table and set: those kept when it was scored, or some.

    It knows no summaries, so that what reads rows reads these.
    """

    def __init__(self, reader: ReviewReader, most: int) -> None:
        super().__init__(reader.workspace, reader.review.id, reader.reads, review=reader.review)
        self._most = most

    def positions(self, which: Which) -> IntArray:
        """Positions of the read rows in the set, ascending."""

        def make() -> IntArray:
            place = self._drawn(which)
            with kept(which):
                rows = None if place is None else read_array(place / POSITIONS)
            return drawn_positions(self._table(which).n_rows) if rows is None else rows

        every: IntArray = self._once(("positions", which), make)
        return every[at_most(len(every), self._most)]

    def scored(self, which: Which) -> ScoredSet:
        """Drawn rows of a scored set of a classification."""
        place, classes = self._drawn(which), self.review.classes
        if place is None:
            whole = super().scored(which)
            return whole.only(self.positions(which)) if whole.n_rows > self._most else whole
        drawn = self._once(("drawn", which), lambda: scored_arrays(place, classes, None, which))
        return drawn.only(at_most(drawn.n_rows, self._most))

    def distributions(self, which: Which) -> RegressionSet:
        """Drawn rows of a scored set of a regression."""
        place = self._drawn(which)
        if place is None:
            whole = super().distributions(which)
            return whole.only(self.positions(which)) if whole.n_rows > self._most else whole
        drawn = self._once(("drawn", which), lambda: regression_arrays(place, None, which))
        return drawn.only(at_most(drawn.n_rows, self._most))

    def summary(self, which: Which) -> None:
        """None: the rows are read."""

    def regression_summary(self, which: Which) -> None:
        """None: the rows are read."""

    def _drawn(self, which: Which) -> Path | None:
        """The folder of the rows that were kept; None of a set that was scored without."""
        self._declared(which)
        info = self.review.sets.get(which)
        place = None if info is None else self._folder / info.folder / FOLDER
        return place if place is not None and place.exists() else None

    def _of_table(
        self,
        table: TableInfo,
        columns: Sequence[str] | None = None,
        most: int | None = None,
        coded: bool = False,
    ) -> pd.DataFrame:
        which = next((part for part in WHICH if self.review.tables.get(part) is table), None)
        place = None if which is None else self._drawn(which)
        if which is not None and place is not None:
            from kdcal_core.review.scoring import read_frame

            with kept(which):
                frame = read_frame(str(place / TABLE), columns, None, coded)
        else:
            frame = super()._of_table(table, columns, DRAWN_ROWS, coded)
            if columns is None and isinstance(frame.index, pd.RangeIndex):
                frame.index = pd.Index(drawn_positions(table.n_rows))  # errors name the file's row
        return frame.iloc[at_most(len(frame), self._most)]


def drawn_sets(sets: Sets, most: int = DRAWN_ROWS) -> Sets:
    """The sets with at most so many rows of each, kept beside the whole ones."""

    def make() -> Sets:
        given: dict[str, Any] = {"reader": DrawnReader(sets.reader, most), "keep": Once()}
        return replace(sets, **given)

    found: Sets = sets.keep(("drawn rows", most), make)
    return found


def drawn_of(sets: Sets, which: Which) -> Sets:
    """The sets as they are, or with drawn rows where ``which`` has a summary for its very many."""
    regression = sets.reader.review.task == "regression"
    summary = sets.regression_summary(which) if regression else sets.summary(which)
    return sets if summary is None else drawn_sets(sets)


def positions_in(sets: Sets, which: Which, rows: IntArray) -> IntArray:
    """Positions in the set of rows (m,) of `drawn_of`."""
    return sets.reader.positions(which)[rows] if isinstance(sets.reader, DrawnReader) else rows
