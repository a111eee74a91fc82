"""KC003: by how much all stated log odds are off."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics.calibration_line import target_intercept
from kdcal_core.diagnostics.influence import Influence, line_influence
from kdcal_core.diagnostics.summaries import summary_line
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    return [Part(target_intercept(evidence.target(), level))]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_line(evidence.scored, evidence.event, level=level)[0])]


def _influence(evidence: Evidence) -> list[Influence]:
    return [line_influence(evidence.target())[0]]


Check(
    code="KC003",
    title="Calibration intercept",
    question="Are all stated odds too high or too low by one factor?",
    fault="it states too little on average",
    fault_below="it states too much on average",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.3, 0.3),  # odds within a third of what is stated
    target=0.0,
    measured=_measured,
    remedy="Check that these rows have the share of events that the model was trained for. If "
    "they do, calibrate it: one number added to the log odds is enough where the slope is right.",
    page="reliability",
    method="Cox's recalibration line with slope 1; the interval is that of the profile likelihood.",
    from_summary=Way(_from_summary),
    influence=_influence,
).offer()
