"""Spaces on one scale, so that the units of coordinates do not decide which rows are near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from kdcal_core.data.schema import FloatArray


@dataclass(frozen=True, eq=False)
class Scaling:
    """Coordinates in standard deviations from the mean of the rows of the fit.

    Attributes
    ----------
    mean, scale : (d,)
        ``scale`` is the standard deviation, and infinite for a constant column, which so has no
        effect.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([[0.0, 7.0], [2.0, 7.0]]))
    >>> scaling(np.array([[3.0, 7.0]])).tolist()
    [[2.0, 0.0]]
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, space: FloatArray) -> Self:
        """That of checked coordinates (n, d)."""
        varies = space.min(axis=0) < space.max(axis=0)
        std = space.std(axis=0)
        return cls(space.mean(axis=0), np.where(varies & (std > 0), std, np.inf))

    def __call__(self, space: FloatArray) -> FloatArray:
        """Scaled coordinates of new rows, (m, d)."""
        scaled: FloatArray = (space - self.mean) / self.scale
        return scaled
