"""KC024: whether predicted distributions are wrong in some part of the inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kdcal_core.checks.by_region import binned_inputs, judged_leaves, needs_inputs, of_both_halves
from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import RegionSearch, describe_pit_regions, find_pit_regions
from kdcal_core.partition.tree import ALL_ROWS
from kdcal_core.review import Limit


def parts_of(search: RegionSearch) -> list[Part]:
    """Place and spread of the PIT values in every region that has rows."""
    parts = []
    for one in search.regions:
        if one.n == 0 or one.spread is None:
            continue
        parts.append(Part(replace(one.gap, label="Location"), one.words))
        parts.append(Part(replace(one.spread, label="Spread"), one.words))
    return parts


def _measured(evidence: Evidence, level: float) -> list[Part]:
    binned = binned_inputs(evidence)
    if binned is None:
        return []
    pit, weight = evidence.pit, evidence.predicted.design

    def searched(swap: bool) -> RegionSearch:
        return find_pit_regions(pit, binned, seed=evidence.seed, swap=swap, sample_weight=weight)

    def described(found: RegionSearch) -> RegionSearch:
        leaf = judged_leaves(found)
        return describe_pit_regions(pit, leaf, tree=found.tree, level=level, sample_weight=weight)

    searches = evidence.once("regions", lambda: (searched(False), searched(True)))
    one = np.zeros(len(pit), dtype=np.int64)
    everywhere = describe_pit_regions(pit, one, (ALL_ROWS,), level=level, sample_weight=weight)
    return of_both_halves(searches, described, everywhere, parts_of)


Check(
    code="KC024",
    title="Distributions, region by region",
    question="Do outcomes follow the predicted distributions in every part of the inputs?",
    fault="it is wrong about a part of the inputs",
    family="calibration",
    tasks=("regression",),
    limit=Limit(-0.15, 0.15),
    target=0.0,
    measured=_measured,
    remedy="Opposite faults can cancel over all rows. Look at the places, and recalibrate locally.",
    page="regions",
    method="One half of the rows is searched for regions, by a tree on the PIT values, and the "
    "other half judges what was found by the mean (place) and the standard deviation (spread) of "
    "the PIT values there; then the halves change places. A search may also miss a region: the "
    "check passes only if the largest difference of place that both may miss, in a fifth of the "
    "rows and along one column, is within the limit too. The PIT page may disagree: its places "
    "are overlapping neighbourhoods of all rows, tested for any difference beyond chance and not "
    "held against a limit.",
    needs=needs_inputs,
    quick=False,
    place="where",
    comparable=False,
).offer()
