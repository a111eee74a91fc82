"""Student's t as predictive distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import poch, stdtr, stdtrit

from kdcal_core.data.types import FloatArray
from kdcal_core.distributions._parametric import Parametric, above

SMALLEST_LEVEL = 1e-100


class StudentT(Parametric):
    """A Student t distribution a row, moved to its mean and stretched by its scale.

    Parameters
    ----------
    mean, scale, df : scalar or (n,) array
        ``scale`` is positive; ``df`` greater than 1, because at 1 and below there is no mean.

    Raises
    ------
    InputError
        Where a parameter is not finite or too small: named with its row.

    Notes
    -----
    With two degrees of freedom or fewer the standard deviation is infinite. The CRPS is the
    closed form of Jordan, Krueger and Lerch (2019), appendix A.

    Examples
    --------
    >>> StudentT(mean=0.0, scale=1.0, df=4.0).std().round(4).tolist()
    [1.4142]
    """

    family: ClassVar[str] = "student_t"
    parameters: ClassVar[tuple[str, ...]] = ("mean", "scale", "df")

    def __init__(self, mean: ArrayLike, scale: ArrayLike, df: ArrayLike) -> None:
        self._keep(mean=mean, scale=scale, df=df)
        above(self._values["scale"], "scale")
        above(self._values["df"], "df", 1.0)

    def sample(self, m: int, seed: int) -> FloatArray:
        drawn = np.random.default_rng(seed).standard_t(self._column("df"), (len(self), m))
        return self._column("mean") + self._column("scale") * drawn

    def _z(self, y: FloatArray) -> FloatArray:
        return (y - self._column("mean")) / self._column("scale")

    def _cdf(self, y: FloatArray) -> FloatArray:
        return stdtr(self._column("df"), self._z(y))

    def _ppf(self, p: FloatArray) -> FloatArray:
        # scipy's inverse answers plus infinity at level 0 and at some of the least ones
        standard = stdtrit(self._common("df"), np.maximum(p, SMALLEST_LEVEL))
        ends = np.where(p == 0, -np.inf, standard)
        answer: FloatArray = self._column("mean") + self._column("scale") * ends
        return answer

    def _log_density(self, y: FloatArray) -> FloatArray:
        log_density: FloatArray = log_t_density(self._z(y), self._column("df"))
        return log_density - np.log(self._column("scale"))

    def _crps(self, y: FloatArray) -> FloatArray:
        df, z = self._column("df"), self._z(y)
        spread = 2 * np.exp(log_t_density(z, df)) * (df + z**2) / (df - 1)
        # beta(1/2, df - 1/2) / beta(1/2, df / 2)^2, by ratios of gamma functions half a step apart
        betas = poch(df / 2, 0.5) ** 2 / (np.sqrt(np.pi) * poch(df - 0.5, 0.5))
        between = 2 * np.sqrt(df) / (df - 1) * betas
        crps: FloatArray = self._column("scale") * (z * (2 * stdtr(df, z) - 1) + spread - between)
        return crps

    def _mean(self) -> FloatArray:
        return self._values["mean"]

    def _std(self) -> FloatArray:
        df, scale = self._values["df"], self._values["scale"]
        inflation = np.where(df > 2, df / np.where(df > 2, df - 2, 1.0), np.inf)
        std: FloatArray = scale * np.sqrt(inflation)
        return std


def log_t_density(z: FloatArray, df: FloatArray) -> FloatArray:
    """Log density of the standard t distribution.

    Examples
    --------
    >>> float(np.exp(log_t_density(np.array(0.0), np.array(1e12))).round(6))  # a normal by then
    0.398942
    """
    log_norm: FloatArray = np.log(poch(df / 2, 0.5)) - 0.5 * np.log(df * np.pi)
    return log_norm - (df + 1) / 2 * np.log1p(z**2 / df)
