"""A few rows as JSON: those on which a saved estimator's parent is known again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.models import Features


def rows_to_json(rows: Features) -> dict[str, Any]:
    """Rows as JSON: a frame by columns, an array by columns without names."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows))
    columns = [[_plain(value) for value in column] for _, column in frame.items()]
    named = isinstance(rows, pd.DataFrame)
    return {"names": [str(name) for name in frame.columns] if named else None, "columns": columns}


def rows_from_json(record: Mapping[str, Any]) -> Features:
    """What :func:`rows_to_json` wrote; numbers are float64, a missing value is NaN or None.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> rows_from_json(rows_to_json(frame)).to_numpy(dtype=object).tolist()[0]
    [1.0, 'x']
    """
    columns = [_column(values) for values in record["columns"]]
    if record["names"] is not None:
        frame = pd.DataFrame(dict(enumerate(columns)))
        frame.columns = pd.Index([str(name) for name in record["names"]])
        return frame
    if all(column.dtype == np.float64 for column in columns):
        return np.column_stack(columns)
    return np.column_stack([column.astype(object) for column in columns])


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, bool | str) else _number_or_text(plain)


def _number_or_text(value: Any) -> float | str:
    return float(value) if isinstance(value, int | float) else str(value)


def _column(values: list[Any]) -> NDArray[Any]:
    if any(isinstance(value, str | bool) for value in values):
        return np.array(values, dtype=object)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
