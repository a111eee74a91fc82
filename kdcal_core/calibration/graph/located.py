"""Rows placed in the partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Located:
    """The data of rows that a kernel density graph needs: their coordinates and polytopes.

    Attributes
    ----------
    x : (m, d) float64
        Coordinates after encoding and scaling.
    index : (m,) int64
        The polytope that represents the row.
    tied : (m,) bool
        The kernel was equal with another polytope, so the nearer centre decided (decision D7).
    proba : (m, K) float64 or None
        The model's probabilities, which a blend with the model needs; None where they were not
        asked for.
    """

    x: FloatArray
    index: IntArray
    tied: NDArray[np.bool_]
    proba: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.index)
