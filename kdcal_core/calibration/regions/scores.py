"""The data that maps are fitted on, and the fitted maps, for all kinds of maps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kdcal_core.calibration.regions.cells import EXACT, Cells, gather, lattice_of, logit_of
from kdcal_core.data import FloatArray, IntArray


class RegionMaps(Protocol):
    """The fitted maps of R regions: plain arrays and two methods."""

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K) of rows in these regions (n,), rows summing to one."""

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse arrays that do not fit, as a damaged file may hold them."""


@dataclass(frozen=True, eq=False)
class Scores:
    """What maps are fitted on, with what many partitions of the same rows share.

    Attributes
    ----------
    proba : (n, K) array
        The model's probabilities.
    y : (n,) int array
    weight : (n,) array
    """

    proba: FloatArray
    y: IntArray
    weight: FloatArray

    @property
    def n_classes(self) -> int:
        return int(self.proba.shape[1])

    @property
    def mapped(self) -> tuple[int, ...]:
        """The classes that have a map of their own: the second of two, or all."""
        return (1,) if self.n_classes == 2 else tuple(range(self.n_classes))

    @cached_property
    def _logits(self) -> dict[int, FloatArray]:
        return {label: logit_of(self.proba[:, label]) for label in self.mapped}

    @cached_property
    def _lattices(self) -> dict[int, IntArray]:
        return {label: lattice_of(logit) for label, logit in self._logits.items()}

    def cells(self, label: int, leaf: IntArray, n_regions: int) -> Cells:
        """The rows of one class against the rest, gathered by region and score."""
        return gather(
            self._logits[label],
            (self.y == label).astype(np.float64),
            self.weight,
            leaf,
            n_regions,
            self._lattices[label] if len(self.y) > EXACT else None,
        )


@dataclass(frozen=True, eq=False)
class MapFit:
    """Fitted maps with what is said of each region.

    Attributes
    ----------
    maps : RegionMaps
    borrowed : (C, R) array in [0, 1]
        Share of each region's map that is its ancestor's, for each mapped class.
    parameters : dict of str to (C, R) array
        By plain name ("slope", "offset"); empty for maps without parameters.
    falling : (R,) array of bool
        Whether a higher score of some class means a lower probability of it.
    """

    maps: RegionMaps
    borrowed: FloatArray
    parameters: dict[str, FloatArray]
    falling: NDArray[np.bool_]


def normalised(mapped: FloatArray) -> FloatArray:
    """Full vectors of (n, C) mapped probabilities: the complement for two classes, else scaled.

    A row of zeros becomes uniform.
    """
    if mapped.shape[1] == 1:
        return np.column_stack([1.0 - mapped[:, 0], mapped[:, 0]])
    total = mapped.sum(axis=1, keepdims=True)
    uniform = np.full_like(mapped, 1.0 / mapped.shape[1])
    np.divide(mapped, total, out=uniform, where=total > 0)
    return uniform
