"""What one row may take in a model, and the trial on a few rows that every model file is put to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kdcal_core.jobs import TRIAL_SECONDS, trial
from kdcal_core.text import counted

#: Numbers in one tensor of one row: 128 MB as float32.
MOST_ROW_CELLS = 1 << 25
_FIXED_TIMES = 4  # how much more where a model takes many rows or none
_MOST_TRIAL_CELLS = 1 << 24
# Primes, so that they are not mistaken for a layer's width.
_TRIAL_ROWS = (61, 31, 13, 7, 3, 2)
_OPENED_A_SECOND = 20 << 20  # bytes of a large file that a trial has a second more for
_FIX = (
    "It may be too large for kdcal, or built to do harm. Write its predictions into a table and "
    "load that instead."
)


def most_cells(n_rows: int) -> int:
    """How many numbers a tensor may hold of the fewest rows that a model takes.

    Examples
    --------
    >>> most_cells(1) == MOST_ROW_CELLS
    True
    """
    return MOST_ROW_CELLS * min(n_rows, _FIXED_TIMES)


def trial_rows(row_cells: int) -> int:
    """How many rows to try a model on: fewer where each takes much.

    Examples
    --------
    >>> trial_rows(100), trial_rows(1_000_000), trial_rows(1 << 25)
    (61, 13, 1)
    """
    return next((n for n in _TRIAL_ROWS if n * row_cells <= _MOST_TRIAL_CELLS), 1)


@contextmanager
def model_trial(n_rows: int, n_bytes: int, more_bytes: int) -> Iterator[None]:
    """Open a model and run it on a few rows, in a worker under limits of time and memory.

    Parameters
    ----------
    n_rows : int
        How many.
    n_bytes : int
        Size of the model.
    more_bytes : int
        Memory that it may take beyond what this process takes already.

    Raises
    ------
    InputError
        It takes more of either.
    """
    with trial(
        f"The model, opened and tried on {counted(n_rows, 'row')},",
        fix=_FIX,
        seconds=TRIAL_SECONDS + n_bytes / _OPENED_A_SECOND,
        more_bytes=more_bytes,
    ):
        yield
