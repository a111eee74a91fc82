"""KC206: whether probabilities are stated, and not only the predicted class."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import certain_share
from kdcal_core.diagnostics.influence import Influence, certain_influence
from kdcal_core.diagnostics.summaries import summary_certain_share
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    return [Part(certain_share(rows.proba, level=level, sample_weight=rows.design))]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_certain_share(evidence.scored, level=level))]


def _influence(evidence: Evidence) -> list[Influence]:
    return [certain_influence(evidence.scored)]


Check(
    code="KC206",
    title="Probabilities, not only classes",
    question="Does the model state probabilities, and not only 0 and 1?",
    fault="it states 0 and 1 in place of probabilities",
    family="data",
    tasks=("classification",),
    limit=Limit(high=0.5),  # forests and neighbours state certainty for many rows
    bounds=(0.0, 1.0),
    percent=True,
    measured=_measured,
    remedy="The columns may hold the predicted class, or the model rounds. Give the probabilities "
    "before any threshold.",
    page="reliability",
    method="The share of rows whose largest probability is exactly 1, with Clopper and Pearson's "
    "interval. Whether such rows are right is the question of the check certain and wrong.",
    from_summary=Way(_from_summary),
    influence=_influence,
).offer()
