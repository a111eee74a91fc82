"""KC008: stated against seen in each declared group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kdcal_core.checks.check import Check, Part, Way
from kdcal_core.checks.evidence import Evidence
from kdcal_core.checks.summary_evidence import SummaryEvidence
from kdcal_core.data import FloatArray, check_weight
from kdcal_core.diagnostics import Division, Region, declared_divisions, describe_regions
from kdcal_core.diagnostics.influence import Influence, gap_influence, of_some
from kdcal_core.diagnostics.summaries import summary_group_regions
from kdcal_core.review import Limit

_NONE = "No groups are declared."


def needs_groups(evidence: Evidence) -> str | None:
    """Why no group can be judged; None where groups are declared."""
    return None if evidence.groups is not None else _NONE


def needs_groups_of_summary(evidence: SummaryEvidence) -> str | None:
    """As `needs_groups`."""
    return None if evidence.summary.groups is not None else _NONE


def declared_groups(evidence: Evidence) -> list[Division]:
    """The judged rows divided by each declared column alone, then by all together."""
    make = evidence.groups
    assert make is not None
    return evidence.once("groups", lambda: declared_divisions(make()))


def _measured(evidence: Evidence, level: float) -> list[Part]:
    target = "confidence" if evidence.event is None else evidence.event
    return [
        _part(one)
        for labels, names in declared_groups(evidence)
        for one in describe_regions(
            evidence.scored, labels, names, target=target, level=level
        ).regions
        if one.n
    ]


def _part(one: Region) -> Part:
    return Part(replace(one.gap, label="Observed minus stated"), one.words)


def _from_summary(evidence: SummaryEvidence, level: float) -> list[Part]:
    found = summary_group_regions(evidence.scored, evidence.event, level=level)
    return [_part(one) for regions in found for one in regions]


def _influence(evidence: Evidence) -> list[Influence]:
    gap = -gap_influence(evidence.target())  # observed minus stated
    return [of_some(gap, some, weight) for some, weight in rows_of_groups(evidence)]


def rows_of_groups(evidence: Evidence) -> Iterator[tuple[NDArray[np.bool_], FloatArray]]:
    """Which rows (n,) lie in each declared group that has rows, and the weight of all rows."""
    weight = check_weight(evidence.rows.weight, evidence.n_rows)
    for labels, names in declared_groups(evidence):
        for leaf in range(len(names)):
            if (labels == leaf).any():
                yield labels == leaf, weight


Check(
    code="KC008",
    title="Declared groups",
    question="Is what the model states right on the mean in each declared group?",
    fault="it is wrong about a declared group",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.05, 0.05),
    bounds=(-1.0, 1.0),
    target=0.0,
    measured=_measured,
    remedy="Find out whether the groups differ in inputs, in labels or in rows; calibrate by "
    "group only where the law and the use allow it. See then what a calibrator does to each.",
    page="groups",
    method="Observed minus stated in every group of each declared column, and of all columns "
    "together, with the saddlepoint interval of the rows' own probabilities. Groups of fewer than "
    "30 rows are taken together.",
    needs=needs_groups,
    place="in",
    from_summary=Way(_from_summary, needs=needs_groups_of_summary, of_groups=True),
    influence=_influence,
).offer()
