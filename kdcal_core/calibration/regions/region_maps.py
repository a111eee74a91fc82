"""One map of the score for each region, all fitted together.

:func:`fit_maps` fits the maps of a partition's regions, whatever made the partition; the table
:data:`MAPS` names the kinds. With two classes the second class's probability is mapped and the
first is its complement. With more, each class is mapped against the rest and rows are scaled to
sum to one; temperatures act on the whole vector.

:class:`RegionMap` is Platt's map of one region, from stated to calibrated probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kdcal_core.calibration.regions.nonparametric_maps import (
    fit_density,
    fit_histogram,
    fit_isotonic,
)
from kdcal_core.calibration.regions.parametric_maps import fit_beta, fit_platt, fit_temperature
from kdcal_core.calibration.regions.scores_and_hierarchy import Hierarchy, MapFit, Scores
from kdcal_core.data import FloatArray, IntArray

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


Fit = Callable[[Scores, IntArray, Hierarchy, bool], MapFit]

MAPS: dict[str, Fit] = {
    "platt": fit_platt,
    "beta": fit_beta,
    "temperature": fit_temperature,
    "isotonic": fit_isotonic,
    "histogram": fit_histogram,
    "kde": fit_density,
}
"""Kinds of maps by the name of the parameter ``calibrator``."""


def fit_maps(
    kind: str, scores: Scores, leaf: IntArray, hierarchy: Hierarchy, *, pooling: bool = True
) -> MapFit:
    """Fit the maps of all regions.

    Parameters
    ----------
    kind : str
        Key of :data:`MAPS`.
    scores : Scores
    leaf : (n,) int array
        Region of each row, 0 to R - 1.
    hierarchy : Hierarchy
        Of the R regions.
    pooling : bool, default=True
        Whether regions are drawn to their ancestors by partial pooling.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 4000)
    >>> leaf = np.repeat([0, 1], 2000)
    >>> y = (rng.random(4000) < np.where(leaf == 0, p, 1 - p)).astype(int)
    >>> fit = fit_maps("platt", Scores(np.c_[1 - p, p], y, np.ones(4000)), leaf, Hierarchy.flat(2))
    >>> fit.parameters["slope"].round().tolist()
    [[1.0, -1.0]]
    """
    return MAPS[kind](scores, leaf, hierarchy, pooling)
