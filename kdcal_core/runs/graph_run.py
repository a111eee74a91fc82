"""Fit the kernel density version of a review's parent, and place the judged rows in it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration import (
    KernelDensityForest,
    KernelDensityNetwork,
)
from kdcal_core.data import IntArray, stratified_folds
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.jobs import Progress
from kdcal_core.review import Workspace
from kdcal_core.review.codec import decode, encode
from kdcal_core.runs.graph_results import GRAPH_FILE, JUDGED, GraphRecord, GraphSettings
from kdcal_core.runs.inputs import (
    Request,
    ReviewFiles,
    labelled,
    open_parent,
    part_of,
    request,
    review_files,
)
from kdcal_core.runs.storage import (
    Rows,
    load_whole,
    save_array,
    save_record,
    save_rows,
)

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.parents import Parent

Estimator = KernelDensityForest | KernelDensityNetwork

_ESTIMATOR = "estimator.zip"
_TENTHS = 10
_TENTHS_HELD = 3


def graph_request(
    workspace: Workspace, review_id: str, settings: GraphSettings | None = None
) -> Request:
    """The job that fits the graph of a review.

    Raises
    ------
    InputError
        Where the review is not scored, has no model, or its model makes no partition.
    """
    settings = settings or GraphSettings()
    files = review_files(workspace, review_id)
    parent = workspace.read(review_id).parent
    assert parent is not None
    if not parent.has_codes:
        others = ", ".join(parent.other_activations)
        why = f": its activations are not ReLU ({others})" if others else ""
        raise InputError(
            f"This model ({parent.kind}) does not divide its inputs into polytopes{why}, so it "
            "has no kernel density version",
            fix="Its own confidence can still be seen far from the data, and its probabilities "
            "can still be calibrated.",
        )
    return request(
        "kdcal_core.runs.graph_run:fit_graph",
        "Fitting the kernel density version",
        {"files": encode(files), "settings": encode(settings)},
        {**files.identity(), "settings": encode(settings)},
    )


def fit_graph(
    files: dict[str, Any], settings: dict[str, Any], folder: str, progress: Progress
) -> dict[str, Any]:
    """Fit the graph, in a worker process; `GraphRun.read` reads what it leaves in ``folder``.

    Parameters
    ----------
    files, settings : dict
        ReviewFiles and GraphSettings as JSON.

    Raises
    ------
    InputError
        For rows that do not fit the model or the review's classes, and for memory that would
        not suffice.
    """
    from kdcal_core.review.reading import in_file, in_rows_of

    sources, chosen = decode(ReviewFiles, files), decode(GraphSettings, settings)
    parent = open_parent(sources, progress)
    fit, held, judged, positions = _rows(sources, chosen.seed)
    estimator = _estimator(parent, fit[0], chosen)
    with (
        in_file(sources.reference.name),
        in_rows_of(fit[0]),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", InputWarning)
        estimator.fit(
            fit[0],
            _names(parent, fit[1]),
            held[0],
            _names(parent, held[1]),
            progress=part_of(progress, 0.05, 0.9),
        )
    rows = placed(parent, judged[0], judged[1], estimator, part_of(progress, 0.9, 1.0))
    path = Path(folder)
    estimator.save(path / _ESTIMATOR)
    estimator.graph_.save(path / GRAPH_FILE)
    save_rows(path, JUDGED, rows)
    save_array(path, "positions", positions)
    notes = [str(one.message) for one in caught if issubclass(one.category, InputWarning)]
    if sources.roles.weight is not None:
        notes.append("The kernel density version counts every row once: weights are not used.")
    record = GraphRecord(
        settings=chosen,
        kind="forest" if isinstance(estimator, KernelDensityForest) else "network",
        fitted_on="training" if sources.training else "calibration",
        judged_on="evaluation" if sources.evaluation else "holdout",
        classes=sources.classes,
        n_fit=len(fit[0]),
        n_holdout=len(held[0]),
        n_judged=len(rows),
        output_layer=estimator.output_layer_
        if isinstance(estimator, KernelDensityNetwork)
        else None,
        notes=tuple(dict.fromkeys(notes)),
    )
    save_record(path, record)
    return encode(record)


def placed(
    parent: Parent,
    X: pd.DataFrame,
    y: IntArray | None,
    estimator: Estimator | None,
    progress: Progress,
) -> Rows:
    """The parent's probabilities of rows, and their places in the estimator's partition."""
    from kdcal_core.review.reading import in_rows_of, predict

    with in_rows_of(X):
        proba = predict(parent, X, parent.classes, part_of(progress, 0.0, 0.3))
        if estimator is None:
            return Rows(proba, None, y)
        report = part_of(progress, 0.3, 1.0)
        return Rows(proba, estimator.locate(X, proba=proba, progress=report), y)


def load_estimator(folder: str, parent: Parent) -> Estimator:
    """The fitted estimator that `fit_graph` left, put together with its parent again.

    Raises
    ------
    InputError
        Where it is gone, damaged, or of another parent.
    """
    path = Path(folder)
    record = load_whole(path, GraphRecord)
    kinds = {"forest": KernelDensityForest, "network": KernelDensityNetwork}
    loaded: Estimator = kinds[record.kind].load(path / _ESTIMATOR, parent)
    return loaded


def held_out(y: IntArray, seed: int) -> NDArray[np.bool_]:
    """A mask of three tenths of the rows, of each class alike (decision D28), (n,).

    Raises
    ------
    InputError
        Where there are fewer than ten.

    Examples
    --------
    >>> int(held_out(np.repeat([0, 1], [10, 20]), seed=0).sum())
    9
    """
    if len(y) < _TENTHS:
        raise InputError(
            f"There are {len(y)} rows, too few to fit on some and hold out others",
            fix=f"Give {_TENTHS} rows at least; for a review the training set helps as well.",
        )
    mask: NDArray[np.bool_] = stratified_folds(y, _TENTHS, seed) < _TENTHS_HELD
    return mask


Labelled = tuple["pd.DataFrame", IntArray]


def _rows(files: ReviewFiles, seed: int) -> tuple[Labelled, Labelled, Labelled, IntArray]:
    """Rows to fit on, rows held out, rows to judge on, and where the last stand."""
    X, y = labelled(files, files.calibration)
    if files.training is not None:
        fit, held, inside = labelled(files, files.training), (X, y), np.ones(len(y), dtype=bool)
    else:
        inside = held_out(y, seed)
        fit, held = (X[~inside], y[~inside]), (X[inside], y[inside])
    if files.evaluation is None:
        return fit, held, held, np.flatnonzero(inside)
    judged = labelled(files, files.evaluation)
    return fit, held, judged, np.arange(len(judged[1]))


def _estimator(parent: Parent, X: pd.DataFrame, settings: GraphSettings) -> Estimator:
    """The estimator for this kind of parent, told by the codes of one row.

    Coordinates are standardised: a table's features have units of their own.
    """
    from kdcal_core.parents import HasCodes
    from kdcal_core.partition import ActivationCodes

    network = isinstance(parent, HasCodes) and isinstance(parent.codes(X.iloc[:1]), ActivationCodes)
    if network:
        return KernelDensityNetwork(
            parent,
            distance=settings.distance,
            output_layer=settings.output_layer,
            scale="standard",
        )
    return KernelDensityForest(parent, distance=settings.distance, scale="standard")


def _names(parent: Parent, y: IntArray) -> NDArray[np.object_]:
    """Labels as the parent names its classes, whatever the review calls them."""
    names: NDArray[np.object_] = np.array(parent.classes, dtype=object)[y]
    return names
