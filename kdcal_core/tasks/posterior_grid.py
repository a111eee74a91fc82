"""Posterior maps: the answers of a model and of its kernel density version over a plane.

The plane is that of two features, or of the first two principal axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.foreign_rows import (
    Extent,
    extent,
    numbers_of,
    numeric_columns,
    with_numbers,
)
from kdcal_core.errors import InputError
from kdcal_core.progress import part_of
from kdcal_core.tasks.decorators import ALL_ROWS, Sets, require_model, review_task
from kdcal_core.tasks.graph import Rows, load_estimator, placed

_LEAST = 1e-12  # least half-range as a share of its middle, for the precision of coordinates
STRONGEST = 5  # features named for a principal axis


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane onto which rows are projected and on which rows are made.

    Attributes
    ----------
    columns : tuple of str
        The numeric columns that vary on the plane. Untrusted text.
    origin : (d,) float64
        The point with coordinates zero.
    axes : (2, d) float64
        One step along each axis, in the units of the columns.
    inverse : (d, 2) float64
        Maps a row's difference from the origin to its coordinates.
    held : pandas.DataFrame
        One row with the value of every column that is constant on the plane.
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
        """Coordinates of rows, (n, 2); NaN where a varying feature is missing."""
        away = numbers_of(frame, self.columns) - self.origin
        if self.explained:
            away = np.where(np.isnan(away), 0.0, away)  # as in the fit of the axes
        return np.asarray(away @ self.inverse)

    def rows(self, points: FloatArray) -> pd.DataFrame:
        """The row at each point (m, 2) of the plane."""
        still = self.held.iloc[np.zeros(len(points), dtype=np.int64)].reset_index(drop=True)
        return with_numbers(still, self.columns, self.origin + points @ self.axes)

    def strongest(self, axis: int) -> tuple[tuple[str, float], ...]:
        """The features that change most along an axis, with the step of each in its units."""
        loading = np.abs(self.axes[axis] * self.inverse[:, axis])  # squared, whatever the units
        order = np.argsort(-loading, kind="stable")[:STRONGEST]
        return tuple((self.columns[j], float(self.axes[axis, j])) for j in order)


def feature_plane(
    frame: pd.DataFrame, x: str | None, y: str | None, row: pd.DataFrame | None
) -> Plane:
    """The plane of two numeric features, with the others held constant.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows whose medians and most frequent values are held.
    x, y : str or None
        Features; by default the first two numeric ones.
    row : pandas.DataFrame or None
        One row whose values are held constant instead.

    Raises
    ------
    InputError
        Where there are no two different numeric features.

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

    Features that are not numbers are held at their most frequent value.

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
    from sklearn.decomposition import PCA  # slow to import, and every task is imported

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
    """One row of medians and most frequent values, without missing ones where possible.

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
    """The range of points along each axis, widened around its middle by a factor.

    Examples
    --------
    >>> span(np.array([[0.0, 1.0], [2.0, 1.0]]), 2.0)
    ((-1.0, 3.0), (-1.0, 3.0))
    """
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    # a huge constant plus or minus one is the same number
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


WIDER = 2.0  # the grid spans this multiple of the data's range


@dataclass(frozen=True)
class GridSettings:
    """Which plane is drawn.

    Attributes
    ----------
    axes : str
        "features": two features, with the others held constant; "principal": the first two
        principal axes.
    x, y : str or None
        The two features; by default the first two numeric ones. Untrusted text.
    row : int or None
        Row of the judged set, from 0, whose other features are held constant; None for the medians
        and most frequent values.
    resolution : int
        Points along each axis.
    """

    axes: Literal["features", "principal"] = "features"
    x: str | None = None
    y: str | None = None
    row: int | None = None
    resolution: int = 100


@dataclass(frozen=True)
class GridRecord:
    """The settings and facts of a map.

    Attributes
    ----------
    settings : GridSettings
    x_name, y_name : str
        Names of the axes: the features, or "Principal axis 1". Untrusted text.
    classes : tuple of str
        Untrusted text.
    explained : tuple of float
        Share of the variance along each principal axis; empty for features.
    strongest : tuple
        For each principal axis, the features that change most along it, with the step of each in
        its units for one step along the axis.
    n_rows : int
        Rows of the judged set.
    """

    settings: GridSettings
    x_name: str
    y_name: str
    classes: tuple[str, ...]
    explained: tuple[float, ...]
    strongest: tuple[tuple[tuple[str, float], ...], ...]
    n_rows: int


@dataclass(frozen=True, eq=False)
class GridRun:
    """Answers on a grid, and the judged rows in the same plane.

    Attributes
    ----------
    record : GridRecord
    x, y : (G,) float64
        Coordinates of the grid.
    rows : Rows
        One for each grid point, with y varying slowest: ``proba.reshape(len(y), len(x), K)``.
    points : (n, 2) float64
        All rows of the judged set's table in the plane; NaN where a feature is missing.
    shown : (m,) int64
        The rows to draw, at most 2,000, with each class in its share.
    shown_points : (m, 2) float64
        Their positions in the plane.
    shown_labels : (m,) int64
        Their true classes.
    """

    record: GridRecord
    x: FloatArray
    y: FloatArray
    rows: Rows
    points: FloatArray
    shown: IntArray
    shown_points: FloatArray
    shown_labels: IntArray

    @property
    def data_box(self) -> tuple[float, float, float, float]:
        """The data's range in the plane, (x0, x1, y0, y1); the grid is wider."""
        ends = [(axis[0], axis[-1]) for axis in (self.x, self.y)]
        (x0, x1), (y0, y1) = span(np.array(ends).T, 1 / WIDER)
        return x0, x1, y0, y1

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which points of the grid lie outside the data's range, (G, G), y first."""
        x0, x1, y0, y1 = self.data_box
        within_x, within_y = (self.x >= x0) & (self.x <= x1), (self.y >= y0) & (self.y <= y1)
        beyond: NDArray[np.bool_] = ~(within_y[:, None] & within_x)
        return beyond

    def as_map(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the grid's rows (G * G, ...) as a map (G, G, ...), y first."""
        return values.reshape(len(self.y), len(self.x), *values.shape[1:])


PICTURE_ROWS = 2_000


@review_task(
    "Drawing the posterior map",
    reads=ALL_ROWS,
    needs=require_model,
    ranges={"resolution": (2.0, 500.0)},
    edition="rows shown apart",
)
def posterior_grid(
    sets: Sets, settings: GridSettings, *, graph_folder: str | None = None
) -> GridRun:
    """Compute a posterior map.

    Parameters
    ----------
    graph_folder : str, optional
        Folder of the review's `GraphRun`. Without it only the model answers.

    Raises
    ------
    InputError
        Where there are no two numeric features, a chosen one is not numeric, or the row to hold
        constant does not exist.
    """
    reader, progress = sets.reader, sets.progress
    progress(0.0, "Opening the model")
    model = reader.model()
    estimator = load_estimator(graph_folder, model) if graph_folder else None
    reference = reader.features(reader.reference)
    judged, labels = reader.labelled(reader.judged)
    plane = _plane(settings, reference, judged)
    x, y = (
        np.linspace(*ends, settings.resolution) for ends in span(plane.project(reference), WIDER)
    )
    grid = np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))])
    rows = placed(model, plane.rows(grid), None, estimator, part_of(progress, 0.05, 1.0))
    names = ("Principal axis 1", "Principal axis 2") if plane.explained else plane.columns
    record = GridRecord(
        settings=settings,
        x_name=names[0],
        y_name=names[1],
        classes=reader.review.classes,
        explained=plane.explained,
        strongest=tuple(map(plane.strongest, range(2))) if plane.explained else (),
        n_rows=len(judged),
    )
    points, shown = plane.project(judged), stratified_sample(labels, PICTURE_ROWS)
    return GridRun(record, x, y, rows, points, shown, points[shown], labels[shown])


def stratified_sample(y: IntArray, n: int, seed: int = 0) -> IntArray:
    """At most ``n`` positions, ascending, with each class in its share.

    Examples
    --------
    >>> y = np.repeat([0, 1], [90, 10])
    >>> y[stratified_sample(y, 20)].tolist().count(1)
    2
    """
    if len(y) <= n:
        return np.arange(len(y))
    order = np.lexsort((np.random.default_rng(seed).random(len(y)), y))
    return np.sort(order[np.arange(n) * len(y) // n])


def _plane(settings: GridSettings, reference: Any, judged: Any) -> Plane:
    if settings.axes == "principal":
        return principal_plane(reference)
    if settings.row is None:
        return feature_plane(reference, settings.x, settings.y, None)
    if not 0 <= settings.row < len(judged):
        raise InputError(
            f"There is no row {settings.row + 1:,} among the {len(judged):,} judged ones",
            fix="Choose another row.",
        )
    held = judged.iloc[[settings.row]].reset_index(drop=True)
    return feature_plane(reference, settings.x, settings.y, held)
