"""Open a calibrator file that somebody brings, and see what it does to a review's rows."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from kdcal_core.calibration.export import LoadedCalibrator, load_calibrator
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.evaluation import compare
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import Part, Review, ReviewData, ReviewReader, Workspace, review_data
from kdcal_core.store import save
from kdcal_core.tasks.export_fit import AsFitted
from kdcal_core.tasks.export_results import TriedRun
from kdcal_core.tasks.inputs import Request, opened_reader, review_request
from kdcal_core.text import listed

_KEY = "file"
_READS: tuple[Part, ...] = ("model", "calibration", "evaluation")


def try_request(workspace: Workspace, review_id: str, path: Path, name: str) -> Request:
    """The job that opens a calibrator file and judges it on a review's rows.

    Parameters
    ----------
    path : Path
        A copy of the file in the review's folder.
    name : str
        What its owner calls it. Untrusted text.
    """
    reader = ReviewReader(workspace, review_id, _READS)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return review_request(
        "kdcal_core.tasks.export_try:try_calibrator",
        "Opening the calibrator file",
        reader,
        {"path": str(path), "name": name},
        {"file": digest},
    )


def try_calibrator(
    read: dict[str, Any], path: str, name: str, folder: str, progress: Progress
) -> dict[str, Any]:
    """Open the file and judge it, in a worker process, which leaves a `TriedRun`.

    Parameters
    ----------
    read : dict
        What `review_request` made of the review.
    path, name : str
        The file, and what its owner calls it.

    Raises
    ------
    InputError
        The file is cut off, altered, of a newer version, no calibrator, for another model, for
        other classes or for other columns.
    """
    reader = opened_reader(read, _READS)
    opened = reader.review
    progress(0.0, "Opening the file")
    data = review_data(reader, with_model=True)
    with _in_file(name):
        loaded = load_calibrator(path, model=data.model, any_model=True)
        _check(loaded, opened)
    data = _all_columns(data)
    judged = "evaluation" if data.evaluation is not None else "calibration"
    rows = data.evaluation or data.calibration
    progress(0.2, "Calibrating the rows")
    with _in_file(name):
        loaded.calibrated(rows.proba, data.inputs.get(judged))  # other columns are told of here
    # a copy of the rows: the very object of the calibration set would be cross-fitted
    inputs = {**data.inputs, "evaluation": data.inputs[judged]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # of the rows that both sets share
        found = compare(
            [(_KEY, AsFitted(loaded.calibrator, loaded.predict_proba))],
            replace(data, evaluation=replace(rows), inputs=inputs),
            far=False,
            judge="evaluation",
            progress=part_of(progress, 0.3, 1.0),
        )
    if found.failed:
        raise InputError(next(iter(found.failed.values())).rstrip("."), file=name)
    fitted_on = loaded.card.data.get("calibration")
    run = TriedRun(
        card=loaded.card,
        comparison=found,
        same_rows=fitted_on is not None and fitted_on.digest == opened.tables[judged].digest,
        has_model=loaded.card.model is not None,
    )
    save(Path(folder), run)
    return {"key": loaded.card.key}


@contextmanager
def _in_file(name: str) -> Iterator[None]:
    """Errors inside name the file as its owner does, not the copy of it."""
    try:
        yield
    except InputError as error:
        raise InputError(
            error.what, fix=error.fix, file=name, column=error.column, row=error.row
        ) from error


def _check(loaded: LoadedCalibrator, review: Review) -> None:
    """Refuse a file for another model or for other classes."""
    if review.model is not None:
        loaded.check_model(review.model.digest)
    if loaded.card.classes != review.classes:
        raise InputError(
            f"The calibrator was fitted for the classes {_classes(loaded.card.classes)}, and the "
            f"review has {_classes(review.classes)}",
            fix="Open the review that it belongs to, or fit a calibrator for this one.",
        )


def _classes(names: tuple[str, ...]) -> str:
    return listed(repr(name[:40]) for name in names)


def _all_columns(data: ReviewData) -> ReviewData:
    """The rows with the columns that have no role beside the features: the file may read one."""
    inputs = {
        which: pd.concat([frame, data.groups[which]], axis=1)
        for which, frame in data.inputs.items()
    }
    return replace(data, inputs=inputs)
