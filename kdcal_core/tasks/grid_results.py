"""Which plane a posterior map shows, and what was answered on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.tasks.graph_results import Rows
from kdcal_core.tasks.plane import span

WIDER = 2.0  # times the range of the data that the grid spans


@dataclass(frozen=True)
class GridSettings:
    """Which plane is drawn.

    Attributes
    ----------
    axes : str
        "features": two of them, the others held; "principal": the first two principal axes.
    x, y : str or None
        The two features; by default the first two that are numbers. Untrusted text.
    row : int or None
        Row of the judged set, from 0, whose other features are held; None for the medians and
        most frequent values.
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
    """What was drawn.

    Attributes
    ----------
    settings : GridSettings
    x_name, y_name : str
        For people: the features, or "Principal axis 1". Untrusted text.
    classes : tuple of str
        Untrusted text.
    explained : tuple of float
        Share of the variance along each principal axis; empty for features.
    strongest : tuple
        For each principal axis the features it moves most, with the step of each in its own
        units for one step along the axis.
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
        One a grid point, y slowest: ``proba.reshape(len(y), len(x), K)``.
    points : (n, 2) float64
        All rows of the judged set's table in the plane; NaN where a feature is missing.
    shown : (m,) int64
        The rows to draw, at most 2,000, of each class its share.
    shown_points : (m, 2) float64
        Where they are in the plane.
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
        """The data's range in the plane (x0, x1, y0, y1), which the grid is wider than."""
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
