"""Histogram binning of each class's probability."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration.base import CORNERS_AT_SCORES, ROWS_PER_PARAMETER, n_maps
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.one_vs_rest import OneVersusRest
from kdcal_core.calibration.shrinkage import SHRINKAGE
from kdcal_core.calibration.state import check_arrays, demand
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges, uniform_edges
from kdcal_core.store import storable

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


@storable
class ClasswiseHistogram(OneVersusRest):
    """The share of a class among rows whose probability of it lies in the same bin.

    Histogram binning (Zadrozny and Elkan, 2001) of each class against the rest, after which rows
    are scaled to sum to one; with two classes only the second is binned.
    :class:`TopLabelHistogram` bins only the predicted class.

    Parameters
    ----------
    n_bins : int, default=15
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal mass, or of equal width on [0, 1]. Equal scores stay in one bin, so there may
        be fewer bins of equal mass.

    Attributes
    ----------
    edges_ : tuple of (B + 1,) arrays
        Bin edges of each class, or of the second of two. Bins are (a, b], the first closed at 0.
    values_ : tuple of (B,) arrays
        Probability of each bin.

    Notes
    -----
    A bin with r rows of the class among m has the value (r + q) / (m + 1), where q is the share of
    the class among all rows, with one row of each class added. So a bin without rows has the value
    q, and no bin has 0 or 1, which could make the log loss infinite.

    Examples
    --------
    >>> p = [0.1, 0.2, 0.3, 0.7, 0.8, 0.9]
    >>> calibrator = ClasswiseHistogram(n_bins=2, shrinkage=None)
    >>> calibrator = calibrator.fit([[1 - v, v] for v in p], [0, 0, 1, 1, 1, 1])
    >>> calibrator.predict_proba([[0.75, 0.25]]).round(3).tolist()
    [[0.594, 0.406]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"quantile", "uniform"})],
        "shrinkage": SHRINKAGE,
    }

    def __init__(
        self, n_bins: int = 15, strategy: str = "quantile", shrinkage: Any = "auto"
    ) -> None:
        super().__init__(shrinkage)
        self.n_bins = n_bins
        self.strategy = strategy

    def why_no_onnx(self) -> str | None:
        return CORNERS_AT_SCORES if self.strategy == "quantile" else None

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * int(self.n_bins) * n_maps(n_classes)

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._note_absent(y)
        super()._fit(proba, y, weight)

    def _fit_column(
        self, score: FloatArray, target: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        if self.strategy == "quantile":
            edges = _equal_mass(score, int(self.n_bins), weight)
        else:
            edges = uniform_edges(int(self.n_bins))
        index = bin_index(score, edges)
        mass = bin_sums(index, len(edges) - 1, weight)
        right = bin_sums(index, len(edges) - 1, weight * target)
        share = (right.sum() + 1) / (mass.sum() + self.n_classes_)
        return edges, (right + share) / (mass + 1)

    def _keep(self, maps: list[tuple[FloatArray, FloatArray]]) -> None:
        self.edges_ = tuple(edges for edges, _ in maps)
        self.values_ = tuple(values for _, values in maps)

    def check_state(self) -> None:
        super().check_state()
        edges = check_arrays(self, "edges_", self._n_maps, low=0.0, high=1.0)
        values = check_arrays(self, "values_", self._n_maps, low=0.0, high=1.0)
        for at, value in zip(edges, values, strict=True):
            demand(len(at) == len(value) + 1 > 1 and bool((np.diff(at) > 0).all()), "edges_")
            demand(at[0] == 0.0 and at[-1] == 1.0, "edges_")

    def _map(self, j: int, score: FloatArray) -> FloatArray:
        found: FloatArray = self.values_[j][bin_index(score, self.edges_[j])]
        return found

    def _map_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        above = nodes.count_above(score, self.edges_[j], inclusive=False)
        return nodes.step(above, self.values_[j])


def _equal_mass(score: FloatArray, n_bins: int, weight: FloatArray) -> FloatArray:
    """Edges of equal mass, halfway between scores, so that no rounding moves a row.

    Scores of exactly 0 that would fill a bin get a separate bin.
    """
    edges = quantile_edges(score, n_bins, weight)
    known = np.append(np.unique(score), 1.0)
    zero = score == 0
    if not zero.all() and weight[zero].sum() * n_bins >= weight.sum():
        edges = np.insert(edges, 1, 0.0)
    inner = edges[1:-1]
    edges[1:-1] = 0.5 * (inner + known[np.searchsorted(known, inner, side="right")])
    return np.unique(edges)  # the middle of neighbouring doubles is one of them


CalibratorEntry(
    "histogram_classes",
    "Histogram of each class's probability, 15 bins of equal mass",
    "Histogram by class",
    ClasswiseHistogram,
    "Zadrozny and Elkan 2001",
    "The share of each class among rows with a probability like this row's, whichever class "
    "was predicted.",
    "standard",
    compared=False,
).offer()
