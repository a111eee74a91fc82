"""What a scored regression set is fit for: its outcomes, its errors, what looks suspicious."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kdcal_core.data.types import FloatArray
from kdcal_core.text import listed

FEW_ROWS = 30
_NORMAL_95 = 1.959963984540054  # standard normal quantile of 0.975


@dataclass(frozen=True)
class RegressionFitness:
    """Outcomes, errors and what should make a reviewer careful.

    Attributes
    ----------
    n_rows : int
    low, median, high : float
        Smallest, middle and largest outcome.
    n_distinct : int
        Distinct outcomes.
    rmse : float
        Root mean squared error of the predictive means against the outcomes.
    rmse_low, rmse_high : float
        Its 95% interval: that of the mean squared error by the central limit theorem, rooted.
    outside : int
        Outcomes outside the predictive support or its samples: PIT exactly 0 or 1.
    flags : tuple of str
        Plain sentences. They may hold column names: untrusted text.
    """

    n_rows: int
    low: float
    median: float
    high: float
    n_distinct: int
    rmse: float
    rmse_low: float
    rmse_high: float
    outside: int
    flags: tuple[str, ...]


def regression_fitness(
    mean: FloatArray,
    y: FloatArray,
    *,
    outside: int = 0,
    missing: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
) -> RegressionFitness:
    """Look over a scored regression set.

    Parameters
    ----------
    mean : (n,) array
        Predictive means.
    y : (n,) array
        Outcomes, n >= 1.
    outside : int
        Rows whose PIT is exactly 0 or 1.
    missing : mapping of column name to number of missing values, optional
        For the columns that the model reads.
    notes : sequence of str
        What the scoring had to say; they become flags.

    Examples
    --------
    >>> found = regression_fitness(np.zeros(40), np.resize([-1.0, 1.0], 40))
    >>> found.rmse, found.flags
    (1.0, ('The outcome has two values only: it may be a class. Then the task is classification.',))
    """
    squared = (y - mean) ** 2
    mse = float(squared.mean())
    spread = float(squared.std(ddof=1)) if len(y) > 1 else float("nan")
    margin = _NORMAL_95 * spread / np.sqrt(len(y))
    n_distinct = len(np.unique(y))
    flags = [
        *_row_flags(len(y), n_distinct),
        *_error_flags(mse, y),
        *_outside_flags(outside, len(y)),
        *notes,
        *_missing_flags(missing or {}),
    ]
    return RegressionFitness(
        n_rows=len(y),
        low=float(y.min()),
        median=float(np.median(y)),
        high=float(y.max()),
        n_distinct=n_distinct,
        rmse=float(np.sqrt(mse)),
        rmse_low=float(np.sqrt(max(mse - margin, 0.0))) if len(y) > 1 else float("nan"),
        rmse_high=float(np.sqrt(mse + margin)),
        outside=outside,
        flags=tuple(flags),
    )


def _row_flags(n: int, n_distinct: int) -> list[str]:
    flags = []
    if n < FEW_ROWS:
        flags.append(
            f"There are only {n:,} rows: hardly anything can be said of the distributions."
        )
    if n_distinct == 2:
        flags.append(
            "The outcome has two values only: it may be a class. Then the task is classification."
        )
    return flags


def _error_flags(mse: float, y: FloatArray) -> list[str]:
    plain = float(np.var(y))
    if mse == 0.0:
        return [
            "Every prediction equals its outcome: better than held-out rows allow. Were these "
            "rows used to train the model, or is the outcome among its inputs?"
        ]
    if mse > plain:
        return [
            f"The predictions miss by {np.sqrt(mse):.4g} (root mean square), more than the mean of "
            f"all outcomes would ({np.sqrt(plain):.4g}). Are the columns and their units right?"
        ]
    return []


def _outside_flags(outside: int, n: int) -> list[str]:
    if not outside:
        return []
    rows = (
        "1 outcome lies beyond all that its distribution holds"
        if outside == 1
        else f"{outside:,} outcomes lie beyond all that their distributions hold"
    )
    return [
        f"{rows} possible, as far as numbers can tell ({outside:,} of {n:,} rows): PIT values of "
        "exactly 0 or 1."
    ]


def _missing_flags(missing: Mapping[str, int]) -> list[str]:
    some = [f"{name} ({count:,})" for name, count in missing.items() if count]
    return [f"Missing values in {listed(some)}."] if some else []
