"""Centred isotonic regression: isotonic regression without flat steps."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.one_vs_rest import IsotonicConfidence
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.store import storable


@storable
class CentredIsotonic(IsotonicConfidence):
    """Isotonic regression of each class against the rest, with a straight line from step to step.

    Oron and Flournoy, Centered isotonic regression (2017): each step of isotonic regression becomes
    one point, at the mean score of its rows, and the points are joined. Rows of different scores
    then keep their order. Steps at 0 and 1 stay flat, and so do the outer halves of the first and
    the last step.

    Parameters
    ----------
    shrinkage : "auto", float or None, default="auto"
        As in :class:`~kdcal_core.calibration.one_vs_rest.OneVersusRest`; None as in the paper.

    Attributes
    ----------
    corners_, values_ : tuple of (g,) arrays
        Points of each class's map, with linear interpolation; with two classes only the second's.

    Examples
    --------
    >>> proba = [[0.6, 0.4], [0.3, 0.7], [0.2, 0.8], [0.1, 0.9]]
    >>> calibrator = CentredIsotonic(shrinkage=None).fit(proba, [0, 1, 0, 1])
    >>> calibrator.predict_proba([[0.25, 0.75], [0.15, 0.85]])[:, 1].round(3).tolist()
    [0.5, 0.833]
    """

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self._note_absent(y)
        super()._fit(proba, y, weight)

    def _fit_column(
        self, score: FloatArray, target: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        steps = IsotonicRegression(out_of_bounds="clip").fit(score, target, weight)
        order = np.argsort(score, kind="stable")
        score, weight = score[order], weight[order]
        value = np.clip(steps.predict(score), 0.0, 1.0)
        starts = np.flatnonzero(np.diff(value, prepend=-1.0) > 0)
        ends = np.append(starts[1:], len(value)) - 1
        mass = np.add.reduceat(weight, starts)
        centre = np.add.reduceat(weight * score, starts) / mass
        height = value[starts]
        flat = (height == 0.0) | (height == 1.0)
        first = np.where(flat, score[starts], centre)
        last = np.where(flat, score[ends], centre)
        first[0], last[-1] = score[0], score[-1]
        corners = np.column_stack([first, centre, last]).ravel()
        values = np.repeat(height, 3)
        rising = np.append(True, np.diff(corners) > 0)  # a step of one score is one point
        return corners[rising], values[rising]


CalibratorEntry(
    "centred_isotonic",
    "Centred isotonic regression, one class against the rest",
    "Centred isotonic",
    CentredIsotonic,
    "Oron and Flournoy 2017",
    "Isotonic regression with straight lines in place of its flat steps, so that different scores "
    "stay different. Needs as many rows as isotonic regression.",
    "standard",
    compared=False,
).offer()
