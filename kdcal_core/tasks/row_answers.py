"""Distributions answered for row by row, block by block, and kept as arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.regression import row_scores
from kdcal_core.distributions import PredictiveDistribution, central_levels, even
from kdcal_core.store import keep_array
from kdcal_core.tasks.recalibration_results import GRID, STATED, RowAnswers


class KeptAnswers:
    """What measures ask of n distributions about their own outcomes, filled in block by block.

    It answers as a `PredictiveDistribution` does where only outcomes already known are asked
    about, so the diagnostics measure any number of rows without their distributions in memory.

    Parameters
    ----------
    y : (n,)
        Outcomes.
    shown : (r,) int, ascending
        Rows whose quantiles are kept.
    scale : float
        For the scores of `row_scores`.
    seed : int
        Of the randomised PIT values: the same as `randomised_pit` gives for all rows at once.
    """

    def __init__(self, y: FloatArray, shown: IntArray, scale: float, seed: int) -> None:
        self._y, self._shown, self._scale = y, shown, scale
        self._seed = seed
        self.has_density = True
        n, levels = len(y), len(STATED)
        self._foot, self._top = np.empty(n), np.empty(n)
        self._mean, self._std = np.empty(n), np.empty(n)
        self._low, self._high = np.empty((n, levels)), np.empty((n, levels))
        self.scores = {name: np.empty(n) for name in ("crps", "log_score", "mse", "smis95")}
        self._quantiles = np.empty((len(shown), len(GRID)), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._y)

    def fill(self, rows: IntArray, distribution: PredictiveDistribution) -> None:
        """Take the answers of these rows' distributions, given in the rows' order."""
        y = self._y[rows]
        self.has_density = self.has_density and distribution.has_density
        self._foot[rows] = distribution.pit(y, np.zeros(len(y)))
        self._top[rows] = distribution.pit(y, np.ones(len(y)))
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

    def kept(self, folder: Path) -> RowAnswers:
        """What a result keeps of them, as it lies in its folder from now on."""
        crps = self.scores["crps"]
        arrays = (self.pit, self._mean, self._std, crps, self._low, self._high, self._quantiles)
        return RowAnswers(*(keep_array(folder, values) for values in arrays))

    # as a PredictiveDistribution answers

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
