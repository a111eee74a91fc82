"""Recalibrated distributions: the base's quantiles at the PIT values of neighbours."""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from kdcal_core.data.schema import FloatArray
from kdcal_core.distributions import PredictiveDistribution, Weighted
from kdcal_core.distributions._piecewise import count_up_to, pick
from kdcal_core.distributions.distribution import Rows
from kdcal_core.distributions.sampled import SMALLEST
from kdcal_core.regression.base import PIT_EDGE

STRIP = 2.0**-8
"""Width on the probit scale within which many shared PIT values count as one."""
MANY = 2**13


class Recalibrated(Weighted):
    """Weighted samples y~_i = F^_j^-1(p_i), one for each neighbour's PIT value p_i.

    Torres et al., Algorithm 1 and Eq. 3. The samples are computed only on request:
    distribution function and quantiles need only the weighted PIT values, since
    F~_j(y) = sum of the weights of p_i <= F^_j(y).

    Parameters
    ----------
    base : PredictiveDistribution
        F^_j of n rows.
    pits : (n, k) array, or (1, k) where all rows share them
        In [0, 1]; kept within 1e-16 of the open interval, so that samples are finite.
    weights : array of the same shape
        Zero or positive; every row has at least one positive weight.

    Attributes
    ----------
    base : PredictiveDistribution
    pits, weights : (n, k) or (1, k)
        In ascending order of the PIT values.

    Notes
    -----
    ``arrays()`` are those of :class:`Weighted`: the samples themselves and their weights.

    Where all rows share more than 8,192 PIT values and the base has no jumps, mean, standard
    deviation and CRPS are those of some 2,000 samples: PIT values within 1/256 of each other on
    the probit scale are drawn together. Measured with 100,000 shared PIT values: on normal,
    log-normal, gamma and Student t bases means are off by less than 1e-6 standard deviations, and
    standard deviations and CRPS by less than 1e-5 of themselves; on bases of 99 quantiles, whose
    quantile functions have kinks, by less than 2e-5.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> recalibrated = Recalibrated(Normal([0.0, 10.0], 1.0), [[0.5, 0.8413447]], [[1.0, 1.0]])
    >>> recalibrated.mean().round(3).tolist(), recalibrated.ppf(0.9).round(3).tolist()
    ([0.5, 10.5], [1.0, 11.0])
    """

    base: PredictiveDistribution
    pits: FloatArray

    def __init__(self, base: PredictiveDistribution, pits: object, weights: object) -> None:
        inside = np.clip(np.asarray(pits, dtype=np.float64), PIT_EDGE, 1 - PIT_EDGE)
        checked = Weighted(inside, np.asarray(weights, dtype=np.float64))
        self.base, self.pits, self.weights = base, checked.samples, checked.weights

    @property
    def samples(self) -> FloatArray:  # type: ignore[override]  # computed, not kept
        """y~_i of every row, (n, k), ascending."""
        return self._sampled().samples

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen.base = self.base[rows]
        chosen.pits = self.pits if len(self.pits) == 1 else self.pits[rows]
        if len(self.weights) == 1:
            # computed once, not for every block of rows
            chosen.weights, chosen.__dict__["_summed"] = self.weights, self._summed
        else:
            chosen.weights = self.weights[rows]
        return chosen

    def cumulative(self) -> FloatArray:
        """R at the PIT values, (n, k) or (1, k); see :meth:`Weighted.cumulative`."""
        return self._summed if len(self.weights) == 1 else super().cumulative()

    @cached_property
    def _summed(self) -> FloatArray:
        return super().cumulative()

    @property
    def _width(self) -> int:
        return int(self.pits.shape[1]) + self.base._width

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._up_to(count_up_to(self.pits, self.base._cdf(y), "right"))

    def _cdf_left(self, y: FloatArray) -> FloatArray:
        # y~_i < y: where F^ jumps at y, its inverse lies at y for all levels within the jump
        side: Literal["left", "right"] = "left" if self.base.continuous else "right"
        return self._up_to(count_up_to(self.pits, self.base._cdf_left(y), side))

    def _ppf(self, p: FloatArray) -> FloatArray:
        place = count_up_to(self.cumulative(), np.maximum(p, SMALLEST), "left")
        return self.base._ppf(pick(self.pits, place))

    def mean(self) -> FloatArray:
        return super(Recalibrated, self._condensed()).mean()

    def std(self) -> FloatArray:
        return super(Recalibrated, self._condensed()).std()

    def crps(self, y: ArrayLike) -> FloatArray:
        return super(Recalibrated, self._condensed()).crps(y)

    def _mean(self) -> FloatArray:
        return self._sampled()._mean()

    def _std(self) -> FloatArray:
        return self._sampled()._std()

    def _crps(self, y: FloatArray) -> FloatArray:
        return self._sampled()._crps(y)

    def _log_density(self, y: FloatArray) -> FloatArray:
        return self._sampled()._log_density(y)

    def _sampled(self) -> Weighted:
        drawn = object.__new__(Weighted)
        shape = (len(self), self.pits.shape[1])
        drawn.samples = np.broadcast_to(self.base._ppf(self.pits), shape)
        drawn.weights = self.weights
        return drawn

    def _condensed(self) -> Recalibrated:
        """A distribution of nearly the same moments with few samples, if all rows share many."""
        if len(self.pits) > 1 or self.pits.shape[1] <= MANY or not self.base.continuous:
            return self
        probit = ndtri(self.pits[0])
        _, strip = np.unique(np.floor(probit / STRIP), return_inverse=True)
        weights = np.bincount(strip, self.weights[0]).astype(np.float64)
        centre = np.bincount(strip, self.weights[0] * probit) / np.where(weights > 0, weights, 1.0)
        few, kept = object.__new__(Recalibrated), weights > 0
        few.base, few.pits, few.weights = self.base, ndtr(centre[kept])[None], weights[kept][None]
        return few
