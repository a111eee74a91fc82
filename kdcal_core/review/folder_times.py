"""The different times of a folder's rows, found before the rows are counted.

Intervals need to know which times are near one another, so all of them are found first, from their
column alone. How texts are read as dates follows from those of all files, as in one table:
01/02/2026 is the second of January where another file has 01/31/2026.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from kdcal_core.data import FloatArray, IntArray, Roles
from kdcal_core.data.column_kinds import simple
from kdcal_core.data.dependence_columns import refuse_no_times, written_times
from kdcal_core.data.times import dates_of, holds_text, looks_like_dates, times_of, times_of_texts
from kdcal_core.diagnostics.summaries.by_time import check_times, unlike_times
from kdcal_core.errors import InputError


@dataclass(frozen=True, eq=False)
class FolderTimes:
    """The different times of all rows.

    Attributes
    ----------
    times : (T,) int64 or float64
        Ascending, as :func:`kdcal_core.data.time_column` gives them.
    texts : tuple of str
        The texts that stand for times; none where the column holds dates or numbers. Untrusted.
    place : (m,) int64
        The place of each text's time among all.
    """

    times: IntArray | FloatArray
    texts: tuple[str, ...] = ()
    place: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> FolderTimes:
        """From a `record`."""
        times: Any = np.array(record["times"], record["kind"])
        return cls(times, tuple(record["texts"]), np.array(record["place"], np.int64))

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON, for another process."""
        return {
            "kind": self.times.dtype.name,
            "times": self.times.tolist(),
            "texts": list(self.texts),
            "place": self.place.tolist(),
        }

    @cached_property
    def _index(self) -> pd.Index[Any]:
        return pd.Index(self.texts, dtype="object")

    def of(self, frame: pd.DataFrame, roles: Roles) -> IntArray:
        """The place of each row's time among all, (n,).

        Raises
        ------
        InputError
            For a value that is missing or no time; the error names the row.
        """
        column = written_times(frame, roles)
        assert column is not None
        if holds_text(column):
            code, found = pd.factorize(column)
            known = self._index.get_indexer(pd.Index(_words(found), dtype="object"))
            refuse_no_times(known[code] < 0, roles)
            return np.asarray(self.place[known][code])
        code, values = pd.factorize(times_of(column) + 0)  # with 0 added, -0.0 is 0.0
        place = np.searchsorted(self.times, values).clip(0, len(self.times) - 1)
        if (self.times[place] != values).any():
            raise InputError(
                "The files changed while they were read", fix="Start again once they are written."
            )
        return np.asarray(place[code])


class SeenTimes:
    """Different times and texts that grow by blocks of rows; they add in any order.

    Examples
    --------
    >>> roles = Roles(target="y", time="day")
    >>> seen = SeenTimes(roles)
    >>> for days in (["1/2/2026", "1/3/2026"], ["1/31/2026"]):
    ...     seen.add(pd.DataFrame({"day": days}))
    >>> seen.found().of(pd.DataFrame({"day": ["1/31/2026", "1/2/2026"]}), roles).tolist()
    [2, 0]
    """

    def __init__(self, roles: Roles, record: dict[str, Any] | None = None) -> None:
        self._roles, record = roles, record or {}
        self._texts: set[str] = set(record.get("texts", ()))
        self._values: dict[str, Any] = {
            kind: np.array(record[kind], kind) for kind in ("int64", "float64") if kind in record
        }

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON, for another process."""
        values = {kind: one.tolist() for kind, one in self._values.items()}
        return {"texts": sorted(self._texts), **values}

    def add(self, frame: pd.DataFrame, *, first: int = 0) -> None:
        """Add a block of rows, wherever the table has them.

        Raises
        ------
        InputError
            For a missing value, and for more than `MOST_TIMES` different times.
        """
        column = written_times(frame, self._roles)
        assert column is not None
        if holds_text(column):
            self._texts.update(_words(pd.factorize(column)[1]))
        else:
            self._join(pd.unique(times_of(column) + 0))
        self._check()

    def join(self, other: SeenTimes) -> None:
        """Add those of another."""
        self._texts |= other._texts
        for values in other._values.values():
            self._join(values)

    def _join(self, values: Any) -> None:
        kind = values.dtype.name
        known = self._values.get(kind, values[:0])
        self._values[kind] = np.union1d(known, values)

    def _check(self) -> None:
        most = max(map(len, (self._texts, *self._values.values())))
        check_times(most, self._roles.time or "")

    def found(self) -> FolderTimes:
        """The different times of all rows.

        Raises
        ------
        InputError
            If some are numbers and others dates, and as `add`.
        """
        self._check()
        if len(self._values) + bool(self._texts) > 1:
            raise unlike_times(self._roles.time or "")
        for values in self._values.values():
            return FolderTimes(values)
        texts = np.array(sorted(self._texts), dtype=object)
        values, known = times_of_texts(pd.Series(texts))
        times, place = np.unique(values[known] + 0, return_inverse=True)
        return FolderTimes(times, tuple(texts[known].tolist()), place.astype(np.int64))


def with_settled_dates(sample: pa.Table, seen: Callable[[str], SeenTimes]) -> pa.Table:
    """Some rows of a folder with dates that these leave open written as those of all rows say.

    Parameters
    ----------
    seen : callable
        From a column's name to the times of all rows in it.
    """
    for at, field_ in enumerate(sample.schema):
        if not (pa.types.is_string(field_.type) or pa.types.is_large_string(field_.type)):
            continue
        roles, frame = Roles(time=field_.name), sample.select([at]).to_pandas()
        column = frame[field_.name]
        if not looks_like_dates(simple(column.name), column) or dates_of(column).notna().any():
            continue
        try:
            found = seen(field_.name).found()
            when = found.times[found.of(frame, roles)]
        except InputError:  # some are missing, or those of all files leave it open too
            continue
        days = pd.Series(pd.to_datetime(when, unit="us")).dt.strftime("%Y-%m-%dT%H:%M:%S")
        sample = sample.set_column(at, field_, pa.array(days.astype(object), field_.type))
    return sample


def _words(values: Any) -> list[str]:
    return pd.Series(values).astype("string").astype(object).tolist()
