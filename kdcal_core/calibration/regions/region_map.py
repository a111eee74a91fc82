"""Platt's map of one region, from stated to calibrated probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kdcal_core.data import FloatArray

CURVE_POINTS = 80  # even on the log odds, so that both ends are smooth
_SURE = 1e-6  # stated probabilities are kept this far from 0 and 1, where log odds end


@dataclass(frozen=True, eq=False)
class RegionMap:
    """A region's map of stated probabilities.

    Attributes
    ----------
    leaf : int
    words : str
        Untrusted.
    slope, offset : float
        Of Platt's map on the log odds.
    low, high : float
        Stated probabilities of the region's rows lie between these.
    mean, mean_after : float
        Of the region's rows, as stated and as the map has it.
    n : int
        Rows that the map was fitted on.
    """

    leaf: int
    words: str
    slope: float
    offset: float
    low: float
    high: float
    mean: float
    mean_after: float
    n: int

    @classmethod
    def of(
        cls,
        leaf: int,
        words: str,
        slope: float,
        offset: float,
        stated: FloatArray,
        weight: FloatArray | None = None,
    ) -> RegionMap:
        """The map of a region whose rows state the probabilities (n,), n >= 1.

        Examples
        --------
        >>> one = RegionMap.of(0, "here", 1.0, 1.0, np.array([0.2, 0.4]))
        >>> one.low, one.n, round(one.mean, 3), round(one.mean_after, 3)
        (0.2, 2, 0.3, 0.525)
        """
        after = _mapped(stated, slope, offset)
        return cls(
            leaf,
            words,
            slope,
            offset,
            float(stated.min()),
            float(stated.max()),
            float(np.average(stated, weights=weight)),
            float(np.average(after, weights=weight)),
            len(stated),
        )

    def apply(self, stated: ArrayLike) -> FloatArray:
        """Calibrated probabilities of stated ones."""
        return _mapped(stated, self.slope, self.offset)

    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Stated and calibrated probabilities, over the range of the region's rows."""
        low, high = _log_odds([self.low, self.high]).tolist()
        stated = 1.0 / (1.0 + np.exp(-np.linspace(low, high, CURVE_POINTS)))
        return stated, self.apply(stated)


def _mapped(stated: ArrayLike, slope: float, offset: float) -> FloatArray:
    odds = slope * _log_odds(stated) + offset
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * odds))


def _log_odds(stated: ArrayLike) -> FloatArray:
    inside = np.clip(np.asarray(stated, dtype=np.float64), _SURE, 1.0 - _SURE)
    return np.asarray(np.log(inside) - np.log1p(-inside))
