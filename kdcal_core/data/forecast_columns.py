"""The outcomes and forecasts of a table taken by their roles, each checked on the way out."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from kdcal_core.data.array_checks import refuse_rows
from kdcal_core.data.column_kinds import mostly_numbers, signed_shares
from kdcal_core.data.regression_columns import (
    check_outcome,
    check_parameter_names,
    check_parameters,
)
from kdcal_core.data.role_columns import numeric_matrix, opened
from kdcal_core.data.schema import FloatArray, Roles, Table
from kdcal_core.errors import InputError


def without_sign(roles: Roles, signed: Collection[str]) -> list[str]:
    """The outcome and forecasts without a percent sign, where others of them are ``signed``.

    Examples
    --------
    >>> roles = Roles(task="regression", target="y", family="point", parameters=(("mean", "m"),))
    >>> without_sign(roles, {"y"}), without_sign(roles, {"y", "m"}), without_sign(roles, set())
    (['m'], [], [])
    """
    columns = [column for name, column in roles.parameters if name not in ("shape", "df")]
    units = [roles.target, *columns] if roles.target else columns
    plain = [name for name in units if name not in signed]
    return plain if len(plain) < len(units) else []


def _forecasts_in_one_unit(frame: pd.DataFrame, roles: Roles, file: str | None) -> pd.DataFrame:
    """The frame with percentages as shares, if the outcome and all forecasts in it are such."""
    columns = [roles.target or "", *(column for _, column in roles.parameters)]
    columns = [name for name in columns if name in frame.columns and frame[name].notna().any()]
    signed = signed_shares(frame, columns) if roles.parameters else {}
    plain = [name for name in without_sign(roles, signed) if name in columns]
    if plain and signed:
        raise InputError(
            f"{next(iter(signed))[:60]!r} holds percentages with their sign, and this column does "
            "not",
            fix="Write all of them with a percent sign, or all of them without.",
            file=file,
            column=plain[0],
        )
    return frame.assign(**signed)


def outcome_column(
    table: Table | pd.DataFrame, roles: Roles, file: str | None = None
) -> FloatArray:
    """The outcomes, (n,) float64: finite, and above zero where the family needs that.

    Percentages with their sign are read as shares where the forecasts have theirs too.

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
    frame, file = opened(table, file)
    if roles.target is None:
        raise InputError("No column is the outcome", fix="Choose its column.", file=file)
    frame = _forecasts_in_one_unit(frame, roles, file)
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

    A "variance" comes back as the "std", its root. Percentages with their sign are read as shares.

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
    frame, file = opened(table, file)
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
    frame = _forecasts_in_one_unit(frame, roles, file)
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
    frame, file = opened(table, file)
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
    refuse_rows(np.isnan(values), f"{what} is missing", fix, column=column, file=file)
    refuse_rows(np.isinf(values), f"{what} is infinite", fix, column=column, file=file)
    return np.ascontiguousarray(values)
