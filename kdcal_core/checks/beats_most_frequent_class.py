"""KC204: whether predictions are right more often than the most frequent class would be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import Estimate, paired_difference
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows, known = evidence.scored, evidence.calibration
    if isinstance(known, ScoredSet):
        commonest = int(np.bincount(known.y, weights=known.weight).argmax())
        return [Part(_gained(rows, commonest, level))]
    # which class is the commonest is seen on the same rows: an interval for the choice among all
    present = np.unique(rows.y).tolist()
    found = [_gained(rows, one, level) for one in present]
    strict = 1.0 - (1.0 - level) / len(present)
    least = min(found, key=lambda one: one.value)
    low = min(one.low for one in found)
    high = min(_gained(rows, one, strict).high for one in present)
    chosen = ", corrected for the choice of the class" * (len(present) > 1)
    return [Part(replace(least, low=low, high=high, interval=f"{least.interval}{chosen}"))]


def _gained(rows: ScoredSet, label: int, level: float) -> Estimate:
    """Accuracy minus that of always predicting one class."""
    found = paired_difference(
        (rows.proba.argmax(axis=1) == rows.y).astype(float),
        (rows.y == label).astype(float),
        weight=rows.weight,
        level=level,
        name="Accuracy minus that of always predicting the most frequent class",
        label="Accuracy gained",
    )
    return replace(found, label="Accuracy gained", percent=True)


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
