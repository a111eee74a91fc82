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
    scaled_interval_scores,
    squared_errors,
)
from kdcal_core.diagnostics.regression.fault import Fault, FaultKind, fault
from kdcal_core.diagnostics.regression.local_faults import (
    LocalPit,
    RegionPit,
    column_regions,
    crossed_groups,
    local_finding,
    local_pit,
    neighbourhoods,
    pit_by_column,
    pit_by_region,
    regions_finding,
    regression_findings,
)
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
    "BandKind",
    "Coverage",
    "CoverageRow",
    "EcdfDifference",
    "Fault",
    "FaultKind",
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
    "fault",
    "interval_coverage",
    "kl_divergence",
    "kolmogorov_smirnov",
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
    "regions_finding",
    "regression_findings",
    "scaled_interval_scores",
    "squared_errors",
    "uniformity_tests",
    "wasserstein",
]
