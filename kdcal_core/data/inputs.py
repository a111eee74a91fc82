"""Which columns describe the rows, so that regions can be cut along them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from kdcal_core.data.numbers import mostly_numbers

_LOOKED_AT = 10_000  # rows, evenly spread
_FEW = 20  # values that no table has too few rows for
_MANY = 254  # categories that a tree over the inputs tells apart
IDS = ("id", "index", "row", "row_id", "unnamed_0", "rowid", "uuid")


def why_no_input(name: str, column: pd.Series[Any]) -> str:
    """Why a column of this content tells nothing of a row's region; empty where it does.

    Numbers, truth values and text of few values do. Free text and names of single rows do not, nor
    do whole numbers that only count or name them.

    Parameters
    ----------
    name : str
        The column's name in its simple form, as :func:`kdcal_core.data.role_names.simple` makes it.
    column : pandas.Series

    Examples
    --------
    >>> why_no_input("region", pd.Series(["north", "south"] * 50))
    ''
    >>> why_no_input("comment", pd.Series([f"call {i}" for i in range(100)]))
    'nearly every row has another value'
    >>> why_no_input("customer_id", pd.Series(range(100)))
    'it numbers the rows'
    """
    if pd.api.types.is_bool_dtype(column.dtype):
        return ""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    looked = column.iloc[:: max(len(column) // _LOOKED_AT, 1)].dropna()
    if mostly_numbers(column):
        named_id = name in IDS or name.endswith("_id")
        return "it numbers the rows" if named_id and _counts(looked) else ""
    if not pd.api.types.is_string_dtype(column.dtype):
        dates = pd.api.types.is_datetime64_any_dtype(column.dtype)
        return "dates or times" if dates else "neither numbers nor text"
    n_distinct = looked.nunique()
    if n_distinct > max(_FEW, len(looked) / 2):
        return "nearly every row has another value"
    return f"more than {_MANY} different values" if n_distinct > _MANY else ""


def _counts(numbers: pd.Series[Any]) -> bool:
    """Whether there are many whole numbers, no two the same."""
    values = pd.to_numeric(numbers, errors="coerce").dropna()
    return len(values) > _FEW and bool(values.is_unique and (values % 1 == 0).all())
