"""The parent's answers, and those of its kernel density version, over a plane: posterior maps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.jobs import Progress
from kdcal_core.review import Workspace
from kdcal_core.review.codec import decode, encode
from kdcal_core.runs.graph_run import graph_identity, load_estimator, placed
from kdcal_core.runs.inputs import (
    Request,
    ReviewFiles,
    features_of,
    labelled,
    open_parent,
    part_of,
    request,
    review_files,
)
from kdcal_core.runs.plane import Plane, feature_plane, principal_plane, span
from kdcal_core.runs.storage import (
    Rows,
    load_array,
    load_record,
    load_rows,
    save_array,
    save_record,
    save_rows,
)

PICTURE_ROWS = 2_000
WIDER = 2.0  # times the range of the data

_ROWS = "grid"
_ARRAYS = ("x", "y", "points", "labels", "picture")


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
    labels : (n,) int64
        Their true classes.
    picture : (m,) int64
        The rows to draw, at most 2,000, of each class its share.
    """

    record: GridRecord
    x: FloatArray
    y: FloatArray
    rows: Rows
    points: FloatArray
    labels: IntArray
    picture: IntArray

    @classmethod
    def read(cls, folder: str | Path) -> GridRun:
        """What `posterior_grid` left in its folder.

        Raises
        ------
        InputError
            Where it is not there (any more), or damaged.
        """
        path = Path(folder)
        x, y, points, labels, picture = (load_array(path, name) for name in _ARRAYS)
        record = load_record(path, GridRecord)
        return cls(record, x, y, load_rows(path, _ROWS), points, labels, picture)

    def as_map(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the grid's rows (G * G, ...) as a map (G, G, ...), y first."""
        return values.reshape(len(self.y), len(self.x), *values.shape[1:])

    def inside(self, x: tuple[float, float], y: tuple[float, float]) -> IntArray:
        """Positions of the judged rows in a rectangle of the plane, its border included."""
        low, high = np.sort(np.array([x, y]), axis=1).T
        within = ((self.points >= low) & (self.points <= high)).all(axis=1)
        return np.flatnonzero(within)


def grid_request(
    workspace: Workspace,
    review_id: str,
    settings: GridSettings | None = None,
    *,
    graph_folder: str | Path | None = None,
) -> Request:
    """The job that computes a posterior map.

    Parameters
    ----------
    graph_folder : path, optional
        Where the review's `GraphRun` is kept. Without it the parent alone answers.

    Raises
    ------
    InputError
        Where the review is not scored or has no model.
    """
    settings = settings or GridSettings()
    files = review_files(workspace, review_id)
    return request(
        "kdcal_core.runs.grid_run:posterior_grid",
        "Drawing the posterior map",
        {
            "files": encode(files),
            "settings": encode(settings),
            "graph_folder": str(graph_folder) if graph_folder else None,
        },
        {
            **files.identity(),
            "settings": encode(settings),
            "graph": graph_identity(graph_folder),
        },
    )


def posterior_grid(
    files: dict[str, Any],
    settings: dict[str, Any],
    graph_folder: str | None,
    folder: str,
    progress: Progress,
) -> dict[str, Any]:
    """Compute a map, in a worker process; `GridRun.read` reads what it leaves in ``folder``.

    Parameters
    ----------
    files, settings : dict
        ReviewFiles and GridSettings as JSON.

    Raises
    ------
    InputError
        Where there are no two features that are numbers, a chosen one is none, or the row to
        hold does not exist.
    """
    sources, chosen = decode(ReviewFiles, files), decode(GridSettings, settings)
    parent = open_parent(sources, progress)
    estimator = load_estimator(graph_folder, parent) if graph_folder else None
    reference = features_of(sources, sources.reference)
    judged, labels = labelled(sources, sources.judged)
    plane = _plane(chosen, reference, judged)
    x, y = (np.linspace(*ends, chosen.resolution) for ends in span(plane.project(reference), WIDER))
    grid = np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))])
    rows = placed(parent, plane.rows(grid), None, estimator, part_of(progress, 0.05, 1.0))
    path = Path(folder)
    save_rows(path, _ROWS, rows)
    arrays = (x, y, plane.project(judged), labels, stratified_sample(labels, PICTURE_ROWS))
    for name, array in zip(_ARRAYS, arrays, strict=True):
        save_array(path, name, array)
    names = ("Principal axis 1", "Principal axis 2") if plane.explained else plane.columns
    record = GridRecord(
        settings=chosen,
        x_name=names[0],
        y_name=names[1],
        classes=sources.classes,
        explained=plane.explained,
        strongest=tuple(map(plane.strongest, range(2))) if plane.explained else (),
        n_rows=len(judged),
    )
    save_record(path, record)
    return encode(record)


def stratified_sample(y: IntArray, n: int, seed: int = 0) -> IntArray:
    """At most ``n`` positions, every class with its share, ascending.

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
    if settings.resolution < 2:
        raise InputError(
            f"A map of {settings.resolution} points along each axis is none",
            fix="Choose 2 or more.",
        )
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
