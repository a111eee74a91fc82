"""Normal, log-normal, gamma and Student's t predictive distributions."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, gammaincinv, gammaln, ndtr, ndtri, poch, stdtr, stdtrit, xlogy

from kdcal_core.data import FloatArray
from kdcal_core.distributions.distribution import PredictiveDistribution, Rows, numbers_of
from kdcal_core.errors import InputError
from kdcal_core.text import formatted


class Parametric(PredictiveDistribution):
    """Distributions given by named parameters, with one value of each for every row."""

    parameters: ClassVar[tuple[str, ...]]
    _values: dict[str, FloatArray]

    def _keep(self, **given: ArrayLike) -> None:
        """Store the parameters after the checks common to all families: finite numbers, (n,)."""
        found = {name: finite_parameter(values, name) for name, values in given.items()}
        try:
            shape = np.broadcast_shapes((1,), *(values.shape for values in found.values()))
        except ValueError as error:
            lengths = ", ".join(f"{name} {len(v):,}" for name, v in found.items() if v.ndim)
            raise InputError(
                f"The parameters have different numbers of rows: {lengths}",
                fix="Give one value for each row, or a single value for all rows.",
            ) from error
        self._values = {name: np.broadcast_to(values, shape) for name, values in found.items()}

    def _column(self, name: str) -> FloatArray:
        return self._values[name][:, np.newaxis]

    def _common(self, name: str) -> FloatArray:
        """The parameter, as (1, 1) if all rows share it, so that costly functions run once."""
        column = self._column(name)
        return column[:1] if len(column) and (column == column[0]).all() else column

    def __len__(self) -> int:
        return len(self._values[self.parameters[0]])

    def __getitem__(self, rows: Rows) -> Self:
        chosen = object.__new__(type(self))
        chosen._values = {name: values[rows] for name, values in self._values.items()}
        return chosen

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        return {name: np.ascontiguousarray(self._values[name]) for name in self.parameters}


def finite_parameter(values: ArrayLike, name: str) -> FloatArray:
    """A parameter as float64, scalar or (n,).

    Raises
    ------
    InputError
        If it is not a number, not finite (the message names the row), or has more dimensions.
    """
    numbers = numbers_of(values, f"The values of {name}")
    if numbers.ndim > 1:
        raise InputError(
            f"The parameter {name} has {numbers.ndim} dimensions",
            fix="Give one value for each row.",
        )
    refuse(~np.isfinite(numbers), numbers, name, "a finite number")
    return numbers


def above(values: FloatArray, name: str, bound: float = 0.0) -> None:
    """Refuse a parameter that is not greater than ``bound`` in every row."""
    refuse(values <= bound, values, name, f"greater than {bound:g}")


def refuse(wrong: NDArray[np.bool_], values: FloatArray, name: str, wanted: str) -> None:
    """Raise an error that names the first row whose parameter is wrong."""
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"The parameter {name} is {formatted(np.ravel(values)[row], 'g')} and must be {wanted}",
            fix="Correct the prediction, or leave the row out.",
            row=row + 1 if values.ndim else None,
        )


LOG_ROOT_TWO_PI = 0.5 * np.log(2 * np.pi)
LARGEST_LOG = 700.0


class Normal(Parametric):
    """A normal distribution for each row.

    Parameters
    ----------
    mean, std : scalar or (n,) array
        ``std`` is positive.

    Raises
    ------
    InputError
        If a parameter is not finite or ``std`` is not positive; the message names the row.

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
    """A log-normal distribution for each row: the logarithm of y is normal.

    Parameters
    ----------
    mean, std : scalar or (n,) array
        Mean and standard deviation of log y; ``std`` is positive.

    Raises
    ------
    InputError
        If a parameter is not finite, ``std`` is not positive, or the moments of y would overflow;
        the message names the row.

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
        refuse(too_large, mean, "mean of log y", f"below {LARGEST_LOG:g} minus the variance")

    def sample(self, m: int, seed: int) -> FloatArray:
        return np.exp(Normal(**self._values).sample(m, seed))

    def _z(self, y: FloatArray) -> FloatArray:
        # values outside the support count as zero
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
        # from the small tails: a wide distribution's mean times a rounding error is not small
        share_above = ndtr(-std / np.sqrt(2)) - ndtr(z - std)
        crps: FloatArray = y * (2 * ndtr(z) - 1) + 2 * mean * share_above
        return crps

    def _mean(self) -> FloatArray:
        return np.exp(self._values["mean"] + self._values["std"] ** 2 / 2)

    def _std(self) -> FloatArray:
        variance = self._values["std"] ** 2
        # log of sqrt(exp(v) - 1), because exp(v) may overflow
        log_ratio = variance / 2 + 0.5 * np.log(-np.expm1(-variance))
        std: FloatArray = np.exp(self._values["mean"] + variance / 2 + log_ratio)
        return std


def log_normal_density(z: FloatArray) -> FloatArray:
    """Log density of the standard normal."""
    log_density: FloatArray = -0.5 * z**2 - LOG_ROOT_TWO_PI
    return log_density


_MANY = 10_000


class Gamma(Parametric):
    """A gamma distribution for each row, with shape and mean; the scale is mean / shape.

    Parameters
    ----------
    shape, mean : scalar or (n,) array
        Both positive.

    Raises
    ------
    InputError
        If a parameter is not finite or not positive; the message names the row.

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
        """y in units of the scale; values outside the support count as zero."""
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
    """Quantiles for scale 1.

    If all rows share a shape, each level is computed once, because recalibration uses the same few
    thousand PIT values for every row.
    """
    if shape.size == 1 and p.size > _MANY:
        levels, places = np.unique(p, return_inverse=True)
        if levels.size < p.size / 2:
            found: FloatArray = gammaincinv(shape.reshape(1), levels)[places].reshape(p.shape)
            return found
    return np.asarray(gammaincinv(shape, p))


SMALLEST_LEVEL = 1e-100


class StudentT(Parametric):
    """A Student t distribution for each row, with mean and scale.

    Parameters
    ----------
    mean, scale, df : scalar or (n,) array
        ``scale`` is positive. ``df`` is greater than 1, because otherwise there is no mean.

    Raises
    ------
    InputError
        If a parameter is not finite or too small; the message names the row.

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
        # scipy's inverse returns plus infinity at level 0 and at some of the smallest levels
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
