"""KC005: confidence against accuracy for the rows of every predicted class."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics.influence import Influence, class_gap_influences
from kdcal_core.diagnostics.scores import target_gap
from kdcal_core.diagnostics.summaries import summary_class_gaps
from kdcal_core.diagnostics.targets import targets
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    found = targets(rows.proba, rows.y, rows.design, "top-label")
    return [
        Part(target_gap(one, level), rows.classes[one.label])
        for one in found
        if one.label is not None and len(one.hit)
    ]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    summary = evidence.scored
    found = summary_class_gaps(summary, "top-label", level=level)
    return [Part(gap, summary.classes[label]) for label, gap in found.items()]


def _influence(evidence: Evidence) -> list[Influence]:
    return [*class_gap_influences(evidence.scored, "top-label")]


Check(
    code="KC005",
    title="By predicted class",
    question="Is the confidence right for each class that is predicted, not only on average?",
    fault="it is too sure where it predicts {name}",
    fault_below="it is not sure enough where it predicts {name}",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.05, 0.05),
    bounds=(-1.0, 1.0),
    target=0.0,
    percent=True,
    measured=_measured,
    remedy="Find out where rows of this predicted class are wrong, and recalibrate: "
    "kernel densities and histograms treat each predicted class by itself.",
    page="reliability",
    method="Mean confidence minus accuracy of the rows of each predicted class, with two hits "
    "and two misses added to each interval (Agresti and Coull 1998).",
    from_summary=Way(_from_summary),
    influence=_influence,
).offer()
