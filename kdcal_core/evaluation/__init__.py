"""The engine: split or cross-fit, fit, judge, pair, correct for many comparisons."""

from __future__ import annotations

from kdcal_core.evaluation.by_class import Losses, losses_by_class
from kdcal_core.evaluation.compare import Against, Comparison, Gain, MethodScores, compare
from kdcal_core.evaluation.distribution_measures import (
    distribution_influences,
    regression_scores,
    row_measures,
    row_scores,
    summary_scores,
)
from kdcal_core.evaluation.held_out import HeldOut, Judge, held_out_answers
from kdcal_core.evaluation.judged_recalibrators import (
    MODEL,
    JudgedRecalibrators,
    RecalibratorScores,
    RepairChoice,
    Space,
    choose_neighbours,
    judge_recalibrators,
    repairs,
)
from kdcal_core.evaluation.measures import (
    MEASURES,
    Group,
    Measure,
    PredictedRows,
    compared_measures,
    meaning_of,
    meanings,
)
from kdcal_core.evaluation.methods import Answer, Method, methods_of
from kdcal_core.evaluation.overlap import MatchedRows, Note, SameBy, SetRows, matched
from kdcal_core.evaluation.paired import BesideModel, PairedDifference, beside_model
from kdcal_core.evaluation.probability_measures import estimates_of, influences_of, row_measure
from kdcal_core.evaluation.ranks import (
    CriticalDifference,
    critical_difference,
    relative_improvement,
)
from kdcal_core.evaluation.row_answers import GRID, STATED, RowAnswers
from kdcal_core.evaluation.versions import (
    VersionMeasure,
    changed_measures,
    compare_forecasts,
    compare_versions,
    forecast_estimates,
)
from kdcal_core.offers import import_modules

# importing a module adds its measures to the list
import_modules(__path__, __name__)

__all__ = [
    "GRID",
    "MEASURES",
    "MODEL",
    "STATED",
    "Against",
    "Answer",
    "BesideModel",
    "Comparison",
    "CriticalDifference",
    "Gain",
    "Group",
    "HeldOut",
    "Judge",
    "JudgedRecalibrators",
    "Losses",
    "MatchedRows",
    "Measure",
    "Method",
    "MethodScores",
    "Note",
    "PairedDifference",
    "PredictedRows",
    "RecalibratorScores",
    "RepairChoice",
    "RowAnswers",
    "SameBy",
    "SetRows",
    "Space",
    "VersionMeasure",
    "beside_model",
    "changed_measures",
    "choose_neighbours",
    "compare",
    "compare_forecasts",
    "compare_versions",
    "compared_measures",
    "critical_difference",
    "distribution_influences",
    "estimates_of",
    "forecast_estimates",
    "held_out_answers",
    "influences_of",
    "judge_recalibrators",
    "losses_by_class",
    "matched",
    "meaning_of",
    "meanings",
    "methods_of",
    "regression_scores",
    "relative_improvement",
    "repairs",
    "row_measure",
    "row_measures",
    "row_scores",
    "summary_scores",
]


def __dir__() -> list[str]:
    return sorted(__all__)
