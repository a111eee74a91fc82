"""Scores of two tables pooled into cells, and how far apart chance puts them there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums

_MOST_DEALT = 10**9  # the limit of the generator
_ROWS_COUNTED = 100_000  # pooled rows up to which drawing row by row is the faster way


@dataclass(frozen=True, eq=False)
class PooledCells:
    """Pooled scores in increasing cells (C,): width to the next (C - 1,), rows of both tables."""

    width: FloatArray
    reference: IntArray
    new: IntArray

    @classmethod
    def of(cls, reference: FloatArray, new: FloatArray, most: int | None) -> PooledCells:
        """One cell for each distinct score, or at most ``most`` cells with as many scores each."""
        cell, n = cls.places(reference, new, most), len(reference)
        size = int(cell.max()) + 1
        both = np.concatenate([reference, new])
        place = bin_sums(cell, size, both) / bin_sums(cell, size)
        old, fresh = (np.bincount(part, minlength=size) for part in (cell[:n], cell[n:]))
        return cls(np.diff(place), old, fresh)

    @staticmethod
    def places(reference: FloatArray, new: FloatArray, most: int | None) -> IntArray:
        """Cell of each row of both tables, (n + m,)."""
        distinct, cell = np.unique(np.concatenate([reference, new]), return_inverse=True)
        if most is not None and len(distinct) > most:
            cell = (np.arange(len(distinct)) * most // len(distinct))[cell]
        return np.asarray(cell, dtype=np.int64)

    @property
    def sizes(self) -> tuple[int, int]:
        return int(self.reference.sum()), int(self.new.sum())

    @property
    def observed(self) -> tuple[float, float]:
        furthest, area = self.distances(self.new[None, :])
        return float(furthest[0]), float(area[0])

    def distances(self, new: IntArray) -> tuple[FloatArray, FloatArray]:
        """KS and Wasserstein distances if (D, C) of the pooled rows are the new ones: (D,) each."""
        n, m = self.sizes
        # n m (F - G) in whole numbers, so that equal distances are equal
        pooled, fresh = np.cumsum(self.reference + self.new), np.cumsum(new, axis=1)
        if (n + m) * m >= 2**62:  # beyond whole numbers of 64 bits
            pooled, fresh = pooled.astype(np.float64), fresh.astype(np.float64)
        height = m * pooled - (n + m) * fresh
        return self._both(np.abs(height[:, :-1]) / (float(n) * m))

    def shuffled(self, n_draws: int, rng: np.random.Generator) -> IntArray:
        """New rows of each cell if the pooled rows are dealt anew, (D, C)."""
        total = self.reference + self.new
        rows = int(total.sum())
        if rows >= _MOST_DEALT:  # more than can be dealt; the shares then hardly vary
            drawn = rng.multinomial(self.sizes[1], total / rows, size=n_draws)
            spread = (rows - self.sizes[1]) / rows  # of dealing without putting back
            mean = self.sizes[1] * total / rows
            return np.asarray(np.rint(mean + (drawn - mean) * spread**0.5), dtype=np.int64)
        method: Literal["count", "marginals"] = "count" if rows <= _ROWS_COUNTED else "marginals"
        return rng.multivariate_hypergeometric(total, self.sizes[1], n_draws, method=method)

    def deviations(self, n_draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Distances of bootstrap samples' F - G from that of the samples, (D,) each."""
        height = np.zeros((n_draws, len(self.new)))
        for count, sign in ((self.reference, 1.0), (self.new, -1.0)):
            n = int(count.sum())
            drawn = rng.multinomial(n, count / n, size=n_draws)
            height += sign * np.cumsum(drawn - count, axis=1) / n
        return self._both(np.abs(height[:, :-1]))

    def of_changes(self, change: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Distances of changes (D, C) of the cells' shares: (D,) each."""
        return self._both(np.abs(np.cumsum(change, axis=1)[:, :-1]))

    def _both(self, height: FloatArray) -> tuple[FloatArray, FloatArray]:
        return height.max(axis=1, initial=0.0), height @ self.width
