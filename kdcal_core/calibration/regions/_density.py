"""The top-label confidence from kernel densities (Salamon et al.) in every region."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from kdcal_core.calibration.calibrator_base import check_array, demand, spread, top_label
from kdcal_core.calibration.kde import TopLabelKDE
from kdcal_core.calibration.regions._counts import bins_of, tallies, worth_of
from kdcal_core.calibration.regions.cells import Cells, logit_of
from kdcal_core.calibration.regions.hierarchy import Hierarchy
from kdcal_core.calibration.regions.scores import MapFit, Scores
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputWarning
from kdcal_core.store import storable


@storable
@dataclass(frozen=True, eq=False)
class DensityMaps:
    """A share of the region's own kernel density confidence, and the rest of that of all rows.

    Attributes
    ----------
    everywhere : TopLabelKDE
        Fitted on all rows.
    inside : tuple of R TopLabelKDE or None
        None where a region has no rows.
    own : (R,) array in [0, 1]
        Share of the region's own.
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
        """Refuse calibrators that do not fit, as a damaged file may hold them."""
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
    """Kernel density confidence of every region, with b_mon2 as its bandwidth.

    With pooling a region of n rows has the share n / (n + M) of its own curve, M being what ten
    bins of :mod:`.pooling` are worth; the rest is that of all rows. Rows of weight zero are left
    out. What a region's own curve is drawn to its shared temperature by is chosen on all rows.
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
    """A fit without its warnings: pooling answers for the classes that a region lacks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
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
