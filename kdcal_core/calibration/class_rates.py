"""Confidence from rates of right predictions, by predicted class.

These are the rate of the class (Conf1), cumulative rates (Cum, Cum+ and CwOC) and the rate in bins
of the score, all by Salamon et al., and the model's own score for comparison.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration.calibrator_base import (
    CORNERS_AT_SCORES,
    ROWS_PER_PARAMETER,
    TopLabelCalibrator,
    rows_by_class,
    top_label,
)
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import SHRINKAGE, Answers, ShrunkConfidence
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, quantile_edges, uniform_edges
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, check_arrays, demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


@storable
class UncalibratedConfidence(TopLabelCalibrator):
    """The model's probability of the predicted class, unchanged (Salamon et al., section XIV).

    Examples
    --------
    >>> calibrator = UncalibratedConfidence().fit([[0.6, 0.4], [0.1, 0.9]], [0, 0])
    >>> calibrator.predict_confidence([[0.3, 0.7]]).tolist()
    [0.7]
    """

    _why_no_onnx = None

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Nothing to fit."""

    def _confidence(self, proba: FloatArray) -> FloatArray:
        return top_label(proba)[1]

    def _vectors(self, proba: FloatArray) -> FloatArray:
        return proba.copy()

    def onnx_nodes(self, nodes: Nodes, proba: str) -> str:
        return nodes.node("Identity", proba)


CalibratorEntry(
    "uncalibrated",
    "Uncalibrated score",
    "Uncalibrated",
    UncalibratedConfidence,
    "Salamon et al. 2024, section XIV",
    "The model's own probability of the predicted class, as it is.",
    "model",
    offered=True,
).offer()


@storable
class TopLabelConfidence(ShrunkConfidence):
    """Conf1: the share of a class's predictions that are right (Salamon et al., Eq. 1).

    It ignores the score. Salamon et al. recommend it if a class has too few errors, or too few low
    scores, to show how confidence depends on the score (section XIII.D). A class that is never
    predicted in the calibration set gets the overall accuracy, with an :class:`InputWarning`.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        Number of rows added to each class, with the outcomes that a safe temperature for all
        classes predicts (:mod:`kdcal_core.calibration.shrinkage`); the confidence then grows
        slightly with the score. "auto" chooses it by held-out log loss. None adds no rows, as in
        the paper, where a class of three right rows has confidence 1.

    Attributes
    ----------
    confidence_ : (K,) array in [0, 1]
        Conf1 of every class: the diagonal of the reverse confusion matrix (Fig. 1).
    rows_ : (K,) array
        Weight of the rows that predict each class.
    shrinkage_, anchor_temperature_ : float
        The number of rows added, and the safe temperature. Only with shrinkage.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.2, 0.8]]
    >>> calibrator = TopLabelConfidence(shrinkage=None).fit(proba, [0, 0, 1, 1])
    >>> calibrator.confidence_.round(3).tolist()
    [0.667, 1.0]
    >>> calibrator.predict_confidence([[0.51, 0.49]]).round(3).tolist()
    [0.667]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"shrinkage": SHRINKAGE}

    def __init__(self, shrinkage: Any = "auto") -> None:
        self.shrinkage = shrinkage

    _why_no_onnx = None

    def rows_needed(self, n_classes: int) -> int:
        return ROWS_PER_PARAMETER * n_classes

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        predicted, _ = top_label(proba)
        correct = (predicted == y).astype(np.float64)
        self.confidence_ = self._class_confidence(predicted, correct, weight)
        self.rows_ = np.bincount(predicted, weights=weight, minlength=self.n_classes_)

    def check_state(self) -> None:
        super().check_state()
        check_array(self, "confidence_", (self.n_classes_,), low=0.0, high=1.0)
        if self._shrunk:
            check_array(self, "rows_", (self.n_classes_,), low=0.0)

    def _answers(self, proba: FloatArray) -> Answers:
        predicted, _ = top_label(proba)
        # files older than shrinkage lack the rows
        rows = getattr(self, "rows_", np.zeros(self.n_classes_))
        return self.confidence_[predicted], rows[predicted]

    def _class_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        return nodes.constant_like(score, float(self.confidence_[j]))

    def _class_rows_nodes(self, nodes: Nodes, j: int, score: str) -> str:
        return nodes.constant_like(score, float(self.rows_[j]))


CalibratorEntry(
    "confidence",
    "Confidence given the class",
    "Conf1",
    TopLabelConfidence,
    "Salamon et al. 2024, Eq. 1",
    "How often predictions of this class are right, whatever the score.",
    "top-label",
).offer()


@storable
class CumulativeConfidence(ShrunkConfidence):
    """The share of right predictions among scores of S or better (Salamon et al., Eqs. 11 to 13).

    It is P(correct | score >= S), not P(correct | score = S): above the cutoff it is too high
    wherever confidence grows with the score (section VII).

    Parameters
    ----------
    cutoff : None, "median", "optimal" or float, default=None
        Below the cutoff one histogram bin [0, cutoff) is used. None: no cutoff (Cum, Eq. 11).
        "median": each class's median score (Cum+, Eq. 12). "optimal": the observed score that
        gives the smallest negative log likelihood Eq. 14 on the calibration set (CwOC, Eq. 13),
        the lowest of equally good ones. A number: that score for all classes.
    shrinkage : "auto", float or None, default="auto"
        Number of rows added to each share, with the outcomes that a safe temperature for all
        classes predicts (:mod:`kdcal_core.calibration.shrinkage`). "auto" chooses it by held-out
        log loss. None adds no rows, as in the paper, where the best three scores, all right, give
        1.

    Attributes
    ----------
    cutoffs_ : (K,) array
        Cutoff of each class; 0 where there is none.
    shrinkage_, anchor_temperature_ : float
        The number of rows added, and the safe temperature. Only with shrinkage.

    Notes
    -----
    The intervals are [S, infinity) and [0, cutoff), so each score has one answer. Above the largest
    score of a class the last value is used. If [0, cutoff) holds no row, Conf1 of the class is used
    there. Log likelihoods are clipped at 1e-12. The curve of each class needs 50 rows; 90 if the
    cutoff is chosen too.

    Examples
    --------
    >>> proba = [[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1], [0.1, 0.9]]
    >>> calibrator = CumulativeConfidence(shrinkage=None).fit(proba, [1, 0, 1, 0, 1])
    >>> calibrator.predict_confidence([[0.75, 0.25], [0.9, 0.1]]).tolist()
    [0.5, 1.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "cutoff": [None, StrOptions({"median", "optimal"}), Interval(Real, 0, 1, closed="both")],
        "shrinkage": SHRINKAGE,
    }

    def __init__(self, cutoff: Any = None, shrinkage: Any = "auto") -> None:
        self.cutoff = cutoff
        self.shrinkage = shrinkage

    _why_no_onnx = CORNERS_AT_SCORES

    def rows_needed(self, n_classes: int) -> int:
        return (90 if self.cutoff == "optimal" else 50) * n_classes

    def _fit_alone(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        predicted, score = top_label(proba)
        correct = (predicted == y).astype(np.float64)
        self._conf1_ = self._class_confidence(predicted, correct, weight)
        self.cutoffs_ = np.zeros(self.n_classes_)
        self._below_ = self._conf1_.copy()
        self._rows_below_ = np.zeros(self.n_classes_)
        scores, shares, masses = [[np.zeros(0)] * self.n_classes_ for _ in range(3)]
        for label, rows in rows_by_class(predicted, self.n_classes_):
            value, right, wrong = _tally(score[rows], correct[rows], weight[rows])
            above = _suffix_share(right, wrong)
            cutoff = self._cutoff(value, right, wrong, above)
            low = value < cutoff
            if low.any():
                self._rows_below_[label] = right[low].sum() + wrong[low].sum()
                self._below_[label] = right[low].sum() / self._rows_below_[label]
            self.cutoffs_[label] = cutoff
            scores[label], shares[label] = value, above
            masses[label] = np.cumsum((right + wrong)[::-1])[::-1]
        self._scores_, self._shares_, self._rows_ = tuple(scores), tuple(shares), tuple(masses)

    def check_state(self) -> None:
        super().check_state()
        for name in ("_conf1_", "_below_", "cutoffs_"):
            check_array(self, name, (self.n_classes_,), low=0.0, high=1.0)
        scores = check_arrays(self, "_scores_", self.n_classes_, low=0.0, high=1.0)
        shares = check_arrays(self, "_shares_", self.n_classes_, low=0.0, high=1.0)
        for value, above in zip(scores, shares, strict=True):
            demand(len(value) == len(above) and bool((np.diff(value) > 0).all()), "_scores_")
        if self._shrunk:
            check_array(self, "_rows_below_", (self.n_classes_,), low=0.0)
            masses = check_arrays(self, "_rows_", self.n_classes_, low=0.0)
            for mass, value in zip(masses, scores, strict=True):
                demand(mass.shape == value.shape and bool((np.diff(mass) < 0).all()), "_rows_")

    def _cutoff(
        self, value: FloatArray, right: FloatArray, wrong: FloatArray, above: FloatArray
    ) -> float:
        if self.cutoff is None:
            return 0.0
        if self.cutoff == "median":
            return _median(value, right + wrong)
        if self.cutoff == "optimal":
            return _optimal_cutoff(value, right, wrong, above)
        return float(self.cutoff)

    def _answers(self, proba: FloatArray) -> Answers:
        predicted, score = top_label(proba)
        confidence, behind = self._conf1_[predicted], np.zeros(len(score))
        for label, rows in rows_by_class(predicted, self.n_classes_):
            value, above = self._scores_[label], self._shares_[label]
            if not len(value):
                continue
            step = np.searchsorted(value, score[rows], side="left").clip(max=len(value) - 1)
            low = score[rows] < self.cutoffs_[label]
            confidence[rows] = np.where(low, self._below_[label], above[step])
            if hasattr(self, "_rows_"):  # files older than shrinkage lack it
                behind[rows] = np.where(low, self._rows_below_[label], self._rows_[label][step])
        return confidence, behind


def _tally(
    score: FloatArray, correct: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distinct scores in ascending order, with the weights of right and wrong rows at each."""
    value, index = np.unique(score, return_inverse=True)
    right = bin_sums(index, len(value), weight * correct)
    wrong = bin_sums(index, len(value), weight * (1.0 - correct))
    return value, right, wrong


def _suffix_share(right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Share of right rows among those at or above each distinct score."""
    right_above = np.cumsum(right[::-1])[::-1]
    wrong_above = np.cumsum(wrong[::-1])[::-1]
    share: FloatArray = right_above / (right_above + wrong_above)
    return share


def _median(value: FloatArray, mass: FloatArray) -> float:
    """Weighted median; the mean of the two middle scores where half the mass lies below."""
    share = np.cumsum(mass) / mass.sum()
    lower = int(np.searchsorted(share, 0.5 - 1e-12))
    upper = int(np.searchsorted(share, 0.5 + 1e-12))
    return float(0.5 * (value[lower] + value[upper]))


def _optimal_cutoff(
    value: FloatArray, right: FloatArray, wrong: FloatArray, above: FloatArray
) -> float:
    """The observed score with the smallest Eq. 14 loss, by prefix and suffix sums."""
    right_below = np.concatenate([[0.0], np.cumsum(right)[:-1]])
    wrong_below = np.concatenate([[0.0], np.cumsum(wrong)[:-1]])
    mass_below = right_below + wrong_below
    below = right_below / np.where(mass_below > 0, mass_below, 1.0)
    loss_above = np.cumsum(_loss(above, right, wrong)[::-1])[::-1]
    loss = loss_above + _loss(below, right_below, wrong_below)
    # rounding in the sums must not separate equally good cutoffs
    best = loss.min()
    return float(value[np.argmax(loss <= best + 1e-12 * max(1.0, abs(best)))])


def _loss(confidence: FloatArray, right: FloatArray, wrong: FloatArray) -> FloatArray:
    """Eq. 14 for groups of rows with the same confidence."""
    kept = np.clip(confidence, CLIP, 1.0 - CLIP)
    loss: FloatArray = -right * np.log(kept) - wrong * np.log1p(-kept)
    return loss


CalibratorEntry(
    "cum",
    "Cumulative confidence",
    "Cum",
    CumulativeConfidence,
    "Salamon et al. 2024, Eq. 11",
    "How often predictions of this class are right at this score or better; too high at "
    "low scores.",
    "top-label",
).offer()

CalibratorEntry(
    "cum_median",
    "Cumulative confidence with median cutoff",
    "Cum+",
    partial(CumulativeConfidence, "median"),
    "Salamon et al. 2024, Eq. 12",
    "Cumulative confidence above the class's median score, one bin below it.",
    "top-label",
).offer()

CalibratorEntry(
    "cwoc",
    "Cumulative confidence with optimal cutoff",
    "CwOC",
    partial(CumulativeConfidence, "optimal"),
    "Salamon et al. 2024, Eq. 13",
    "Cumulative confidence above the cutoff that fits best, one bin below it.",
    "top-label",
).offer()


@storable
class TopLabelHistogram(ShrunkConfidence):
    """Share of right predictions in the score's bin, by class (Salamon et al., Eqs. 5 and 6).

    Parameters
    ----------
    n_bins : int, default=10
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], as in the paper, or of equal mass in each class. Equal scores
        stay in one bin, so there may be fewer bins.
    shrinkage : "auto", float or None, default="auto"
        Number of rows added to each bin, with the outcomes that a safe temperature for all classes
        predicts (:mod:`kdcal_core.calibration.shrinkage`). "auto" chooses it by held-out log loss.
        None adds no rows, as in the paper, where a bin of three right rows gives 1.

    Attributes
    ----------
    edges_ : tuple of K (B + 1,) arrays
        Bin edges of each class. Bins are (a, b], the first closed at 0.
    values_ : tuple of K (B,) arrays
        Share of right rows in each bin. A bin without rows has Conf1 of its class (Eq. 1).
    rows_ : tuple of K (B,) arrays
        Weight of the rows in each bin.
    shrinkage_, anchor_temperature_ : float
        The number of rows added, and the safe temperature. Only with shrinkage.

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
            stands_in = f"the class's overall confidence {conf1:.3f} is used there instead"
            if self.shrinkage is not None:
                stands_in = "the shared temperature is used there"
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
            if hasattr(self, "rows_"):  # files older than shrinkage lack it
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
