"""Venn-Abers prediction."""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration.calibrator_base import CORNERS_AT_SCORES
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.one_vs_rest import OneVersusRest
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_arrays, demand

Steps = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@storable
class VennAbers(OneVersusRest):
    """Isotonic regression with the row itself added to the data, once as a no and once as a yes.

    This is inductive Venn-Abers prediction (Vovk, Petej and Fedorova, 2015). The two isotonic fits
    give p0 and p1, one of which is calibrated for any data, and p1 / (1 - p0 + p1) is the number
    between them that minimises the worst-case log loss. With more than two classes each is mapped
    against the rest and the rows are scaled to sum to one; with two, only the second is mapped.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        As in :class:`~kdcal_core.calibration.one_vs_rest.OneVersusRest`; :meth:`interval` does not
        use it.

    Attributes
    ----------
    lower_scores_, lower_ : tuple of (g,) arrays
        p0 of each class as a step function: the value at the last of these scores up to the row's
        score, 0 below all.
    upper_scores_, upper_ : tuple of (g,) arrays
        p1 of each class as a step function: the value at the first of these scores from the row's
        score on, 1 above all.

    Notes
    -----
    One pass over the sorted scores finds all p0 and p1 in O(n log n). A row of weight w counts as w
    equal rows.

    Examples
    --------
    >>> p = [0.1, 0.3, 0.5, 0.7, 0.9]
    >>> calibrator = VennAbers(shrinkage=None).fit([[1 - v, v] for v in p], [0, 0, 1, 0, 1])
    >>> [side.round(3).tolist() for side in calibrator.interval([[0.4, 0.6]])]
    [[[0.333, 0.333]], [[0.667, 0.667]]]
    >>> calibrator.predict_proba([[0.4, 0.6]]).round(3).tolist()
    [[0.5, 0.5]]
    """

    _rows_per_map = 20
    _why_no_onnx = CORNERS_AT_SCORES

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._note_absent(y)
        super()._fit(proba, y, weight)

    def _fit_column(self, score: FloatArray, target: FloatArray, weight: FloatArray) -> Steps:
        from kdcal_core.calibration._score_kernels import joined_as_yes

        distinct, index = np.unique(score, return_inverse=True)
        mass = np.bincount(index, weights=weight)
        yes = np.bincount(index, weights=weight * target)
        upper = joined_as_yes(yes, mass)
        # a no among ascending scores is a yes among descending ones
        lower = 1.0 - joined_as_yes((mass - yes)[::-1].copy(), mass[::-1].copy())[::-1]
        first = np.diff(lower, prepend=-1.0) != 0
        last = np.diff(upper, append=2.0) != 0
        return distinct[first], lower[first], distinct[last], upper[last]

    def _keep(self, maps: list[Steps]) -> None:
        self.lower_scores_, self.lower_, self.upper_scores_, self.upper_ = zip(*maps, strict=True)

    def check_state(self) -> None:
        super().check_state()
        for side in ("lower", "upper"):
            scores = check_arrays(self, f"{side}_scores_", self._n_maps, low=0.0, high=1.0)
            values = check_arrays(self, f"{side}_", self._n_maps, low=0.0, high=1.0)
            for at, value in zip(scores, values, strict=True):
                demand(len(at) == len(value) > 0 and bool((np.diff(at) > 0).all()), f"{side}_")

    def interval(self, proba: FloatArray) -> tuple[FloatArray, FloatArray]:
        """p0 and p1 of every class, (n, K) each, before rows are scaled to sum to one.

        Parameters
        ----------
        proba : (n, K) array
            The model's probabilities.
        """
        proba = self._checked(proba)
        if self.n_classes_ == 2:
            low, high = self._sides(0, proba[:, 1])
            return np.column_stack([1.0 - high, low]), np.column_stack([1.0 - low, high])
        sides = [self._sides(j, proba[:, j]) for j in range(self.n_classes_)]
        return np.column_stack([low for low, _ in sides]), np.column_stack([up for _, up in sides])

    def _sides(self, j: int, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        low = np.searchsorted(self.lower_scores_[j], score, side="right")
        high = np.searchsorted(self.upper_scores_[j], score, side="left")
        return np.append(0.0, self.lower_[j])[low], np.append(self.upper_[j], 1.0)[high]

    def _map(self, j: int, score: FloatArray) -> FloatArray:
        low, high = self._sides(j, score)
        found: FloatArray = high / (1.0 - low + high)
        return found


CalibratorEntry(
    "venn_abers",
    "Inductive Venn-Abers prediction, one class against the rest",
    "Venn-Abers",
    VennAbers,
    "Vovk, Petej and Fedorova 2015",
    "Isotonic regression with the row itself added to the data, once as a no and once as a yes. "
    "The result lies between the two answers, where the worst-case log loss is smallest.",
    "standard",
    compared=False,
    offered=True,
).offer()
