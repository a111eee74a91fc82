"""The model's answers, and those of its kernel density version, over a plane: posterior maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core.data import IntArray
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import Part, ReviewReader, Workspace
from kdcal_core.store import decode, encode, save
from kdcal_core.tasks.graph_results import request_on_graph
from kdcal_core.tasks.graph_run import load_estimator, placed
from kdcal_core.tasks.grid_results import WIDER, GridRecord, GridRun, GridSettings
from kdcal_core.tasks.inputs import Request, check_ranges, opened_reader, require_model
from kdcal_core.tasks.plane import Plane, feature_plane, principal_plane, span

PICTURE_ROWS = 2_000

READS: tuple[Part, ...] = ("model", "calibration", "evaluation", "training")
_RANGES = {"resolution": (2.0, 500.0)}


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
        Where the review's `GraphRun` is kept. Without it the model alone answers.

    Raises
    ------
    InputError
        Where the review is not scored or has no model.
    """
    settings = settings or GridSettings()
    check_ranges(settings, _RANGES)
    reader = ReviewReader(workspace, review_id, READS)
    require_model(reader.review)
    return request_on_graph(
        "kdcal_core.tasks.grid_run:posterior_grid",
        "Drawing the posterior map",
        reader,
        settings,
        graph_folder,
        rows="shown apart",
    )


def posterior_grid(
    read: dict[str, Any],
    settings: dict[str, Any],
    graph_folder: str | None,
    folder: str,
    progress: Progress,
) -> dict[str, Any]:
    """Compute a map, in a worker process, which leaves a `GridRun` in ``folder``.

    Parameters
    ----------
    read : dict
        What `review_request` made of the review.
    settings : dict
        GridSettings as JSON.

    Raises
    ------
    InputError
        Where there are no two features that are numbers, a chosen one is none, or the row to
        hold does not exist.
    """
    reader, chosen = opened_reader(read, READS), decode(GridSettings, settings)
    check_ranges(chosen, _RANGES)
    progress(0.0, "Opening the model")
    model = reader.model()
    estimator = load_estimator(graph_folder, model) if graph_folder else None
    reference = reader.features(reader.reference)
    judged, labels = reader.labelled(reader.judged)
    plane = _plane(chosen, reference, judged)
    x, y = (np.linspace(*ends, chosen.resolution) for ends in span(plane.project(reference), WIDER))
    grid = np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))])
    rows = placed(model, plane.rows(grid), None, estimator, part_of(progress, 0.05, 1.0))
    names = ("Principal axis 1", "Principal axis 2") if plane.explained else plane.columns
    record = GridRecord(
        settings=chosen,
        x_name=names[0],
        y_name=names[1],
        classes=reader.review.classes,
        explained=plane.explained,
        strongest=tuple(map(plane.strongest, range(2))) if plane.explained else (),
        n_rows=len(judged),
    )
    points, shown = plane.project(judged), stratified_sample(labels, PICTURE_ROWS)
    run = GridRun(record, x, y, rows, points, shown, points[shown], labels[shown])
    save(Path(folder), run)
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
