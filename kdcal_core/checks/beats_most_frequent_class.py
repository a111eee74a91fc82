"""KC204: whether predictions are right more often than the most frequent class would be."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data.labels import states_a_risk
from kdcal_core.diagnostics import gain_over_most_frequent
from kdcal_core.diagnostics.influence import Influence, most_frequent_influence
from kdcal_core.diagnostics.summaries import summary_gain_over_most_frequent, summary_risk
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    return [Part(gain_over_most_frequent(evidence.scored, evidence.known, level=level))]


def _needs(evidence: Evidence) -> str | None:
    """Nothing where the model is asked for an event and states its risk."""
    rows = evidence.scored
    if evidence.event is None:
        return None
    return _why_not(states_a_risk(rows.proba, rows.y, rows.classes))


def _why_not(risk: str | None) -> str | None:
    return risk and f"{risk}. Judge the ranking, and the decisions at a threshold of your own."


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_gain_over_most_frequent(evidence.scored, evidence.known, level=level))]


def _needs_of_summary(evidence: SummaryEvidence) -> str | None:
    return None if evidence.event is None else _why_not(summary_risk(evidence.scored))


def _influence(evidence: Evidence) -> list[Influence]:
    return [most_frequent_influence(evidence.scored, evidence.known)]


Check(
    code="KC204",
    title="Beats the most frequent class",
    question="Is the model right more often than if it always predicted the most frequent class?",
    fault="it is right no more often than a model that always predicts the most frequent class",
    family="data",
    tasks=("classification",),
    limit=Limit(low=0.0),
    bounds=(-1.0, 1.0),
    percent=True,
    measured=_measured,
    remedy="Check that the target and the order of the classes are right, and whether the model is "
    "over-confident where it names the rarer class.",
    page="reliability",
    method="Accuracy minus that of always predicting the most frequent class of the calibration "
    "set, paired by row. Without a second set, the interval allows for the class being chosen on "
    "the same rows. Not asked where a model of two classes states the risk of a rare event, which "
    "it rightly puts above one half in few rows or none.",
    needs=_needs,
    from_summary=Way(_from_summary, needs=_needs_of_summary),
    influence=_influence,
    no_chance="the trivial rule has the value 0, which can be the lower end",
).offer()
