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
from kdcal_core.diagnostics.comparison.words import comparison_words

__all__ = [
    "MEASURES",
    "Comparison",
    "CriticalDifference",
    "Measure",
    "MethodScores",
    "PairedDifference",
    "compare",
    "comparison_words",
    "critical_difference",
]
