"""KC024: whether predicted distributions are wrong in some part of the inputs."""

from __future__ import annotations

from dataclasses import replace

from kdcal_core.checks.by_region import binned_inputs, judged_leaves, needs_inputs
from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.diagnostics import Region, describe_pit_regions, find_pit_regions
from kdcal_core.review import Limit


def parts_of(regions: tuple[Region, ...]) -> list[Part]:
    """Place and spread of the PIT values in every region that has rows."""
    parts = []
    for one in regions:
        if one.n == 0 or one.spread is None:
            continue
        parts.append(Part(replace(one.gap, label="Place"), one.words))
        parts.append(Part(replace(one.spread, label="Spread"), one.words))
    return parts


def _measured(evidence: Evidence, level: float) -> list[Part]:
    binned = binned_inputs(evidence)
    if binned is None:
        return []
    pit, weight = evidence.pit, evidence.predicted.design
    found = evidence.once(
        "regions",
        lambda: find_pit_regions(pit, binned, seed=evidence.seed, sample_weight=weight),
    )
    judged = describe_pit_regions(
        pit, judged_leaves(found), tree=found.tree, level=level, sample_weight=weight
    )
    return parts_of(judged.regions)


Check(
    code="KC024",
    title="Distributions, region by region",
    question="Do outcomes follow the predicted distributions in every part of the inputs?",
    family="calibration",
    tasks=("regression",),
    limit=Limit(-0.15, 0.15),
    measured=_measured,
    remedy="Opposite faults cancel over all rows. Recalibrate locally, and look at the places on "
    "the PIT page.",
    page="regions",
    method="As on the Regions page, a tree on the PIT values of one half of the rows names the "
    "regions; the other half judges mean (place) and standard deviation (spread) of the PIT "
    "values there. The PIT page may disagree, because its places that differ are overlapping "
    "neighbourhoods of all rows, tested for any difference beyond chance and not held against a "
    "limit.",
    needs=needs_inputs,
    quick=False,
    place="where",
    comparable=False,
).offer()
