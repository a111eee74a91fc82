"""Whether a column was meant to hold numbers, and its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data.types import FloatArray

_SAMPLE = 2_000


def is_number(column: pd.Series[Any]) -> bool:
    """Whether the column's type is numeric; truth values are not.

    Examples
    --------
    >>> is_number(pd.Series([1, 2])), is_number(pd.Series([True]))
    (True, False)
    """
    kind = column.dtype
    return bool(pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind))


def mostly_numbers(column: pd.Series[Any]) -> bool:
    """Whether a column was meant to hold numbers.

    One stray word makes text of a whole column; were it passed over here, its class would lose
    its probability without a word. The checks that follow name the stray.

    Examples
    --------
    >>> mostly_numbers(pd.Series(["1", "2", "oops"])), mostly_numbers(pd.Series(["a", "b"]))
    (True, False)
    """
    if is_number(column):
        return True
    if not pd.api.types.is_string_dtype(column.dtype):
        return False
    sample = column.iloc[:: max(len(column) // _SAMPLE, 1)].dropna()
    return bool(len(sample)) and bool(pd.to_numeric(sample, errors="coerce").notna().mean() > 0.5)


def sampled(frame: pd.DataFrame, columns: Sequence[str]) -> FloatArray:
    """About 2,000 rows of the columns as numbers, evenly spread; what is none becomes NaN.

    Examples
    --------
    >>> sampled(pd.DataFrame({"x": ["1", "no"]}), ["x"]).tolist()
    [[1.0], [nan]]
    """
    step = max(len(frame) // _SAMPLE, 1)
    sample = frame.iloc[::step][list(columns)].apply(pd.to_numeric, errors="coerce")
    values: FloatArray = sample.to_numpy(dtype=np.float64, na_value=np.nan)
    return values
