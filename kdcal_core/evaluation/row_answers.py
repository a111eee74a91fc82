"""A method's answers for the judged rows: as a result stores them, and filled in block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.distributions import PredictiveDistribution, central_levels, even
from kdcal_core.evaluation.distribution_measures import row_measures, row_scores

STATED = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Nominal levels of the central intervals that are kept for every row."""
GRID = np.round(np.arange(1, 200) / 200, 3)
"""Levels of the quantiles that are kept for the shown rows, (199,)."""
Keep = Callable[[NDArray[Any]], NDArray[Any]]
"""Stores an array of answers, for example on disk, and returns what replaces it."""


@dataclass(frozen=True, eq=False)
class RowAnswers:
    """One method's answers for the judged rows, of shape (n,) unless another is given.

    Attributes
    ----------
    pit : float64
        Randomised where the distributions have jumps.
    mean, std, crps : float64
    low, high : (n, 5) float64
        Central intervals at the levels `STATED`.
    quantiles : (r, 199) float32
        Quantiles of the shown rows at the levels `GRID`.
    """

    pit: FloatArray
    mean: FloatArray
    std: FloatArray
    crps: FloatArray
    low: FloatArray
    high: FloatArray
    quantiles: np.ndarray[tuple[int, int], np.dtype[np.float32]]

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Limits of the central interval at one of the levels `STATED`, (n,) each."""
        at = STATED.index(level)
        return self.low[:, at], self.high[:, at]

    def missed(self, y: FloatArray, level: float) -> IntArray:
        """-1 where the outcome lies below the interval, 1 where above, 0 inside, (n,)."""
        low, high = self.interval(level)
        return (y > high).astype(np.int64) - (y < low)


class KeptAnswers:
    """What measures need from n distributions at their outcomes, filled in block by block.

    It has the methods of a `PredictiveDistribution`, but answers only for these outcomes. The
    diagnostics can thus measure any number of rows without holding their distributions in memory.

    Parameters
    ----------
    y : (n,)
        Outcomes.
    shown : (r,) int, ascending
        Rows whose quantiles are kept.
    scale : float
        Scale of the scores of `row_scores`.
    seed : int
        Seed of the randomised PIT values, which equal those of `randomised_pit` on all rows at
        once.
    """

    def __init__(self, y: FloatArray, shown: IntArray, scale: float, seed: int) -> None:
        self._y, self._shown, self._scale = y, shown, scale
        self._seed = seed
        self.has_density = True
        n, levels = len(y), len(STATED)
        self._foot, self._top = np.empty(n), np.empty(n)
        self._mean, self._std = np.empty(n), np.empty(n)
        self._low, self._high = np.empty((n, levels)), np.empty((n, levels))
        self.scores = {one.key: np.empty(n) for one in row_measures()}
        self._quantiles = np.empty((len(shown), len(GRID)), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._y)

    def fill(self, rows: IntArray, distribution: PredictiveDistribution) -> None:
        """Store the answers of these rows' distributions, given in the rows' order."""
        y = self._y[rows]
        if not distribution.has_density:
            self.has_density = False
        self._foot[rows], self._top[rows] = distribution.jump(y)
        self._mean[rows], self._std[rows] = distribution.mean(), distribution.std()
        low, high = zip(*map(central_levels, STATED), strict=True)
        ends = distribution.ppf(np.array([low + high]))
        self._low[rows], self._high[rows] = ends[:, : len(STATED)], ends[:, len(STATED) :]
        for name, values in row_scores(distribution, y, scale=self._scale).items():
            self.scores[name][rows] = values
        places = np.searchsorted(self._shown, rows)
        there = np.flatnonzero(np.isin(rows, self._shown))
        if len(there):
            self._quantiles[places[there]] = distribution[there].ppf(GRID[None, :])

    @property
    def pit(self) -> FloatArray:
        """PIT values of all rows, once all are filled in."""
        return even(self._foot, self._top, self._seed)

    def kept(self, keep: Keep) -> RowAnswers:
        """The answers that a result stores, with every array as ``keep`` returns it."""
        crps = self.scores["crps"]
        arrays = (self.pit, self._mean, self._std, crps, self._low, self._high, self._quantiles)
        return RowAnswers(*(keep(values) for values in arrays))

    # the methods of a PredictiveDistribution

    def mean(self) -> FloatArray:
        return self._mean

    def std(self) -> FloatArray:
        return self._std

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        at = STATED.index(level)
        return self._low[:, at], self._high[:, at]

    def crps(self, y: FloatArray) -> FloatArray:
        return self.scores["crps"]

    def log_density(self, y: FloatArray) -> FloatArray:
        return -self.scores["log_score"]
