"""Foreign rows made from a table: on spheres, moved outward, in its box, shuffled, or shifted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from kdcal_core.data.schema import FloatArray
from kdcal_core.data.splits import at_most
from kdcal_core.errors import InputError

_LARGEST = 1e100  # squares of larger values overflow


@dataclass(frozen=True, eq=False)
class Extent:
    """Where the rows of a table lie, by its numeric columns.

    Attributes
    ----------
    columns : tuple of str
        The numeric columns. Untrusted text.
    centre, spread : (d,) float64
        Mean and standard deviation of each column; a spread of zero counts as one.
    low, high : (d,) float64
    whole : (d,) bool
        Whether a column holds whole numbers only.
    reach : float
        Largest distance of a row from the centre, in units of the columns' spreads.
    """

    columns: tuple[str, ...]
    centre: FloatArray
    spread: FloatArray
    low: FloatArray
    high: FloatArray
    whole: NDArray[np.bool_]
    reach: float

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """Columns that cannot hold every number: whole numbers only, or never negative, (d,)."""
        found: NDArray[np.bool_] = self.whole | (self.low >= 0)
        return found


def numeric_columns(frame: pd.DataFrame) -> tuple[str, ...]:
    """The columns that can be shifted by any amount: numbers, but not booleans.

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
    """Where the rows of a table lie; missing values are placed at the centre.

    Raises
    ------
    InputError
        If no column is numeric, all rows are the same point, or a value is beyond 1e100, whose
        square would overflow.

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
    vast = (np.abs(np.where(present, values, 0.0)) > _LARGEST).any(axis=0)
    if vast.any():
        name = columns[int(np.argmax(vast))]
        raise InputError(
            "The column holds values beyond 1e100, too large to measure distances by",
            fix="Give it in another unit or on a logarithmic scale, or leave it out.",
            column=name,
        )
    counted = np.maximum(present.sum(axis=0), 1)
    filled = np.where(present, values, 0.0)
    low = np.where(present, values, np.inf).min(axis=0)
    high = np.where(present, values, -np.inf).max(axis=0)
    # rounding in the mean of equal values would give a constant column a spread
    centre = np.clip(filled.sum(axis=0) / counted, np.minimum(low, high), np.maximum(low, high))
    away = np.where(present, values - centre, 0.0)
    spread = np.sqrt((away**2).sum(axis=0) / counted)
    spread = np.where(spread > 0, spread, 1.0)
    reach = float(np.linalg.norm(away / spread, axis=1).max())
    if reach == 0.0:
        raise InputError(
            "All rows lie in one point, so there is no distance to measure by",
            fix="Foreign rows of your own can still be uploaded.",
        )
    some = present.any(axis=0)  # a column without values is placed at the centre
    whole = some & (np.where(present, values, 0.0) % 1.0 == 0.0).all(axis=0)
    return Extent(
        columns,
        centre,
        spread,
        np.where(some, low, centre),
        np.where(some, high, centre),
        whole,
        reach,
    )


def sphere_points(n: int, n_features: int, radius: float, seed: int) -> FloatArray:
    """``n`` points uniform on the sphere of ``radius`` around the origin, (n, n_features).

    The points are normalised Gaussian vectors (normalised points of a cube are not uniform). The
    directions depend on the seed alone, so spheres with equal seeds share their rays.

    Raises
    ------
    InputError
        For a count below 1, or a radius that is negative or not finite.

    Examples
    --------
    >>> np.linalg.norm(sphere_points(2, 5, 3.0, seed=0), axis=1).round(12).tolist()
    [3.0, 3.0]
    """
    for name, count in (("n", n), ("n_features", n_features)):
        if count < 1:
            raise InputError(f"{name} is {count!r}", fix="Choose a whole number, at least 1.")
    if not 0.0 <= radius < np.inf:
        raise InputError(f"The radius is {radius!r}", fix="Choose a finite number, at least 0.")
    directions = np.random.default_rng(seed).normal(size=(n, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(radius * directions)


def on_spheres(
    frame: pd.DataFrame, where: Extent, radii: tuple[float, ...], n: int, seed: int
) -> pd.DataFrame:
    """``n`` rows on each sphere around the centre of the data, one sphere after the other.

    A radius of 1 is the distance of the farthest row, with every column in units of its standard
    deviation. All spheres share their directions. Columns that are not numeric come from rows of
    the data, the same on each sphere. The points probe a model and need not be possible rows: an
    age may be -260 (:func:`impossible`).
    """
    directions = sphere_points(n, len(where.columns), where.reach, seed)
    away = np.concatenate([radius * directions for radius in radii])
    held = _drawn(frame, n, seed)
    rows = pd.concat([held] * len(radii), ignore_index=True)
    return with_numbers(rows, where.columns, where.centre + away * where.spread)


def outward(frame: pd.DataFrame, where: Extent, radius: float, n: int, seed: int) -> pd.DataFrame:
    """``n`` rows of the data, each moved straight away from the centre to ``radius``.

    The radius is in units of the farthest row's distance, as in :func:`on_spheres`. Unlike points
    in random directions, these lie where the data themselves point to. Missing values stay missing,
    and a row in the centre itself stays there.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [-1.0, 1.0], "b": [-1.0, 1.0]})
    >>> outward(frame, extent(frame), 3.0, 2, seed=1)["a"].abs().tolist()
    [3.0, 3.0]
    """
    rows = _drawn(frame, n, seed)
    away = (numbers_of(rows, where.columns) - where.centre) / where.spread
    norm = np.linalg.norm(np.nan_to_num(away), axis=1, keepdims=True)
    away *= radius * where.reach / np.where(norm > 0, norm, np.inf)
    return with_numbers(rows, where.columns, where.centre + away * where.spread)


def in_box(frame: pd.DataFrame, where: Extent, n: int, seed: int) -> pd.DataFrame:
    """``n`` rows of uniform noise: each column varies independently between its extremes.

    Every value is possible for its column: whole numbers stay whole, and each value of a column
    that is not numeric is equally likely.

    Examples
    --------
    >>> frame = pd.DataFrame({"age": [20, 70], "kind": ["a", "b"]})
    >>> rows = in_box(frame, extent(frame), 100, seed=0)
    >>> rows["age"].between(20, 70).all().item(), (rows["age"] % 1 == 0).all().item()
    (True, True)
    """
    rng = np.random.default_rng(seed)
    values = {name: frame[name].drop_duplicates() for name in frame.columns}
    drawn = {name: some.iloc[rng.integers(0, len(some), n)].array for name, some in values.items()}
    rows = pd.DataFrame(drawn, columns=frame.columns)
    noise = rng.uniform(where.low, where.high, size=(n, len(where.columns)))
    steps = rng.uniform(where.low, where.high + 1.0, size=noise.shape)
    noise = np.where(where.whole, np.minimum(np.floor(steps), where.high), noise)
    return with_numbers(rows, where.columns, noise)


def shuffled(frame: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """At most ``n`` rows with each column shuffled separately: old values, new combinations."""
    rows = _sample(frame, n, seed)
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rows[name].array[rng.permutation(len(rows))] for name in rows})


def shifted(
    frame: pd.DataFrame, where: Extent, column: str, by: float, n: int, seed: int
) -> pd.DataFrame:
    """At most ``n`` rows with one column shifted by a number of its standard deviations.

    A column of whole numbers is shifted by a whole number.

    Raises
    ------
    InputError
        If the column is not numeric.
    """
    if column not in where.columns:
        raise InputError(
            "Only a feature that is a number can be shifted",
            fix="Choose another feature.",
            column=column,
        )
    rows = _sample(frame, n, seed)
    at = where.columns.index(column)
    step = by * where.spread[at]
    moved = numbers_of(rows, (column,)) + (np.rint(step) if where.whole[at] else step)
    return with_numbers(rows, (column,), moved)


def impossible(rows: pd.DataFrame, where: Extent) -> tuple[str, float, float] | None:
    """The column in which the made rows are most impossible, if any.

    Among the columns that are never negative in the data, it is the one whose smallest made value
    lies the most standard deviations below zero.

    Parameters
    ----------
    rows : pandas.DataFrame
        Made rows, with the columns of ``where``.

    Returns
    -------
    tuple of (column, smallest value in ``rows``, smallest value in the data), or None
        The name is untrusted text.

    Examples
    --------
    >>> data = pd.DataFrame({"age": [17.0, 90.0], "gain": [-5.0, 5.0]})
    >>> impossible(pd.DataFrame({"age": [-260.0], "gain": [-90.0]}), extent(data))
    ('age', -260.0, 17.0)
    """
    values = numbers_of(rows, where.columns)
    least = np.where(np.isnan(values), np.inf, values).min(axis=0)
    below = np.where(where.low >= 0, -least / where.spread, -np.inf)
    at = int(np.argmax(below))
    if not below[at] > 0:
        return None
    return where.columns[at], float(least[at]), float(where.low[at])


def _drawn(frame: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """``n`` rows drawn with replacement."""
    chosen = np.random.default_rng(seed).integers(0, len(frame), n)
    return frame.iloc[chosen].reset_index(drop=True)


def _sample(frame: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """At most ``n`` rows drawn without replacement, in the table's order."""
    return frame.iloc[at_most(len(frame), n, seed)].reset_index(drop=True)


def numbers_of(frame: pd.DataFrame, columns: tuple[str, ...]) -> FloatArray:
    """Numeric columns as an array, (n, d), NaN where a value is missing."""
    values: FloatArray = frame[list(columns)].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def with_numbers(frame: pd.DataFrame, columns: tuple[str, ...], values: FloatArray) -> pd.DataFrame:
    """The frame with these columns replaced, in the same order of columns."""
    given = dict(zip(columns, values.T, strict=True))
    return pd.DataFrame(
        {name: given.get(name, frame[name].array) for name in frame.columns}, columns=frame.columns
    )
