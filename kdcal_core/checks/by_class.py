"""KC006: the stated probability of every class against how often it occurs."""

from __future__ import annotations

from dataclasses import replace

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import Estimate
from kdcal_core.diagnostics.all_estimates import CLASS_GAPS
from kdcal_core.diagnostics.influence import Influence, class_gap_influences
from kdcal_core.diagnostics.scores import target_gap
from kdcal_core.diagnostics.summaries import summary_class_gaps
from kdcal_core.diagnostics.targets import targets
from kdcal_core.review import Limit


def _needs(evidence: Evidence) -> str | None:
    return _why_not(len(evidence.scored.classes), evidence.event)


def _why_not(n_classes: int, event: int | None) -> str | None:
    if n_classes > 2 or event is None:
        return None
    return "For the event of two classes it is the same as calibration in the large."


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    found = targets(rows.proba, rows.y, rows.design, "class")
    parts = []
    for one in found if len(found) > 2 else found[1:]:  # of two, one says what the other does
        assert one.label is not None
        parts.append(_part(target_gap(one, level), rows.classes[one.label]))
    return parts


def _part(gap: Estimate, name: str) -> Part:
    what, label = CLASS_GAPS["class"]
    return Part(replace(gap, name=what, label=label), name)


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    summary = evidence.scored
    found = summary_class_gaps(summary, "class", level=level)
    return [_part(gap, summary.classes[label]) for label, gap in found.items()]


def _needs_of_summary(evidence: SummaryEvidence) -> str | None:
    return _why_not(len(evidence.scored.classes), evidence.event)


def _influence(evidence: Evidence) -> list[Influence]:
    return [*class_gap_influences(evidence.scored, "class")]


Check(
    code="KC006",
    title="Class against the rest",
    question="Is each class stated as often as it occurs?",
    fault="it states {name} too often",
    fault_below="it states {name} too seldom",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.03, 0.03),
    bounds=(-1.0, 1.0),
    target=0.0,
    percent=True,
    measured=_measured,
    remedy="Check that these rows have the mix of classes that the model was trained for. If "
    "they do, recalibrate, and audit the calibrated version.",
    page="reliability",
    method="The mean stated probability of each class minus its share of the rows, with two hits "
    "and two misses added to each interval (Agresti and Coull 1998).",
    needs=_needs,
    from_summary=Way(_from_summary, needs=_needs_of_summary),
    influence=_influence,
).offer()
