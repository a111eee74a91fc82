"""Foreign rows made from a table's own: on spheres, in its box, shuffled, shifted far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from pandas.api import types

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.foreign_distance import sphere_points
from kdcal_core.errors import InputError


@dataclass(frozen=True, eq=False)
class Extent:
    """Where the rows of a table lie, told by its numeric columns.

    Attributes
    ----------
    columns : tuple of str
        The numeric columns. Untrusted text.
    centre, spread : (d,) float64
        Mean and standard deviation of each; a spread of zero counts as one.
    low, high : (d,) float64
    reach : float
        Largest distance of a row from the centre, with every column in units of its spread.
    """

    columns: tuple[str, ...]
    centre: FloatArray
    spread: FloatArray
    low: FloatArray
    high: FloatArray
    reach: float


def numeric_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns that can be moved by any amount: numbers, but no truth values.

    Examples
    --------
    >>> numeric_columns(pd.DataFrame({"a": [1], "b": ["x"], "c": [True]}))
    ('a',)
    """
    return tuple(
        str(name)
        for name, kind in frame.dtypes.items()
        if types.is_numeric_dtype(kind) and not types.is_bool_dtype(kind)
    )


def extent(frame: pd.DataFrame) -> Extent:
    """Where the rows of a table lie; missing values stand in the centre.

    Raises
    ------
    InputError
        Where no column is numeric, or all rows lie in one point.

    Examples
    --------
    >>> found = extent(pd.DataFrame({"a": [0.0, 2.0], "b": ["x", "y"]}))
    >>> found.centre.tolist(), found.spread.tolist(), found.reach
    ([1.0], [1.0], 1.0)
    """
    columns = numeric_columns(frame)
    values = numbers_of(frame, columns)
    present = ~np.isnan(values)
    if not present.any():
        raise InputError(
            "No feature is a number, so there is no distance from the data",
            fix="Foreign rows of your own can still be uploaded.",
        )
    counted = np.maximum(present.sum(axis=0), 1)
    filled = np.where(present, values, 0.0)
    centre = filled.sum(axis=0) / counted
    away = np.where(present, values - centre, 0.0)
    spread = np.sqrt((away**2).sum(axis=0) / counted)
    spread = np.where(spread > 0, spread, 1.0)
    reach = float(np.linalg.norm(away / spread, axis=1).max())
    if reach == 0.0:
        raise InputError(
            "All rows lie in one point, so there is no distance to measure by",
            fix="Foreign rows of your own can still be uploaded.",
        )
    filled = np.where(present, values, centre)
    return Extent(columns, centre, spread, filled.min(axis=0), filled.max(axis=0), reach)


def on_spheres(
    frame: pd.DataFrame, where: Extent, radii: tuple[float, ...], n: int, seed: int
) -> pd.DataFrame:
    """``n`` rows on each sphere about the centre of the data, one sphere after the other.

    A radius of 1 is the distance of the farthest row, every column measured in its standard
    deviation. All spheres share their directions (decision D20), and the columns that are no
    numbers come from rows of the data, the same on each sphere.
    """
    directions = sphere_points(n, len(where.columns), where.reach, seed)
    away = np.concatenate([radius * directions for radius in radii])
    held = _drawn(frame, n, seed)
    rows = pd.concat([held] * len(radii), ignore_index=True)
    return with_numbers(rows, where.columns, where.centre + away * where.spread)


def in_box(frame: pd.DataFrame, where: Extent, n: int, seed: int) -> pd.DataFrame:
    """``n`` rows of uniform noise: each column on its own between its extremes.

    Columns that are no numbers take each of their values equally often.
    """
    rng = np.random.default_rng(seed)
    values = {name: frame[name].drop_duplicates() for name in frame.columns}
    drawn = {name: some.iloc[rng.integers(0, len(some), n)].array for name, some in values.items()}
    rows = pd.DataFrame(drawn, columns=frame.columns)
    noise = rng.uniform(where.low, where.high, size=(n, len(where.columns)))
    return with_numbers(rows, where.columns, noise)


def shuffled(frame: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """At most ``n`` rows with each column shuffled on its own: no value is new, each row is."""
    rows = _sample(frame, n, seed)
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rows[name].array[rng.permutation(len(rows))] for name in rows})


def shifted(
    frame: pd.DataFrame, where: Extent, column: str, by: float, n: int, seed: int
) -> pd.DataFrame:
    """At most ``n`` rows with one column moved by so many of its standard deviations.

    Raises
    ------
    InputError
        Where the column is no number.
    """
    if column not in where.columns:
        raise InputError(
            "Only a feature that is a number can be shifted",
            fix="Choose another feature.",
            column=column,
        )
    rows = _sample(frame, n, seed)
    spread = where.spread[where.columns.index(column)]
    moved = numbers_of(rows, (column,)) + by * spread
    return with_numbers(rows, (column,), moved)


def _drawn(frame: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """``n`` rows with repetition."""
    chosen = np.random.default_rng(seed).integers(0, len(frame), n)
    return frame.iloc[chosen].reset_index(drop=True)


def _sample(frame: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """At most ``n`` rows without repetition, in the table's order."""
    if len(frame) > n:
        chosen = np.random.default_rng(seed).choice(len(frame), n, replace=False)
        frame = frame.iloc[np.sort(chosen)]
    return frame.reset_index(drop=True)


def numbers_of(frame: pd.DataFrame, columns: tuple[str, ...]) -> FloatArray:
    """Numeric columns as an array, (n, d), NaN where a value is missing."""
    values: FloatArray = frame[list(columns)].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def with_numbers(frame: pd.DataFrame, columns: tuple[str, ...], values: FloatArray) -> pd.DataFrame:
    """The frame with these columns replaced, in its own order of columns."""
    given = dict(zip(columns, values.T, strict=True))
    return pd.DataFrame(
        {name: given.get(name, frame[name].array) for name in frame.columns}, columns=frame.columns
    )
