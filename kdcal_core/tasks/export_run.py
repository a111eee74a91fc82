"""Fit one calibrator of a review, judge it, and write it as a file and, where possible, as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kdcal_core.calibration import CALIBRATORS, calibrator_entry
from kdcal_core.calibration.export import can_export_onnx, export_onnx, save_calibrator
from kdcal_core.calibration.fitting import check_layer
from kdcal_core.calibration.settings import configured
from kdcal_core.diagnostics.calibrator_map import calibrator_map
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import Review, ReviewReader, Workspace
from kdcal_core.review.inputs import input_columns
from kdcal_core.store import decode, encode, save
from kdcal_core.tasks.comparison_run import usable_calibrators
from kdcal_core.tasks.export_fit import READS, Fitted, Wanted, fit_and_judge
from kdcal_core.tasks.export_results import (
    CALIBRATOR_FILE,
    ONNX_FILE,
    ExportRecord,
    ExportRun,
    ExportSettings,
)
from kdcal_core.tasks.inputs import (
    Request,
    check_ranges,
    opened_reader,
    require_classification,
    review_request,
)

FEW_TREES = 10
_OF_MANY_TREES = ("heterogeneous_forest", "heterogeneous_boosted")
_RANGES = {"folds": (2.0, 20.0), "seed": (0.0, 2.0**31)}
_SHOWN_NAME = 60


def export_request(workspace: Workspace, review_id: str, settings: ExportSettings) -> Request:
    """The job that fits a calibrator, judges it and writes its file.

    Raises
    ------
    InputError
        Where the review is not a scored classification, it cannot have this calibrator, or a
        setting is none that there is.
    """
    reader = ReviewReader(workspace, review_id, READS)
    review = reader.review
    _check(review, settings)
    asked = {"settings": encode(settings)}
    # these stand in the file
    names = [table.name for table in review.tables.values()]
    training = review.training.name if review.training else None
    model = review.model.name if review.model else None
    return review_request(
        "kdcal_core.tasks.export_run:export_calibrator",
        "Fitting and writing the calibrator",
        reader,
        asked,
        {**asked, "names": names, "training": training, "model": model},
    )


def partition_columns(review: Review) -> tuple[str, ...]:
    """Columns whose values can be the regions of a calibrator: every one without another role.

    Where a model does not name its columns, only those that it reads: its file is asked with all
    columns of the calibrator's card. Untrusted text.
    """
    inputs = tuple(input_columns(review))
    roles, table = review.roles, review.tables["calibration"]
    if roles is None or (review.model is not None and review.model.feature_names is None):
        return inputs
    from kdcal_core.data.role_columns import used_columns

    taken = {*used_columns(roles), *inputs}
    others = [review.tables[which] for which in review.sets]
    free = tuple(
        name
        for name in table.column_names
        if name not in taken and all(name in one.column_names for one in others)
    )
    return (*inputs, *free)


def wanted_of(settings: ExportSettings) -> Wanted:
    """The unfitted calibrator that is asked for.

    Examples
    --------
    >>> wanted_of(ExportSettings("heterogeneous_tree", inner="isotonic")).title
    'Isotonic regression in each region of a shallow tree'
    """
    calibrator = configured(settings.key, _parameters(settings), seed=settings.seed)
    return Wanted(settings.key, calibrator, settings.layer, settings.folds, settings.seed)


def _parameters(settings: ExportSettings) -> dict[str, Any]:
    """The calibrator's parameters by name, but those that stay as they are."""
    if calibrator_entry(settings.key).family != "partition":
        return {}
    found: dict[str, Any] = {
        "calibrator": settings.inner,
        "max_depth": settings.max_depth,
        "min_rows": settings.min_rows,
        "prune": "cv" if settings.prune else None,
        "column": list(settings.columns) if len(settings.columns) > 1 else None,
        "n_trees": few_trees(settings.key, settings.inner),
    }
    if len(settings.columns) == 1:
        found["column"] = settings.columns[0]
    return {name: value for name, value in found.items() if value is not None}


def few_trees(key: str, inner: str) -> int | None:
    """How many trees are grown where kernel densities in each region of many would take long.

    None where the calibrator's own number is.
    """
    return FEW_TREES if inner == "kde" and key in _OF_MANY_TREES else None


def _check(review: Review, settings: ExportSettings) -> None:
    require_classification(review, "calibrators are for classifications")
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
    if settings.layer is not None:
        layers = review.model.layers if review.model is not None else ()
        if settings.layer not in layers:
            raise InputError(
                f"The model has no hidden layer {settings.layer[:_SHOWN_NAME]!r}",
                fix=f"It has {', '.join(layers) or 'none'}.",
            )
    wanted = wanted_of(settings)
    if settings.layer is not None:
        check_layer(wanted.calibrator)
    columns = partition_columns(review)
    for column in settings.columns:
        if column not in columns:
            raise InputError(
                "There is no such column to divide the rows by",
                fix="Choose a column that every table has.",
                column=column,
            )


def export_calibrator(
    read: dict[str, Any], settings: dict[str, Any], folder: str, progress: Progress
) -> dict[str, Any]:
    """Fit, judge and write, in a worker process, which leaves an `ExportRun`.

    Parameters
    ----------
    read : dict
        What `review_request` made of the review.
    settings : dict
        ExportSettings as JSON.

    Raises
    ------
    InputError
        Where the calibrator cannot be fitted on these rows, or a file is gone. Where it can be
        fitted but not judged, or not be written as ONNX, the record says why.
    """
    chosen, path = decode(ExportSettings, settings), Path(folder)
    reader = opened_reader(read, READS)
    opened = reader.review
    _check(opened, chosen)
    made = fit_and_judge(reader, wanted_of(chosen), part_of(progress, 0.0, 0.9))
    progress(0.9, "Writing the file")
    save_calibrator(made.calibrator, path / CALIBRATOR_FILE, made.card)
    onnx, why_no_onnx = _onnx(opened, made, reader.model_path, path)
    data = made.data
    judging = "evaluation" if data.evaluation is not None else "calibration"
    drawn = calibrator_map(
        made.calibrator,
        data.evaluation or data.calibration,
        data.inputs.get(judging) if made.calibrator.needs_inputs else None,
        seed=chosen.seed,
    )
    record = ExportRecord(
        settings=chosen,
        title=made.card.title,
        n_fit=data.calibration.n_rows,
        n_training=made.n_training,
        fit_seconds=made.seconds,
        why_not_judged=made.why_not_judged,
        onnx_difference=None if onnx is None else onnx[0],
        onnx_rows=0 if onnx is None else onnx[1],
        why_no_onnx=why_no_onnx,
    )
    onnx_file = None if onnx is None else path / ONNX_FILE
    save(path, ExportRun(record, made.found, drawn, made.card, path / CALIBRATOR_FILE, onnx_file))
    return {"key": chosen.key}


def _onnx(
    review: Review, made: Fitted, model: Path | None, folder: Path
) -> tuple[tuple[float, int] | None, str | None]:
    """Largest difference and its rows where the ONNX model was written, or why there is none."""
    why = can_export_onnx(made.calibrator, review.model, made.card.layer)
    if why is not None or model is None:
        return None, why or "There is no model, only its predictions."
    rows = made.rows.inputs["calibration"]
    try:
        written = export_onnx(made.calibrator, model, folder / ONNX_FILE, made.card, rows)
    except InputError as error:
        return None, str(error)
    return (written.max_difference, written.n_rows), None
