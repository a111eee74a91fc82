"""Temperature scaling, shared or by class, with and without awards: paper 002 sections IX to XI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.utils._param_validation import StrOptions

from kdcal_core.calibration.base import (
    CLIP,
    ROWS_PER_PARAMETER,
    VectorCalibrator,
    rows_by_class,
    top_label,
)
from kdcal_core.calibration.state import check_array
from kdcal_core.data import FloatArray, IntArray

LOWEST, HIGHEST = 0.05, 20.0
# Awards are found as A / T: thirty is a confidence of 1 - 1e-13.
_LARGEST_AWARD = 30.0
_STARTS = (0.3, 0.6, 1.0, 1.6, 3.0)
_SUBSAMPLE = 20_000
_BLOCK = 8192
# Stands for minus infinity in the predicted class's own column, and survives 0 * x.
_ABSENT = -1e5


class TemperatureScaling(VectorCalibrator):
    """Softmax of (log y_j + [j is predicted] A_j) / T (paper 002 Eqs. 16 to 18).

    ======== ===== ====================================================== ==============
    scope    award name                                                   parameters
    ======== ===== ====================================================== ==============
    shared   no    STS, one temperature for all                           1
    class    no    CSTS, a temperature for each predicted class           K
    shared   yes   TSwA, one temperature and K awards, fitted jointly     K + 1
    class    yes   CSTSwA, a temperature and an award for each class      2 K
    ======== ===== ====================================================== ==============

    Parameters
    ----------
    scope : {"shared", "class"}, default="shared"
    awards : bool, default=False
        Whether the predicted class's log probability gets an additive award, which may be
        negative. The predicted class stays what the parent said even where an award moves the
        largest entry elsewhere (section XI).
    loss : {"top-label", "brier", "full"}, default="top-label"
        What is minimised over the calibration set: Eq. 14 on "is the predicted class right"
        (the paper's choice), Eq. 15 on the same, or the log loss of the whole vector (the
        usual temperature scaling; decision D63).

    Attributes
    ----------
    temperatures_ : (K,) array in [0.05, 20]
        The same number throughout under the shared scope. A class that is never predicted has
        temperature 1 and award 0 under the class scope, and award 0 under the shared one.
    awards_ : (K,) array
        The A_k of Eq. 18; |A / T| is at most 30.

    Notes
    -----
    ``predict_proba`` returns the scaled vector itself. Probabilities are clipped at 1e-12
    before the logarithm (decision D51). L-BFGS with exact gradients on (log T, A / T), from the
    best of five temperatures; for Eq. 15, which can have several minima, all five go down and
    the best end is kept, which may still be a local one. A start is first improved on an even
    subsample of 20,000 rows, and the minimum is then found on all rows. If that were ever worse
    than doing nothing, T = 1 and A = 0 are kept.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9]]
    >>> calibrator = TemperatureScaling().fit(proba, [0, 0, 1, 1])
    >>> calibrator.temperatures_.round(3).tolist()
    [2.0, 2.0]
    >>> calibrator.predict_confidence([[0.9, 0.1]]).round(3).tolist()
    [0.75]
    """

    keeps_prediction: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scope": [StrOptions({"shared", "class"})],
        "awards": ["boolean"],
        "loss": [StrOptions({"top-label", "brier", "full"})],
    }

    def __init__(
        self, scope: str = "shared", awards: bool = False, loss: str = "top-label"
    ) -> None:
        self.scope = scope
        self.awards = awards
        self.loss = loss

    def rows_needed(self, n_classes: int) -> int:
        temperatures = 1 if self.scope == "shared" else n_classes
        return ROWS_PER_PARAMETER * (temperatures + self.awards * n_classes)

    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None:
        predicted, _ = top_label(proba)
        n = self.n_classes_
        self.temperatures_ = np.ones(n)
        self.awards_ = np.zeros(n)
        problem = _Rows.of(proba, y, predicted, weight)
        if self.scope == "shared":
            temperature, awards = _minimum(problem, n, self.awards, self.loss)
            self.temperatures_[:] = temperature
            self.awards_[:] = awards * temperature
        else:
            for label, rows in rows_by_class(predicted, n):
                alone = problem.take(rows, group=0)
                temperature, awards = _minimum(alone, 1, self.awards, self.loss)
                self.temperatures_[label] = temperature
                self.awards_[label] = awards[0] * temperature
        self._note_bounds(np.unique(predicted))

    def check_state(self) -> None:
        super().check_state()
        check_array(
            self, "temperatures_", (self.n_classes_,), low=LOWEST * 0.999, high=HIGHEST * 1.001
        )
        largest = _LARGEST_AWARD * HIGHEST * 1.001
        check_array(self, "awards_", (self.n_classes_,), low=-largest, high=largest)

    def _note_bounds(self, seen: IntArray) -> None:
        for label in seen:
            if not LOWEST * 1.001 < self.temperatures_[label] < HIGHEST * 0.999:
                self._note(
                    f"Class {label}: the temperature stands at its bound "
                    f"{self.temperatures_[label]:.3g}."
                )
            if abs(self.awards_[label]) > 0.999 * _LARGEST_AWARD * self.temperatures_[label]:
                self._note(f"Class {label}: the award stands at its bound.")

    def _vectors(self, proba: FloatArray) -> FloatArray:
        predicted, _ = top_label(proba)
        logit = np.log(np.maximum(proba, CLIP))
        logit[np.arange(len(proba)), predicted] += self.awards_[predicted]
        logit /= self.temperatures_[predicted][:, None]
        logit -= logit.max(axis=1, keepdims=True)
        np.exp(logit, out=logit)
        logit /= logit.sum(axis=1, keepdims=True)
        return logit


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of one fit, told as log odds against the predicted class.

    ``others`` (n, K) holds log y_j - log y_best for the classes other than the predicted one,
    y_best being the largest of them; ``best`` (n,) is log y_best - log y_predicted; ``truth``
    (n,) is log y_true - log y_predicted, zero where the prediction is right.
    """

    others: FloatArray
    best: FloatArray
    truth: FloatArray
    correct: FloatArray
    weight: FloatArray
    group: IntArray

    @classmethod
    def of(cls, proba: FloatArray, y: IntArray, predicted: IntArray, weight: FloatArray) -> _Rows:
        rows = np.arange(len(proba))
        others = np.log(np.maximum(proba, CLIP))
        others -= others[rows, predicted][:, None]
        truth = others[rows, y]
        others[rows, predicted] = _ABSENT
        best = others.max(axis=1)
        others -= best[:, None]
        correct = (predicted == y).astype(np.float64)
        return cls(others, best, truth, correct, weight, predicted)

    def take(self, rows: IntArray | slice, group: int | None = None) -> _Rows:
        picked = self.group[rows]
        return _Rows(
            self.others[rows],
            self.best[rows],
            self.truth[rows],
            self.correct[rows],
            self.weight[rows],
            picked if group is None else np.full_like(picked, group),
        )

    def rest(self, temperature: float) -> tuple[FloatArray, FloatArray]:
        """Log odds of all other classes together against the predicted one, and its slope.

        The slope is the derivative by log T.
        """
        n = len(self.best)
        log_sum, mean = np.empty(n), np.empty(n)
        for start in range(0, n, _BLOCK):
            part = slice(start, start + _BLOCK)
            others = self.others[part]
            odds = np.exp(others / temperature)
            total = odds.sum(axis=1)
            log_sum[part] = np.log(total)
            mean[part] = np.einsum("ij,ij->i", odds, others) / total
        return self.best / temperature + log_sum, -(self.best + mean) / temperature


def _objective(
    parameters: FloatArray, rows: _Rows, n_groups: int, loss: str
) -> tuple[float, FloatArray]:
    """Mean loss and its gradient at (log T, or log T and A / T of each group)."""
    temperature = float(np.exp(parameters[0]))
    rest, rest_slope = rows.rest(temperature)
    awards = parameters[1:]
    odds = (awards[rows.group] if len(awards) else 0.0) - rest
    share = rows.weight / rows.weight.sum()
    if loss == "brier":
        confidence = expit(odds)
        error = confidence - rows.correct
        value = float(share @ error**2)
        by_odds = share * 2 * error * confidence * (1 - confidence)
    else:
        value = float(share @ np.logaddexp(0.0, np.where(rows.correct > 0, -odds, odds)))
        by_odds = share * (expit(odds) - rows.correct)
    by_log_temperature = -float(by_odds @ rest_slope)
    if loss == "full":
        wrong = share * (1 - rows.correct)
        value += float(wrong @ (rest - rows.truth / temperature))
        by_log_temperature += float(wrong @ (rest_slope + rows.truth / temperature))
    gradient = np.empty_like(parameters)
    gradient[0] = by_log_temperature
    if len(awards):
        gradient[1:] = np.bincount(rows.group, weights=by_odds, minlength=n_groups)
    return value, gradient


def _minimum(rows: _Rows, n_groups: int, awards: bool, loss: str) -> tuple[float, FloatArray]:
    """Temperature and A / T of each group that minimise the loss."""
    n_awards = n_groups if awards else 0
    nothing = np.zeros(1 + n_awards)
    few = rows.take(slice(None, None, max(1, len(rows.best) // _SUBSAMPLE)))
    starts = [np.concatenate([[np.log(t)], np.zeros(n_awards)]) for t in _STARTS]
    # Eq. 15 can have several valleys: every start goes down before the best is chosen
    if loss == "brier":
        starts = [_descend(one, few, n_groups, loss) for one in starts]
    start = min(starts, key=lambda p: _objective(p, few, n_groups, loss)[0])
    if loss != "brier" and len(few.best) < len(rows.best):
        start = _descend(start, few, n_groups, loss)
    end = _descend(start, rows, n_groups, loss)
    if _objective(end, rows, n_groups, loss)[0] > _objective(nothing, rows, n_groups, loss)[0]:
        end = nothing
    return float(np.exp(end[0])), end[1:] if awards else np.zeros(n_groups)


def _descend(start: FloatArray, rows: _Rows, n_groups: int, loss: str) -> FloatArray:
    bounds = [(np.log(LOWEST), np.log(HIGHEST))]
    bounds += [(-_LARGEST_AWARD, _LARGEST_AWARD)] * (len(start) - 1)
    result = minimize(
        _objective,
        start,
        args=(rows, n_groups, loss),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-13, "gtol": 1e-7, "maxiter": 500},
    )
    end: FloatArray = result.x
    return end
