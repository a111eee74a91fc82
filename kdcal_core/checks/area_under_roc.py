"""How the checks of discrimination and of direction measure the area under the ROC curve."""

from __future__ import annotations

from kdcal_core.checks.check import Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import auroc
from kdcal_core.diagnostics.influence import Influence, area_influence
from kdcal_core.diagnostics.summaries import summary_auroc


def measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    found = auroc(rows.proba, rows.y, level=level, sample_weight=rows.design, classes=rows.classes)
    return [Part(found)]


def from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_auroc(evidence.scored, level=level))]


def influence(evidence: Evidence) -> list[Influence]:
    return [area_influence(evidence.scored)]
