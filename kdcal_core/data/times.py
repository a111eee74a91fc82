"""Columns of dates and times: which they are, what they say, and the periods they divide into."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.schema import FloatArray, IntArray

FEWEST_TIMES = 8  # of which the latest can be compared with those before
FEWEST_ASKED = 30
"""Times from which on rows are offered an order: fewer say hardly how alike near ones are."""
MOST_PERIODS = 12
_FEWEST = 30  # rows of a period, as of declared groups
_MOSTLY = 0.95
_LOOKED_AT = 10_000  # rows, evenly spread
# with a year of four digits first or last, as 22.07.2026, 7/22/2026 or 2026/07/22, and a time;
# or a year and a month
_DATE = re.compile(
    r"\s*(?:\d{4}([./-])\d{1,2}\1\d{1,2}|\d{1,2}([./-])\d{1,2}\2\d{4})(?:[ T,]+\d{1,2}:\d{2}.*)?\s*"
    r"|\s*(?:19|20)\d\d[-/](?:0[1-9]|1[0-2])\s*"
)
_ORDERS = ("ISO8601", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_SAYS_TIME = re.compile(
    r"(?:.*_)?(?:\w*(?:date|time|timestamp)|day|month|week|period|ts|epoch|ds)|.*_(?:at|on)"
)
_NOT_OF_ROWS = re.compile(r".*(?:birth|dob|born|expir|matur|valid_until|deadline).*")
_YEARS = (1980, 2100)
_PARTS = (1.0, 1e3, 1e6, 1e9)  # of a second, in which times since 1970 are counted
_LAST = 4.2e9  # seconds from 1970 to 2103
_DAY = "%Y-%m-%d"
_UNITS = (("D", _DAY), ("W", _DAY), ("M", "%Y-%m"), ("Q", "%Y-Q%q"), ("Y", "%Y"))


def looks_like_dates(name: str, column: pd.Series[Any]) -> bool:
    """Whether a column holds dates or times, by its values and for numbers by its name too.

    Parameters
    ----------
    name : str
        In its simple form, as :func:`kdcal_core.data.column_kinds.simple` makes it.
    column : pandas.Series

    Examples
    --------
    >>> looks_like_dates("applied", pd.Series(["22.07.2026", "8.7.2026"]))
    True
    >>> looks_like_dates("timestamp", pd.Series([1785000000, 1785000060]))
    True
    >>> [looks_like_dates(name, pd.Series([202603, 202604])) for name in ("month", "amount")]
    [True, False]
    """
    looked = column.iloc[:: max(len(column) // _LOOKED_AT, 1)].dropna()
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    if not len(looked) or pd.api.types.is_bool_dtype(looked.dtype):
        return False
    if pd.api.types.is_numeric_dtype(looked.dtype):
        return _SAYS_TIME.fullmatch(name) is not None and bool(_of_numbers(looked).notna().all())
    text = looked.astype(str)
    return bool(text.str.fullmatch(_DATE).mean() > _MOSTLY)


def may_order_rows(name: str) -> bool:
    """Whether dates of this simple name may be those of the rows, and not of birth or expiry.

    Examples
    --------
    >>> may_order_rows("applied_on"), may_order_rows("date_of_birth")
    (True, False)
    """
    return _NOT_OF_ROWS.fullmatch(name) is None


def dates_of(column: pd.Series[Any]) -> pd.Series[Any]:
    """The dates and times of a column, missing where none can be read.

    Numbers are seconds since 1970, or thousandths to billionths of them, or years and months as
    202603, or with days as 20260331. Of text whose days and months may be either, none is read.

    Examples
    --------
    >>> [str(one.date()) for one in dates_of(pd.Series(["3/31/2026", "4/1/2026"]))]
    ['2026-03-31', '2026-04-01']
    >>> int(dates_of(pd.Series(["3/1/2026", "4/1/2026"])).notna().sum())
    0
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return pd.to_datetime(column, utc=True)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _of_numbers(column)
    text, known = column.astype("string"), column.notna()
    found = [pd.to_datetime(text, errors="coerce", format=_ORDERS[0], utc=True)]
    if found[0][known].notna().all():
        return found[0]
    found += [pd.to_datetime(text, errors="coerce", format=one, utc=True) for one in _ORDERS[1:]]
    if all(one[known].notna().all() for one in found[-2:]):
        return pd.Series(pd.NaT, column.index, dtype=found[0].dtype)
    return max(found, key=lambda one: int(one.notna().sum()))


def _of_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Dates of whole numbers, missing where all of them are no such numbers."""
    nothing = pd.Series(pd.NaT, column.index, dtype="datetime64[ns, UTC]")
    known = column.dropna().astype(np.float64)
    if not len(known) or not (known % 1 == 0).all() or known.abs().max() >= _LAST * _PARTS[-1]:
        return nothing
    for digits, form in ((6, "%Y%m"), (8, "%Y%m%d")):
        if known.between(10 ** (digits - 1), 10**digits - 1).all():
            text = column.astype("Int64").astype("string")
            found = pd.to_datetime(text, errors="coerce", format=form, utc=True)
            if _in_our_days(found[known.index]):
                return found
    parts = next(one for one in _PARTS if known.abs().max() < _LAST * one)
    since = pd.to_timedelta(column.astype(np.float64) / parts, unit="s")
    found = pd.Timestamp(0, tz="UTC") + since
    return found if _in_our_days(found[known.index]) else nothing


def _in_our_days(dates: pd.Series[Any]) -> bool:
    return bool(dates.notna().all() and dates.dt.year.between(*_YEARS).all())


def holds_text(column: pd.Series[Any] | pd.Index[Any]) -> bool:
    """Whether a column holds neither numbers nor dates."""
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return not (numeric or pd.api.types.is_datetime64_any_dtype(column.dtype))


def times_of(column: pd.Series[Any]) -> NDArray[Any]:
    """Comparable times of a column of numbers or dates, as `kdcal_core.data.time_column`."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64)
    if column.dt.tz is not None:
        column = column.dt.tz_convert(None)
    return np.asarray(column.dt.as_unit("us"), dtype=np.int64)


def times_of_texts(column: pd.Series[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Comparable times that texts stand for, and whether each stands for one; both (n,).

    All are read in one way, which follows from all of them.

    Examples
    --------
    >>> found, known = times_of_texts(pd.Series(["1/2/1970", "1/31/1970", "soon"]))
    >>> (found[:2] // 86_400_000_000).tolist(), known.tolist()
    ([1, 30], [True, True, False])
    """
    text = column.astype("string")
    numbers = pd.to_numeric(text, errors="coerce")
    if numbers.notna().all():
        return numbers.to_numpy(dtype=np.float64), np.ones(len(text), dtype=bool)
    dates = dates_of(text)
    known = dates.notna().to_numpy(dtype=bool)
    return times_of(dates.fillna(pd.Timestamp(0, tz="UTC"))), known


def time_span(column: pd.Series[Any]) -> tuple[str, ...]:
    """The first and the last day of a column of dates, as in ISO 8601; empty for other columns.

    Examples
    --------
    >>> time_span(pd.Series(["30.04.2026", "2.3.2026"])), time_span(pd.Series([7, 8]))
    (('2026-03-02', '2026-04-30'), ())
    """
    dates = dates_of(column)
    if not len(dates) or not dates.notna().all():
        return ()
    return dates.min().date().isoformat(), dates.max().date().isoformat()


def time_words(value: Any) -> str:
    """A time as it is written in a table, or as a date where it is one. Untrusted text.

    Examples
    --------
    >>> time_words("31.03.2026"), time_words(pd.Timestamp("2026-03-31")), time_words(7)
    ('31.03.2026', '2026-03-31', '7')
    """
    if isinstance(value, pd.Timestamp | np.datetime64):
        said = str(pd.Timestamp(value).round("s"))
        return said.removesuffix("+00:00").removesuffix(" 00:00:00")
    return str(value)


def periods(
    dates: pd.Series[Any], counts: IntArray | FloatArray | None = None
) -> tuple[IntArray, list[str]]:
    """Period of each date (n,), and their names in order: days, weeks, months, quarters or years.

    They are the shortest of which there are at most 12, or 13 with the first two together. One of
    fewer than 30 rows joins its neighbour.

    Parameters
    ----------
    dates : Series of n dates, none of them missing
    counts : (n,) array, optional
        For how many rows each stands.

    Examples
    --------
    >>> days = pd.Series(pd.date_range("2026-01-01", periods=200))
    >>> labels, names = periods(days)
    >>> names[:3], np.bincount(labels).tolist()
    (['2026-01', '2026-02 to 2026-03', '2026-04'], [31, 59, 30, 31, 49])
    """
    plain = dates.dt.tz_localize(None) if dates.dt.tz is not None else dates
    some = pd.Series(plain.unique())
    few = (one for one in _UNITS if some.dt.to_period(one[0]).nunique() <= MOST_PERIODS + 1)
    if (some.dt.day == 1).all() and (some == some.dt.normalize()).all():  # stands for months
        few = (one for one in few if one[0] not in "DW")
    unit, form = next(few, _UNITS[-1])
    each = plain.dt.to_period(unit)
    used, place = np.unique(each.astype("int64"), return_inverse=True)
    rows = np.bincount(place, counts, len(used))
    joined, held = np.zeros(len(used), dtype=np.int64), 0.0
    for at in range(1, len(used)):
        held += rows[at - 1]
        enough = held >= _FEWEST and rows[at:].sum() >= _FEWEST
        enough = enough and not (at == 1 and len(used) > MOST_PERIODS)
        joined[at] = joined[at - 1] + enough
        held = 0.0 if enough else held
    labels = joined[place]
    if form == _DAY:
        each = plain.dt.to_period("D")
    ends = each.groupby(labels).agg(["min", "max"])
    names = [
        " to ".join(dict.fromkeys(one.strftime(form) for one in both))
        for both in ends.itertuples(index=False)
    ]
    return labels, names
