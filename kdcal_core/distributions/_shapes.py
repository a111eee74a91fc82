"""Arguments of distributions at the boundary: their shapes and their ranges."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdcal_core.data.types import FloatArray
from kdcal_core.errors import InputError


def numbers_of(values: ArrayLike, what: str) -> FloatArray:
    """``values`` as float64, whatever kind of number they are."""
    given: NDArray[Any] = np.asarray(values)
    if given.dtype.kind not in "biuf":
        raise InputError(f"{what} must be numbers", fix="Give numbers without text among them.")
    return given.astype(np.float64, copy=False)


def checked_outcomes(y: ArrayLike, *, one_a_row: bool = False) -> FloatArray:
    """Outcomes, none missing; with ``one_a_row`` one a row (or for all), each finite."""
    values = numbers_of(y, "Outcomes")
    if one_a_row and values.ndim > 1:
        raise InputError(
            f"Outcomes of {values.ndim} dimensions cannot be scored", fix="Give one outcome a row."
        )
    wrong = ~np.isfinite(values) if one_a_row else np.isnan(values)
    if wrong.any():
        raise InputError(
            f"An outcome is missing{' or infinite' if one_a_row else ''}",
            fix="Leave the row out.",
            row=_first_row(wrong),
        )
    return values


def checked_levels(p: ArrayLike, *, open_ended: bool = False) -> FloatArray:
    """Probability levels in [0, 1], or (0, 1) where ``open_ended``."""
    values = numbers_of(p, "Levels")
    good = (values > 0) & (values < 1) if open_ended else (values >= 0) & (values <= 1)
    if not good.all():
        wrong = np.ravel(values)[~np.ravel(good)][0]
        raise InputError(
            f"The level {wrong:g} is no probability",
            fix="Levels lie strictly between 0 and 1." if open_ended else "Levels lie in [0, 1].",
        )
    return values


def central_levels(level: float) -> tuple[float, float]:
    """Levels of the two ends of the central interval of probability ``level``, in (0, 1).

    Worked out in decimals, as the level was meant: in binary (1 - 0.95) / 2 exceeds 0.025, and of
    1,000 samples the 26th would be taken for the 25th.

    Examples
    --------
    >>> central_levels(0.95)
    (0.025, 0.975)
    """
    checked_levels(level, open_ended=True)
    exact = Decimal(repr(float(level)))
    return float((1 - exact) / 2), float((1 + exact) / 2)


def table_of(argument: FloatArray, n_rows: int) -> FloatArray:
    """An argument as (n, g), or as (1, g) where all rows share it."""
    if argument.ndim == 0:
        return argument.reshape(1, 1)
    table = argument[:, np.newaxis] if argument.ndim == 1 else argument
    shared = argument.ndim == 2 and len(argument) == 1
    if argument.ndim > 2 or not (shared or len(table) == n_rows):
        raise InputError(
            f"An argument of shape {argument.shape} does not fit {n_rows:,} rows",
            fix="Give one value, one a row, or a table of one row for all or one row for each.",
        )
    return table


def checked_table(table: ArrayLike, name: str) -> FloatArray:
    """Samples or quantiles as (n, k) float64, all finite, k at least 1."""
    values = numbers_of(table, f"The {name}s")
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(
            f"The {name}s have the shape {values.shape}",
            fix=f"Give a table of one row for each prediction and one column for each {name}.",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # a sum is finite only of finite numbers
        suspicious = np.flatnonzero(~np.isfinite(values.sum(axis=1)))
    wrong = np.argwhere(~np.isfinite(values[suspicious]))
    if len(wrong):
        row, column = suspicious[wrong[0, 0]], wrong[0, 1]
        raise InputError(
            f"The {name} in place {column + 1:,} of the row is {values[row, column]:g}",
            fix="Mend the prediction, or leave the row out.",
            row=int(row) + 1,
        )
    return values


def _first_row(wrong: NDArray[np.bool_]) -> int | None:
    return int(np.argwhere(wrong)[0][0]) + 1 if wrong.ndim else None
