"""Fit one calibrator of a review, judge it, and write it as a file and, where possible, as ONNX."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.utils.validation import has_fit_parameter

from kdcal_core.calibration import CALIBRATORS, Calibrator, calibrator_entry, fit_calibrator
from kdcal_core.calibration.files import (
    CalibratorCard,
    CardEstimate,
    DataMark,
    can_export_onnx,
    export_onnx,
    make_card,
    save_calibrator,
)
from kdcal_core.calibration.files.card import card_to_json
from kdcal_core.calibration.heterogeneous import HeterogeneousCalibrator
from kdcal_core.calibration.heterogeneous.region_maps import MAPS
from kdcal_core.diagnostics.comparison import Comparison, compare
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.jobs import Progress
from kdcal_core.review import Review, ReviewData, Workspace, review_data
from kdcal_core.review.codec import decode, encode
from kdcal_core.review.reviewed import input_columns
from kdcal_core.runs.comparison_results import ComparisonSettings, save_comparison
from kdcal_core.runs.comparison_run import usable_calibrators
from kdcal_core.runs.export_map import map_of
from kdcal_core.runs.export_results import (
    CALIBRATOR_FILE,
    JUDGED,
    ONNX_FILE,
    ExportRecord,
    ExportSettings,
    Gain,
)
from kdcal_core.runs.inputs import Request, check_ranges, part_of, request, review_identity
from kdcal_core.runs.storage import save_array, save_record

_RANGES = {"folds": (2.0, 20.0), "seed": (0.0, 2.0**31)}
_INNER = {
    "platt": "Platt scaling",
    "isotonic": "Isotonic regression",
    "beta": "Beta calibration",
    "histogram": "Histogram",
    "temperature": "Temperature scaling",
    "kde": "Kernel densities of the confidence",
}
_ON_CARD = ("log_loss", "brier", "ece_mass", "smooth_ece", "auc", "accuracy")
_SHOWN_NAME = 60


def export_request(workspace: Workspace, review_id: str, settings: ExportSettings) -> Request:
    """The job that fits a calibrator, judges it and writes its file.

    Raises
    ------
    InputError
        Where the review is not a scored classification, it cannot have this calibrator, or a
        setting is none that there is.
    """
    review = workspace.read(review_id)
    _check(review, settings)
    asked = {"settings": encode(settings)}
    names = [table.name for table in review.tables.values()]  # they stand in the file
    parent = review.parent.name if review.parent else None
    return request(
        "kdcal_core.runs.export_run:export_calibrator",
        "Fitting and writing the calibrator",
        {"home": str(workspace.root), "review": review_id, **asked},
        {**review_identity(review), **asked, "names": names, "parent": parent},
    )


def partition_columns(review: Review) -> tuple[str, ...]:
    """Columns whose values can be the regions of a calibrator: every one without another role.

    Where a model does not name its columns, only those that it reads: its file is asked with all
    columns of the calibrator's card. Untrusted text.
    """
    inputs = tuple(input_columns(review))
    roles, table = review.roles, review.tables["calibration"]
    if roles is None or (review.parent is not None and review.parent.feature_names is None):
        return inputs
    from kdcal_core.data.columns import used_columns

    taken = {*used_columns(roles), *inputs}
    others = [review.tables[which] for which in review.sets]
    free = tuple(
        name
        for name in table.column_names
        if name not in taken and all(name in one.column_names for one in others)
    )
    return (*inputs, *free)


def calibrator_of(settings: ExportSettings) -> Calibrator:
    """The unfitted calibrator that is asked for."""
    entry = calibrator_entry(settings.key)
    if entry.family != "partition":
        return entry.factory()
    partition = "column" if settings.column is not None else settings.key.split("_", 1)[1]
    return HeterogeneousCalibrator(
        partition,
        settings.inner,
        max_depth=settings.max_depth,
        min_rows=settings.min_rows,
        column=settings.column,
        random_state=settings.seed,
    )


def title_of(settings: ExportSettings) -> str:
    """The calibrator's full name with its settings. Untrusted text where a column is named.

    Examples
    --------
    >>> title_of(ExportSettings("heterogeneous_tree", inner="isotonic"))
    'Isotonic regression in each region of a shallow tree'
    """
    entry = calibrator_entry(settings.key)
    if entry.family != "partition":
        return entry.name
    inner = _INNER[settings.inner]
    if settings.column is not None:
        return f"{inner} for each value of {settings.column[:_SHOWN_NAME]}"
    return entry.name.replace(_INNER["platt"], inner, 1)


def _check(review: Review, settings: ExportSettings) -> None:
    if not review.ready or review.roles is None:
        raise InputError(
            "The rows have not been scored yet", fix="Finish the review on the Load page."
        )
    if review.task != "classification":
        raise InputError(
            "The review is of a regression, and calibrators are for classifications",
            fix="Use the Recalibration page.",
        )
    check_ranges(settings, _RANGES)
    usable = usable_calibrators(review)
    if settings.key not in usable:
        raise InputError(
            f"There is no calibrator {settings.key[:_SHOWN_NAME]!r} to take away",
            fix=f"Choose among {', '.join(usable)}.",
        )
    why = usable[settings.key]
    if why is not None:
        raise InputError(
            f"{CALIBRATORS[settings.key].name} cannot be had here: {why[0].lower()}{why[1:-1]}",
            fix="Choose another calibrator.",
        )
    if settings.inner not in MAPS:
        raise InputError(
            f"There is no map {settings.inner[:_SHOWN_NAME]!r} for regions",
            fix=f"Choose among {', '.join(MAPS)}.",
        )
    for name, value, most in (
        ("depth", settings.max_depth, 12),
        ("number of rows", settings.min_rows, 10**9),
    ):
        if value is not None and not 1 <= value <= most:
            raise InputError(f"The {name} is {value:,}", fix=f"Choose 1 to {most:,}.")
    if settings.column is not None and settings.column not in partition_columns(review):
        raise InputError(
            "There is no such column to divide the rows by",
            fix="Choose a column that every table has.",
            column=settings.column,
        )


def export_calibrator(
    home: str, review: str, settings: dict[str, Any], folder: str, progress: Progress
) -> dict[str, Any]:
    """Fit, judge and write, in a worker process; `ExportRun.read` reads what it left.

    Parameters
    ----------
    home, review : str
        The workspace's folder and the review's id.
    settings : dict
        ExportSettings as JSON.

    Raises
    ------
    InputError
        Where the calibrator cannot be fitted on these rows, or a file is gone. Where it can be
        fitted but not judged, or not be written as ONNX, the record says why.
    """
    chosen, path, workspace = decode(ExportSettings, settings), Path(folder), Workspace(Path(home))
    opened = workspace.read(review)
    _check(opened, chosen)
    progress(0.0, "Reading the rows")
    data = with_column(
        review_data(workspace, review, with_parent="parent" in CALIBRATORS[chosen.key].needs),
        chosen.column,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # the notes say the same
        fitted, seconds = _fitted(data, chosen, part_of(progress, 0.05, 0.35))
        found, why_not_judged = _judged(data, chosen, part_of(progress, 0.35, 0.9))
    progress(0.9, "Writing the file")
    card = _card(opened, data, chosen, fitted, found)
    save_calibrator(fitted, path / CALIBRATOR_FILE, card)
    model = workspace.folder(review) / opened.model_file if opened.model_file else None
    onnx, why_no_onnx = _onnx(opened, data, fitted, card, model, path)
    if found is not None:
        (path / JUDGED).mkdir()
        save_comparison(
            path / JUDGED,
            ComparisonSettings((chosen.key,), folds=chosen.folds, seed=chosen.seed),
            data.calibration.n_rows,
            found,
        )
    judging = "evaluation" if data.evaluation is not None else "calibration"
    drawn = map_of(
        fitted,
        data.evaluation or data.calibration,
        data.inputs.get(judging) if fitted.needs_inputs else None,
        seed=chosen.seed,
    )
    for name in ("x", "y", "rows_x", "rows_y"):
        save_array(path, f"map_{name}", getattr(drawn, name))
    save_record(
        path,
        ExportRecord(
            settings=chosen,
            title=card.title,
            n_fit=data.calibration.n_rows,
            n_training=_n_training(data, chosen),
            fit_seconds=seconds,
            why_not_judged=why_not_judged,
            onnx_difference=None if onnx is None else onnx[0],
            onnx_rows=0 if onnx is None else onnx[1],
            why_no_onnx=why_no_onnx,
            shape=drawn.shape,
            lines=drawn.lines,
            n_lines=drawn.n_lines,
            card=json.dumps(card_to_json(card)),
        ),
    )
    return {"key": chosen.key}


def with_column(data: ReviewData, column: str | None) -> ReviewData:
    """The rows with a column that is no feature among their inputs, and without training rows.

    A column's values are found on the rows themselves, and the training table need not have it.
    """
    if column is None:
        return data
    inputs = {
        which: frame if column in frame.columns else frame.assign(**_one(data, which, column))
        for which, frame in data.inputs.items()
        if which != "training"
    }
    return replace(data, inputs=inputs, training_y=None)


def _one(data: ReviewData, which: str, column: str) -> dict[str, Any]:
    frame = data.groups.get(which, pd.DataFrame())
    if column not in frame.columns:
        raise InputError(
            "A table lacks the column that divides the rows",
            fix="Choose a column that every table has.",
            column=column,
        )
    return {column: frame[column]}


def _n_training(data: ReviewData, settings: ExportSettings) -> int:
    """Training rows that a partition is grown on."""
    grown = has_fit_parameter(calibrator_of(settings), "X_partition")
    return len(data.training[1]) if grown and data.training is not None else 0


def _fitted(
    data: ReviewData, settings: ExportSettings, progress: Progress
) -> tuple[Calibrator, float]:
    progress(0.0, f"Fitting: {title_of(settings)}")
    start = time.perf_counter()
    fitted = fit_calibrator(
        calibrator_of(settings),
        data.calibration,
        data.inputs.get("calibration"),
        training=data.training,
        parent=data.parent,
        progress=progress,
    )
    return fitted, time.perf_counter() - start


def _judged(
    data: ReviewData, settings: ExportSettings, progress: Progress
) -> tuple[Comparison | None, str | None]:
    """The parent against the calibrator on rows that it was not fitted on, or why there is none."""
    try:
        found = compare(
            [(settings.key, calibrator_of(settings))],
            data,
            folds=settings.folds,
            seed=settings.seed,
            far=False,
            progress=progress,
        )
    except InputError as error:
        return None, str(error)
    failure = next(iter(found.failed.values()), None)
    return (found, None) if failure is None else (None, failure)


def _card(
    review: Review,
    data: ReviewData,
    settings: ExportSettings,
    fitted: Calibrator,
    found: Comparison | None,
) -> CalibratorCard:
    inputs = data.inputs.get("calibration")
    card = make_card(
        settings.key,
        fitted,
        classes=data.classes,
        data=_marks(review, with_training=_n_training(data, settings) > 0),
        parent=review.parent,
        features=[] if inputs is None else [str(name) for name in inputs.columns],
        estimates=[] if found is None else _estimates(Gain.of(found), settings),
        seed=settings.seed,
    )
    return replace(card, title=title_of(settings))


def _estimates(gain: Gain, settings: ExportSettings) -> list[CardEstimate]:
    found = gain.comparison
    judged = found.judged if found.folds == 0 else f"{found.judged}, {found.folds} folds"
    estimates = []
    for key in _ON_CARD:
        if key in gain.after.scores:
            before, after = gain.before.scores[key], gain.after.scores[key]
            estimates.append(
                CardEstimate(
                    after.name,
                    after.label,
                    before.value,
                    after.value,
                    after.low,
                    after.high,
                    after.n,
                    judged,
                    after.level,
                )
            )
    return estimates


def _marks(review: Review, *, with_training: bool) -> dict[str, DataMark]:
    tables = dict(review.tables)
    if with_training and review.training is not None:
        tables["training"] = review.training
    return {
        which: DataMark(table.name, table.digest, table.n_rows) for which, table in tables.items()
    }


def _onnx(
    review: Review,
    data: ReviewData,
    fitted: Calibrator,
    card: CalibratorCard,
    model: Path | None,
    folder: Path,
) -> tuple[tuple[float, int] | None, str | None]:
    """Largest difference and its rows where the ONNX model was written, or why there is none."""
    why = can_export_onnx(fitted, review.parent)
    if why is not None or model is None:
        return None, why or "There is no model, only its predictions."
    try:
        made = export_onnx(fitted, model, folder / ONNX_FILE, card, data.inputs["calibration"])
    except InputError as error:
        return None, str(error)
    return (made.max_difference, made.n_rows), None
