"""KC022: whether stated intervals hold as many outcomes as they state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import Coverage, coverage
from kdcal_core.diagnostics.influence import Influence
from kdcal_core.diagnostics.summaries import summary_coverage
from kdcal_core.review import Limit

LEVELS = (0.5, 0.8, 0.95)


def _measured(evidence: Evidence, level: float) -> list[Part]:
    rows = evidence.predicted
    stated = rows.distribution.stated_intervals(LEVELS)
    return _parts(coverage(rows.distribution, rows.y, stated, weight=rows.design, level=level))


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    return _parts(summary_coverage(evidence.predicted, LEVELS, level=level))


def _parts(found: Coverage) -> list[Part]:
    parts = []
    for one in found.rows:
        held, named = one.coverage, f"{100 * one.level:g}% interval"
        gap = replace(
            held,
            name=f"Share of outcomes in the central {named}, minus what is stated",
            label="Coverage minus stated",
            value=held.value - one.level,
            low=held.low - one.level,
            high=held.high - one.level,
            expected=None,
            target=0.0,
        )
        parts.append(Part(gap, f"the {named}"))
    return parts


def _influence(evidence: Evidence) -> list[Influence]:
    rows = evidence.predicted
    found: list[Influence] = []
    for level in rows.distribution.stated_intervals(LEVELS):
        low, high = rows.distribution.interval(level)
        found.append(((low <= rows.y) & (rows.y <= high)).astype(np.float64))
    return found


Check(
    code="KC022",
    title="Coverage of the intervals",
    question="Do stated intervals hold as many outcomes as they state?",
    fault="its intervals are too wide",
    fault_below="its intervals are too narrow",
    family="calibration",
    tasks=("regression",),
    limit=Limit(-0.05, 0.05),
    bounds=(-1.0, 1.0),
    target=0.0,
    percent=True,
    measured=_measured,
    remedy="Too few outcomes inside: the distributions are too narrow. Recalibrate them, and look "
    "where the misses lie.",
    above="Too many outcomes inside: the distributions are too wide. Recalibrate them, and look at "
    "which places the width is not needed.",
    page="pit",
    method="Shares of the outcomes in the central 50, 80 and 95% intervals, or in those that the "
    "predictions state nearest to them, with Clopper and Pearson's intervals.",
    from_summary=Way(_from_summary),
    influence=_influence,
).offer()
