"""Test each region of a given partition: stated against observed rates, or PIT values.

The partition may be that of a column or a calibrator's tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtri, chndtrinc

from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.diagnostics.calibration_curves import FineCells
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regions.region import Region, RegionFault, RegionSearch
from kdcal_core.diagnostics.regions.shift import (
    POWER,
    Shift,
    shift_beyond,
    shift_of_cells,
    shift_test,
)
from kdcal_core.diagnostics.regression.fault import (
    FaultParts,
    PitSample,
    bias_estimate,
    fault_parts,
    named_fault,
    parts_of_sample,
)
from kdcal_core.diagnostics.regression.pit_curves import checked_pit
from kdcal_core.diagnostics.targets import Target, check_level, targets
from kdcal_core.errors import InputError
from kdcal_core.partition.tree import Condition, PartitionTree
from kdcal_core.statistics import Dependence, dependence_of, design_of, effective_size, holm

_BY_STATED = "saddlepoint of the rows' own stated probabilities"
_NO_ROWS = "not defined: no rows"


@dataclass(frozen=True)
class Place:
    """A region that has not been judged yet."""

    leaf: int
    words: str
    conditions: tuple[Condition, ...] = ()


Judge = Callable[[Place, IntArray, float, float], Region]


def judged(
    places: Sequence[Place],
    leaf: IntArray,
    weight: FloatArray,
    level: float,
    judge: Judge,
    looks: int | None = None,
) -> tuple[Region, ...]:
    """The regions with their faults; p values are Holm-corrected over the regions with rows.

    ``looks`` regions are judged together, where these are not all (`join_searches`).
    """
    order = np.argsort(leaf, kind="stable")
    ends = np.searchsorted(leaf[order], [place.leaf for place in places], side="left")
    stops = np.searchsorted(leaf[order], [place.leaf for place in places], side="right")
    rows = [order[a:b] for a, b in zip(ends, stops, strict=True)]
    looks = max(sum(len(r) > 0 for r in rows), 1) if looks is None else looks
    total = float(weight[leaf >= 0].sum())
    found = [
        judge(place, r, float(weight[r].sum()) / total, (1.0 - level) / looks)
        if len(r)
        else _empty(place, level)
        for place, r in zip(places, rows, strict=True)
    ]
    return _corrected(found, level)


def _corrected(found: Sequence[Region], level: float) -> tuple[Region, ...]:
    """The regions with Holm's p values over those with rows, and no fault where chance explains it.

    Over more regions p values only grow, so a fault that was not beyond chance stays none.
    """
    some = np.array([region.n > 0 for region in found])
    adjusted = np.ones(len(found))
    adjusted[some] = holm(np.array([region.p_value for region in found])[some])
    return tuple(
        replace(
            region, adjusted_p=float(p), fault=region.fault if float(p) < 1.0 - level else "none"
        )
        for region, p in zip(found, adjusted, strict=True)
    )


def join_searches(searches: Sequence[RegionSearch]) -> RegionSearch:
    """Several divisions of the same rows as one, with p values corrected for all their regions.

    Parameters
    ----------
    searches : sequence of RegionSearch
        At least one, with the same rows and level. Rows lie in one region of each; the joined
        search does not name them.

    Examples
    --------
    >>> u = (np.arange(200) + 0.5) / 200
    >>> halves = describe_pit_regions(u, np.repeat([0, 1], 100), ("low", "high"))
    >>> every = describe_pit_regions(u, np.zeros(200, dtype=int), ("all",))
    >>> [(one.words, one.fault) for one in join_searches([halves, every]).regions]
    [('low', 'too high'), ('high', 'too low'), ('all', 'none')]
    """
    regions = [one for search in searches for one in search.regions]
    numbered = [replace(one, leaf=at) for at, one in enumerate(regions)]
    return replace(searches[0], regions=_corrected(numbered, searches[0].level)).without_rows()


def by_stated(target: Target, level: float) -> Judge:
    """Judge regions by the stated probabilities and outcomes of their rows."""

    def judge(place: Place, rows: IntArray, share: float, found_at: float) -> Region:
        part = target.only(rows)
        shift = shift_test(part.score, part.hit, part.weight, level, found_at, part.dependence)
        return _of_stated(place, part, shift, share, level)

    return judge


def region_by_evidence(
    target: Target, place: Place, rows: IntArray, largest: float, level: float
) -> Region:
    """A region whose fault is evidence above ``largest``, as `shift_beyond` judges it."""
    part = target.only(rows)
    shift = shift_beyond(part.score, part.hit, part.weight, largest, part.dependence)
    return _of_stated(place, part, shift, float(part.weight.sum() / target.weight.sum()), level)


def _of_stated(place: Place, part: Target, shift: Shift, share: float, level: float) -> Region:
    effective = effective_size(part.hit - part.score, part.weight, part.dependence)
    return _of_shift(place, shift, len(part.score), effective, share, level)


def _of_shift(
    place: Place, shift: Shift, n: int, effective: float, share: float, level: float
) -> Region:
    gap = shift.observed - shift.stated
    observed = _estimate(
        "Observed rate of the event",
        "Observed",
        (shift.observed, shift.stated + shift.low, shift.stated + shift.high),
        n,
        level,
    )
    return Region(
        leaf=place.leaf,
        words=place.words,
        conditions=place.conditions,
        n=n,
        effective=effective,
        share=share,
        stated=shift.stated,
        observed=observed,
        gap=gap_estimate(gap, shift.low, shift.high, n, level),
        p_value=shift.p_value,
        adjusted_p=shift.p_value,
        minimum_detectable=shift.minimum_detectable,
        fault="over-confident" if gap < 0 else "under-confident",
    )


def by_pit(
    pit: FloatArray, weight: FloatArray, level: float, together: Dependence | None = None
) -> Judge:
    """Judge regions by PIT values, with Neyman's smooth test and Kolmogorov-Smirnov's."""

    def judge(place: Place, rows: IntArray, share: float, found_at: float) -> Region:
        mine = None if together is None else together.only(rows)
        parts = fault_parts(pit[rows], level, design_of(weight[rows], mine))
        away = pit[rows] - np.average(pit[rows], weights=weight[rows])
        effective = effective_size(away, weight[rows], mine)
        return _of_parts(place, parts, effective, share, found_at)

    return judge


def _of_parts(
    place: Place, parts: FaultParts, effective: float, share: float, found_at: float
) -> Region:
    fault = named_fault(parts, adjusted_p=0.0)
    bias = fault.bias
    observed = replace(
        bias,
        name="Mean PIT value",
        label="Mean PIT",
        value=bias.value + 0.5,
        low=bias.low + 0.5,
        high=bias.high + 0.5,
        expected=0.5,
    )
    return Region(
        leaf=place.leaf,
        words=place.words,
        conditions=place.conditions,
        n=parts.sample.n,
        effective=effective,
        share=share,
        stated=0.5,
        observed=observed,
        gap=bias,
        p_value=parts.p_value,
        adjusted_p=parts.p_value,
        minimum_detectable=_least_bias(effective, found_at),
        fault=fault.kind,
        spread=fault.spread,
    )


@dataclass(frozen=True)
class Counted:
    """How the rows of a place count: their number, and as how many independent rows of one weight.

    ``weight`` of the cells is then in any unit.
    """

    n: int
    effective: float


def regions_of_cells(
    cells: Sequence[FineCells],
    names: Sequence[str],
    n: float,
    level: float = 0.95,
    counted: Sequence[Counted] | None = None,
) -> tuple[Region, ...]:
    """As :func:`describe_regions`, of places whose rows are counted by their scores.

    Parameters
    ----------
    cells : sequence of FineCells
        Of each place that is judged, with at least one row each. Places may overlap.
    names : sequence of str
    n : float
        Rows of the whole table, or their weight.
    counted : sequence of Counted, optional
        How the rows of each place count, where they have weights or depend on one another.

    Examples
    --------
    >>> one = FineCells(*(np.array([value]) for value in (0.9, 200.0, 200.0, 130.0)))
    >>> [(each.words, each.n, each.fault) for each in regions_of_cells([one], ["south"], 200)]
    [('south', 200, 'over-confident')]
    """
    found_at = (1.0 - level) / max(len(cells), 1)
    found = []
    for leaf, (one, words) in enumerate(zip(cells, names, strict=True)):
        mass = float(one.weight.sum())
        own = Counted(int(mass), mass) if counted is None else counted[leaf]
        share = own.effective / mass
        shift = shift_of_cells(one.score, one.weight * share, one.hits * share, level, found_at)
        found.append(_of_shift(Place(leaf, words), shift, own.n, own.effective, mass / n, level))
    return _corrected(found, level)


def pit_regions_of_samples(
    samples: Sequence[PitSample],
    names: Sequence[str],
    whole: PitSample,
    level: float = 0.95,
    shares: Sequence[float] | None = None,
    rows: Sequence[int] | None = None,
) -> RegionSearch:
    """As :func:`describe_pit_regions`, of places whose PIT values are counted.

    Parameters
    ----------
    samples : sequence of PitSample
        Of each place that is judged, with at least one row each. Places may overlap.
    names : sequence of str
    whole : PitSample
        All rows.
    shares : sequence of float, optional
        Of the weight of all rows; by default of their number.
    rows : sequence of int, optional
        Rows of each place, where they count unlike.
    """
    if shares is None:
        shares = [one.n / whole.n for one in samples]
    found_at = (1.0 - level) / max(len(samples), 1)
    found = [
        _of_parts(Place(leaf, words), parts_of_sample(one, level), one.effective, share, found_at)
        for leaf, (one, words, share) in enumerate(zip(samples, names, shares, strict=True))
    ]
    if rows is not None:
        found = [replace(one, n=n) for one, n in zip(found, rows, strict=True)]
    parts, none = parts_of_sample(whole, level), np.empty(0, dtype=np.int64)
    return RegionSearch(
        tree=None,
        regions=_corrected(found, level),
        overall=bias_estimate(parts),
        overall_p=parts.p_value,
        n_grow=0,
        n_judge=whole.n,
        seed=0,
        level=level,
        target="PIT values",
        leaf=none,
        judged=none,
        regression=True,
    )


def gap_estimate(gap: float, low: float, high: float, n: int, level: float) -> Estimate:
    """Observed minus stated rate."""
    return _estimate("Observed minus stated rate", "Gap", (gap, low, high), n, level)


def _least_bias(rows: float, found_at: float) -> float:
    """Distance of the mean PIT from 1/2 that the smooth test finds in four of five samples."""
    # two tests share the level
    noncentrality = chndtrinc(chdtri(2.0, found_at / 2.0), 2.0, 1.0 - POWER)
    return float(np.sqrt(noncentrality / (12.0 * rows)))


def _empty(place: Place, level: float) -> Region:
    nothing = _estimate("Observed rate of the event", "Observed", (np.nan,) * 3, 0, level)
    nothing = replace(nothing, interval=_NO_ROWS)
    kind: RegionFault = "none"
    return Region(
        leaf=place.leaf,
        words=place.words,
        conditions=place.conditions,
        n=0,
        effective=0.0,
        share=0.0,
        stated=np.nan,
        observed=nothing,
        gap=replace(nothing, name="Observed minus stated rate", label="Gap"),
        p_value=1.0,
        adjusted_p=1.0,
        minimum_detectable=np.inf,
        fault=kind,
    )


def _estimate(name: str, label: str, values: tuple[float, ...], n: int, level: float) -> Estimate:
    value, low, high = values
    return Estimate(name, label, value, low, high, n, level, _BY_STATED, lower_is_better=None)


AnyScored = ScoredSet | Target


def describe_regions(
    scored: AnyScored,
    leaf: Any,
    names: Sequence[str] | None = None,
    *,
    tree: PartitionTree | None = None,
    target: str | int = "confidence",
    level: float = 0.95,
    looks: int | None = None,
) -> RegionSearch:
    """Judge each region of a given partition on all rows, with p values corrected for all regions.

    The p values hold if these rows' outcomes did not influence the partition: a column, or a tree
    grown on other rows. For a tree grown on the same rows they are too small; use
    :func:`find_regions`, which divides the rows.

    Parameters
    ----------
    scored : ScoredSet, or a Target of n rows
    leaf : (n,) array of int
        Region of each row, from 0; a negative number leaves the row out.
    names : sequence of str, optional
        Names of the regions; by default the tree's rules, or "region 1" and so on.
    tree : PartitionTree, optional
        The tree whose leaves are the regions.
    target, level
        As in :func:`find_regions`.
    looks : int, optional
        Number of regions that are judged together, for the smallest gap that would be found; by
        default those of this partition. See :func:`join_searches`.

    Raises
    ------
    InputError
        For region numbers that do not fit, or if no row lies in any region.

    Examples
    --------
    >>> from kdcal_core.diagnostics.targets import confidence_target
    >>> scored = confidence_target([0.9] * 400, [1] * 180 + [0] * 20 + [1] * 130 + [0] * 70)
    >>> found = describe_regions(scored, np.repeat([0, 1], 200), ("north", "south"))
    >>> [(r.words, r.observed.value.__round__(2), r.fault) for r in found.regions]
    [('north', 0.9, 'none'), ('south', 0.65, 'over-confident')]
    """
    check_level(level)
    goal, what = stated_target(scored, target)
    regions, places = _places(leaf, len(goal.score), names, tree)
    rows = np.flatnonzero(regions >= 0)
    return stated_described(goal, what, regions, places, rows, level, tree, 0, looks)


def describe_pit_regions(
    pit: Any,
    leaf: Any,
    names: Sequence[str] | None = None,
    *,
    tree: PartitionTree | None = None,
    level: float = 0.95,
    sample_weight: Any = None,
    looks: int | None = None,
) -> RegionSearch:
    """:func:`describe_regions` for PIT values (n,) in [0, 1].

    Examples
    --------
    >>> u = (np.arange(200) + 0.5) / 200
    >>> found = describe_pit_regions(np.r_[u / 2 + 0.5, u], np.repeat([0, 1], 200))
    >>> [(r.words, r.fault) for r in found.regions]
    [('region 1', 'too low'), ('region 2', 'none')]
    """
    check_level(level)
    values, weight = checked_pit(pit, sample_weight)
    regions, places = _places(leaf, len(values), names, tree)
    rows, together = np.flatnonzero(regions >= 0), dependence_of(sample_weight)
    return pit_described(values, weight, regions, places, rows, level, tree, 0, together, looks)


def stated_target(scored: AnyScored, target: str | int) -> tuple[Target, str]:
    """The binary problem to test, and a name for what is stated."""
    if isinstance(scored, Target):
        return scored, "the stated confidence"
    if isinstance(target, bool) or not isinstance(target, int | np.integer):
        if target != "confidence":
            raise InputError(
                f"target is {target!r}", fix='Choose "confidence" or the index of a class.'
            )
        (found,) = targets(scored.proba, scored.y, scored.design, "confidence")
        return found, "the stated confidence"
    (found,) = targets(scored.proba, scored.y, scored.design, "class", target)
    return found, f"the probability of class {scored.classes[target]}"


def stated_described(
    goal: Target,
    what: str,
    leaf: IntArray,
    places: Sequence[Place],
    rows: IntArray,
    level: float,
    tree: PartitionTree | None,
    seed: int,
    looks: int | None = None,
) -> RegionSearch:
    """Regions judged by ``rows`` of a binary problem."""
    part = goal.only(rows)
    whole = shift_test(part.score, part.hit, part.weight, level, 1.0 - level, part.dependence)
    return RegionSearch(
        tree=tree,
        regions=judged(places, leaf[rows], part.weight, level, by_stated(part, level), looks),
        overall=gap_estimate(
            whole.observed - whole.stated, whole.low, whole.high, len(rows), level
        ),
        overall_p=whole.p_value,
        n_grow=len(leaf) - len(rows),
        n_judge=len(rows),
        seed=seed,
        level=level,
        target=what,
        leaf=leaf,
        judged=rows,
    )


def pit_described(
    pit: FloatArray,
    weight: FloatArray,
    leaf: IntArray,
    places: Sequence[Place],
    rows: IntArray,
    level: float,
    tree: PartitionTree | None,
    seed: int,
    together: Dependence | None = None,
    looks: int | None = None,
) -> RegionSearch:
    """Regions judged by the PIT values of ``rows``."""
    pits, weights = pit[rows], weight[rows]
    some = None if together is None else together.only(rows)
    whole = fault_parts(pits, level, design_of(weights, some))
    return RegionSearch(
        tree=tree,
        regions=judged(
            places, leaf[rows], weights, level, by_pit(pits, weights, level, some), looks
        ),
        overall=bias_estimate(whole),
        overall_p=whole.p_value,
        n_grow=len(leaf) - len(rows),
        n_judge=len(rows),
        seed=seed,
        level=level,
        target="PIT values",
        leaf=leaf,
        judged=rows,
        regression=True,
    )


def _places(
    leaf: Any, n: int, names: Sequence[str] | None, tree: PartitionTree | None
) -> tuple[IntArray, list[Place]]:
    regions = np.asarray(leaf)
    if regions.shape != (n,) or regions.dtype.kind not in "iu" or not (regions >= 0).any():
        raise InputError(
            f"The regions of {n:,} rows have shape {regions.shape}, or hold no region",
            fix="Give one whole number for each row, from 0, and put at least one row in a region.",
        )
    last = int(regions.max())
    if names is None and tree is None and last >= n:
        raise InputError(
            f"A row lies in region {last:,}, but there are {n:,} rows",
            fix="Number the regions from 0 without gaps.",
        )
    count = last + 1 if names is None else len(names)
    count = tree.n_leaves if tree is not None else count
    if last >= count or (names is not None and len(names) != count):
        raise InputError(
            f"A row lies in region {last}, but there are {count} regions",
            fix="Number the regions from 0, one for each name or leaf.",
        )
    given = [str(name) for name in names] if names is not None else None
    if tree is not None:
        words = given or [tree.words(k) for k in range(count)]
        return regions.astype(np.int64), [Place(k, words[k], tree.rule(k)) for k in range(count)]
    words = given or [f"region {k + 1}" for k in range(count)]
    return regions.astype(np.int64), [Place(k, words[k]) for k in range(count)]
