"""Cumulative confidence: Cum, Cum+ and CwOC of Salamon et al."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from kdcal_core.calibration.base import CORNERS_AT_SCORES, rows_by_class, top_label
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.shrinkage import SHRINKAGE, Answers, ShrunkConfidence
from kdcal_core.calibration.state import check_array, check_arrays, demand
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_sums
from kdcal_core.statistics import CLIP
from kdcal_core.store import storable


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
        Number of rows added to each share, with outcomes as a safe temperature for all classes
        states (:mod:`kdcal_core.calibration.shrinkage`). "auto" chooses by held-out log loss;
        None adds none, as in the paper, where the best three scores, all right, give 1.

    Attributes
    ----------
    cutoffs_ : (K,) array
        Cutoff of each class; 0 where there is none.
    shrinkage_, anchor_temperature_ : float
        The rows added, and the safe temperature. With shrinkage only.

    Notes
    -----
    Intervals are [S, infinity) and [0, cutoff), so each score has one answer (decision D46).
    Above the largest score of a class the last value is held. If [0, cutoff) holds no row,
    Conf1 of the class is used there. Log likelihoods are clipped at 1e-12 (decision D48).
    The curve of each class needs 50 rows; 90 if the cutoff is chosen too.

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
            if hasattr(self, "_rows_"):  # files from before shrinkage lack it
                behind[rows] = np.where(low, self._rows_below_[label], self._rows_[label][step])
        return confidence, behind


def _tally(
    score: FloatArray, correct: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Distinct scores in ascending order with the weight of right and of wrong rows at each."""
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
    """Eq. 14 of groups of rows that share a confidence."""
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
