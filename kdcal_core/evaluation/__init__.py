"""One fair comparison of every calibrator, and of methods over several data sets."""

from __future__ import annotations

from kdcal_core.evaluation.compare import compare
from kdcal_core.evaluation.comparison import (
    Comparison,
    Measure,
    MethodScores,
    PairedDifference,
)
from kdcal_core.evaluation.ranks import CriticalDifference, critical_difference
from kdcal_core.evaluation.scoring import MEASURES

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
