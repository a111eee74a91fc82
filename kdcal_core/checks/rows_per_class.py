"""KC202: whether every class has rows enough to be judged."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kdcal_core.checks.check import Check, Part, Way, exact
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data import IntArray
from kdcal_core.data.fitness import FEW_ROWS
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.scored
    return [_rarest(np.bincount(rows.y, minlength=len(rows.classes)), rows.classes)]


def _rarest(counts: IntArray, classes: Sequence[str]) -> Part:
    part = exact("Rows of the rarest class", "Rarest class", counts.min(), int(counts.sum()))
    return Part(part.estimate, classes[int(counts.argmin())], key="rarest")


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    summary = evidence.scored
    rows = summary.joint.sum(axis=1) if summary.weights is None else summary.weights.of_class
    return [_rarest(np.asarray(rows), summary.classes)]


Check(
    code="KC202",
    title="Rows of every class",
    question="Does each class have enough rows to be judged?",
    fault="a class has too few rows",
    family="data",
    tasks=("classification",),
    limit=Limit(low=FEW_ROWS),
    bounds=(0.0, math.inf),
    measured=_measured,
    remedy="Add held-out rows of the rare classes, or leave conclusions about them out.",
    page="load",
    method="The rows of the rarest true class, counted. Too few are a lack of evidence, never a "
    "fail.",
    of_rows=True,
    from_summary=Way(_from_summary),
).offer()
