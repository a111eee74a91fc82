"""KC007: whether any part of the inputs is worse calibrated than the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kdcal_core.checks.check import Check, Part
from kdcal_core.checks.evidence import Evidence
from kdcal_core.data import IntArray
from kdcal_core.diagnostics import ANY_PART, RegionSearch, describe_regions, find_regions
from kdcal_core.errors import quiet
from kdcal_core.partition.tree import ALL_ROWS, BinnedInputs, bin_inputs, unusable_columns
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
    with quiet():  # pooled categories are named "other"
        return bin_inputs(inputs[kept]) if kept else None


def binned_inputs(evidence: Evidence) -> BinnedInputs | None:
    """The inputs of the judged rows, ready for trees; None where none can be cut."""
    return evidence.once("binned", lambda: _binned(evidence))


def of_both_halves(
    searches: tuple[RegionSearch, RegionSearch],
    described: Callable[[RegionSearch], RegionSearch],
    everywhere: RegionSearch,
    parts_of: Callable[[RegionSearch], list[Part]],
) -> list[Part]:
    """The regions that either half of the rows names, each judged by the other half.

    Beside them stands the gap that a part may have and both searches miss, around that of all
    rows: without regions, a check passes only where there are rows enough to find one.

    Parameters
    ----------
    searches : two RegionSearch
        Their halves are exchanged.
    described : callable
        ``(search) -> RegionSearch``: the same regions, judged at the level that is asked for.
    everywhere : RegionSearch
        All rows as one region, at this level.
    parts_of : callable
        ``(search) -> list of Part``
    """
    found = [parts_of(described(one)) for one in searches if not one.one_part]
    known = {part.name for part in found[0]} if found else set()
    for part in found[1] if len(found) > 1 else ():
        found[0].append(replace(part, name=f"{part.name}{_AGAIN}") if part.name in known else part)
    parts = found[0] if found else parts_of(everywhere)
    return [*parts, _missed(searches[0], everywhere, parts[0].estimate.label)]


_AGAIN = " (found in the other half)"


def _missed(search: RegionSearch, everywhere: RegionSearch, label: str) -> Part:
    """The gap of a part that neither of two such searches notices."""
    overall = replace(everywhere.overall, label=label)
    # each of them misses it with the root of the chance that both do
    beside = search.unnoticed(1.0 - (1.0 - everywhere.level) ** 0.5)
    if not np.isfinite(beside):
        few = f"a fifth of half of them has fewer than the {search.least:,} rows of a region"
        return Part(replace(overall, value=np.nan, low=np.nan, high=np.nan, interval=few), ANY_PART)
    value, interval = overall.value, "what a search of so many rows may miss"
    return Part(
        replace(overall, low=value - beside, high=value + beside, interval=interval), ANY_PART
    )


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

    def searched(swap: bool) -> RegionSearch:
        return find_regions(rows, binned, target=target, redraws=0, seed=evidence.seed, swap=swap)

    def described(found: RegionSearch) -> RegionSearch:
        leaf = judged_leaves(found)
        return describe_regions(rows, leaf, tree=found.tree, target=target, level=level)

    # grown once, because only how regions are judged depends on the level
    searches = evidence.once("regions", lambda: (searched(False), searched(True)))
    one = np.zeros(rows.n_rows, dtype=np.int64)
    everywhere = describe_regions(rows, one, (ALL_ROWS,), target=target, level=level)
    return of_both_halves(searches, described, everywhere, _parts)


def _parts(search: RegionSearch) -> list[Part]:
    label = "Observed minus stated"
    return [Part(replace(one.gap, label=label), one.words) for one in search.regions if one.n]


Check(
    code="KC007",
    title="Region by region",
    question="Is there a part of the inputs where stated and seen differ more than elsewhere?",
    fault="it is wrong about a part of the inputs",
    family="calibration",
    tasks=("classification",),
    limit=Limit(-0.1, 0.1),
    bounds=(-1.0, 1.0),
    target=0.0,
    measured=_measured,
    remedy="Look at the region's rule, and calibrate region by region if it lasts on other rows.",
    page="regions",
    method="One half of the rows is searched for regions, by a tree on the residuals, and the "
    "other half judges what was found; then the halves change places. So no region is judged by "
    "the rows that suggested it. A search may also miss a region: the check passes only if the "
    "largest gap that both may miss, in a fifth of the rows and along one column, is within the "
    "limit too. The Regions page searches all rows at once, against redrawn outcomes: it finds "
    "more, but its estimates are of regions that were chosen for being far off.",
    needs=needs_inputs,
    quick=False,
    place="where",
    comparable=False,
).offer()
