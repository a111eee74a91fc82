"""KC204: whether predictions are right more often than the commonest class would be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import paired_difference
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    known = evidence.calibration or rows
    assert isinstance(known, ScoredSet)
    commonest = int(np.bincount(known.y, weights=known.weight).argmax())
    found = paired_difference(
        (rows.proba.argmax(axis=1) == rows.y).astype(float),
        (rows.y == commonest).astype(float),
        weight=rows.weight,
        level=level,
        name="Accuracy minus that of always predicting the commonest class",
        label="Accuracy gained",
    )
    return [Part(replace(found, label="Accuracy gained"))]


Check(
    code="KC204",
    title="Right more often than the commonest class",
    question="Is the model right more often than somebody who always says the commonest class?",
    family="data",
    tasks=("classification",),
    limit=Limit(low=0.0),
    measured=_measured,
    remedy="With rare events this may be expected: then look at the ranking and at costs instead. "
    "Otherwise check that the target and the order of the classes are right.",
    page="reliability",
    method="Accuracy minus that of always predicting the commonest class, paired by row.",
).offer()
