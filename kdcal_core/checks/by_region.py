"""KC007: whether any part of the inputs is worse calibrated than the whole."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import IntArray
from kdcal_core.diagnostics import RegionSearch, describe_regions, find_regions
from kdcal_core.errors import InputWarning
from kdcal_core.partition.tree import BinnedInputs, bin_inputs, unusable_columns
from kdcal_core.review import Limit


def needs_inputs(evidence: Evidence) -> str | None:
    """Why no region can be named; None where inputs describe the rows."""
    if evidence.inputs is None:
        return "No column describes the rows, so there are no inputs to cut into regions."
    return None


def _binned(evidence: Evidence) -> BinnedInputs | None:
    assert evidence.inputs is not None
    inputs = evidence.inputs()
    unusable = unusable_columns(inputs)
    kept = [name for name in inputs.columns if name not in unusable]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # pooled categories are named "other"
        return bin_inputs(inputs[kept]) if kept else None


def binned_inputs(evidence: Evidence) -> BinnedInputs | None:
    """The inputs of the judged rows, ready for trees; None where none can be cut."""
    return evidence.once("binned", lambda: _binned(evidence))


def judged_leaves(found: RegionSearch) -> IntArray:
    """Region of every row that judges, (n,); -1 for those that the tree was grown on."""
    leaf = np.full(len(found.leaf), -1, dtype=np.int64)
    leaf[found.judged] = found.leaf[found.judged]
    return leaf


def _measured(evidence: Evidence, level: float) -> list[Part]:
    binned = binned_inputs(evidence)
    if binned is None:
        return []
    rows, target = evidence.scored, "confidence" if evidence.event is None else evidence.event
    # grown once, because only how regions are judged depends on the level; and on half of the
    # rows, because the intervals of redraws are for one level
    found = evidence.once(
        "regions",
        lambda: find_regions(
            rows,
            binned,
            target=target,
            redraws=0,
            seed=evidence.seed,
            progress=evidence.progress,
        ),
    )
    judged = describe_regions(
        rows, judged_leaves(found), tree=found.tree, target=target, level=level
    )
    return [
        Part(replace(one.gap, label="Observed minus stated"), one.words)
        for one in judged.regions
        if one.n
    ]


Check(
    code="KC007",
    title="Region by region",
    question="Is there a part of the inputs where stated and seen differ more than elsewhere?",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.1, 0.1),
    measured=_measured,
    remedy="Look at the region's rule on the Regions page, and calibrate region by region if it "
    "lasts on other rows.",
    page="regions",
    method="A tree on the residuals of one half of the rows names the regions, and the other half "
    "judges them, so that the intervals hold. The Regions page does the same for many rows; with "
    "fewer it divides none and compares with redrawn outcomes, so it may name other regions: look "
    "there too, because half of few rows can miss one, and then all rows together pass.",
    needs=needs_inputs,
    quick=False,
    place="where",
    comparable=False,
).offer()
