"""Normal and log-normal predictive distributions."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions._parametric import Parametric, above, refuse

LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)
LARGEST_LOG = 700.0


class Normal(Parametric):
    """A normal distribution a row.

    Parameters
    ----------
    mean, std : scalar or (n,) array
        ``std`` is positive.

    Raises
    ------
    InputError
        Where a parameter is not finite or ``std`` is not positive: named with its row.

    Examples
    --------
    >>> Normal([0.0, 5.0], [1.0, 2.0]).std().tolist()
    [1.0, 2.0]
    """

    family: ClassVar[str] = "normal"
    parameters: ClassVar[tuple[str, ...]] = ("mean", "std")

    def __init__(self, mean: ArrayLike, std: ArrayLike) -> None:
        self._keep(mean=mean, std=std)
        above(self._values["std"], "std")

    def sample(self, m: int, seed: int) -> FloatArray:
        drawn = np.random.default_rng(seed).standard_normal((len(self), m))
        return self._column("mean") + self._column("std") * drawn

    def _z(self, y: FloatArray) -> FloatArray:
        return (y - self._column("mean")) / self._column("std")

    def _cdf(self, y: FloatArray) -> FloatArray:
        return ndtr(self._z(y))

    def _ppf(self, p: FloatArray) -> FloatArray:
        return self._column("mean") + self._column("std") * ndtri(p)

    def _log_density(self, y: FloatArray) -> FloatArray:
        log_density: FloatArray = log_normal_density(self._z(y)) - np.log(self._column("std"))
        return log_density

    def _crps(self, y: FloatArray) -> FloatArray:
        z = self._z(y)
        spread = 2 * np.exp(log_normal_density(z)) - 1 / np.sqrt(np.pi)
        crps: FloatArray = self._column("std") * (z * (2 * ndtr(z) - 1) + spread)
        return crps

    def _mean(self) -> FloatArray:
        return self._values["mean"]

    def _std(self) -> FloatArray:
        return self._values["std"]


class LogNormal(Parametric):
    """A log-normal distribution a row: the logarithm of y is normal.

    Parameters
    ----------
    mean, std : scalar or (n,) array
        Mean and standard deviation of log y; ``std`` is positive.

    Raises
    ------
    InputError
        Where a parameter is not finite, ``std`` is not positive, or the moments of y would be
        larger than a computer holds: named with its row.

    Examples
    --------
    >>> LogNormal(0.0, 1.0).ppf(0.5).tolist()
    [1.0]
    """

    family: ClassVar[str] = "lognormal"
    parameters: ClassVar[tuple[str, ...]] = ("mean", "std")

    def __init__(self, mean: ArrayLike, std: ArrayLike) -> None:
        self._keep(mean=mean, std=std)
        mean, std = self._values["mean"], self._values["std"]
        above(std, "std of log y")
        with np.errstate(over="ignore"):
            too_large = mean + std**2 > LARGEST_LOG
        refuse(too_large, mean, "mean of log y", f"below {LARGEST_LOG:g} less the variance")

    def sample(self, m: int, seed: int) -> FloatArray:
        return np.exp(Normal(**self._values).sample(m, seed))

    def _z(self, y: FloatArray) -> FloatArray:
        # outside the support all is as at zero
        return (np.log(np.maximum(y, 0)) - self._column("mean")) / self._column("std")

    def _cdf(self, y: FloatArray) -> FloatArray:
        return ndtr(self._z(y))

    def _ppf(self, p: FloatArray) -> FloatArray:
        return np.exp(self._column("mean") + self._column("std") * ndtri(p))

    def _log_density(self, y: FloatArray) -> FloatArray:
        inside = (y > 0) & np.isfinite(y)
        safe = np.where(inside, y, 1.0)
        log_density = log_normal_density(self._z(safe)) - np.log(self._column("std"))
        return np.where(inside, log_density - np.log(safe), -np.inf)

    def _crps(self, y: FloatArray) -> FloatArray:
        z, std = self._z(y), self._column("std")
        mean = np.exp(self._column("mean") + std**2 / 2)
        # by the small tails: a wide distribution's mean times a rounding error is no small number
        share_above = ndtr(-std / np.sqrt(2)) - ndtr(z - std)
        crps: FloatArray = y * (2 * ndtr(z) - 1) + 2 * mean * share_above
        return crps

    def _mean(self) -> FloatArray:
        return np.exp(self._values["mean"] + self._values["std"] ** 2 / 2)

    def _std(self) -> FloatArray:
        variance = self._values["std"] ** 2
        # log of sqrt(exp(v) - 1), whose exp(v) alone may be too large
        log_ratio = variance / 2 + 0.5 * np.log(-np.expm1(-variance))
        std: FloatArray = np.exp(self._values["mean"] + variance / 2 + log_ratio)
        return std


def log_normal_density(z: FloatArray) -> FloatArray:
    """Log density of the standard normal."""
    log_density: FloatArray = -0.5 * z**2 - LOG_ROOT_TWO_PI
    return log_density
