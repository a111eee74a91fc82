"""A table's rows and the model's outputs for them, read in a worker; errors name the file's row.

This module also scores a regression: its outcomes and the model's predictive distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import feather

from kdcal_core.data import (
    FloatArray,
    IntArray,
    Roles,
    Table,
    at_most,
    check_proba,
    check_roles,
    digest_arrays,
    feature_frame,
    outcome_column,
    parameter_columns,
    regression_fitness,
    row_dependence,
    spread_column,
    true_mean_column,
    weight_column,
)
from kdcal_core.data.folder_parts import parts_of
from kdcal_core.data.times import time_span
from kdcal_core.distributions import (
    PredictiveDistribution,
    cross_fitted_spread,
    distribution_of,
    resolution_note,
    save_distribution,
    spread_of,
)
from kdcal_core.errors import InputError, quiet, warn
from kdcal_core.jobs import trial
from kdcal_core.models import Model, Regressor
from kdcal_core.models.forecasts import checked_parameters, samples_of
from kdcal_core.progress import Progress
from kdcal_core.review.review import SetInfo
from kdcal_core.review.sealed_files import (
    DISTRIBUTION,
    check_seal,
    dependence_arrays,
    regression_digest,
    seal,
    seal_folder,
)
from kdcal_core.review.set_summary import write_fitness, write_regression_summary
from kdcal_core.statistics import Dependence
from kdcal_core.store import write_arrays
from kdcal_core.text import counted, formatted

_BLOCK_ROWS = 50_000
_FEW_COLUMNS = 4  # read rather than mapped, because the system maps the whole file
_TRIAL_ROWS = 8
_TOO_SLOW = "Use a faster model, or write its predictions into a table and load that instead."


def read_frame(
    path: str,
    columns: Sequence[str] | None = None,
    most: int | None = None,
    coded: bool = False,
) -> pd.DataFrame:
    """A table as stored in the review; the index of a divided one is the position in the file.

    Parameters
    ----------
    columns : sequence of str, optional
        Read only these, without the index.
    most : int, optional
        Of more rows than these, draw as many at random, always the same ones.
    coded : bool
        Whether texts become categories.

    Raises
    ------
    InputError
        If its file was changed after kdcal wrote it.
    """
    few = columns is not None and len(columns) <= _FEW_COLUMNS
    table = _stored(path, columns, memory_map=not few)
    if most is not None and table.num_rows > most:
        table = table.take(at_most(table.num_rows, most))
    frame: pd.DataFrame = table.to_pandas(
        ignore_metadata=columns is not None, strings_to_categorical=coded
    )
    return frame


def count_rows(path: str, columns: Sequence[str]) -> tuple[pd.DataFrame, IntArray]:
    """The distinct rows of these columns of a stored table, and how often each occurs.

    Every row of the table counts, and none of them is held in memory.

    Raises
    ------
    InputError
        As `read_frame`.
    """
    counted = _stored(path, columns).group_by(list(columns)).aggregate([([], "count_all")])
    rows: IntArray = counted["count_all"].to_numpy()
    return counted.select(list(columns)).to_pandas(ignore_metadata=True), rows


def _stored(path: str, columns: Sequence[str] | None, *, memory_map: bool = True) -> pa.Table:
    if not check_seal(Path(path)):
        with suppress(OSError):  # the home may be read-only
            seal(Path(path))  # written by an earlier version without a seal
    chosen = None if columns is None else list(columns)
    return feather.read_table(path, columns=chosen, memory_map=memory_map)


def predict(
    model: Model, frame: pd.DataFrame, classes: tuple[str, ...], progress: Progress
) -> FloatArray:
    """The model's probabilities of all rows, block by block, (n, K).

    Raises
    ------
    InputError
        If the rows do not fit the model, or its outputs are not probabilities; the message names
        the row.
    """

    def answer(block: pd.DataFrame) -> FloatArray:
        proba = model.predict_proba(block)
        return check_proba(proba, n_classes=len(classes), columns=classes)

    return by_blocks(answer, frame, len(classes), progress)


def by_blocks(
    answer: Callable[[pd.DataFrame], FloatArray],
    frame: pd.DataFrame,
    width: int,
    progress: Progress,
) -> FloatArray:
    """A model's outputs for all rows, computed block by block, (n, width).

    A few rows are computed first, with a limit of seconds, so that a slow model does not occupy the
    worker for half an hour.

    Raises
    ------
    InputError
        As from ``answer``, with the row of the whole frame.
    """
    n = len(frame)
    few = min(n, _TRIAL_ROWS)
    with trial(f"The model, tried on {counted(few, 'row')},", fix=_TOO_SLOW):
        answer(frame.iloc[:few])
    answers = np.empty((n, width))
    for start in range(0, n, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n)
        try:
            answers[start:stop] = answer(frame.iloc[start:stop])
        except InputError as error:
            if error.row is None:
                raise
            raise _at_row(error, error.row + start) from error
        progress(stop / n, f"{stop:,} of {n:,} rows")
    return answers


@contextmanager
def in_rows_of(frame: pd.DataFrame) -> Iterator[None]:
    """Make errors in the body name the row of the file, not that of its part.

    Of a table that was gathered from a folder, the error names the folder's file.
    """
    try:
        yield
    except InputError as error:
        if error.row is None:
            raise
        row = int(frame.index[error.row - 1]) + 1
        folder = parts_of(frame)
        place = folder.place(row) if folder is not None else None
        if place is None:
            raise _at_row(error, row) from error
        file, row = place
        raise InputError(
            error.what, fix=error.fix, file=file, column=error.column, row=row
        ) from error


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Make errors in the body name this file if they name none."""
    try:
        yield
    except InputError as error:
        raise error.at(file=name) from error


def _at_row(error: InputError, row: int) -> InputError:
    return InputError(error.what, fix=error.fix, file=error.file, column=error.column, row=row)


def score_regression(
    table: Table,
    model: Regressor | None,
    roles: Roles,
    folder: str,
    spread: float | None,
    progress: Progress,
) -> SetInfo:
    """Score a table and save its arrays: y, weight, true mean and those of the distribution.

    Parameters
    ----------
    model : Regressor or None
        None if the table contains the predictions.
    folder : str
        A fresh folder for the arrays.
    spread : float or None
        If predictions are single numbers, the spread of the calibration set. None for that set
        itself, where each row's spread is estimated from the other folds.

    Raises
    ------
    InputError
        For the first error, with its column and row.
    """
    with (
        in_file(table.name),
        in_rows_of(table.frame),
        quiet() as said,
    ):
        check_roles(
            table,
            roles,
            n_features=model.n_features if model else None,
            feature_names=model.feature_names if model else None,
            needs_outputs=model is None,
        )
        y = outcome_column(table, roles)
        weight = weight_column(table, roles)
        dependence = row_dependence(table, roles)
        true_mean = true_mean_column(table, roles)
        distribution, spread = _distribution(table, model, roles, y, spread, dependence, progress)
        for note in (resolution_note(distribution), _unused_spread(table, model, roles)):
            if note:
                warn(note, stacklevel=2)
        rmse = _rmse(y, distribution)
    path = Path(folder)
    (path / DISTRIBUTION).mkdir(mode=0o700, parents=True)
    save_distribution(distribution, path / DISTRIBUTION)
    units = dependence_arrays(dependence)
    write_arrays(path, {"y": y, "weight": weight, "true_mean": true_mean, **units})
    alone = weight is None and dependence is None
    write_regression_summary(path, distribution, y, true_mean, table.frame, independent=alone)
    outside = int(((distribution.cdf(y) <= 0.0) | (distribution.cdf_left(y) >= 1.0)).sum())
    write_fitness(
        path,
        len(y),
        lambda: regression_fitness(distribution.mean(), y, outside=outside, notes=tuple(said)),
    )
    seal_folder(path)
    return SetInfo(
        digest=regression_digest(y, weight, true_mean, distribution, dependence),
        n_rows=len(y),
        accuracy=None,
        folder=path.name,
        rmse=rmse,
        outside=outside,
        spread=spread,
        notes=tuple(said),
        units=0 if dependence is None else dependence.n_units,
        span=() if roles.time is None else time_span(table.frame[roles.time]),
        # not the spread of single numbers, which clusters change
        answers=digest_arrays(y, distribution.mean()),
    )


def _distribution(
    table: Table,
    model: Regressor | None,
    roles: Roles,
    y: FloatArray,
    spread: float | None,
    dependence: Dependence | None,
    progress: Progress,
) -> tuple[PredictiveDistribution, float | None]:
    family = roles.family
    if model is None:
        columns = parameter_columns(table, roles)
    elif family is None:
        raise InputError(
            "The meaning of the model's outputs is not known",
            fix="Choose the family of its predictive distributions.",
        )
    else:
        frame = feature_frame(table, roles)
        drawn = samples_of(model, family, frame, progress)
        if drawn is not None:
            return drawn, None
        values = by_blocks(model.predict, frame, len(model.outputs), progress)
        columns = checked_parameters(model.outputs, family, values)
    assert family is not None
    if family in ("point", "log_point") and spread is None:
        # no row affects its own spread, and none that depends on it does
        own = cross_fitted_spread(family, columns, y, dependence)
        return distribution_of(family, columns, spread=own), spread_of(family, columns, y)
    return distribution_of(family, columns, spread=spread), spread


def new_forecasts(
    table: Table, model: Regressor | None, roles: Roles, spread: float | None, progress: Progress
) -> PredictiveDistribution:
    """Predictive distributions of new rows, whose outcomes may not be known.

    ``spread`` is that of the calibration set, which single numbers need.
    """
    nothing = np.zeros(len(table.frame))  # outcomes decide only the calibration set's own spread
    return _distribution(table, model, roles, nothing, spread, None, progress)[0]


def _unused_spread(table: Table, model: Regressor | None, roles: Roles) -> str:
    """A note if one spread is fitted for all rows although a column seems to have one per row."""
    if roles.family not in ("point", "log_point"):
        return ""
    own = {column for _, column in roles.parameters} | {roles.target or ""}
    taken = own | (set(roles.features) if model is not None else set())
    parameter, column = spread_column(table.frame, taken, log=roles.family == "log_point")
    if column is None:
        return ""
    family = "normal" if roles.family == "point" else "lognormal"
    return (
        f"The column {column!r} looks like a spread for each row, but it is not used: one spread "
        f"for all rows was fitted to the residuals. To use it, choose the family {family!r} with "
        f"this column as its {parameter}"
        + (
            ", in a table that also has the predicted mean."
            if model is not None
            else f" (on the command line --family {family} --parameters "
            f"{roles.parameters[0][0]}={roles.parameters[0][1]},{parameter}={column})."
        )
    )


def _rmse(y: FloatArray, distribution: PredictiveDistribution) -> float:
    """Root mean squared error of the predictive means."""
    mean = distribution.mean()
    with np.errstate(over="ignore"):
        squared = (y - mean) ** 2
    beyond = ~np.isfinite(squared)
    if beyond.any():
        row = int(np.argmax(beyond))
        raise InputError(
            f"The predicted mean {formatted(mean[row], '.6g')} is too far from the outcome "
            f"{formatted(y[row], '.6g')} for a squared error",
            fix="Correct the prediction, or leave out the row.",
            row=row + 1,
        )
    return float(np.sqrt(np.mean(squared)))
