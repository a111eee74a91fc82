"""Fit the kernel density version of a review's model, and place the judged rows in it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kdcal_core.calibration import (
    KernelDensityForest,
    KernelDensityNetwork,
)
from kdcal_core.calibration.graph.as_calibrator import UNWEIGHTED, KernelDensityCalibrator
from kdcal_core.data import IntArray
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import Part, ReviewReader, Workspace
from kdcal_core.store import decode, encode, load, save
from kdcal_core.tasks.graph_results import (
    FIT,
    GraphFacts,
    GraphRecord,
    GraphRun,
    GraphSettings,
    Rows,
)
from kdcal_core.tasks.inputs import (
    Request,
    opened_reader,
    require_model,
    review_request,
)

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.models import Model

Estimator = KernelDensityForest | KernelDensityNetwork

READS: tuple[Part, ...] = ("model", "calibration", "evaluation", "training")
_ESTIMATOR = "estimator.zip"
_FEWEST = 10


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
    reader = ReviewReader(workspace, review_id, READS)
    require_model(reader.review)
    model = reader.review.model
    assert model is not None
    if not model.has_codes:
        others = ", ".join(model.other_activations)
        why = f": its activations are not ReLU ({others})" if others else ""
        raise InputError(
            f"This model ({model.kind}) does not divide its inputs into polytopes{why}, so it "
            "has no kernel density version",
            fix="Its own confidence can still be seen far from the data, and its probabilities "
            "can still be calibrated.",
        )
    asked = {"settings": encode(settings)}
    return review_request(
        "kdcal_core.tasks.graph_run:fit_graph",
        "Fitting the kernel density version",
        reader,
        asked,
        {**asked, "fit": FIT},
    )


def fit_graph(
    read: dict[str, Any], settings: dict[str, Any], folder: str, progress: Progress
) -> dict[str, Any]:
    """Fit the graph, in a worker process, which leaves a `GraphRun` in ``folder``.

    Parameters
    ----------
    read : dict
        What `review_request` made of the review.
    settings : dict
        GraphSettings as JSON.

    Raises
    ------
    InputError
        For rows that do not fit the model or the review's classes, and for memory that would
        not suffice.
    """
    from kdcal_core.review.reading import in_file, in_rows_of, predict

    reader, chosen = opened_reader(read, READS), decode(GraphSettings, settings)
    progress(0.0, "Opening the model")
    model = reader.model()
    calibrator = KernelDensityCalibrator(
        chosen.seed, distance=chosen.distance, output_layer=chosen.output_layer
    )
    X, y = reader.labelled("calibration")
    given: dict[str, Any] = {}
    inside = np.ones(len(y), dtype=bool)
    if reader.has("training"):
        given["X_partition"], given["y_partition"] = reader.labelled("training")
    elif len(y) < _FEWEST:
        raise InputError(
            f"There are {len(y)} rows, too few to fit on some and hold out others",
            fix=f"Give {_FEWEST} rows at least; for a review the training set helps as well.",
        )
    else:
        inside = calibrator.held_out(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # the calibrator's notes say the same
        with in_file(reader.name("calibration")), in_rows_of(X):
            proba = predict(model, X, model.classes, part_of(progress, 0.0, 0.05))
        with in_file(reader.name(reader.reference)), in_rows_of(given.get("X_partition", X)):
            calibrator.fit(proba, y, X, model=model, progress=part_of(progress, 0.05, 0.9), **given)
        if reader.has("evaluation"):
            X, y = reader.labelled("evaluation")
            inside = np.ones(len(y), dtype=bool)
        estimator = calibrator.estimator_
        rows = placed(model, X[inside], y[inside], estimator, part_of(progress, 0.9, 1.0))
    path = Path(folder)
    estimator.save(path / _ESTIMATOR)
    notes = list(calibrator.notes_)
    if reader.roles.weight is not None:
        notes.append(UNWEIGHTED)
    record = GraphRecord(
        settings=chosen,
        kind="forest" if isinstance(estimator, KernelDensityForest) else "network",
        fitted_on="training" if reader.has("training") else "calibration",
        judged_on="evaluation" if reader.has("evaluation") else "holdout",
        classes=reader.review.classes,
        n_fit=estimator.graph_.n,
        n_holdout=estimator.graph_.n_holdout,
        n_judged=len(rows),
        output_layer=estimator.output_layer_
        if isinstance(estimator, KernelDensityNetwork)
        else None,
        notes=tuple(dict.fromkeys(notes)),
        facts=GraphFacts.of(estimator.graph_),
    )
    save(path, GraphRun(record, estimator.graph_, rows, np.flatnonzero(inside)))
    return encode(record)


def placed(
    model: Model,
    X: pd.DataFrame,
    y: IntArray | None,
    estimator: Estimator | None,
    progress: Progress,
) -> Rows:
    """The model's probabilities of rows, and their places in the estimator's partition."""
    from kdcal_core.review.reading import in_rows_of, predict

    with in_rows_of(X):
        proba = predict(model, X, model.classes, part_of(progress, 0.0, 0.3))
        if estimator is None:
            return Rows(proba, None, y)
        report = part_of(progress, 0.3, 1.0)
        return Rows(proba, estimator.locate(X, proba=proba, progress=report), y)


def load_estimator(folder: str, model: Model) -> Estimator:
    """The fitted estimator that `fit_graph` left, put together with its model again.

    Raises
    ------
    InputError
        Where it is gone, damaged, or of another model.
    """
    path = Path(folder)
    record = load(path, GraphRun).record
    kinds = {"forest": KernelDensityForest, "network": KernelDensityNetwork}
    loaded: Estimator = kinds[record.kind].load(path / _ESTIMATOR, model)
    return loaded
