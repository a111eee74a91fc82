"""KC011: whether the judged rows show what the calibration set shows."""

from __future__ import annotations

from dataclasses import replace

from kdcal_core.checks.check import Check, Part, difference
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import Estimate, auroc
from kdcal_core.diagnostics.scores import target_gap
from kdcal_core.review import Limit


def _needs(evidence: Evidence) -> str | None:
    return None if evidence.calibration is not None else "There is one set only."


def _measured(evidence: Evidence, level: float) -> list[Part]:
    other = evidence.calibration
    assert isinstance(other, ScoredSet)
    gaps = [target_gap(evidence.target(rows), level) for rows in (evidence.scored, other)]
    areas = [_area(rows, level) for rows in (evidence.scored, other)]
    return [
        Part(replace(difference(now, then), label="Difference between the sets"), name)
        for name, (now, then) in (("stated minus observed", gaps), ("AUROC", areas))
    ]


def _area(rows: ScoredSet, level: float) -> Estimate:
    return auroc(rows.proba, rows.y, level=level, sample_weight=rows.weight, classes=rows.classes)


Check(
    code="KC011",
    title="Stability between the sets",
    question="Does the model perform alike on both sets?",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.05, 0.05),
    measured=_measured,
    remedy="A calibrator is fitted to the calibration set, so it does not suit rows that "
    "differ. Find out how the two were drawn: by time, by place, or by a filter.",
    page="compare",
    method="The difference of the estimates of both sets, with the interval of Zou and Donner "
    "(2008).",
    needs=_needs,
).offer()
