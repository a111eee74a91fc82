"""Items of guidelines on models, their validation and their reports, and what answers them.

Items are in our own words, by their number or heading. An item that no number can answer says what
a person must write, and one that we did not compare with the guideline's own text says that a
person must check its wording.
"""

from __future__ import annotations

from kdcal_core.audit.report.guidelines.guideline import answers
from kdcal_core.audit.report.guidelines.probast import PROBAST
from kdcal_core.audit.report.guidelines.supervision import SR, SS
from kdcal_core.audit.report.guidelines.tripod import TRIPOD

GUIDELINES = (TRIPOD, PROBAST, SR, SS)

__all__ = ["GUIDELINES", "answers"]


def __dir__() -> list[str]:
    return sorted(__all__)
