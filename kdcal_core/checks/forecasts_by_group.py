"""KC025: predicted distributions in each declared group."""

from __future__ import annotations

import numpy as np

from kdcal_core.checks.by_group import (
    declared_groups,
    needs_groups,
    needs_groups_of_summary,
    rows_of_groups,
)
from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.forecasts_by_region import parts_of
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.diagnostics import describe_pit_regions
from kdcal_core.diagnostics.influence import Influence, of_some, pit_spread_influence
from kdcal_core.diagnostics.summaries import summary_pit_groups
from kdcal_core.review import Limit


def _measured(evidence: Evidence, level: float) -> list[Part]:
    weight = evidence.predicted.design
    return [
        part
        for labels, names in declared_groups(evidence)
        for part in parts_of(
            describe_pit_regions(evidence.pit, labels, names, level=level, sample_weight=weight)
        )
    ]


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    found = summary_pit_groups(evidence.predicted, level=level)
    return [part for search in found for part in parts_of(search)]


def _influence(evidence: Evidence) -> list[Influence]:
    pit, found = evidence.pit, list[Influence]()
    for some, weight in rows_of_groups(evidence):
        spread = np.zeros(len(pit))
        spread[some] = pit_spread_influence(pit[some], weight[some])
        found += [of_some(pit, some, weight), of_some(spread, some, weight)]
    return found


Check(
    code="KC025",
    title="Distributions, declared groups",
    question="Do outcomes follow the predicted distributions in each declared group?",
    fault="it is wrong about a declared group",
    family="calibration",
    tasks=("regression",),
    limit=Limit(-0.1, 0.1),
    target=0.0,
    measured=_measured,
    remedy="Find out whether the groups differ in inputs or in rows, and recalibrate locally.",
    page="groups",
    method="Mean (place) and standard deviation (spread) of the PIT values in every group of each "
    "declared column, and of all together.",
    needs=needs_groups,
    place="in",
    from_summary=Way(_from_summary, needs=needs_groups_of_summary, of_groups=True),
    influence=_influence,
).offer()
