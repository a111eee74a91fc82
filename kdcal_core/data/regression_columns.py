"""The columns of a regression table taken by their roles, each checked on the way out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from kdcal_core.data.column_guesses import mostly_numbers
from kdcal_core.data.regression_parameters import (
    check_outcome,
    check_parameter_names,
    check_parameters,
)
from kdcal_core.data.role_columns import numeric_matrix
from kdcal_core.data.types import FloatArray, Roles, Table
from kdcal_core.errors import InputError


def outcome_column(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> FloatArray:
    """The outcomes, (n,) float64: finite, and above zero where the family wants that.

    Raises
    ------
    InputError
        Where no column is the outcome, it holds text, a value is missing or infinite, or the
        family cannot give it; the first such row is named.

    Examples
    --------
    >>> outcome_column(pd.DataFrame({"y": [1, 2]}), Roles(task="regression", target="y")).tolist()
    [1.0, 2.0]
    """
    frame, file = _opened(table, file)
    if roles.target is None:
        raise InputError("No column is the outcome", fix="Choose its column.", file=file)
    if roles.target in frame.columns and not mostly_numbers(frame[roles.target]):
        raise InputError(
            "The outcome holds no numbers, and a regression needs them",
            fix="Choose the column of numeric outcomes. Where the column holds classes, choose "
            "the task classification.",
            file=file,
            column=roles.target,
        )
    y = _finite(frame, roles.target, "An outcome", "Remove the row or fill it in.", file)
    check_outcome(y, roles.family, column=roles.target, file=file)
    return y


def parameter_columns(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> dict[str, FloatArray]:
    """The parameters of the predictive distributions, each (n,) float64, by their names.

    A "variance" comes back as the "std", its root.

    Raises
    ------
    InputError
        As `check_parameter_names` and `check_parameters`, and for a sample without a number.

    Examples
    --------
    >>> roles = Roles(task="regression", family="normal", parameters=(("mean", "m"), ("std", "s")))
    >>> parameter_columns(pd.DataFrame({"m": [1.0], "s": [2.0]}), roles)
    {'mean': array([1.]), 'std': array([2.])}
    """
    frame, file = _opened(table, file)
    check_parameter_names(
        roles.family,
        [name for name, _ in roles.parameters],
        columns=[column for _, column in roles.parameters],
        file=file,
    )
    assert roles.family is not None
    columns = dict(roles.parameters)
    if roles.family in ("samples", "dropout"):
        _check_numbers(columns, file)
    matrix = numeric_matrix(
        frame, list(columns.values()), allow_missing=True, allow_infinite=True, file=file
    )
    values = {name: np.ascontiguousarray(matrix[:, j]) for j, name in enumerate(columns)}
    check_parameters(values, roles.family, columns=columns, file=file)
    return {
        "std" if name == "variance" else name: np.sqrt(column) if name == "variance" else column
        for name, column in values.items()
    }


def true_mean_column(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> FloatArray | None:
    """A simulation's true conditional mean, (n,) float64, or None where no column has that role.

    Raises
    ------
    InputError
        For text and for a value that is missing or infinite.

    Examples
    --------
    >>> true_mean_column(pd.DataFrame({"m": [1]}), Roles(true_mean="m")).tolist()
    [1.0]
    """
    if roles.true_mean is None:
        return None
    frame, file = _opened(table, file)
    return _finite(frame, roles.true_mean, "A true mean", "Fill it in, or leave the row out.", file)


def _check_numbers(columns: Mapping[str, str], file: str | None) -> None:
    """Refuse samples that are called something else: they are parameters of another family."""
    for name, column in columns.items():
        if not name.isdecimal():
            raise InputError(
                f"{name[:60]!r} is no number of a sample",
                fix="Number the columns of the samples 1, 2, 3, ..., or choose another family.",
                file=file,
                column=column,
            )


def _finite(frame: pd.DataFrame, column: str, what: str, fix: str, file: str | None) -> FloatArray:
    values = numeric_matrix(frame, [column], allow_missing=True, allow_infinite=True, file=file)[
        :, 0
    ]
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        state = "missing" if np.isnan(values[row]) else "infinite"
        raise InputError(f"{what} is {state}", fix=fix, file=file, column=column, row=row + 1)
    return np.ascontiguousarray(values)


def _opened(table: Table | pd.DataFrame, file: str | None) -> tuple[pd.DataFrame, str | None]:
    if isinstance(table, Table):
        return table.frame, file or table.name
    return table, file
