"""KC207: whether stated probabilities differ between rows."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import score_range
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    return [Part(score_range(evidence.target().score, level=level))]


Check(
    code="KC207",
    title="Range of the probabilities",
    question="Do stated probabilities differ from row to row?",
    family="data",
    tasks=("classification",),
    limit=Limit(low=0.05),
    measured=_measured,
    remedy="The model says nearly the same of every row. Check that the columns hold its "
    "probabilities and that its inputs vary.",
    page="reliability",
    method="The distance of the 1% and the 99% quantile of what is stated, with an interval from "
    "order statistics.",
).offer()
