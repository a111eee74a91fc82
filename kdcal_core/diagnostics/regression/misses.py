"""Outcomes that their intervals missed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Misses:
    """Whose intervals, and which outcomes lie below and above them.

    Attributes
    ----------
    name : str
        Untrusted text.
    below, above : (m,) bool
        Of the rows that a map shows.
    n, n_below, n_above : int
        Of all rows.
    """

    name: str
    below: NDArray[np.bool_]
    above: NDArray[np.bool_]
    n: int
    n_below: int
    n_above: int

    @property
    def missed(self) -> int:
        """Outcomes of all rows that the intervals missed."""
        return self.n_below + self.n_above

    @property
    def share(self) -> float:
        """Share of all outcomes that the intervals missed; NaN without rows."""
        return self.missed / self.n if self.n else float("nan")


def misses_of(
    name: str, y: FloatArray, low: FloatArray, high: FloatArray, rows: IntArray | None = None
) -> Misses:
    """Which outcomes (n,) lie outside intervals from ``low`` to ``high``, both (n,).

    Parameters
    ----------
    rows : (m,) int array, optional
        The rows that a map shows; None: all.

    Examples
    --------
    >>> found = misses_of("Model", np.array([0.0, 5.0, 9.0]), np.ones(3), np.full(3, 8.0))
    >>> found.below.tolist(), found.above.tolist(), round(found.share, 2)
    ([True, False, False], [False, False, True], 0.67)
    """
    below, above = np.asarray(y < low), np.asarray(y > high)
    n_below, n_above = int(below.sum()), int(above.sum())
    if rows is not None:
        below, above = below[rows], above[rows]
    return Misses(name, below, above, len(y), n_below, n_above)
