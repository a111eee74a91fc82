"""What a summary keeps of rows in the order of time: sums over the rows of each different time.

From them follows whether the latest rows show what those before them do
(`kdcal_core.diagnostics.latest_rows`), which asks for sums over whole times alone. Every value of a
row is rounded to 2^-34 of a unit of weight and added as whole numbers, so that all orders of the
same rows give the same bytes. A table has at most `MOST_TIMES` different times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.latest_rows import TimeSums
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    Dependence,
    normal_quantile,
    small_sample_factor,
    t_quantile_of_rows,
)

MOST_TIMES = 100_000
"""Different times that are counted: about 15 MB with one question, 30 MB with two."""

Question = tuple[FloatArray, FloatArray, FloatArray]
"""What was seen of each row, what was stated, and its variance by the model."""

_BITS, _LIMB, _LIMBS, _SUMS = 34, 26, 3, 6
_HALF = 22  # bits of a row's squared units, at most 44, that are added at once


@dataclass(frozen=True, eq=False)
class TimeTable:
    """Sums over the rows of each of T times; tables add, in any order.

    Attributes
    ----------
    column : str
        Name of the column of times. Untrusted text.
    times : (T,) int64 or float64
        Ascending: microseconds since 1970 of dates, else the numbers themselves.
    rows, units, squares : (T,) int64
        Rows of each time, units of their weights, and sums of the squares of these.
    sums : (Q, 6, 3, T) int64
        For each of Q questions, such as whether an event happened, those of
        `kdcal_core.diagnostics.latest_rows.TimeSums` from ``stated`` to ``spread``, each as three
        integers.
    event : int or None
        The class whose event the first question is about, if it is that of a class.

    Examples
    --------
    >>> half = np.full(2, 0.5)
    >>> days = [np.array(one) for one in ([3.0, 1.0], [1.0, 1.0])]
    >>> seen = [(np.array(one), half, half / 2) for one in ([1.0, 0.0], [1.0, 1.0])]
    >>> one, two = (TimeTable.of(at, "day", [each]) for at, each in zip(days, seen, strict=True))
    >>> (one + two).times.tolist(), (one + two).sums_of(0).seen.tolist()
    ([1.0, 3.0], [2.0, 1.0])
    """

    column: str
    times: IntArray | FloatArray
    rows: IntArray
    units: IntArray
    squares: IntArray
    sums: IntArray
    event: int | None = None

    def __post_init__(self) -> None:
        size = len(self.times)
        whole = self.rows, self.units, self.squares, self.sums
        if (
            self.times.dtype not in (np.int64, np.float64)
            or any(one.dtype != np.int64 or one.shape[-1:] != (size,) for one in whole)
            or self.sums.shape[1:] != (_SUMS, _LIMBS, size)
            or (np.diff(self.times) <= 0).any()
        ):
            raise InputError("The times of a summary are damaged", fix="Summarise the rows again.")
        check_times(size, self.column)

    @classmethod
    def of(
        cls,
        when: IntArray | FloatArray,
        column: str,
        questions: Sequence[Question],
        times: IntArray | None = None,
        *,
        event: int | None = None,
    ) -> TimeTable:
        """Of a batch of rows.

        Parameters
        ----------
        when : (n,) int64 or float64
            Times, as :func:`kdcal_core.data.time_column` reads them.
        column : str
            Name of their column.
        questions : sequence of (seen, stated, own), each (n,) in [0, 1]
            As of :func:`kdcal_core.diagnostics.latest_rows.latest_rows`.
        times : (n,) int64, optional
            Units of the rows' weights.
        event : int, optional

        Raises
        ------
        InputError
            For more than `MOST_TIMES` different times.
        """
        found: Any
        unit, found = pd.factorize(when + 0, sort=True)  # with 0 added, -0.0 is 0.0
        rows: IntArray = np.bincount(unit, minlength=len(found)).astype(np.int64)
        units = squares = rows
        if times is not None:
            units, square = _whole(unit, times, len(found)), np.square(times)
            high, low = square >> _HALF, square & ((1 << _HALF) - 1)
            squares = _whole(unit, high, len(found)) << _HALF
            squares = squares + _whole(unit, low, len(found))
        sums = np.zeros((len(questions), _SUMS, _LIMBS, len(found)), np.int64)
        for place, (seen, stated, own) in enumerate(questions):
            gap = seen - stated
            for value, (what, power) in enumerate(
                ((stated, 1), (seen, 1), (own, 2), (own**0.5, 1), (gap, 2), (gap**2, 2))
            ):
                mass = 1.0 if times is None else times.astype(np.float64) ** power
                _add(np.rint(np.ldexp(what * mass, _BITS)), unit, sums[place, value])
        return cls(column, found, rows, units, squares, sums, event)

    def __add__(self, other: TimeTable) -> TimeTable:
        if len({(one.column, one.times.dtype, one.event) for one in (self, other)}) > 1:
            raise unlike_times(self.column)
        times: Any = np.union1d(self.times, other.times)
        places = [np.searchsorted(times, one.times) for one in (self, other)]

        def both(name: str) -> IntArray:
            parts = getattr(self, name), getattr(other, name)
            total = np.zeros((*parts[0].shape[:-1], len(times)), np.int64)
            for part, place in zip(parts, places, strict=True):
                total[..., place] += part
            return total

        rows, units, squares, sums = map(both, ("rows", "units", "squares", "sums"))
        return TimeTable(self.column, times, rows, units, squares, sums, self.event)

    def regrouped(self, times: IntArray, some: NDArray[np.bool_] | None = None) -> TimeTable:
        """The same sums, or ``some`` (T,) of them, at other times (T,); of equal ones together."""
        kept = np.arange(len(times)) if some is None else np.flatnonzero(some)
        order = kept[np.argsort(times[kept], kind="stable")]
        starts = np.flatnonzero(np.diff(times[order], prepend=-1))

        def each(sums: IntArray) -> IntArray:
            return np.asarray(np.add.reduceat(sums[..., order], starts, axis=-1))

        rows, units, squares, sums = map(each, (self.rows, self.units, self.squares, self.sums))
        found = times[order][starts]
        return TimeTable(self.column, found, rows, units, squares, sums, self.event)

    @property
    def column_of_times(self) -> pd.Series[Any]:
        """The different times in their order, (T,), as a column of dates or numbers."""
        if self.times.dtype == np.int64:
            return pd.Series(pd.to_datetime(self.times, unit="us", utc=True), name=self.column)
        whole = (self.times % 1 == 0).all() and np.abs(self.times).max() < 2.0**63
        return pd.Series(self.times.astype(np.int64) if whole else self.times, name=self.column)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What stands for the rows in a digest, whatever is asked of them."""
        return self.times, self.rows, self.units, self.squares

    def sums_of(self, question: int) -> TimeSums:
        """What was counted for one of the questions."""
        powers = (_LIMB * (_LIMBS - 1 - np.arange(_LIMBS)) - _BITS)[:, np.newaxis]
        each = np.ldexp(self.sums[question].astype(np.float64), powers).sum(axis=1)
        counts = (one.astype(np.float64) for one in (self.rows, self.units, self.squares))
        return TimeSums(*counts, *each)

    def gap_variance(self, question: int) -> float:
        """Variance of the mean of seen minus stated, of times that may depend on near ones.

        Newey and West's (1987), as of :func:`kdcal_core.statistics.mean_interval`, times the square
        of Student's quantile of 95% over the normal one.
        """
        sums, n = self.sums_of(question), len(self.times)
        near = Dependence.of_units("time", np.arange(n))
        total = sums.seen - sums.stated
        away = total - total.sum() / sums.weight.sum() * sums.weight
        square = float(np.square(near.totals(away)).sum()) / float(sums.weight.sum()) ** 2
        quantile = t_quantile_of_rows(0.95, sums.weight) / normal_quantile(0.95)
        return square * small_sample_factor(n, near.lags) * quantile**2


def _add(values: FloatArray, unit: IntArray, into: IntArray) -> None:
    """Add whole numbers (n,) below 2^78 to sums in three integers, (3, T)."""
    for limb in reversed(range(_LIMBS)):
        rest = np.floor(np.ldexp(values, -_LIMB)) if limb else np.zeros_like(values)
        into[limb] += _whole(unit, values - np.ldexp(rest, _LIMB), into.shape[1])
        if not (rest.any() and limb):
            return
        values = rest


def _whole(unit: IntArray, values: IntArray | FloatArray, size: int) -> IntArray:
    """Sums of whole numbers below 2^26, exact for up to 2^27 rows of one time."""
    return np.bincount(unit, values, size).astype(np.int64)


def check_times(n: int, column: str) -> None:
    """Refuse more than `MOST_TIMES` different times."""
    if n > MOST_TIMES:
        raise InputError(
            f"There are more than {MOST_TIMES:,} different times",
            fix="Name a column of days or hours, or round the times to them.",
            column=column,
        )


def unlike_times(column: str) -> InputError:
    """What says that times cannot be compared."""
    return InputError(
        "Times are of different columns, or numbers in some files and dates in others",
        fix="Write all of them alike, in one column.",
        column=column,
    )
