"""A new table's forecasts and labels, read as those of the reference rows; runs in a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.export.score_table import score_table
from kdcal_core.data import (
    OutputKind,
    Table,
    Task,
    feature_frame,
    outcome_column,
    output_matrix,
    target_labels,
)
from kdcal_core.data.equal_rows import are_fine, row_keys
from kdcal_core.data.tables import TableBlocks
from kdcal_core.progress import Progress, silent
from kdcal_core.regression.recalibrated_table import recalibrate_table
from kdcal_core.review import ReviewReader
from kdcal_core.review.scoring import in_file, in_rows_of, new_forecasts, predict

UNLABELLED = -1


@dataclass(frozen=True, eq=False)
class NewRows:
    """The rows of a new table, or those of them with a label.

    Attributes
    ----------
    said : (m, K) array or PredictiveDistribution
        What the model says of the rows: probabilities of a classification, or distributions.
    y : (m,) array
        Classes, -1 without a label; of a regression outcomes, NaN without one.
    keys : (m,) uint64 array
        One a row, equal for rows of equal inputs or, without inputs, of equal probabilities.
    fine : bool
        Whether rows are hardly ever equal by chance (`kdcal_core.data.equal_rows.are_fine`).
    n : int
        Rows of the whole table.
    inputs : DataFrame or None
        The columns that describe these rows, where they are known; only of a new table, not of
        those before it.
    units : DataFrame or None
        Their column of clusters or times, where the table has it.
    """

    said: Any
    y: NDArray[Any]
    keys: NDArray[np.uint64]
    fine: bool
    n: int
    inputs: pd.DataFrame | None = None
    units: pd.DataFrame | None = None

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which rows have a label."""
        return _labelled(self.y)


def _labelled(y: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(~np.isnan(y) if y.dtype.kind == "f" else y != UNLABELLED)


def new_rows(
    reader: ReviewReader,
    name: str,
    digest: str,
    progress: Progress = silent,
    *,
    labelled: bool = False,
) -> NewRows:
    """What a review's model says of a new table, and the labels that it has.

    Parameters
    ----------
    reader : ReviewReader
        The model is read, if the review has one.
    name, digest : str
        As of `kdcal_core.review.ReviewReader.watched`.
    labelled : bool
        Read and score only the rows with a label.

    Raises
    ------
    InputError
        For a table that cannot be used, with file, column and row.
    """
    roles, classes = reader.roles, reader.review.classes
    frame = reader.watched(name, digest)
    n = len(frame)
    with in_file(name), in_rows_of(frame):
        y = _labels(frame, reader)
    if labelled:
        frame, y = frame.loc[_labelled(y)], y[_labelled(y)]
    if not len(frame):
        none = np.empty(0, dtype=np.uint64)
        return NewRows(np.empty((0, len(classes))), y, none, True, n)
    with in_file(name), in_rows_of(frame):
        table = Table(frame, digest, name)
        model = reader.model() if reader.has("model") else None
        if reader.review.task == "regression":
            spread, regressor = reader.review.sets["calibration"].spread, cast(Any, model)
            said: Any = new_forecasts(table, regressor, roles, spread, progress)
        elif model is not None:
            said = predict(model, feature_frame(frame, roles), classes, progress)
        else:
            said = output_matrix(table, roles, classes)
        known = bool(roles.features) and set(roles.features) <= set(frame.columns)
        if model is not None or known:
            inputs = feature_frame(frame, roles)
        elif reader.review.task == "regression":
            inputs = frame[[column for _, column in roles.parameters]]
        else:
            inputs = pd.DataFrame(said)
    kept = None if labelled or not set(roles.features) <= set(inputs.columns) else inputs
    column = roles.time or roles.cluster
    units = frame[[column]] if column in frame.columns else None
    return NewRows(said, y, row_keys(inputs), are_fine(inputs), n, kept, units)


def calibrator_output(
    calibrator: str,
    data: str,
    out: str,
    task: Task,
    keep: Sequence[str],
    model: str | None = None,
    stated: Sequence[Sequence[str]] = (),
    output_kind: OutputKind | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Write what a calibrator, or of a regression a recalibrator, makes of a table.

    Meant for a worker process: arguments and result are those of `score_table` and
    `recalibrate_table`.

    Parameters
    ----------
    stated : sequence of (class or parameter, column)
        The predictions, where there is no model.
    """
    suffix = Path(out).suffix
    if task == "regression":
        return recalibrate_table(
            calibrator,
            data,
            out,
            suffix,
            model=model,
            parameters=stated,
            keep=keep,
            progress=progress,
        )
    return score_table(
        calibrator,
        data,
        out,
        suffix,
        model=model,
        outputs=stated,
        output_kind=output_kind,
        keep=keep,
        progress=progress,
    )


def calibrated_rows(
    calibrator: str,
    data: str,
    out: str,
    task: Task,
    target: str,
    features: Sequence[str],
    name: str,
    model: str | None = None,
    stated: Sequence[Sequence[str]] = (),
    output_kind: OutputKind | None = None,
    units: str | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Write a calibrator's output for a table, with its target and features if it has them.

    Meant for a worker process: arguments and result are those of `calibrator_output`.

    Parameters
    ----------
    target : str
        A column, which the table may lack.
    features : sequence of str
        Columns that describe the rows.
    name : str
        The table's name in errors.
    units : str, optional
        The column of clusters or times.
    """
    with in_file(name):
        names = TableBlocks(data).names
        said = {column for _, column in stated}
        keep = [one for one in (target, *features, units) if one in names and one not in said]
        return calibrator_output(
            calibrator,
            data,
            out,
            task,
            keep,
            model=model,
            stated=stated,
            output_kind=output_kind,
            progress=progress,
        )


def _labels(frame: pd.DataFrame, reader: ReviewReader) -> NDArray[Any]:
    """The class of each row, -1 where its label is missing, or its outcome, NaN where it is."""
    target, outcomes = reader.roles.target, reader.review.task == "regression"
    y: NDArray[Any] = (
        np.full(len(frame), np.nan) if outcomes else np.full(len(frame), UNLABELLED, dtype=np.int64)
    )
    if target is None or target not in frame.columns:
        return y
    known = ~_missing(frame[target])
    if known.any():
        there = frame.loc[known]
        with in_rows_of(there):
            y[known] = (
                outcome_column(Table(there, "", ""), reader.roles)
                if outcomes
                else target_labels(there, reader.roles, reader.review.classes)
            )
    return y


def _missing(column: pd.Series[Any]) -> Any:
    blank = column.astype("string").str.strip().eq("").fillna(True)
    return (column.isna() | blank).to_numpy(dtype=bool)
