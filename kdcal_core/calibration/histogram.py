"""Histogram calibration by predicted class."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration.base import (
    CORNERS_AT_SCORES,
    ROWS_PER_PARAMETER,
    rows_by_class,
    top_label,
)
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import SHRINKAGE, Answers, ShrunkConfidence
from kdcal_core.calibration.state import check_arrays, demand
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges, uniform_edges
from kdcal_core.store import storable

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


@storable
class TopLabelHistogram(ShrunkConfidence):
    """Share of right predictions in the score's bin, by class (Salamon et al., Eqs. 5 and 6).

    Parameters
    ----------
    n_bins : int, default=10
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1] (the paper's, decision D47), or of equal mass in each
        class; equal scores stay in one bin, so there may be fewer bins.
    shrinkage : "auto", float or None, default="auto"
        Number of rows added to each bin, with outcomes as a safe temperature for all classes states
        (:mod:`kdcal_core.calibration.shrinkage`). "auto" chooses by held-out log loss; None adds
        none, as in the paper, where a bin of three right rows gives 1.

    Attributes
    ----------
    edges_ : tuple of K (B + 1,) arrays
        Bin edges of each class. Bins are (a, b], the first closed at 0 (decision D46).
    values_ : tuple of K (B,) arrays
        Share of right rows in each bin. A bin without rows has Conf1 of its class (Eq. 1).
    rows_ : tuple of K (B,) arrays
        Weight of the rows in each bin.
    shrinkage_, anchor_temperature_ : float
        The rows added, and the safe temperature. With shrinkage only.

    Examples
    --------
    >>> proba = [[0.6, 0.4], [0.62, 0.38], [0.9, 0.1], [0.1, 0.9]]
    >>> calibrator = TopLabelHistogram(n_bins=5, shrinkage=None).fit(proba, [0, 1, 0, 1])
    >>> calibrator.predict_confidence([[0.7, 0.3], [0.95, 0.05]]).tolist()
    [0.0, 1.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_bins": [Interval(Integral, 1, None, closed="left")],
        "strategy": [StrOptions({"uniform", "quantile"})],
        "shrinkage": SHRINKAGE,
    }

    def __init__(
        self, n_bins: int = 10, strategy: str = "uniform", shrinkage: Any = "auto"
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.shrinkage = shrinkage

    def why_no_onnx(self) -> str | None:
        return CORNERS_AT_SCORES if self.strategy == "quantile" else None

    def rows_needed(self, n_classes: int) -> int:
        # no score of a predicted class lies at or below 1 / K
        n_bins = int(self.n_bins)
        reached = n_bins - n_bins // n_classes if self.strategy == "uniform" else n_bins
        return ROWS_PER_PARAMETER * reached * n_classes

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        predicted, score = top_label(proba)
        correct = (predicted == y).astype(np.float64)
        conf1 = self._class_confidence(predicted, correct, weight)
        uniform = uniform_edges(int(self.n_bins))
        edges: list[FloatArray] = [uniform] * self.n_classes_
        values: list[FloatArray] = [np.full(len(uniform) - 1, c) for c in conf1]
        masses: list[FloatArray] = [np.zeros(len(uniform) - 1)] * self.n_classes_
        for label, rows in rows_by_class(predicted, self.n_classes_):
            mine = score[rows], correct[rows], weight[rows]
            if self.strategy == "quantile":
                edges[label] = quantile_edges(mine[0], int(self.n_bins), mine[2])
            values[label], masses[label] = self._bins(
                label, edges[label], *mine, float(conf1[label])
            )
        self.edges_ = tuple(edges)
        self.values_ = tuple(values)
        self.rows_ = tuple(masses)

    def _bins(
        self,
        label: int,
        edges: FloatArray,
        score: FloatArray,
        correct: FloatArray,
        weight: FloatArray,
        conf1: float,
    ) -> tuple[FloatArray, FloatArray]:
        n_bins = len(edges) - 1
        index = bin_index(score, edges)
        mass = bin_sums(index, n_bins, weight)
        right = bin_sums(index, n_bins, weight * correct)
        # no score of a predicted class lies at or below 1 / K, so those bins are not reported
        empty = (mass == 0) & (edges[1:] > 1.0 / self.n_classes_)
        if empty.any():
            stands_in = f"the class's overall confidence {conf1:.3f} stands in there"
            if self.shrinkage is not None:
                stands_in = "the shared temperature answers there"
            self._note(
                f"{self._class(label)}: {int(empty.sum())} of {n_bins} bins hold no row; "
                f"{stands_in}."
            )
        return np.where(mass > 0, right / np.where(mass > 0, mass, 1.0), conf1), mass

    def check_state(self) -> None:
        super().check_state()
        edges = check_arrays(self, "edges_", self.n_classes_, low=0.0, high=1.0)
        values = check_arrays(self, "values_", self.n_classes_, low=0.0, high=1.0)
        for at, value in zip(edges, values, strict=True):
            demand(len(at) == len(value) + 1 > 1 and bool((np.diff(at) > 0).all()), "edges_")
        if self._shrunk:
            masses = check_arrays(self, "rows_", self.n_classes_, low=0.0)
            for mass, value in zip(masses, values, strict=True):
                demand(mass.shape == value.shape, "rows_")

    def _answers(self, proba: FloatArray) -> Answers:
        predicted, score = top_label(proba)
        confidence, behind = np.empty(len(score)), np.zeros(len(score))
        for label, rows in rows_by_class(predicted, self.n_classes_):
            index = bin_index(score[rows], self.edges_[label])
            confidence[rows] = self.values_[label][index]
            if hasattr(self, "rows_"):  # files from before shrinkage lack it
                behind[rows] = self.rows_[label][index]
        return confidence, behind

    def _class_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        above = nodes.count_above(score, self.edges_[j], inclusive=False)
        return nodes.step(above, self.values_[j])

    def _class_rows_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        above = nodes.count_above(score, self.edges_[j], inclusive=False)
        return nodes.step(above, self.rows_[j])


CalibratorEntry(
    "histogram",
    "Histogram, 10 bins of equal width",
    "Histogram binning",
    TopLabelHistogram,
    "Salamon et al. 2024, Eqs. 5 and 6",
    "How often predictions of this class are right in the score's bin.",
    "top-label",
    offered=True,
).offer()
