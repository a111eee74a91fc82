"""Calibrate a classification region by region, and judge it on rows that it was not fitted on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.calibration import Calibrator, calibrated, fit_calibrator
from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.data import FloatArray, IntArray, ScoredSet, stratified_folds
from kdcal_core.diagnostics import Estimate, log_loss, paired_auc, paired_difference
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.evaluation.overlap import overlap, overlap_words
from kdcal_core.partition.tree import unusable_columns
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import (
    Part,
    Review,
    ReviewData,
    ReviewReader,
    Workspace,
    left_out,
    left_out_words,
    review_data,
)
from kdcal_core.statistics import log_losses
from kdcal_core.store import decode, encode, save
from kdcal_core.tasks.inputs import (
    Request,
    check_ranges,
    opened_reader,
    require_classification,
    review_request,
)
from kdcal_core.tasks.recalibration_results import MODEL
from kdcal_core.tasks.regions_results import (
    ONE_MAP,
    PARTITION_TITLES,
    EventScores,
    RegionsMethod,
    RegionsRecord,
    RegionsRun,
    RegionsSettings,
)

READS: tuple[Part, ...] = ("model", "calibration", "evaluation", "training")
_DEPTH = {"max_depth": (1.0, 12.0)}
_RANGES = {
    "n_trees": (1.0, 1000.0),
    "folds": (2.0, 20.0),
    "seed": (0.0, 2.0**31),
}
_TRAINING_ROWS = 100_000  # whose scores are drawn


def regions_request(
    workspace: Workspace, review_id: str, settings: RegionsSettings | None = None
) -> Request:
    """The job that calibrates a review region by region.

    Raises
    ------
    InputError
        Where the review is not a scored classification, or a setting is none that there is.
    """
    reader = ReviewReader(workspace, review_id, READS)
    settings = settings or RegionsSettings()
    _check(reader.review, settings)
    return review_request(
        "kdcal_core.tasks.regions_run:calibrate_regions",
        "Calibrating by regions",
        reader,
        {"settings": encode(settings)},
    )


def _check(review: Review, settings: RegionsSettings) -> None:
    require_classification(review, "calibration by regions is for classifications")
    check_ranges(settings, _RANGES if settings.max_depth is None else {**_DEPTH, **_RANGES})
    unknown = next((key for key in settings.partitions if key not in PARTITION_TITLES), None)
    if unknown is not None or not settings.partitions:
        raise InputError(
            f"There is no partition {unknown!r}" if unknown else "No partition is chosen",
            fix=f"Choose among {', '.join(PARTITION_TITLES)}.",
        )
    if settings.min_rows is not None and settings.min_rows < 1:
        raise InputError("A region keeps at least one row", fix="Give a larger number of rows.")
    if "column" in settings.partitions and settings.column is None:
        raise InputError("No column is named to partition by", fix="Choose a column.")


@dataclass(frozen=True, eq=False)
class _Rows:
    """What every method is fitted and judged on."""

    data: ReviewData
    fit: ScoredSet
    judged: ScoredSet
    fit_inputs: pd.DataFrame
    judged_inputs: pd.DataFrame
    training: tuple[pd.DataFrame, IntArray] | None


def calibrate_regions(
    read: dict[str, Any], settings: dict[str, Any], folder: str, progress: Progress
) -> dict[str, Any]:
    """Fit and judge every method, in a worker process, which leaves a `RegionsRun`.

    Parameters
    ----------
    read : dict
        What `review_request` made of the review.
    settings : dict
        RegionsSettings as JSON.

    Raises
    ------
    InputError
        Where there are no inputs to cut, or a file is gone. A method that cannot be fitted on so
        few rows is told in the record's notes instead.
    """
    chosen, path = decode(RegionsSettings, settings), Path(folder)
    reader = opened_reader(read, READS)
    _check(reader.review, chosen)
    progress(0.0, "Reading the rows")
    data = review_data(reader, with_model=True)
    rows, notes = _rows_of(data)
    shared = overlap(data)
    if shared is not None and (sentence := overlap_words(shared)) is not None:
        notes.append(sentence)
    binary = len(data.classes) == 2
    scores: dict[str, EventScores] = {}
    methods = [_model(rows, binary, scores)]
    keys = (ONE_MAP, *dict.fromkeys(chosen.partitions))
    for at, key in enumerate(keys):
        report = part_of(progress, 0.05 + 0.95 * at / len(keys), 0.05 + 0.95 * (at + 1) / len(keys))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # the fit's notes say the same
            try:
                methods.append(_method(rows, key, chosen, binary, scores, report))
            except InputError as error:
                notes.append(f"{_title(key, chosen)} was left out. {error}")
    if others := left_out(reader.review):
        notes.append(left_out_words(others))
    record = RegionsRecord(
        settings=chosen,
        judged_on="cross-fitted" if data.evaluation is None else "evaluation",
        n_fit=rows.fit.n_rows,
        n_judged=rows.judged.n_rows,
        n_training=0 if rows.training is None else len(rows.training[1]),
        event=data.classes[1] if binary else None,
        methods=tuple(methods),
        weighted=rows.judged.weight is not None,
        notes=tuple(notes),
    )
    training = _training_scores(data, binary, chosen.seed)
    save(path, RegionsRun(record, scores, training, rows.judged.weight, path))
    return {"methods": [one.key for one in methods]}


def _rows_of(data: ReviewData) -> tuple[_Rows, list[str]]:
    inputs = data.inputs["calibration"]
    left_out = unusable_columns(inputs)
    kept = [name for name in inputs.columns if name not in left_out]
    if not kept:
        raise InputError(
            "The tables hold no inputs to cut into regions",
            fix="Add tables with the rows' features, or columns that describe them.",
        )
    training = data.training
    if training is not None:
        training = training[0][kept], training[1]
    which = "calibration" if data.evaluation is None else "evaluation"
    notes = [f"{name} is left out. {reason}." for name, reason in left_out.items()]
    return (
        _Rows(
            data,
            data.calibration,
            data.calibration if data.evaluation is None else data.evaluation,
            inputs[kept],
            data.inputs[which][kept],
            training,
        ),
        notes,
    )


def _title(key: str, settings: RegionsSettings) -> str:
    if key == "column":
        return f"The column {settings.column}"
    return "One map for all rows" if key == ONE_MAP else PARTITION_TITLES[key]


def _calibrator(key: str, settings: RegionsSettings) -> Calibrator | str:
    if key == ONE_MAP:
        return "platt"
    return HeterogeneousCalibrator(
        key,
        max_depth=settings.max_depth,
        min_rows=settings.min_rows,
        n_trees=settings.n_trees,
        column=settings.column if key == "column" else None,
        random_state=settings.seed,
    )


def _method(
    rows: _Rows,
    key: str,
    settings: RegionsSettings,
    binary: bool,
    scores: dict[str, EventScores],
    progress: Progress,
) -> RegionsMethod:
    fit_inputs, judged_inputs, training = _read_by(rows, key, settings.column)
    title, seconds = _title(key, settings), 0.0
    proba = np.empty_like(rows.judged.proba)
    divisions = list(_divisions(rows, settings))
    fitted: Calibrator | None = None
    for at, (kept, held) in enumerate(divisions):
        report = part_of(progress, at / len(divisions), (at + 1) / len(divisions))
        report(0.0, title)
        start = time.perf_counter()
        fitted = fit_calibrator(
            _calibrator(key, settings),
            _taken(rows.fit, kept),
            fit_inputs.iloc[kept],
            training=training,
            progress=lambda share, note, to=report: to(share, f"{title}: {note}"),  # type: ignore[misc]
        )
        seconds += time.perf_counter() - start
        proba[held] = calibrated(fitted, rows.judged.proba[held], judged_inputs.iloc[held]).proba
    assert fitted is not None
    scores[key] = _event_scores(proba, rows.judged.y, binary)
    y, weight = rows.judged.y, rows.judged.weight
    pair = None
    if binary and len(np.unique(y)) == 2:
        pair = paired_auc(rows.judged.proba[:, 1], proba[:, 1], y, sample_weight=weight)
    return RegionsMethod(
        key=key,
        title=title,
        log_loss=log_loss(proba, y, sample_weight=weight),
        difference=_change(proba, rows.judged),
        auc=pair,
        n_regions=sum(layer.partition.n_leaves for layer in getattr(fitted, "layers_", ())),
        seconds=seconds,
        notes=fitted.notes_,
    )


def _change(proba: FloatArray, judged: ScoredSet) -> Estimate:
    """Log loss minus the model's on the same rows."""
    found = paired_difference(
        log_losses(proba, judged.y),
        log_losses(judged.proba, judged.y),
        weight=judged.weight,
        name="Log loss minus the model's, row by row",
        label="Log loss change",
    )
    return replace(found, expected=None)


def _read_by(
    rows: _Rows, key: str, column: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[pd.DataFrame, IntArray] | None]:
    """What a method reads: the inputs, or the one column, which need not be an input."""
    if key != "column":
        return rows.fit_inputs, rows.judged_inputs, rows.training
    which = "calibration" if rows.data.evaluation is None else "evaluation"
    found = []
    for name, inputs in (("calibration", rows.fit_inputs), (which, rows.judged_inputs)):
        for frame in (inputs, rows.data.groups[name]):
            if column in frame.columns:
                found.append(frame[[column]])
                break
    if len(found) < 2:
        raise InputError(
            "A table lacks the column to partition by",
            fix="Choose a column that every table has.",
            column=column,
        )
    return found[0], found[1], None


def _divisions(rows: _Rows, settings: RegionsSettings) -> Iterator[tuple[IntArray, IntArray]]:
    """Rows to fit on and rows to answer for."""
    if rows.data.evaluation is not None:
        yield np.arange(rows.fit.n_rows), np.arange(rows.judged.n_rows)
        return
    fold = stratified_folds(rows.fit.y, settings.folds, settings.seed)
    for one in range(settings.folds):
        yield np.flatnonzero(fold != one), np.flatnonzero(fold == one)


def _taken(rows: ScoredSet, kept: IntArray) -> ScoredSet:
    weight = None if rows.weight is None else rows.weight[kept]
    return replace(rows, proba=rows.proba[kept], y=rows.y[kept], weight=weight)


def _model(rows: _Rows, binary: bool, scores: dict[str, EventScores]) -> RegionsMethod:
    judged = rows.judged
    scores[MODEL] = _event_scores(judged.proba, judged.y, binary)
    found = log_loss(judged.proba, judged.y, sample_weight=judged.weight)
    return RegionsMethod(MODEL, "The model as it is", found, None, None, 0, 0.0)


def _event_scores(proba: FloatArray, y: IntArray, binary: bool) -> EventScores:
    if binary:
        score, hit = proba[:, 1], y == 1
    else:
        predicted = proba.argmax(axis=1)
        score, hit = proba[np.arange(len(y)), predicted], predicted == y
    return EventScores(np.clip(score, 0.0, 1.0), hit.astype(np.float64))


def _training_scores(data: ReviewData, binary: bool, seed: int) -> EventScores | None:
    """What the model says of its training rows, where both are there."""
    if data.training is None or data.model is None:
        return None
    frame, y = data.training
    if len(y) > _TRAINING_ROWS:
        drawn = np.random.default_rng(seed).choice(len(y), _TRAINING_ROWS, replace=False)
        frame, y = frame.iloc[drawn], y[drawn]
    return _event_scores(data.model.predict_proba(frame), y, binary)
