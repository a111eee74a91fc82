"""A plane through a table's feature space: two features, or the first two principal axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from kdcal_core.data import FloatArray
from kdcal_core.diagnostics.foreign_rows import (
    Extent,
    extent,
    numbers_of,
    numeric_columns,
    with_numbers,
)
from kdcal_core.errors import InputError

_LEAST = 1e-12  # half of a range, as a share of its middle: so many places a coordinate has
STRONGEST = 5  # features named for a principal axis


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane that rows can be projected to and made on.

    Attributes
    ----------
    columns : tuple of str
        The numeric columns that the plane runs through. Untrusted text.
    origin : (d,) float64
        Where the plane's coordinates are zero.
    axes : (2, d) float64
        One step along each axis, in the columns' own units.
    inverse : (d, 2) float64
        From a row's distance to the origin to its coordinates.
    held : pandas.DataFrame
        One row: the value of every column that the plane holds still.
    explained : tuple of two float
        Share of the variance along each axis, where they are principal axes; else empty.
    """

    columns: tuple[str, ...]
    origin: FloatArray
    axes: FloatArray
    inverse: FloatArray
    held: pd.DataFrame
    explained: tuple[float, ...] = ()

    def project(self, frame: pd.DataFrame) -> FloatArray:
        """Coordinates of rows, (n, 2); NaN where a feature that counts is missing."""
        away = numbers_of(frame, self.columns) - self.origin
        if self.explained:
            away = np.where(np.isnan(away), 0.0, away)  # as the axes were found
        return np.asarray(away @ self.inverse)

    def rows(self, points: FloatArray) -> pd.DataFrame:
        """The row at each point (m, 2) of the plane."""
        still = self.held.iloc[np.zeros(len(points), dtype=np.int64)].reset_index(drop=True)
        return with_numbers(still, self.columns, self.origin + points @ self.axes)

    def strongest(self, axis: int) -> tuple[tuple[str, float], ...]:
        """The features that an axis moves most, with the step of each in its own units."""
        loading = np.abs(self.axes[axis] * self.inverse[:, axis])  # squared, whatever the units
        order = np.argsort(-loading, kind="stable")[:STRONGEST]
        return tuple((self.columns[j], float(self.axes[axis, j])) for j in order)


def feature_plane(
    frame: pd.DataFrame, x: str | None, y: str | None, row: pd.DataFrame | None
) -> Plane:
    """The plane of two numeric features, the others held still.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows whose medians and most frequent values are held.
    x, y : str or None
        Features; by default the first two that are numbers.
    row : pandas.DataFrame or None
        One row whose values are held instead.

    Raises
    ------
    InputError
        Where there are no two different features that are numbers.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [0.0, 2.0], "b": [1.0, 3.0], "c": ["u", "u"]})
    >>> feature_plane(frame, "b", "a", None).rows(np.array([[5.0, 6.0]])).values.tolist()
    [[6.0, 5.0, 'u']]
    """
    where = extent(frame)
    x, y = _two_features(where, x, y)
    return Plane((x, y), np.zeros(2), np.eye(2), np.eye(2), typical(frame) if row is None else row)


def principal_plane(frame: pd.DataFrame) -> Plane:
    """The plane of the first two principal axes of the standardised numeric features.

    Features that are no numbers are held at their most frequent value.

    Raises
    ------
    InputError
        Where fewer than two features are numbers.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [0.0, 2.0, 4.0], "b": [0.0, 2.0, 4.0]})
    >>> plane = principal_plane(frame)
    >>> plane.project(frame).round(3).tolist()
    [[-1.732, 0.0], [0.0, 0.0], [1.732, 0.0]]
    >>> np.round(plane.explained, 3).tolist()
    [1.0, 0.0]
    """
    where = extent(frame)
    _two_features(where, None, None)
    scaled = (numbers_of(frame, where.columns) - where.centre) / where.spread
    found = PCA(2, svd_solver="full").fit(np.where(np.isnan(scaled), 0.0, scaled))
    return Plane(
        where.columns,
        where.centre,
        found.components_ * where.spread,
        found.components_.T / where.spread[:, None],
        typical(frame),
        tuple(float(share) for share in found.explained_variance_ratio_),
    )


def typical(frame: pd.DataFrame) -> pd.DataFrame:
    """One row of medians and most frequent values, missing ones left out where others are.

    Examples
    --------
    >>> typical(pd.DataFrame({"a": [1, 2, 4], "b": ["x", "y", "y"]})).values.tolist()
    [[2.0, 'y']]
    """
    numeric = set(numeric_columns(frame))
    values = {}
    for name in frame.columns:
        column = frame[name]
        if name in numeric and column.notna().any():
            values[name] = pd.Series([float(column.median())])
        else:
            most = column.mode()
            values[name] = (most if len(most) else column).iloc[:1].reset_index(drop=True)
    return pd.DataFrame(values, columns=frame.columns)


def span(points: FloatArray, times: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """The range of points along each axis, widened about its middle so many times.

    Examples
    --------
    >>> span(np.array([[0.0, 1.0], [2.0, 1.0]]), 2.0)
    ((-1.0, 3.0), (-1.0, 3.0))
    """
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    # of a huge constant, one more or less is the same number
    half = np.maximum(np.where(half > 0, half, 1.0), _LEAST * np.abs(middle)) * times
    (x0, y0), (x1, y1) = (middle - half).tolist(), (middle + half).tolist()
    return (x0, x1), (y0, y1)


def _two_features(where: Extent, x: str | None, y: str | None) -> tuple[str, str]:
    if len(where.columns) < 2:
        raise InputError(
            f"Only {len(where.columns)} feature is a number, and a map needs two",
            fix="The other pages show confidence without a map.",
        )
    for name in (x, y):
        if name is not None and name not in where.columns:
            raise InputError(
                "A map needs features that are numbers", fix="Choose another.", column=name
            )
    x = x or next(name for name in where.columns if name != y)
    y = y or next(name for name in where.columns if name != x)
    if x == y:
        raise InputError("Both axes of the map are the same feature", fix="Choose two.", column=x)
    return x, y
