"""Checks of PIT values and their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, check_weight
from kdcal_core.errors import InputError


def checked_pit(pit: Any, sample_weight: Any = None) -> tuple[FloatArray, FloatArray]:
    """PIT values (n,) in [0, 1] and row weights (n,) that sum to one.

    Raises
    ------
    InputError
        For no rows, a value that is missing or outside [0, 1] (the row is named), or weights
        that do not fit.
    """
    values = np.asarray(pit, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            f"The PIT values must be one column with rows, but have shape {values.shape}",
            fix="Give one PIT value a row.",
        )
    bad = ~((values >= 0.0) & (values <= 1.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"A PIT value is {values[row]:.6g}",
            fix="PIT values are probabilities: each lies between 0 and 1.",
            row=row + 1,
        )
    weight = check_weight(sample_weight, len(values))
    return values, weight / weight.sum()


def effective_rows(weight: FloatArray) -> float:
    """Kish's effective number of rows for weights that sum to one."""
    return float(1.0 / np.square(weight).sum())


def checked_levels(levels: Any) -> FloatArray:
    """Levels in (0, 1), increasing, (g,)."""
    values = np.asarray(levels, dtype=np.float64)
    inside = values.ndim == 1 and len(values) > 0 and bool(np.all((values > 0) & (values < 1)))
    if not inside or np.any(np.diff(values) <= 0):
        raise InputError(
            "The levels are not increasing numbers between 0 and 1",
            fix="Give levels such as 0.05, 0.5, 0.95.",
        )
    return values
