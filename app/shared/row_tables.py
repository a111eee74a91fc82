"""Tables of rows: results beside a row's own columns, and the number of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from kdcal_core.data import IntArray
from kdcal_core.tasks import MAX_ROWS, PitRows


def most_text(n: int) -> str:
    """How many of ``n`` rows a table for download contains."""
    return f"{n:,} rows" if n <= MAX_ROWS else f"the first {MAX_ROWS:,} of {n:,} rows"


def beside(columns: pd.DataFrame, frame: pd.DataFrame, positions: IntArray) -> pd.DataFrame:
    """Results and original values side by side; a column with a name of ours is renamed."""
    ours = columns.reset_index(drop=True)
    ours.insert(0, "Row", positions + 1)
    theirs = frame.reset_index(drop=True)
    theirs.columns = _apart([str(name) for name in theirs.columns], set(ours.columns))
    return pd.concat([ours, theirs], axis=1)


def _apart(names: list[str], taken: set[str]) -> list[str]:
    found = []
    for name in names:
        while name in taken:
            name += " (table)"
        taken.add(name)
        found.append(name)
    return found


def pit_answers(rows: PitRows, level: float) -> pd.DataFrame:
    """A table of rows: outcome, prediction, PIT value, and the table's own columns."""
    ours = pd.DataFrame(
        {
            "Outcome": rows.y,
            "Mean": rows.mean,
            "Median": rows.middle,
            f"{level:.0%} low": rows.low,
            f"{level:.0%} high": rows.high,
            "Inside": (rows.low <= rows.y) & (rows.y <= rows.high),
            "PIT": rows.pit,
        }
    )
    return beside(ours, rows.own, rows.rows)


def column_format(values: ArrayLike) -> str:
    """How a table shows a column of measured numbers: separators, or four figures if all are small.

    Examples
    --------
    >>> column_format([138.4705, 1451.4895]), column_format([0.0001234, -0.02])
    ('localized', '%.4g')
    """
    known = np.abs(np.asarray(values, dtype=np.float64))
    return "localized" if np.nanmax(known, initial=0.0) >= 1.0 else "%.4g"
