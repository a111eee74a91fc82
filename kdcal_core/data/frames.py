"""Data frames and columns of any library, turned into pandas' at the door.

narwhals knows the libraries (polars, pyarrow, Modin, cuDF and others), and Arrow carries the
columns. They get the types that columns of a Parquet file get.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import issparse

from kdcal_core.data.arrow_tables import check_column_names, check_column_types, to_frame
from kdcal_core.errors import InputError

_OWN = (np.ndarray, pd.DataFrame, pd.Series, pd.Index, list, tuple, type(None))


def as_pandas(given: Any) -> Any:
    """The data frame or column of any library as pandas'; anything else as it is.

    Arrays, lists and what pandas made are returned at once. Of other libraries, columns become
    what :func:`kdcal_core.data.read_table` makes of them: integers with missing values, for
    example, are floats with NaN.

    Parameters
    ----------
    given : object

    Raises
    ------
    InputError
        For blank or duplicated column names, for a column of lists, records or other values that
        a table cannot hold, and for rows that have not been computed yet.

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_pandas(pa.table({"age": [31, None], "job": ["nurse", "cook"]}))["age"].tolist()
    [31.0, nan]
    >>> as_pandas([1, 2])
    [1, 2]
    """
    if isinstance(given, _OWN):
        return given
    if isinstance(given, pa.Table | pa.RecordBatch):  # narwhals would refuse some of them
        return _frame(pa.table(given))
    import narwhals as nw

    known = nw.from_native(given, pass_through=True, allow_series=True)
    if isinstance(known, nw.LazyFrame):
        raise InputError(
            f"The rows of a {type(given).__name__} have not been computed yet",
            fix="Collect them into a data frame first.",
        )
    if not isinstance(known, nw.DataFrame | nw.Series):
        return given
    dtypes = known.schema if isinstance(known, nw.DataFrame) else {known.name: known.dtype}
    for name, dtype in dtypes.items():
        if dtype == nw.Object:  # Arrow would carry their addresses, as bytes that may be text
            raise InputError(
                "The column holds Python objects, not text or numbers",
                fix="Leave it out of the table, or convert it to text.",
                column=name or None,
            )
    try:
        carried = known.to_arrow()
    except pa.ArrowException as error:
        raise _unreadable() from error
    if isinstance(known, nw.DataFrame):
        return _frame(carried)
    name = known.name or "values"
    return _read(pa.table({name: carried}))[name].rename(known.name or None)


def refuse_sparse(X: Any) -> None:
    """Refuse a sparse matrix where values are read column by column.

    Raises
    ------
    InputError
        For one of scipy.

    Examples
    --------
    >>> from scipy.sparse import eye
    >>> refuse_sparse(eye(2))
    Traceback (most recent call last):
    kdcal_core.errors.InputError: Sparse data are not read here. Give a dense array or a data \
frame: X.toarray().
    """
    if issparse(X):
        raise InputError(
            "Sparse data are not read here",
            fix="Give a dense array or a data frame: X.toarray().",
        )


def _frame(table: pa.Table) -> pd.DataFrame:
    check_column_names(table.column_names, None)
    return _read(table)


def _read(table: pa.Table) -> pd.DataFrame:
    check_column_types(table.schema, None)
    try:
        return to_frame(table, None, {})[0]
    except pa.ArrowException as error:
        raise _unreadable() from error


def _unreadable() -> InputError:
    return InputError(
        "A column holds values that a table cannot hold",
        fix="Give numbers, text, categories, truth values or dates.",
    )
