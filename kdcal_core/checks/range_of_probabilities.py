"""KC209: whether stated probabilities differ between rows."""

from __future__ import annotations

import math

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import score_range
from kdcal_core.diagnostics.influence import Influence, range_influence
from kdcal_core.diagnostics.summaries import summary_range
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    target = evidence.target()
    return [Part(score_range(target.score, level=level, sample_weight=target.design))]


def _influence(evidence: Evidence) -> list[Influence]:
    return [range_influence(evidence.target())]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return [Part(summary_range(evidence.scored, evidence.event, level=level))]


Check(
    code="KC209",
    title="Range of the probabilities",
    question="Do stated probabilities reach towards 0 and 1, or stay near one value?",
    fault="it says nearly the same of every row",
    family="data",
    tasks=("classification",),
    limit=Limit(low=1.0),  # odds 2.7 times as high at one end as at the other
    bounds=(0.0, math.inf),
    measured=_measured,
    remedy="The model says nearly the same of every row, such as 40 to 60%. Check that the "
    "columns hold its probabilities and that its inputs vary. If so, it knows little here.",
    page="reliability",
    method="The distance between the 1% and the 99% quantile of what is stated, in log odds, so "
    "that one limit suits rare events too: 40 to 60% is 0.8, and 1 to 20% is 3.2. The interval "
    "comes from order statistics.",
    from_summary=Way(_from_summary),
    influence=_influence,
).offer()
