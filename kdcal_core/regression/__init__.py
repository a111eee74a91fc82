"""Global and local recalibration of predictive distributions.

Methods, sections and equations are those of Torres et al., *Model-Free Local Recalibration of
Neural Networks*, https://arxiv.org/abs/2403.05756, unless another paper is named.
"""

from __future__ import annotations

from kdcal_core.distributions import (
    FAMILIES,
    Empirical,
    Family,
    FamilySpec,
    Gamma,
    LogNormal,
    Mapped,
    Normal,
    PredictiveDistribution,
    Quantiles,
    RegressionSet,
    StudentT,
    Weighted,
    distribution_of,
    from_arrays,
    load_distribution,
    randomised_pit,
    save_distribution,
    spread_of,
)
from kdcal_core.distributions.wrapped import Concatenated, concatenate
from kdcal_core.offers import import_modules
from kdcal_core.regression.choice_of_neighbours import (
    NeighbourSelection,
    cross_fitted,
    numbers_to_try,
    select_neighbours,
)
from kdcal_core.regression.density import DensityRecalibration
from kdcal_core.regression.global_recalibration import GlobalRecalibration, IsotonicRecalibration
from kdcal_core.regression.local import LocalRecalibration, NeighbourRegression
from kdcal_core.regression.local_test import (
    LocalUniformity,
    Neighbourhoods,
    WhereNeeded,
    local_uniformity,
)
from kdcal_core.regression.neighbour_search import Neighbours, NeighbourSearch
from kdcal_core.regression.pooled import PooledRecalibration
from kdcal_core.regression.quantile_boosting import QuantileBoosting
from kdcal_core.regression.recalibrated import Recalibrated, SmoothedRecalibrated
from kdcal_core.regression.recalibrator_file import (
    LoadedRecalibrator,
    RecalibratorCard,
    load_recalibrator,
    recalibrator_card,
    save_recalibrator,
)
from kdcal_core.regression.recalibrators import (
    RECALIBRATORS,
    Recalibrator,
    RecalibratorSpec,
    StoredRecalibrator,
)
from kdcal_core.regression.recommended import (
    SIMPLEST_FIRST,
    RecommendedRecalibration,
    repair_words,
    simplest_repair,
)
from kdcal_core.regression.spaces import SpaceOfRows

import_modules(__path__, __name__)

__all__ = [
    "FAMILIES",
    "RECALIBRATORS",
    "SIMPLEST_FIRST",
    "Concatenated",
    "DensityRecalibration",
    "Empirical",
    "Family",
    "FamilySpec",
    "Gamma",
    "GlobalRecalibration",
    "IsotonicRecalibration",
    "LoadedRecalibrator",
    "LocalRecalibration",
    "LocalUniformity",
    "LogNormal",
    "Mapped",
    "NeighbourRegression",
    "NeighbourSearch",
    "NeighbourSelection",
    "Neighbourhoods",
    "Neighbours",
    "Normal",
    "PooledRecalibration",
    "PredictiveDistribution",
    "QuantileBoosting",
    "Quantiles",
    "Recalibrated",
    "Recalibrator",
    "RecalibratorCard",
    "RecalibratorSpec",
    "RecommendedRecalibration",
    "RegressionSet",
    "SmoothedRecalibrated",
    "SpaceOfRows",
    "StoredRecalibrator",
    "StudentT",
    "Weighted",
    "WhereNeeded",
    "concatenate",
    "cross_fitted",
    "distribution_of",
    "from_arrays",
    "load_distribution",
    "load_recalibrator",
    "local_uniformity",
    "numbers_to_try",
    "randomised_pit",
    "recalibrator_card",
    "repair_words",
    "save_distribution",
    "save_recalibrator",
    "select_neighbours",
    "simplest_repair",
    "spread_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
