"""Gamma predictive distributions."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc, gammaincinv, gammaln, poch, xlogy

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions._parametric import Parametric, above

_MANY = 10_000


class Gamma(Parametric):
    """A gamma distribution a row, of its shape and its mean; the scale is mean / shape.

    Parameters
    ----------
    shape, mean : scalar or (n,) array
        Both positive.

    Raises
    ------
    InputError
        Where a parameter is not finite or not positive: named with its row.

    Notes
    -----
    The CRPS is the closed form of Scheuerer and Moeller (2015), "Probabilistic wind speed
    forecasting on a grid", appendix A.

    Examples
    --------
    >>> Gamma(shape=100.0, mean=[1.0, 20.0]).std().tolist()
    [0.1, 2.0]
    """

    family: ClassVar[str] = "gamma"
    parameters: ClassVar[tuple[str, ...]] = ("shape", "mean")

    def __init__(self, shape: ArrayLike, mean: ArrayLike) -> None:
        self._keep(shape=shape, mean=mean)
        for name, values in self._values.items():
            above(values, name)

    def sample(self, m: int, seed: int) -> FloatArray:
        drawn = np.random.default_rng(seed).standard_gamma(self._column("shape"), (len(self), m))
        return self._scale() * drawn

    def _scale(self) -> FloatArray:
        return self._column("mean") / self._column("shape")

    def _relative(self, y: FloatArray) -> FloatArray:
        """y in scales; outside the support all is as at zero."""
        return np.maximum(y, 0) / self._scale()

    def _cdf(self, y: FloatArray) -> FloatArray:
        return gammainc(self._column("shape"), self._relative(y))

    def _ppf(self, p: FloatArray) -> FloatArray:
        return self._scale() * _quantiles(self._common("shape"), p)

    def _log_density(self, y: FloatArray) -> FloatArray:
        shape, at = self._column("shape"), self._relative(y)
        log_density = xlogy(shape - 1, at) - at - gammaln(shape) - np.log(self._scale())
        return np.where((y < 0) | np.isinf(y), -np.inf, log_density)

    def _crps(self, y: FloatArray) -> FloatArray:
        shape, mean, at = self._column("shape"), self._column("mean"), self._relative(y)
        below, mean_below = gammainc(shape, at), gammainc(shape + 1, at)
        # half the mean distance of two draws: scale / beta(1/2, shape)
        between = self._scale() * poch(shape, 0.5) / np.sqrt(np.pi)
        crps: FloatArray = y * (2 * below - 1) - mean * (2 * mean_below - 1) - between
        return crps

    def _mean(self) -> FloatArray:
        return self._values["mean"]

    def _std(self) -> FloatArray:
        return self._values["mean"] / np.sqrt(self._values["shape"])


def _quantiles(shape: FloatArray, p: FloatArray) -> FloatArray:
    """Quantiles of the scale 1. Under one shape each level is worked out once: recalibration asks
    for the same few thousand PIT values row after row."""
    if shape.size == 1 and p.size > _MANY:
        levels, places = np.unique(p, return_inverse=True)
        if levels.size < p.size / 2:
            found: FloatArray = gammaincinv(shape.reshape(1), levels)[places].reshape(p.shape)
            return found
    return np.asarray(gammaincinv(shape, p))
