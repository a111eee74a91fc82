"""KC011: whether the judged rows show what the calibration set shows."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import differences_between_sets
from kdcal_core.diagnostics.influence import Influence, area_influence, gap_influence
from kdcal_core.review import Limit


def _needs(evidence: Evidence) -> str | None:
    return None if evidence.calibration is not None else "There is one set only."


def _measured(evidence: Evidence, level: float) -> list[Part]:
    assert evidence.known is not None
    found = differences_between_sets(evidence.scored, evidence.known, evidence.event, level=level)
    return [Part(*one) for one in zip(found, ("stated minus observed", "AUROC"), strict=True)]


def _influence(evidence: Evidence) -> list[Influence]:
    return [gap_influence(evidence.target()), area_influence(evidence.scored)]


def _other_influence(evidence: Evidence) -> list[Influence]:
    assert evidence.known is not None
    found = gap_influence(evidence.target(evidence.known)), area_influence(evidence.known)
    return [None if one is None else -one for one in found]


Check(
    code="KC011",
    title="Stability between the sets",
    question="Does the model perform alike on both sets?",
    fault="it does otherwise on the evaluation set than on the calibration set",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.05, 0.05),
    target=0.0,
    measured=_measured,
    remedy="A calibrator is fitted to the calibration set, so it does not suit rows that "
    "differ. Find out how the two were drawn: by time, by place, or by a filter.",
    page="reliability",
    method="The difference of the estimates of both sets, with the interval of Zou and Donner "
    "(2008).",
    needs=_needs,
    influence=_influence,
    other_influence=_other_influence,
).offer()
