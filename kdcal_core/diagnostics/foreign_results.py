"""Frozen results about inputs that are unlike the data: curves of confidence and of the kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray

SURE = 0.9
"""A confidence above which an answer counts as sure."""


@dataclass(frozen=True, eq=False)
class DistanceCurve:
    """Mean max confidence on spheres about the data (Dey et al., Fig. 3).

    Attributes
    ----------
    radii : (R,)
        Radii in units of the data's own: at 1 lies the row that is farthest from the centre.
    mean : (R,)
        Mean over the points of each sphere of their largest probability.
    low, high : (R,)
        Percentiles ``q`` of the points' largest probabilities.
    q : tuple of two float
        The band's percentiles, in [0, 100].
    n, seed : int
        Points on each sphere, and the seed of their directions.
    """

    radii: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    q: tuple[float, float]
    n: int
    seed: int

    def table(self) -> pd.DataFrame:
        """One row a radius: the data of the figure, as offered for download."""
        low, high = (f"percentile_{q:g}" for q in self.q)
        return pd.DataFrame(
            {
                "radius": self.radii,
                "mean_max_confidence": self.mean,
                low: self.low,
                high: self.high,
            }
        )


@dataclass(frozen=True, eq=False)
class KernelSimilarity:
    """Mean geodesic kernel of two rows of one class, and of two classes (Dey et al., Fig. 2).

    Arrays of length L run over depths. A kind of pair that does not occur gives NaN.

    Attributes
    ----------
    depth : (L,) int
        Layers counted from the input that the kernel compares; for a forest (1,).
    within, between : (L,)
        Mean kernel over the pairs of rows of the same class, and of different classes.
    within_low, within_high, between_low, between_high : (L,)
        Their intervals at ``level`` for the rows as a sample.
    within_pairs, between_pairs : int
        Number of pairs behind them.
    n : int
        Rows that were compared, all with all.
    """

    depth: IntArray
    within: FloatArray
    within_low: FloatArray
    within_high: FloatArray
    between: FloatArray
    between_low: FloatArray
    between_high: FloatArray
    within_pairs: int
    between_pairs: int
    n: int
    seed: int
    level: float

    def table(self) -> pd.DataFrame:
        """One row a depth: the data of the figure, as offered for download."""
        return pd.DataFrame(
            {
                "depth": self.depth,
                "within": self.within,
                "within_low": self.within_low,
                "within_high": self.within_high,
                "between": self.between,
                "between_low": self.between_low,
                "between_high": self.between_high,
            }
        )


@dataclass(frozen=True, eq=False)
class Surest:
    """How confident a model is of some rows, and of which row most.

    Attributes
    ----------
    n : int
        Rows, at least one.
    n_sure : int
        Those with a confidence above `SURE`.
    row : int
        The surest, from 0; of equal ones the first.
    said : float
        Its confidence.
    predicted : int
        The class predicted for it.
    n_version_sure : int or None
        Rows of which the kernel density version is as sure; None without one.
    version_said : float or None
        The version's confidence in the surest row.
    """

    n: int
    n_sure: int
    row: int
    said: float
    predicted: int
    n_version_sure: int | None = None
    version_said: float | None = None

    @classmethod
    def of(cls, said: FloatArray, predicted: IntArray, version: FloatArray | None = None) -> Surest:
        """From confidences (m,), predicted classes (m,) and the version's confidences (m,).

        Examples
        --------
        >>> Surest.of(np.array([0.6, 0.95]), np.array([1, 0])).row
        1
        """
        row = int(np.argmax(said))
        found = cls(len(said), int((said > SURE).sum()), row, float(said[row]), int(predicted[row]))
        if version is None:
            return found
        as_sure = int((version > SURE).sum())
        return replace(found, n_version_sure=as_sure, version_said=float(version[row]))
