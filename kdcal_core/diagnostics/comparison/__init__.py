"""One fair comparison of every calibrator, and of methods over several data sets."""

from __future__ import annotations

from kdcal_core.diagnostics.comparison.compare import compare
from kdcal_core.diagnostics.comparison.ranks import CriticalDifference, critical_difference
from kdcal_core.diagnostics.comparison.results import (
    Comparison,
    Measure,
    MethodScores,
    PairedDifference,
)
from kdcal_core.diagnostics.comparison.scoring import MEASURES

__all__ = [
    "MEASURES",
    "Comparison",
    "CriticalDifference",
    "Measure",
    "MethodScores",
    "PairedDifference",
    "compare",
    "critical_difference",
]
