"""How rows of a table depend on one another, by its columns of clusters or times."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data.array_checks import refuse_rows
from kdcal_core.data.role_columns import known_column, opened
from kdcal_core.data.schema import Roles, Table
from kdcal_core.data.times import holds_text, times_of, times_of_texts
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence


def cluster_column(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> pd.Series[Any] | None:
    """What each row belongs to, (n,), as read; None where no column names clusters.

    Raises
    ------
    InputError
        For a missing value.

    Examples
    --------
    >>> cluster_column(pd.DataFrame({"ward": ["b", "a"]}), Roles(cluster="ward")).tolist()
    ['b', 'a']
    """
    if roles.cluster is None:
        return None
    return _complete(table, roles.cluster, "cluster", file)


def _complete(
    table: Table | pd.DataFrame, name: str, what: str, file: str | None
) -> pd.Series[Any]:
    """A column without missing values; an error names the first row with one."""
    frame, file = opened(table, file)
    column = known_column(frame, name, file)
    fix = "Fill it in, or leave the row out."
    missing = column.isna().to_numpy()
    refuse_rows(missing, f"The {what} is missing", fix, column=name, file=file)
    return column


def row_dependence(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> Dependence | None:
    """How rows depend on one another, by the cluster or time column; None without such a column.

    Times are numbers, dates, or text that is written as either (2026-03-31).

    Raises
    ------
    InputError
        For a missing value, a time that is neither, or where all rows are of one cluster or time.

    Examples
    --------
    >>> frame = pd.DataFrame({"patient": ["b", "a", "b"], "day": ["2026-02-01", "2026-01-01", "3"]})
    >>> row_dependence(frame, Roles(cluster="patient")).unit.tolist()
    [0, 1, 0]
    >>> row_dependence(frame[:2], Roles(time="day")).unit.tolist()
    [1, 0]
    >>> german = pd.DataFrame({"day": ["01.02.2026", "31.01.2026"]})
    >>> row_dependence(german, Roles(time="day")).unit.tolist()
    [1, 0]
    """
    name = roles.cluster if roles.time is None else roles.time
    if name is None:
        return None
    frame, file = opened(table, file)
    kind: Literal["cluster", "time"] = "cluster" if roles.time is None else "time"
    values = time_column(frame, roles, file)
    if (clusters := cluster_column(frame, roles, file)) is not None:
        values = pd.factorize(clusters)[0]
    found = Dependence.of(kind, values, name)
    if found.n_units < 2:
        raise InputError(
            f"All rows are of one {kind}, so nothing says how much such units differ",
            fix="Choose a column with several, or take the role away from this one.",
            file=file,
            column=name,
        )
    return found


def time_column(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> NDArray[Any] | None:
    """Comparable times of the rows, (n,); None where no column orders them.

    Numbers are float64. Dates are int64, in microseconds since 1970.

    Raises
    ------
    InputError
        For a missing value, and for one that is neither a number nor a date.

    Examples
    --------
    >>> time_column(pd.DataFrame({"day": ["1970-01-02"]}), Roles(time="day")).tolist()
    [86400000000]
    """
    column = written_times(table, roles, file)
    if column is None:
        return None
    if not holds_text(column):
        return times_of(column)
    _, file = opened(table, file)
    found, known = times_of_texts(column)
    refuse_no_times(~known, roles, file)
    return found


def written_times(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> pd.Series[Any] | None:
    """The times of the rows as they are written, (n,); None where no column orders them.

    Raises
    ------
    InputError
        For a missing value.
    """
    if roles.time is None:
        return None
    column = _complete(table, roles.time, "time", file)
    if isinstance(column.dtype, pd.CategoricalDtype) and not holds_text(column.cat.categories):
        column = column.astype(column.cat.categories.dtype)
    return column


def refuse_no_times(faulty: NDArray[np.bool_], roles: Roles, file: str | None = None) -> None:
    """Refuse rows (n,) whose text stands for no time; the error names the first of them."""
    what = (
        "A time is no number and no date that is written as 2026-03-31, 2026-03-31T09:00 or "
        "31.03.2026"
    )
    refuse_rows(faulty, what, "Write all of them alike.", column=roles.time, file=file)
