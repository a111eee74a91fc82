"""KC002: what is stated on average, beside how often it happens."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import event_gap
from kdcal_core.diagnostics.influence import Influence, gap_influence
from kdcal_core.diagnostics.scores import target_gap
from kdcal_core.diagnostics.summaries import summary_gap
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    gap = target_gap if evidence.event is None else event_gap
    return [Part(gap(evidence.target(), level))]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_gap(evidence.scored, evidence.event, level=level))]


def _influence(evidence: Evidence) -> list[Influence]:
    return [gap_influence(evidence.target())]


Check(
    code="KC002",
    title="Calibration in the large",
    question="Does the mean stated probability match the observed rate?",
    fault="it states too much on average",
    fault_below="it states too little on average",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.03, 0.03),
    bounds=(-1.0, 1.0),
    target=0.0,
    percent=True,
    measured=_measured,
    remedy="Check that these rows have the share of events that the model was trained for. If "
    "they do, refit it or recalibrate it: where the slope is right, one added number in the "
    "log-odds is enough.",
    page="reliability",
    method="The mean of stated minus observed, with two events and two others added to the "
    "interval (Agresti and Coull 1998).",
    from_summary=Way(_from_summary),
    influence=_influence,
).offer()
