"""KC009: how sure the model is where it is wrong."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data.labels import states_a_risk
from kdcal_core.diagnostics import mean_max_confidence
from kdcal_core.diagnostics.influence import Influence, confidence_on_errors_influence
from kdcal_core.diagnostics.summaries import summary_confidence_on_errors, summary_risk
from kdcal_core.review import Limit

_NO_ERROR = "Every row is predicted right, so there is no error to look at."


def _needs(evidence: Evidence) -> str | None:
    rows = evidence.scored
    if not (rows.proba.argmax(axis=1) != rows.y).any():
        return _NO_ERROR
    if evidence.event is None:
        return None
    return _why_not(states_a_risk(rows.proba, rows.y, rows.classes))


def _why_not(risk: str | None) -> str | None:
    return risk and f"{risk}. Its errors are rows in which a low risk came true: judge that risk."


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    found = mean_max_confidence(
        rows.proba, rows.y, of="errors", level=level, sample_weight=rows.design
    )
    return [Part(found)]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_confidence_on_errors(evidence.scored, level=level))]


def _needs_of_summary(evidence: SummaryEvidence) -> str | None:
    joint = evidence.scored.joint
    if not np.where(np.eye(len(joint)), 0, joint).any():
        return _NO_ERROR
    return None if evidence.event is None else _why_not(summary_risk(evidence.scored))


def _influence(evidence: Evidence) -> list[Influence]:
    return [confidence_on_errors_influence(evidence.scored)]


Check(
    code="KC009",
    title="Confidence of errors",
    question="When the model is wrong, does it at least say that it is unsure?",
    fault="it is too sure where it is wrong",
    family="calibration",
    tasks=("classification",),
    limit=Limit(high=0.9),
    bounds=(0.0, 1.0),
    percent=True,
    measured=_measured,
    remedy="Look at the wrong rows with the highest confidence: wrong labels, copies of other "
    "classes or rows unlike the training data are common causes. Then calibrate.",
    page="reliability",
    method="The mean confidence of the wrong predictions (MMC*); for the interval four rows at the "
    "ends of the range are added. Not asked where a model of two classes states the risk of a rare "
    "event: it is rightly sure of the other class in every row.",
    needs=_needs,
    from_summary=Way(_from_summary, needs=_needs_of_summary),
    influence=_influence,
    no_chance="a calibrated model may have any value: the surer it is, the surer are its errors",
).offer()
