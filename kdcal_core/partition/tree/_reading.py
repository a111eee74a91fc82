"""A column of a table as numbers or as category names, whatever dtype it came in."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.errors import InputError

Kind = Literal["number", "category", "empty"]

NUMBERS = ("integer", "floating", "mixed-integer-float")


def kind_of(values: pd.Series[Any], name: str, file: str | None) -> Kind:
    """Number or category, and "empty" where a column of objects holds nothing at all."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return "category"
    if pd.api.types.is_object_dtype(dtype):
        return _kind_of_objects(values, name, file)
    if pd.api.types.is_string_dtype(dtype):
        return "category"
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return "number"
    raise _unusable(str(dtype), name, file)


def _kind_of_objects(values: pd.Series[Any], name: str, file: str | None) -> Kind:
    found = pd.api.types.infer_dtype(values, skipna=True)
    if found == "empty":
        return "empty"
    if found in ("string", "boolean"):
        return "category"
    if found in NUMBERS:
        return "number"
    raise _unusable(found, name, file)


def _unusable(found: str, name: str, file: str | None) -> InputError:
    dates = found.startswith(("date", "time", "period"))
    return InputError(
        "A column of the inputs holds dates or times"
        if dates
        else f"A column of the inputs holds neither numbers nor categories but {found} values",
        fix="Turn it into numbers, for example days since a date, or leave it out."
        if dates
        else "Turn it into numbers or text, or leave it out.",
        file=file,
        column=name,
    )


def numbers_of(values: pd.Series[Any], name: str, file: str | None) -> NDArray[np.float64]:
    """The values as contiguous float64, NaN where missing."""
    try:
        return np.ascontiguousarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    except OverflowError as error:
        raise InputError(
            "A column of the inputs holds whole numbers above 1e308",
            fix="Give smaller ones; where they only name things, give them as text.",
            file=file,
            column=name,
        ) from error


def categories_of(values: pd.Series[Any]) -> tuple[NDArray[np.int64], list[str]]:
    """Each row's index into the names, -1 where missing, and the names."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, found = values.cat.codes.to_numpy(), values.cat.categories
    else:
        codes, found = pd.factorize(values)
    return np.asarray(codes, dtype=np.int64), [str(name) for name in found]


def unusable_columns(frame: pd.DataFrame) -> dict[str, str]:
    """Columns that cannot partition the inputs, each with the reason in words.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 30], "day": pd.to_datetime(["2026-01-01"] * 2)})
    >>> unusable_columns(frame)
    {'day': 'A column of the inputs holds dates or times'}
    """
    reasons = {}
    for position, name in enumerate(frame.columns):
        try:
            kind_of(frame.iloc[:, position], str(name), None)
        except InputError as error:
            reasons[str(name)] = error.what
    return reasons
