"""KC102: whether the probabilities are worth more than the classes' shares."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import Estimate, gains_over_shares
from kdcal_core.diagnostics.influence import Influence, shares_influences
from kdcal_core.diagnostics.summaries import summary_gains_over_shares
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    return _parts(gains_over_shares(evidence.scored, evidence.known, level=level))


def _parts(gains: tuple[Estimate, Estimate]) -> list[Part]:
    # earlier audits know the second without Brier's capital letter
    return [Part(gains[0], "log loss"), Part(gains[1], "Brier score", "brier score")]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return _parts(summary_gains_over_shares(evidence.scored, evidence.known, level=level))


def _influence(evidence: Evidence) -> list[Influence]:
    return [*shares_influences(evidence.scored, evidence.known)]


Check(
    code="KC102",
    title="Better than the base rate",
    question="Do the probabilities say more than how often each class occurs?",
    fault="its probabilities score no better than how often each class occurs",
    family="usefulness",
    tasks=("classification",),
    limit=Limit(low=0.0),
    measured=_measured,
    remedy="Stating the classes' shares for every row would be as good. If the model still ranks "
    "rows well (AUROC), recalibrate it. Otherwise check that target and probabilities belong "
    "together.",
    page="reliability",
    method="What log loss and Brier score gain over the classes' shares, paired by row.",
    from_summary=Way(_from_summary),
    influence=_influence,
    no_chance="the trivial rule has the value 0, which can be the lower end",
).offer()
