"""Isotonic regression in every region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from kdcal_core.calibration.calibrator_base import check_array, demand
from kdcal_core.calibration.regions._counts import bins_of, tallies, worth_of
from kdcal_core.calibration.regions.cells import Cells
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.calibration.regions.scores import MapFit, Scores, normalised
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.store import storable

# Scores at which an ancestor's curve speaks to the regions below it.
_POINTS = 256
# Regions lie this far apart on the line on which all curves are looked up.
_APART = 2.0

Curve = tuple[FloatArray, FloatArray]


@storable
@dataclass(frozen=True, eq=False)
class IsotonicMaps:
    """A rising, piecewise linear curve of the probability for every class and region.

    Attributes
    ----------
    ends : (C * R,) int array
        Where each curve's corners end in the two arrays below: class by class, region by region.
    corners, values : (t,) arrays in [0, 1]
        Beyond its outer corners a curve is constant.

    Examples
    --------
    >>> maps = IsotonicMaps(np.array([2]), np.array([0.2, 0.4]), np.array([0.0, 1.0]))
    >>> maps.predict(np.array([[0.75, 0.25], [0.1, 0.9]]), np.array([0, 0])).round(2).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """

    ends: IntArray
    corners: FloatArray
    values: FloatArray

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K)."""
        n_maps = 1 if proba.shape[1] == 2 else proba.shape[1]
        labels = [1] if n_maps == 1 else range(n_maps)
        n_regions = len(self.ends) // n_maps
        curve = np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))
        line = curve * _APART + self.corners
        low = np.concatenate([[0], self.ends[:-1]])
        mapped = np.empty((len(proba), n_maps))
        for i, label in enumerate(labels):
            which = i * n_regions + leaf
            inside = np.clip(
                proba[:, label], self.corners[low[which]], self.corners[self.ends[which] - 1]
            )
            mapped[:, i] = np.interp(which * _APART + inside, line, self.values)
        return normalised(mapped)

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse curves that do not fit, as a damaged file may hold them."""
        n_curves = (1 if n_classes == 2 else n_classes) * n_regions
        corners = check_array(self, "corners", (None,), low=0.0, high=1.0)
        check_array(self, "values", (len(corners),), low=0.0, high=1.0)
        ends = check_array(self, "ends", (n_curves,), low=1, high=len(corners), dtype=np.int64)
        demand(
            bool((np.diff(ends, prepend=0) > 0).all()) and ends[-1] == len(corners), "the curves"
        )
        steps = np.diff(corners)
        steps[ends[:-1] - 1] = 0.0
        demand(bool((steps >= 0).all()), "the order of the corners")


def fit_isotonic(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """Isotonic regression of the class on its probability, region by region.

    With pooling, the curve of the region above joins as rows: as many as ten bins of
    :mod:`.pooling` are worth, spread as that region's scores are.
    """
    curves: list[Curve] = []
    borrowed = np.empty((len(scores.mapped), hierarchy.n_regions))
    for i, label in enumerate(scores.mapped):
        cells = scores.cells(label, leaf, hierarchy.n_regions)
        found, borrowed[i] = _fit_class(cells, hierarchy, pooling)
        curves += found
    maps = IsotonicMaps(
        np.cumsum([len(corners) for corners, _ in curves]),
        np.concatenate([corners for corners, _ in curves]),
        np.concatenate([values for _, values in curves]),
    )
    return MapFit(maps, borrowed, {}, np.zeros(hierarchy.n_regions, dtype=bool))


def _fit_class(cells: Cells, hierarchy: Hierarchy, pooling: bool) -> tuple[list[Curve], FloatArray]:
    worth = 0.0
    if pooling:
        edges, bins = bins_of(cells)
        worth = worth_of(*tallies(cells, bins, len(edges) + 1, hierarchy), hierarchy)
        worth *= len(edges) + 1
    depth = hierarchy.depth
    curves: dict[int, Curve] = {}
    rows: dict[int, Cells] = {}
    mass = np.zeros(len(depth))
    for level in range(int(depth.max()) + 1):
        node = hierarchy.above(level)[cells.region]
        order = np.argsort(node, kind="stable")
        sizes = np.bincount(node, minlength=len(depth))
        ends = np.cumsum(sizes)
        for one in map(int, np.flatnonzero(depth == level)):
            mine = cells.take(order[ends[one] - sizes[one] : ends[one]])
            rows[one] = mine
            mass[one] = mine.weight.sum()
            above = int(hierarchy.parent[one])
            curves[one] = _curve(mine, curves.get(above), rows.get(above), worth)
    share = np.divide(worth, mass + worth, out=np.zeros_like(mass), where=mass + worth > 0)
    share[0] = 0.0
    return [curves[int(one)] for one in hierarchy.node], share[hierarchy.node]


def _curve(mine: Cells, above: Curve | None, there: Cells | None, worth: float) -> Curve:
    """Corners and values of one region's curve."""
    if above is not None and (not len(mine.weight) or (worth == 0 and _one_class(mine))):
        return above
    x, target, weight = expit(mine.logit), mine.positive / mine.weight, mine.weight
    if above is not None and there is not None and worth > 0:
        at, mass = _points(there)
        x = np.concatenate([x, at])
        target = np.concatenate([target, np.interp(at, *above)])
        weight = np.concatenate([weight, mass * worth])
    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(x, target, weight)
    return fitted.X_thresholds_, fitted.y_thresholds_


def _one_class(cells: Cells) -> bool:
    yes, all_of_them = cells.positive.sum(), cells.weight.sum()
    return bool(yes <= 0 or yes >= all_of_them)


def _points(cells: Cells) -> Curve:
    """At most 256 probabilities that stand for the rows, with their shares of the weight.

    Equal scores stay together, so that a row of weight 2 is the row twice.
    """
    known, index = np.unique(cells.logit, return_inverse=True)
    share = bin_sums(index, len(known), cells.weight) / cells.weight.sum()
    group = np.minimum(((np.cumsum(share) - share / 2) * _POINTS).astype(np.int64), _POINTS - 1)
    mass = bin_sums(group, _POINTS, share)
    mean = bin_sums(group, _POINTS, share * expit(known))
    some = mass > 0
    return mean[some] / mass[some], mass[some]
