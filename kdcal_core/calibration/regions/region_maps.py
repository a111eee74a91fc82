"""One map of the score for each region, all fitted together.

:func:`fit_maps` fits the maps of a partition's regions, whatever made the partition; the table
:data:`MAPS` names the kinds. With two classes the second class's probability is mapped and the
first is its complement. With more, each class is mapped against the rest and rows are scaled to
sum to one; temperatures act on the whole vector.
"""

from __future__ import annotations

from collections.abc import Callable

from kdcal_core.calibration.regions._density import fit_density
from kdcal_core.calibration.regions._histogram import fit_histogram
from kdcal_core.calibration.regions._isotonic import fit_isotonic
from kdcal_core.calibration.regions._linear import fit_beta, fit_platt
from kdcal_core.calibration.regions._temperature import fit_temperature
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.calibration.regions.scores import MapFit, Scores
from kdcal_core.data import IntArray

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
