"""Fits of temperatures: the best for some rows, and one that is safe where rows are few."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit

from kdcal_core.calibration.calibrator_base import log_proba, softmax_in_place, top_label
from kdcal_core.data import FloatArray, IntArray

LOWEST, HIGHEST = 0.05, 20.0
# Awards are fitted as A / T; thirty means a confidence of 1 - 1e-13.
LARGEST_AWARD = 30.0
_STARTS = (0.3, 0.6, 1.0, 1.6, 3.0)
_LOOKED_AT = np.geomspace(LOWEST, HIGHEST, 17)
_SUBSAMPLE = 20_000
_BLOCK = 8192
# Replaces minus infinity in the predicted class's own column, because 0 * x stays finite.
_ABSENT = -1e5

# The prior around T = 1: the number of rows with outcomes exactly as the model states.
_PRIOR_ROWS = 5.0
_MOST_PRIOR_ROWS = 2000
# A temperature with at most this much more loss is as good as the best: one standard error.
_TOLERATED_NATS = 0.5
_MOST_CELLS = 2_000_000
_EXACT = 1e-10  # of log T


def tempered(proba: FloatArray, temperature: float) -> FloatArray:
    """softmax(log p / T) of every row, (n, K); with T = 1 the rows unchanged.

    Examples
    --------
    >>> tempered(np.array([[0.9, 0.1]]), 2.0).round(3).tolist()
    [[0.75, 0.25]]
    """
    if temperature == 1.0:
        return proba
    return softmax_in_place(log_proba(proba) / temperature)


def safe_temperature(
    proba: FloatArray,
    y: IntArray,
    weight: FloatArray,
    *,
    loss: str = "top-label",
    thinned: bool = True,
) -> float:
    """The temperature nearest to 1 that explains the rows nearly as well as the best one.

    The best one minimises the loss of the rows and of five more with outcomes exactly as the model
    states (a conjugate prior around T = 1). "Nearly as well" is a loss that is larger by at most
    half a nat, which is one standard error of log T. Few rows, or rows that a calibrated model
    could produce, thus leave the model unchanged.

    Parameters
    ----------
    proba : (n, K) array
    y : (n,) array of int
    weight : (n,) array
    loss : {"top-label", "brier", "full"}
        Squared errors are converted to nats by their mean at the best temperature.
    thinned : bool
        Whether to use an even subsample of the rows, at most 20,000 and two million entries.

    Notes
    -----
    On 23 tables, 40 draws of 100 rows each, the mean change of the top-label log loss is -0.082
    (at worst +0.036) for the best temperature and -0.084 (at worst +0.0013) for this one. With
    300 rows it is -0.088 for both, at worst +0.0022 and +0.0005.
    """
    stride = 1
    if thinned:
        stride = max(1, -(-len(y) // _SUBSAMPLE), -(-proba.size // _MOST_CELLS))
    rows = proba[::stride], y[::stride], weight[::stride]
    key = blake2b(loss.encode())
    for array in rows:
        key.update(f"{array.shape}{array.dtype}".encode())
        key.update(np.ascontiguousarray(array).data)
    found = _KNOWN.get(key.digest())
    if found is None:
        found = _safe_temperature(*rows, loss)
        for oldest in list(_KNOWN)[: 1 - _MOST_KNOWN]:
            _KNOWN.pop(oldest, None)
        _KNOWN[key.digest()] = found
    return found


# All methods that are compared shrink towards the same temperatures, those of the same folds. Not a
# `Once`: a process forked while another thread computes would wait for ever.
_KNOWN: dict[bytes, float] = {}
_MOST_KNOWN = 128


def _safe_temperature(proba: FloatArray, y: IntArray, weight: FloatArray, loss: str) -> float:
    predicted, _ = top_label(proba)
    rows = TemperatureRows.of(proba, y, predicted, weight).with_prior(proba, _PRIOR_ROWS)
    best, _ = best_temperature(rows, 1, False, loss)
    at_best = _objective(np.array([np.log(best)]), rows, 1, loss)[0]
    in_nats = float(rows.weight.sum()) / (2 * at_best if loss == "brier" and at_best > 0 else 1.0)

    def beyond(log_temperature: float) -> float:
        value = _objective(np.array([log_temperature]), rows, 1, loss)[0]
        return (value - at_best) * in_nats - _TOLERATED_NATS

    if beyond(0.0) <= 0:
        return 1.0
    return float(np.exp(brentq(beyond, np.log(best), 0.0, xtol=1e-4)))


@dataclass(frozen=True, eq=False)
class TemperatureRows:
    """The rows of one fit as log odds against the predicted class.

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
    def of(
        cls, proba: FloatArray, y: IntArray, predicted: IntArray, weight: FloatArray
    ) -> TemperatureRows:
        rows = np.arange(len(proba))
        others = log_proba(proba)
        others -= others[rows, predicted][:, None]
        truth = others[rows, y]
        others[rows, predicted] = _ABSENT
        best = others.max(axis=1)
        others -= best[:, None]
        correct = (predicted == y).astype(np.float64)
        return cls(others, best, truth, correct, weight, predicted)

    def with_prior(self, proba: FloatArray, n_rows: float) -> TemperatureRows:
        """These rows plus further rows, spread over them, with outcomes exactly as in ``proba``.

        All rows belong to group 0.
        """
        few = slice(None, None, -(-len(proba) // _MOST_PRIOR_ROWS))
        proba, some = proba[few], self.take(few, group=0)
        predicted, score = top_label(proba)
        others = proba.copy()
        others[np.arange(len(proba)), predicted] = 0.0
        rest = others.sum(axis=1)
        logs = log_proba(proba)
        away = logs - logs[np.arange(len(proba)), predicted][:, None]
        mean = np.einsum("ij,ij->i", others, away) / np.where(rest > 0, rest, 1.0)
        weight = n_rows * some.weight / some.weight.sum()
        nothing = np.zeros_like(score)

        def joined(*parts: FloatArray) -> FloatArray:
            return np.concatenate(parts)

        return TemperatureRows(
            joined(self.others, some.others, some.others),
            joined(self.best, some.best, some.best),
            joined(self.truth, nothing, mean),
            joined(self.correct, nothing + 1.0, nothing),
            joined(self.weight, weight * score, weight * rest),
            np.zeros(len(self.best) + 2 * len(some.best), dtype=self.group.dtype),
        )

    def take(self, rows: IntArray | slice, group: int | None = None) -> TemperatureRows:
        picked = self.group[rows]
        return TemperatureRows(
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
        if self.others.shape[1] == 2:  # one other class: nothing to sum
            return self.best / temperature, -self.best / temperature
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
    parameters: FloatArray, rows: TemperatureRows, n_groups: int, loss: str, valued: bool = True
) -> tuple[float, FloatArray]:
    """Mean loss and its gradient at (log T, or log T and A / T of each group).

    The loss is NaN unless ``valued``, because its logarithms take longer than the gradient.
    """
    temperature = float(np.exp(parameters[0]))
    rest, rest_slope = rows.rest(temperature)
    awards = parameters[1:]
    odds = (awards[rows.group] if len(awards) else 0.0) - rest
    share = rows.weight / rows.weight.sum()
    if loss == "brier":
        confidence = expit(odds)
        error = confidence - rows.correct
        value = _dot(share, error**2)
        by_odds = share * 2 * error * confidence * (1 - confidence)
    else:
        value = np.nan
        if valued:
            value = _dot(share, _softplus(np.where(rows.correct > 0, -odds, odds)))
        by_odds = share * (expit(odds) - rows.correct)
    by_log_temperature = -_dot(by_odds, rest_slope)
    if loss == "full":
        wrong = share * (1 - rows.correct)
        value += _dot(wrong, rest - rows.truth / temperature)
        by_log_temperature += _dot(wrong, rest_slope + rows.truth / temperature)
    gradient = np.empty_like(parameters)
    gradient[0] = by_log_temperature
    if len(awards):
        gradient[1:] = np.bincount(rows.group, weights=by_odds, minlength=n_groups)
    return value, gradient


def _dot(one: FloatArray, other: FloatArray) -> float:
    """Sum of products in this thread, because BLAS threads wait long for each other."""
    return float(np.einsum("i,i->", one, other))


def _softplus(x: FloatArray) -> FloatArray:
    """log(1 + exp(x)); numpy's logaddexp takes ten times as long."""
    found: FloatArray = np.log1p(np.exp(-np.abs(x)))
    found += np.maximum(x, 0.0)
    return found


def best_temperature(
    rows: TemperatureRows, n_groups: int, awards: bool, loss: str
) -> tuple[float, FloatArray]:
    """Temperature and A / T of each group that minimise the loss."""
    few = rows.take(slice(None, None, max(1, len(rows.best) // _SUBSAMPLE)))
    if not awards:
        return _best_alone(rows, few, loss), np.zeros(n_groups)
    nothing = np.zeros(1 + n_groups)
    starts = [np.concatenate([[np.log(t)], np.zeros(n_groups)]) for t in _STARTS]
    # Eq. 15 can have several valleys: descend from every start, then choose the best
    if loss == "brier":
        starts = [_descend(one, few, n_groups, loss) for one in starts]
    start = min(starts, key=lambda p: _objective(p, few, n_groups, loss)[0])
    if loss != "brier" and len(few.best) < len(rows.best):
        start = _descend(start, few, n_groups, loss)
    end = _descend(start, rows, n_groups, loss)
    if _objective(end, rows, n_groups, loss)[0] > _objective(nothing, rows, n_groups, loss)[0]:
        end = nothing
    return float(np.exp(end[0])), end[1:]


def _best_alone(rows: TemperatureRows, few: TemperatureRows, loss: str) -> float:
    """The temperature of the lowest valley, a root of the slope found without a general solver.

    Valleys are searched on the rows ``few``, between neighbours of ``_LOOKED_AT``, because the
    Brier loss may have several.
    """

    def at(log_temperature: float, of: TemperatureRows) -> float:
        return _objective(np.array([log_temperature]), of, 1, loss)[0]

    def slope(log_temperature: float, of: TemperatureRows) -> float:
        return float(_objective(np.array([log_temperature]), of, 1, loss, valued=False)[1][0])

    grid = np.log(_LOOKED_AT)
    slopes = [slope(one, few) for one in grid]
    ends = [grid[0]] if slopes[0] >= 0 else []
    ends += [grid[-1]] if slopes[-1] <= 0 else []
    for left, right, down, up in zip(grid[:-1], grid[1:], slopes[:-1], slopes[1:], strict=True):
        if down < 0 <= up:  # often exactly 0 with few or equal rows
            ends.append(brentq(slope, left, right, args=(few,), xtol=_EXACT))
    end = min(ends, key=lambda one: at(one, few))
    if len(few.best) < len(rows.best):
        end = _nearest_valley(lambda one: slope(one, rows), end, grid[0], grid[-1])
    if at(end, rows) >= at(0.0, rows):  # equally good, as with uniform rows
        end = 0.0
    return float(np.exp(end))


def _nearest_valley(
    slope: Callable[[float], float], start: float, lowest: float, highest: float
) -> float:
    """The zero of the slope downhill from the start, or the bound that is reached before."""
    step = 0.01
    here = slope(start)
    while here != 0:
        downhill = np.clip(start - np.sign(here) * step, lowest, highest)
        there = slope(downhill)
        if there * here <= 0:
            return float(brentq(slope, start, downhill, xtol=_EXACT))
        if downhill in (lowest, highest):
            return float(downhill)
        start, here, step = downhill, there, 2 * step
    return start


def _descend(start: FloatArray, rows: TemperatureRows, n_groups: int, loss: str) -> FloatArray:
    bounds = [(np.log(LOWEST), np.log(HIGHEST))]
    bounds += [(-LARGEST_AWARD, LARGEST_AWARD)] * (len(start) - 1)
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
