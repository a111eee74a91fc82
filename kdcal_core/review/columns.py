"""Descriptions of a table's columns, from which their roles are chosen."""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd
from pandas.api import types

from kdcal_core.data import classes_of
from kdcal_core.data.column_guesses import simple, why_no_input
from kdcal_core.review.model import ColumnInfo

_LOOKED_AT = 10_000  # rows; enough to separate labels from measurements
_EXAMPLES = 3
_MAX_TEXT = 40


def describe_columns(frame: pd.DataFrame) -> tuple[ColumnInfo, ...]:
    """One `ColumnInfo` a column, in the table's order.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1.5, None, 1.5], "b": ["x", "y", "z"]})
    >>> [(c.name, c.kind, c.n_missing, c.n_distinct, c.examples) for c in describe_columns(frame)]
    [('a', 'number', 1, 1, ('1.5',)), ('b', 'text', 0, 3, ('x', 'y', 'z'))]
    """
    return tuple(_describe(str(name), frame.iloc[:, j]) for j, name in enumerate(frame.columns))


def _describe(name: str, column: pd.Series[Any]) -> ColumnInfo:
    distinct = column.iloc[:_LOOKED_AT].dropna().unique()
    return ColumnInfo(
        name=name,
        kind=_kind(column.dtype),
        n_missing=int(column.isna().sum()),
        n_distinct=len(distinct),
        examples=tuple(_text(value) for value in distinct[:_EXAMPLES]),
        pair=_pair(column) if len(distinct) <= 2 else (),
        no_input=why_no_input(simple(name), column),
    )


def _pair(column: pd.Series[Any]) -> tuple[str, ...]:
    """Of all rows: a table sorted by its target shows one label for long."""
    labels = column.dropna().unique()
    return classes_of(labels) if len(labels) == 2 else ()


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:_MAX_TEXT]


def _kind(dtype: Any) -> Literal["number", "text", "boolean", "date"]:
    if types.is_bool_dtype(dtype):
        return "boolean"
    if types.is_numeric_dtype(dtype):
        return "number"
    if types.is_datetime64_any_dtype(dtype):
        return "date"
    return "text"
