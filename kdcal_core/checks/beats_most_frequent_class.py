"""KC204: whether predictions are right more often than the most frequent class would be."""

from __future__ import annotations

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import gain_over_most_frequent
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    return [Part(gain_over_most_frequent(evidence.scored, evidence.known, level=level))]


Check(
    code="KC204",
    title="Right more often than the most frequent class",
    question="Is the model right more often than if it always predicted the most frequent class?",
    family="data",
    tasks=("classification",),
    limit=Limit(low=0.0),
    measured=_measured,
    remedy="With rare events this may be expected: then look at the ranking and at costs instead. "
    "Otherwise check that the target and the order of the classes are right.",
    page="reliability",
    method="Accuracy minus that of always predicting the most frequent class of the calibration "
    "set, paired by row. Without a second set, the interval allows for the class being chosen on "
    "the same rows.",
).offer()
