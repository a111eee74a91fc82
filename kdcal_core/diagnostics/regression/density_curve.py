"""The density of one row's predictive distribution, ready to plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.distributions import PredictiveDistribution

SMOOTH_FAMILIES = ("normal", "lognormal", "gamma", "student_t")
Who = Literal["model", "calibrated"]
_POINTS = 240
_QUANTILES = 400
_TAIL = 5e-4  # probability left out on either side


@dataclass(frozen=True, eq=False)
class DensityCurve:
    """A predictive density to plot.

    Attributes
    ----------
    who : {"model", "calibrated"}
    y, density : (g,)
    low, high : float
        Ends of the central 95% interval.
    pit : float
        PIT value of the outcome.
    smoothed : bool
        Whether the density is smoothed from quantiles, because the distribution has none.
    """

    who: Who
    y: FloatArray
    density: FloatArray
    low: float
    high: float
    pit: float
    smoothed: bool


def density_curve(
    distribution: PredictiveDistribution, outcome: float, who: Who = "model"
) -> DensityCurve:
    """The density of a distribution of one row, ready to plot.

    Samples, weighted samples and quantiles have no density. They get a Gaussian kernel density of
    400 equally likely quantiles, with Silverman's bandwidth.

    Parameters
    ----------
    distribution : PredictiveDistribution
        A distribution of exactly one row.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> curve = density_curve(Normal(np.zeros(1), np.ones(1)), 1.0)
    >>> round(float(curve.density.max()), 3), curve.smoothed, round(curve.pit, 3)
    (0.399, False, 0.841)
    """
    low, high = (float(end[0]) for end in distribution.interval(0.95))
    pit = float(distribution.cdf(outcome)[0])
    if distribution.family in SMOOTH_FAMILIES:
        ends = distribution.ppf(np.array([[_TAIL, 1.0 - _TAIL]]))[0]
        y = np.linspace(ends[0], ends[1], _POINTS)
        density = np.exp(distribution.log_density(y[None, :])[0])
        return DensityCurve(who, y, density, low, high, pit, smoothed=False)
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    y, density = _smoothed(distribution.ppf(levels[None, :])[0])
    return DensityCurve(who, y, density, low, high, pit, smoothed=True)


def _smoothed(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gaussian kernel density of equally likely values; a spike if all values are equal."""
    quartiles = np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.349
    spread = min(part for part in (float(values.std()), float(quartiles), np.inf) if part > 0)
    if not np.isfinite(spread):
        spread = max(abs(float(values[0])), 1.0) * 1e-3
    bandwidth = 0.9 * spread * values.size**-0.2
    y = np.linspace(values[0] - 3.0 * bandwidth, values[-1] + 3.0 * bandwidth, _POINTS)
    scaled = (y[:, None] - values[None, :]) / bandwidth
    density = np.exp(-0.5 * scaled**2).mean(axis=1) / (bandwidth * np.sqrt(2.0 * np.pi))
    return y, density
