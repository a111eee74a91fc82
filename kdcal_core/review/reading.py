"""Rows of a review read in a worker: the table, the model's answers, and the row of a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
from pyarrow import feather

from kdcal_core.data import FloatArray, check_proba
from kdcal_core.errors import InputError
from kdcal_core.jobs import trial
from kdcal_core.models import Model
from kdcal_core.progress import Progress
from kdcal_core.review.seals import check_seal, seal
from kdcal_core.text import counted

_BLOCK_ROWS = 50_000
_TRIAL_ROWS = 8
_TOO_SLOW = "Use a faster model, or write its predictions into a table and load that instead."


def read_frame(path: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A table as the review keeps it; the index of a divided one says where its rows stood.

    Parameters
    ----------
    columns : sequence of str, optional
        Only these; then without the index.

    Raises
    ------
    InputError
        Where its file was changed since kdcal wrote it.
    """
    if not check_seal(Path(path)):
        with suppress(OSError):  # the home may be read-only
            seal(Path(path))  # written by an earlier version without a seal
    chosen = None if columns is None else list(columns)
    table = feather.read_table(path, columns=chosen, memory_map=True)
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=columns is not None)
    return frame


def predict(
    model: Model, frame: pd.DataFrame, classes: tuple[str, ...], progress: Progress
) -> FloatArray:
    """The model's probabilities of all rows, block by block, (n, K).

    Raises
    ------
    InputError
        The rows do not fit the model, or its outputs are not probabilities; the row is named.
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
    """A model's answers to all rows, computed block by block, (n, width).

    A few rows come first under a limit of seconds, so that a slow model does not occupy the worker
    for half an hour.

    Raises
    ------
    InputError
        As ``answer`` does, with the row of the whole frame.
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
    """Errors inside name the row of the file, not that of its part."""
    try:
        yield
    except InputError as error:
        if error.row is None:
            raise
        raise _at_row(error, int(frame.index[error.row - 1]) + 1) from error


@contextmanager
def in_file(name: str) -> Iterator[None]:
    """Errors inside name this file, where they name none."""
    try:
        yield
    except InputError as error:
        raise error.at(file=name) from error


def _at_row(error: InputError, row: int) -> InputError:
    return InputError(error.what, fix=error.fix, file=error.file, column=error.column, row=row)
