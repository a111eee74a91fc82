"""The engine: split or cross-fit, fit, judge, pair, correct for many comparisons."""

from __future__ import annotations

from kdcal_core.evaluation.compare import compare
from kdcal_core.evaluation.comparison import (
    Against,
    Comparison,
    Judge,
    MethodScores,
    PairedDifference,
)
from kdcal_core.evaluation.measures import (
    MEASURES,
    Group,
    Measure,
    compared_measures,
    meaning_of,
)
from kdcal_core.evaluation.ranks import CriticalDifference, critical_difference

__all__ = [
    "MEASURES",
    "Against",
    "Comparison",
    "CriticalDifference",
    "Group",
    "Judge",
    "Measure",
    "MethodScores",
    "PairedDifference",
    "compare",
    "compared_measures",
    "critical_difference",
    "meaning_of",
]
