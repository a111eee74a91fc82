"""KC208: whether what is stated as certain is true."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import certain_and_wrong
from kdcal_core.diagnostics.influence import Influence, certain_and_wrong_influence
from kdcal_core.diagnostics.summaries import certain_rows, summary_certain_and_wrong
from kdcal_core.review import Limit

_NONE_CERTAIN = "No row gives a class a probability of exactly 1, so no certain one can be wrong."


def _needs(evidence: Evidence) -> str | None:
    if evidence.scored.proba.max() < 1.0:
        return _NONE_CERTAIN
    return None


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    return [Part(certain_and_wrong(rows.proba, rows.y, level=level, sample_weight=rows.design))]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_certain_and_wrong(evidence.scored, level=level))]


def _needs_of_summary(evidence: SummaryEvidence) -> str | None:
    return None if certain_rows(evidence.scored)[0] else _NONE_CERTAIN


def _influence(evidence: Evidence) -> list[Influence]:
    return [certain_and_wrong_influence(evidence.scored)]


Check(
    code="KC208",
    title="Certain and wrong",
    question="Is the model right where it states exactly 0 or 1?",
    fault="it is wrong too often where it is certain",
    family="data",
    tasks=("classification",),
    limit=Limit(high=0.02),
    bounds=(0.0, 1.0),
    percent=True,
    measured=_measured,
    remedy="A probability of exactly 1 that is wrong costs without limit in log loss. A forest of "
    "few trees, a rounded column or labels state it; give unrounded probabilities, or calibrate.",
    page="reliability",
    method="The share of all rows whose largest probability is exactly 1 and whose class is "
    "another, with Clopper and Pearson's interval. Many certain rows are no fault by themselves, "
    "if they are right. Not judged where no row is certain.",
    needs=_needs,
    from_summary=Way(_from_summary, needs=_needs_of_summary),
    influence=_influence,
    no_chance="a calibrated model has the value 0, because what it states as certain is true",
).offer()
