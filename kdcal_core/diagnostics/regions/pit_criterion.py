"""The gain of a split by PIT values: by their location and their spread together."""

from __future__ import annotations

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.partition.tree import Residual, RowStats

_WIDTH = 2  # numbers that a residual is summed as


class PitResidual:
    """Evidence of a wrong location plus that of a wrong spread: one tree for both faults.

    The residuals are PIT - 1/2, of variance 1/12, and (PIT - 1/2)^2 - 1/12, of variance 1/180,
    which are uncorrelated for uniform PIT values. A split's gain is the sum of the gains of
    :class:`kdcal_core.partition.tree.Residual`; categories are ordered by the residual with more
    evidence at the node.

    Parameters
    ----------
    pit : (n,) in [0, 1]
    weight : (n,) positive
    """

    def __init__(self, pit: FloatArray, weight: FloatArray) -> None:
        centred = pit - 0.5
        n = len(pit)
        self._place = Residual(centred, np.full(n, 1.0 / 12.0), weight)
        self._spread = Residual(np.square(centred) - 1.0 / 12.0, np.full(n, 1.0 / 180.0), weight)
        values = [part.stats.values for part in (self._place, self._spread)]
        self._stats = RowStats(self._place.stats.cells, 1, np.concatenate(values, axis=1))

    @property
    def stats(self) -> RowStats:
        return self._stats

    def gain(self, left: FloatArray, right: FloatArray) -> FloatArray:
        place = self._place.gain(left[..., :_WIDTH], right[..., :_WIDTH])
        spread = self._spread.gain(left[..., _WIDTH:], right[..., _WIDTH:])
        return np.asarray(place + spread)

    def order(self, sums: FloatArray) -> FloatArray:
        halves = [sums[..., :_WIDTH], sums[..., _WIDTH:]]
        said = [float((h[..., 0] ** 2 / np.maximum(h[..., 1], 1e-300)).sum()) for h in halves]
        part = int(said[1] > said[0])
        return (self._place, self._spread)[part].order(halves[part])
