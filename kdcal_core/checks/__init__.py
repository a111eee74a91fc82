"""Checks: questions about a model with an estimate, a limit and a verdict.

A verdict follows from the interval, never from the estimate alone: pass where the whole interval
is within the limit, fail where it is wholly beyond, otherwise not enough evidence. Checks compute
nothing of their own; they read diagnostics, measures and the engine that judges calibrators.
"""

from kdcal_core.checks.check import (
    CHECKS,
    FAMILIES,
    Check,
    Part,
    Way,
    check_of,
    in_form,
    limit_text,
)
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.findings import (
    each_kind_first,
    evidence_text,
    found_text,
    headline,
    next_step,
    part_text,
    result_text,
)
from kdcal_core.checks.gain_of_a_repair import QUICK_CALIBRATORS
from kdcal_core.checks.measuring import (
    LEVELS,
    MeasuredCheck,
    MeasuredChecks,
    MeasuredPart,
    measure_checks,
    with_group_sums,
)
from kdcal_core.checks.summary_evidence import NEEDS_ROWS, SummaryEvidence
from kdcal_core.checks.verdicts import (
    VERDICTS,
    CheckedReview,
    CheckResult,
    JudgedPart,
    Verdict,
    judge_checks,
    rows_needed,
    verdict_of,
)
from kdcal_core.offers import import_modules

# a check offers itself where it is defined
import_modules(__path__, __name__)

__all__ = [
    "CHECKS",
    "FAMILIES",
    "LEVELS",
    "NEEDS_ROWS",
    "QUICK_CALIBRATORS",
    "VERDICTS",
    "Check",
    "CheckResult",
    "CheckedReview",
    "Evidence",
    "JudgedPart",
    "MeasuredCheck",
    "MeasuredChecks",
    "MeasuredPart",
    "Part",
    "SummaryEvidence",
    "Verdict",
    "Way",
    "check_of",
    "each_kind_first",
    "evidence_text",
    "found_text",
    "headline",
    "in_form",
    "judge_checks",
    "limit_text",
    "measure_checks",
    "next_step",
    "part_text",
    "result_text",
    "rows_needed",
    "verdict_of",
    "with_group_sums",
]


def __dir__() -> list[str]:
    return sorted(__all__)
