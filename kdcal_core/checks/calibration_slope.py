"""KC004: whether stated log odds are too extreme or not extreme enough."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics.calibration_line import target_slope
from kdcal_core.diagnostics.influence import Influence, line_influence
from kdcal_core.diagnostics.summaries import summary_line
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    return [Part(target_slope(evidence.target(), level))]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_line(evidence.scored, evidence.event, level=level)[1])]


def _influence(evidence: Evidence) -> list[Influence]:
    return [line_influence(evidence.target())[1]]


Check(
    code="KC004",
    title="Calibration slope",
    question="Are stated probabilities too extreme (below 1) or not extreme enough (above 1)?",
    fault="its probabilities are not extreme enough",
    fault_below="its probabilities are too extreme",
    family="calibration",
    tasks=("classification",),
    limit=Limit(0.8, 1.25),
    target=1.0,
    measured=_measured,
    remedy="Recalibrate on fresh rows, and audit the calibrated version. A slope "
    "below 1 often means that the model was fitted too closely to its training rows.",
    page="reliability",
    method="The slope of Cox's recalibration line; the interval is that of the profile "
    "likelihood, which holds for few events too. Probabilities of exactly 0 or 1, as forests state "
    "them, are read as 1e-12 from there: a few of them can set the slope alone.",
    from_summary=Way(_from_summary),
    influence=_influence,
).offer()
