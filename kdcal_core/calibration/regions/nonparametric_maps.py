"""Maps without parameters in every region: histogram binning, isotonic regression, densities.

The densities are kernel densities of the top label (Salamon et al.).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from kdcal_core.calibration.calibrator_base import spread, top_label
from kdcal_core.calibration.kde import TopLabelKDE
from kdcal_core.calibration.regions.pooling import N_BINS, bins_of, pooled_rates, tallies, worth_of
from kdcal_core.calibration.regions.scores_and_hierarchy import (
    Cells,
    Hierarchy,
    MapFit,
    Scores,
    logit_of,
    normalised,
)
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.errors import quiet
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand


@storable
@dataclass(frozen=True, eq=False)
class HistogramMaps:
    """The rate of the class in the score's bin and region.

    Attributes
    ----------
    edges : (C, 9) array
        Inner edges of each class's bins on the logit, ascending, the same in all regions; filled up
        with infinity if there are fewer bins.
    rates : (C, R, 10) array in [0, 1]

    Examples
    --------
    >>> maps = HistogramMaps(np.full((1, 9), np.inf), np.full((1, 1, 10), 0.25))
    >>> maps.predict(np.array([[0.1, 0.9]]), np.array([0])).tolist()
    [[0.75, 0.25]]
    """

    edges: FloatArray
    rates: FloatArray

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K)."""
        labels = [1] if len(self.rates) == 1 else range(len(self.rates))
        mapped = np.empty((len(proba), len(self.rates)))
        for i, label in enumerate(labels):
            bins = np.searchsorted(self.edges[i], logit_of(proba[:, label]), side="left")
            mapped[:, i] = self.rates[i][leaf, bins]
        return normalised(mapped)

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse bins that do not fit, as in a damaged file."""
        n_maps = 1 if n_classes == 2 else n_classes
        check_array(self, "rates", (n_maps, n_regions, N_BINS), low=0.0, high=1.0)
        edges = self.edges
        demand(
            isinstance(edges, np.ndarray)
            and edges.dtype == np.float64
            and edges.shape == (n_maps, N_BINS - 1)
            and bool((edges[:, 1:] >= edges[:, :-1]).all()),
            "the bins' edges",
        )


def fit_histogram(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """Rates in ten bins of equal mass in every region."""
    shape = (len(scores.mapped), hierarchy.n_regions)
    edges = np.full((shape[0], N_BINS - 1), np.inf)
    rates, borrowed = np.zeros((*shape, N_BINS)), np.empty(shape)
    for i, label in enumerate(scores.mapped):
        cells = scores.cells(label, leaf, hierarchy.n_regions)
        found, bins = bins_of(cells)
        edges[i, : len(found)] = found
        positive, weight = tallies(cells, bins, len(found) + 1, hierarchy)
        worth = worth_of(positive, weight, hierarchy) if pooling else 0.0
        rate = pooled_rates(positive, weight, hierarchy, worth)
        rates[i, :, : len(found) + 1] = rate[hierarchy.node]
        borrowed[i] = borrowed_share(weight[hierarchy.node], worth, len(hierarchy.parent))
    # a dip of the rate between adjacent bins is mostly noise, so it is not flagged
    falling = np.zeros(hierarchy.n_regions, dtype=bool)
    return MapFit(HistogramMaps(edges, rates), borrowed, {}, falling)


def borrowed_share(weight: FloatArray, worth: float, m: int) -> FloatArray:
    """The ancestor's share of a region's rates, as a mean over the bins, (R,)."""
    if m == 1:
        return np.zeros(len(weight))
    total = weight + worth
    share = np.divide(worth, total, out=np.ones_like(total), where=total > 0)
    mean: FloatArray = share.mean(axis=1)
    return mean


# Maximum number of scores at which an ancestor's curve enters the fits of the regions below it.
_POINTS = 256
# Distance between regions on the line on which all curves are looked up.
_APART = 2.0

Curve = tuple[FloatArray, FloatArray]


@storable
@dataclass(frozen=True, eq=False)
class IsotonicMaps:
    """An increasing, piecewise linear curve of the probability for every class and region.

    Attributes
    ----------
    ends : (C * R,) int array
        End of each curve's corners in the two arrays below, by class and then region.
    corners, values : (t,) arrays in [0, 1]
        Corners and values of all curves. A curve is constant beyond its outer corners.

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
        """Refuse curves that do not fit, as in a damaged file."""
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
    """Isotonic regression of the class on its probability in every region.

    With pooling, the curve of the enclosing region is added as rows, as many as ten bins of
    :mod:`.pooling` are worth, with the distribution of that region's scores.
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
    """At most 256 probabilities that represent the rows, with their shares of the weight.

    Equal scores stay together, so that a row of weight 2 equals two rows.
    """
    known, index = np.unique(cells.logit, return_inverse=True)
    share = bin_sums(index, len(known), cells.weight) / cells.weight.sum()
    group = np.minimum(((np.cumsum(share) - share / 2) * _POINTS).astype(np.int64), _POINTS - 1)
    mass = bin_sums(group, _POINTS, share)
    mean = bin_sums(group, _POINTS, share * expit(known))
    some = mass > 0
    return mean[some] / mass[some], mass[some]


@storable
@dataclass(frozen=True, eq=False)
class DensityMaps:
    """A weighted mean of the region's kernel density confidence and that of all rows.

    Attributes
    ----------
    everywhere : TopLabelKDE
        Calibrator fitted on all rows.
    inside : tuple of R TopLabelKDE or None
        Calibrators of the regions; None for a region without rows.
    own : (R,) array in [0, 1]
        Weight of the region's calibrator.
    """

    everywhere: TopLabelKDE
    inside: tuple[TopLabelKDE | None, ...]
    own: FloatArray

    def predict(self, proba: FloatArray, leaf: IntArray) -> FloatArray:
        """Calibrated probabilities (n, K); the predicted class stays the model's."""
        confidence = (1.0 - self.own[leaf]) * self.everywhere.predict_confidence(proba)
        order = np.argsort(leaf, kind="stable")
        ends = np.cumsum(np.bincount(leaf, minlength=len(self.inside)))
        for region, rows in enumerate(np.split(order, ends[:-1])):
            fitted = self.inside[region]
            if len(rows) and fitted is not None:
                confidence[rows] += self.own[region] * fitted.predict_confidence(proba[rows])
        return spread(proba, np.clip(confidence, 0.0, 1.0))

    def check(self, n_classes: int, n_regions: int) -> None:
        """Refuse calibrators that do not fit, as in a damaged file."""
        own = check_array(self, "own", (n_regions,), low=0.0, high=1.0)
        demand(isinstance(self.inside, tuple) and len(self.inside) == n_regions, "the regions")
        for region, one in enumerate((*self.inside, self.everywhere)):
            if one is None:
                demand(own[region] == 0, "the regions' shares")
                continue
            demand(isinstance(one, TopLabelKDE), "the regions' calibrators")
            one.check_state()
            demand(one.n_classes_ == n_classes, "the number of classes")


def fit_density(scores: Scores, leaf: IntArray, hierarchy: Hierarchy, pooling: bool) -> MapFit:
    """Kernel density confidence of every region, with the bandwidth rule b_mon2.

    With pooling a region's own curve has the weight n / (n + M), where n is its number of rows and
    M the worth of ten bins of :mod:`.pooling`; the rest is the curve of all rows. Rows of weight
    zero are left out. The shrinkage of a region's own curve towards its shared temperature is
    chosen on all rows.
    """
    counted = scores.weight > 0
    proba, weight = scores.proba[counted], scores.weight[counted]
    y, leaf = scores.y[counted], leaf[counted]
    everywhere = _fitted(proba, y, weight, "auto")
    n_regions = hierarchy.n_regions
    mass = np.bincount(leaf, weights=weight, minlength=n_regions)
    worth = _worth(proba, y, weight, leaf, hierarchy) if pooling else 0.0
    own = np.divide(mass, mass + worth, out=np.zeros(n_regions), where=mass > 0)
    order = np.argsort(leaf, kind="stable")
    ends = np.cumsum(np.bincount(leaf, minlength=n_regions))
    inside = tuple(
        _fitted(proba[rows], y[rows], weight[rows], everywhere.shrinkage_) if len(rows) else None
        for rows in np.split(order, ends[:-1])
    )
    return MapFit(
        DensityMaps(everywhere, inside, own),
        (1.0 - own)[None, :],
        {},
        np.zeros(n_regions, dtype=bool),
    )


def _fitted(
    proba: FloatArray, y: IntArray, weight: FloatArray, shrinkage: str | float
) -> TopLabelKDE:
    """A fit without its warnings, because pooling covers the classes that a region lacks."""
    with quiet():
        return TopLabelKDE(shrinkage=shrinkage).fit(proba, y, weight)


def _worth(
    proba: FloatArray, y: IntArray, weight: FloatArray, leaf: IntArray, hierarchy: Hierarchy
) -> float:
    predicted, score = top_label(proba)
    cells = Cells(leaf, logit_of(score), weight, weight * (predicted == y))
    edges, bins = bins_of(cells)
    sisters = Hierarchy.flat(hierarchy.n_regions)
    found = worth_of(*tallies(cells, bins, len(edges) + 1, sisters), sisters)
    return found * (len(edges) + 1)
