"""Weighted samples as predictive distribution: what recalibration gives (Torres et al., Alg. 1)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kdcal_core.data import FloatArray
from kdcal_core.distributions._rowwise import count_up_to, pick, rows_ascend
from kdcal_core.distributions.distribution import (
    PredictiveDistribution,
    Rows,
    checked_table,
    numbers_of,
)
from kdcal_core.distributions.parametric import LOG_ROOT_TWO_PI, refuse
from kdcal_core.errors import InputError

BELOW_ONE = 1 - 2.0**-53
SMALLEST = float(np.nextafter(0.0, 1.0))


class Weighted(PredictiveDistribution):
    """k weighted samples a row (Torres et al., Alg. 1, Eq. 3).

    Parameters
    ----------
    samples : (n, k) array
    weights : (n, k) or (k,) array
        Zero or positive, in any unit; some weight of every row is positive.

    Attributes
    ----------
    samples : (n, k)
        Ascending in every row.
    weights : (n, k), or (1, k) where all rows share them
        In the samples' order, scaled by a power of two.

    Raises
    ------
    InputError
        Where a sample or weight is not finite, a weight negative, or a row has no weight: named
        with its row.

    Notes
    -----
    The distribution function is the weighted ECDF. Its inverse is left-continuous, inf{y : F(y)
    >= p} (decision D79), so equal whole-number weights give exact order statistics. Samples
    without weight count for nothing, the ends of the support included. ``std`` is that of the
    ECDF itself (no n - 1).

    Samples have no density: ``log_density`` is that of a Gaussian kernel estimate with
    Silverman's bandwidth 0.9 min(std, IQR / 1.34) m^(-1/5), m being Kish's effective number of
    samples. Where all samples are equal it is infinite there and minus infinity elsewhere.

    Examples
    --------
    >>> repaired = Weighted([[1.0, 2.0, 4.0]], [0.25, 0.5, 0.25])
    >>> repaired.cdf(2.0).tolist(), repaired.cdf_left(2.0).tolist(), repaired.ppf(0.75).tolist()
    ([0.75], [0.25], [2.0])
    >>> repaired.mean().tolist(), repaired.crps(2.0).tolist()
    ([2.25], [0.1875])
    """

    family: ClassVar[str] = "weighted"
    samples: FloatArray
    weights: FloatArray

    def __init__(self, samples: ArrayLike, weights: ArrayLike) -> None:
        values = checked_table(samples, "sample")
        shares = numbers_of(weights, "Weights")
        if shares.ndim == 1:
            shares = shares[np.newaxis]
        if shares.shape not in {values.shape, (1, values.shape[1])}:
            raise InputError(
                f"Weights of shape {shares.shape} do not fit samples of shape {values.shape}",
                fix="Give one weight a sample.",
            )
        least, greatest = shares.min(axis=1), shares.max(axis=1)
        refuse(np.isnan(least) | (least < 0), least, "weight", "zero or positive")
        refuse((greatest == 0) | (greatest == np.inf), greatest, "greatest weight", "positive")
        # a power of two changes no digit, and no sum of weights can overflow after it
        _, exponent = np.frexp(greatest[:, np.newaxis])
        if exponent.any():
            shares = np.ldexp(shares, -exponent)
        if not rows_ascend(values):
            order = np.argsort(values, axis=1, kind="stable")
            values = np.take_along_axis(values, order, axis=1)
            shares = np.take_along_axis(np.broadcast_to(shares, values.shape), order, axis=1)
        self.samples, self.weights = values, shares

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.samples = self.samples[rows]
        chosen.weights = self.weights if len(self.weights) == 1 else self.weights[rows]
        return chosen

    @property
    def continuous(self) -> bool:
        return False

    @property
    def has_density(self) -> bool:
        return False

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"samples": self.samples, "weights": self.weights}

    def cumulative(self) -> FloatArray:
        """The distribution function at the samples, (n, k) or (1, k); exactly 1 from the last on.

        Examples
        --------
        >>> Weighted([[1.0, 2.0, 3.0]], [1, 1, 0]).cumulative().tolist()
        [[0.5, 1.0, 1.0]]
        """
        summed = np.cumsum(self.weights, axis=1)
        summed /= summed[:, -1:].copy()
        # a last sample of tiny weight stays the support's end though its share rounds to zero
        last = self.weights.shape[1] - 1 - np.argmax(self.weights[:, ::-1] > 0, axis=1)
        over = np.arange(self.weights.shape[1]) >= last[:, np.newaxis]
        return np.where(over, 1.0, np.minimum(summed, BELOW_ONE))

    def shares(self) -> FloatArray:
        """The weights of every row with sum 1, (n, k) or (1, k)."""
        shares: FloatArray = self.weights / self.weights.sum(axis=1, keepdims=True)
        return shares

    @property
    def _width(self) -> int:
        return int(self.samples.shape[1])

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._up_to(count_up_to(self.samples, y, "right"))

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        return self._up_to(count_up_to(self.samples, y, "left"))

    def _up_to(self, count: NDArray[np.int64]) -> FloatArray:
        return np.where(count == 0, 0.0, pick(self.cumulative(), np.maximum(count - 1, 0)))

    def _ppf(self, p: FloatArray) -> FloatArray:
        # level 0 asks for the first sample that has any weight
        place = count_up_to(self.cumulative(), np.maximum(p, SMALLEST), "left")
        return pick(self.samples, place)

    def _mean(self) -> FloatArray:
        mean: FloatArray = (self.shares() * self.samples).sum(axis=1)
        return mean

    def _std(self) -> FloatArray:
        # about the heaviest sample, so that equal ones have no spread of rounding
        heaviest = pick(self.samples, self.weights.argmax(axis=1)[:, np.newaxis])
        shares, around = self.shares(), self.samples - heaviest
        away = around - (shares * around).sum(axis=1, keepdims=True)
        std: FloatArray = np.sqrt((shares * away**2).sum(axis=1))
        return std

    def _crps(self, y: FloatArray) -> FloatArray:
        to_outcome = (self.shares() * np.abs(self.samples - y)).sum(axis=1)
        below = self.cumulative()[:, :-1]
        # half the mean distance of two draws: every gap counts for the pairs on its two sides
        between = (np.diff(self.samples, axis=1) * below * (1 - below)).sum(axis=1)
        crps: FloatArray = (to_outcome - between)[:, np.newaxis]
        return crps

    def _log_density(self, y: FloatArray) -> FloatArray:
        width = self._bandwidth()[:, np.newaxis]
        log_share = np.log(self.shares())
        spread = width[:, 0] > 0
        safe = np.where(width > 0, width, 1.0)
        answer = np.empty((len(self), y.shape[1]))
        for column, at in enumerate(y.T):  # a loop over arguments: (rows, k) at a time
            away = self.samples - at[:, np.newaxis]
            terms = log_share - 0.5 * (away / safe) ** 2
            largest = terms.max(axis=1)
            finite = np.where(np.isfinite(largest), largest, 0.0)
            total = np.log(np.exp(terms - finite[:, np.newaxis]).sum(axis=1)) + finite
            smooth = total - LOG_ROOT_TWO_PI - np.log(safe[:, 0])
            point = np.where((away == 0).any(axis=1), np.inf, -np.inf)
            answer[:, column] = np.where(spread, smooth, point)
        return answer

    def _bandwidth(self) -> FloatArray:
        low, high = self._ppf(np.array([[0.25, 0.75]])).T
        std, robust = self._std(), (high - low) / 1.34
        effective = 1 / (self.shares() ** 2).sum(axis=1)
        spread = np.where(robust > 0, np.minimum(std, robust), std)
        width: FloatArray = 0.9 * spread * effective**-0.2
        return width
