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
from kdcal_core.diagnostics.regression.distance import quantile_calibration_error, wasserstein
from kdcal_core.diagnostics.regression.divergence import kl_divergence
from kdcal_core.diagnostics.regression.ecdf import (
    EcdfDifference,
    QuantileReliability,
    ecdf_difference,
    quantile_reliability,
)
from kdcal_core.diagnostics.regression.fault import Fault, FaultKind, fault
from kdcal_core.diagnostics.regression.findings import (
    local_finding,
    regions_finding,
    regression_findings,
)
from kdcal_core.diagnostics.regression.histogram import BandKind, PitHistogram, pit_histogram
from kdcal_core.diagnostics.regression.local import LocalPit, local_pit, neighbourhoods
from kdcal_core.diagnostics.regression.regions import (
    RegionPit,
    column_regions,
    pit_by_column,
    pit_by_region,
)
from kdcal_core.diagnostics.regression.scores import (
    RegressionScores,
    paired_difference,
    regression_scores,
    row_scores,
)
from kdcal_core.diagnostics.regression.uniformity import (
    UniformityTest,
    kolmogorov_smirnov,
    uniformity_tests,
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
    "column_regions",
    "coverage",
    "coverage_finding",
    "ecdf_difference",
    "fault",
    "interval_coverage",
    "kl_divergence",
    "kolmogorov_smirnov",
    "local_finding",
    "local_pit",
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
    "regression_scores",
    "row_scores",
    "uniformity_tests",
    "wasserstein",
]
