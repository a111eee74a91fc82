"""Diagnostics of predictive distributions: PIT values, coverage, scores, faulty regions."""

from __future__ import annotations

from kdcal_core.diagnostics.regression.coverage import (
    Coverage,
    CoverageRow,
    coverage,
    coverage_finding,
    interval_coverage,
    mean_scale,
)
from kdcal_core.diagnostics.regression.distribution_scores import (
    RegressionScores,
    climatology_crps,
    kl_divergence,
    log_scores,
    paired_difference,
    ratio_estimate,
    scaled_interval_scores,
    squared_errors,
    standardised_bias,
)
from kdcal_core.diagnostics.regression.fault import Fault, FaultKind, fault
from kdcal_core.diagnostics.regression.label_free_forecasts import (
    NOT_GIVEN,
    ForecastMeasures,
    LabelFreeForecasts,
    expected_crps,
    forecast_measures,
    interval_widths,
    label_free_forecasts,
    width_level,
)
from kdcal_core.diagnostics.regression.local_faults import (
    OPPOSITE_FAULTS,
    RegionPit,
    column_regions,
    crossed_groups,
    local_finding,
    pit_by_column,
    pit_by_region,
    regions_finding,
    regression_findings,
)
from kdcal_core.diagnostics.regression.local_pit import LocalPit, local_pit, neighbourhoods
from kdcal_core.diagnostics.regression.pit_curves import (
    BandKind,
    EcdfDifference,
    PitHistogram,
    QuantileReliability,
    ecdf_difference,
    pit_histogram,
    quantile_reliability,
)
from kdcal_core.diagnostics.regression.uniformity import (
    UniformityTest,
    kolmogorov_smirnov,
    quantile_calibration_error,
    uniformity_tests,
    wasserstein,
)

__all__ = [
    "NOT_GIVEN",
    "OPPOSITE_FAULTS",
    "BandKind",
    "Coverage",
    "CoverageRow",
    "EcdfDifference",
    "Fault",
    "FaultKind",
    "ForecastMeasures",
    "LabelFreeForecasts",
    "LocalPit",
    "PitHistogram",
    "QuantileReliability",
    "RegionPit",
    "RegressionScores",
    "UniformityTest",
    "climatology_crps",
    "column_regions",
    "coverage",
    "coverage_finding",
    "crossed_groups",
    "ecdf_difference",
    "expected_crps",
    "fault",
    "forecast_measures",
    "interval_coverage",
    "interval_widths",
    "kl_divergence",
    "kolmogorov_smirnov",
    "label_free_forecasts",
    "local_finding",
    "local_pit",
    "log_scores",
    "mean_scale",
    "neighbourhoods",
    "paired_difference",
    "pit_by_column",
    "pit_by_region",
    "pit_histogram",
    "quantile_calibration_error",
    "quantile_reliability",
    "ratio_estimate",
    "regions_finding",
    "regression_findings",
    "scaled_interval_scores",
    "squared_errors",
    "standardised_bias",
    "uniformity_tests",
    "wasserstein",
    "width_level",
]


def __dir__() -> list[str]:
    return sorted(__all__)
