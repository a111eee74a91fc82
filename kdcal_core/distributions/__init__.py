"""Predictive distributions over many rows at once, behind one protocol.

Simulations, models, reviews and recalibration all use them. Torres et al., section 2, write F^ for
a row's predictive distribution function.
"""

from kdcal_core.data import Family
from kdcal_core.distributions.distribution import (
    PredictiveDistribution,
    RegressionSet,
    central_intervals,
    central_levels,
    even,
    moments,
    randomised_pit,
)
from kdcal_core.distributions.families import (
    FAMILIES,
    FamilySpec,
    cross_fitted_spread,
    distribution_of,
    from_arrays,
    load_distribution,
    save_distribution,
    spread_of,
)
from kdcal_core.distributions.parametric import Gamma, LogNormal, Normal, StudentT
from kdcal_core.distributions.sampled import (
    Empirical,
    Quantiles,
    Weighted,
    drawn_note,
    resolution_note,
)
from kdcal_core.distributions.wrapped import Concatenated, Mapped, concatenate

__all__ = [
    "FAMILIES",
    "Concatenated",
    "Empirical",
    "Family",
    "FamilySpec",
    "Gamma",
    "LogNormal",
    "Mapped",
    "Normal",
    "PredictiveDistribution",
    "Quantiles",
    "RegressionSet",
    "StudentT",
    "Weighted",
    "central_intervals",
    "central_levels",
    "concatenate",
    "cross_fitted_spread",
    "distribution_of",
    "drawn_note",
    "even",
    "from_arrays",
    "load_distribution",
    "moments",
    "randomised_pit",
    "resolution_note",
    "save_distribution",
    "spread_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
