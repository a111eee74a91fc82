"""What is measured of predictive distributions: PIT values, coverage, scores, where they fail."""

from __future__ import annotations

from kdcal_core.diagnostics.regression.results import (
    BandKind,
    Coverage,
    CoverageRow,
    EcdfDifference,
    Fault,
    FaultKind,
    LocalPit,
    PitHistogram,
    QuantileReliability,
    RegionPit,
    RegressionScores,
    UniformityTest,
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
]
