"""KC208: whether what is stated as certain is true."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import certain_and_wrong
from kdcal_core.review import Limit


def _needs(evidence: Evidence) -> str | None:
    if evidence.scored.proba.max() < 1.0:
        return "No row gives a class a probability of exactly 1, so no certain one can be wrong."
    return None


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    return [Part(certain_and_wrong(rows.proba, rows.y, level=level, sample_weight=rows.design))]


Check(
    code="KC208",
    title="Certain and wrong",
    question="Is the model right where it states exactly 0 or 1?",
    family="data",
    tasks=("classification",),
    limit=Limit(high=0.02),
    measured=_measured,
    remedy="A probability of exactly 1 that is wrong costs without limit in log loss. A forest of "
    "few trees, a rounded column or labels state it; give unrounded probabilities, or calibrate.",
    page="reliability",
    method="The share of all rows whose largest probability is exactly 1 and whose class is "
    "another, with Clopper and Pearson's interval. Many certain rows are no fault by themselves, "
    "if they are right. Not judged where no row is certain.",
    needs=_needs,
).offer()
