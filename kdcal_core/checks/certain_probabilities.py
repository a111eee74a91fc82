"""KC206: whether probabilities are stated, and not only the predicted class."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.check import Check, Part, largest
from kdcal_core.checks.evidence import Evidence
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    certain = [float(np.mean(rows.proba.max(axis=1) >= 1.0))]
    found = largest("Share of rows stated as certain", "Certain", certain, rows.n_rows, level)
    return [Part(found)]


Check(
    code="KC206",
    title="Probabilities, not only classes",
    question="Does the model state probabilities, and not only 0 and 1?",
    family="data",
    tasks=("classification",),
    limit=Limit(high=0.5),  # forests and neighbours state certainty for many rows
    measured=_measured,
    remedy="The columns may hold the predicted class, or the model rounds. Give the probabilities "
    "before any threshold.",
    page="load",
    method="The share of rows whose largest probability is exactly 1, with Clopper and Pearson's "
    "interval.",
).offer()
