"""Judgement of each region of a given partition, such as a column's or a calibrator's tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.diagnostics.regions.judging import (
    Place,
    by_pit,
    by_stated,
    gap_estimate,
    judged,
)
from kdcal_core.diagnostics.regions.results import RegionSearch
from kdcal_core.diagnostics.regions.shift import shift_test
from kdcal_core.diagnostics.regression.checks import checked_pit
from kdcal_core.diagnostics.regression.fault import bias_estimate, fault_parts
from kdcal_core.diagnostics.targets import Target, check_level, targets
from kdcal_core.errors import InputError
from kdcal_core.partition.tree import PartitionTree

AnyScored = ScoredSet | Target


def describe_regions(
    scored: AnyScored,
    leaf: Any,
    names: Sequence[str] | None = None,
    *,
    tree: PartitionTree | None = None,
    target: str | int = "confidence",
    level: float = 0.95,
) -> RegionSearch:
    """Each region of a given partition judged on all rows, p values corrected for all of them.

    The p values hold if these rows' outcomes did not influence the partition: a column, or a tree
    grown on training rows or on other rows. For a tree grown on the same rows they are too small;
    :func:`find_regions` divides the rows for that.

    Parameters
    ----------
    scored : ScoredSet, or a Target of n rows
    leaf : (n,) array of int
        Region of each row, from 0; a negative one leaves the row out.
    names : sequence of str, optional
        What to call the regions; the tree's rules, or "region 1" and so on where not given.
    tree : PartitionTree, optional
        Whose leaves the regions are.
    target, level
        As in :func:`find_regions`.

    Raises
    ------
    InputError
        For region numbers that do not fit, or no row in any region.

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
    return stated_described(goal, what, regions, places, rows, level, tree, 0)


def describe_pit_regions(
    pit: Any,
    leaf: Any,
    names: Sequence[str] | None = None,
    *,
    tree: PartitionTree | None = None,
    level: float = 0.95,
    sample_weight: Any = None,
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
    rows = np.flatnonzero(regions >= 0)
    return pit_described(values, weight, regions, places, rows, level, tree, 0)


def stated_target(scored: AnyScored, target: str | int) -> tuple[Target, str]:
    """The binary problem to test, and a name for what is stated."""
    if isinstance(scored, Target):
        return scored, "the stated confidence"
    if isinstance(target, bool) or not isinstance(target, int | np.integer):
        if target != "confidence":
            raise InputError(
                f"target is {target!r}", fix='Choose "confidence" or the index of a class.'
            )
        (found,) = targets(scored.proba, scored.y, scored.weight, "confidence")
        return found, "the stated confidence"
    (found,) = targets(scored.proba, scored.y, scored.weight, "class", target)
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
) -> RegionSearch:
    """Regions judged by ``rows`` of a binary problem."""
    part = Target(
        goal.label, goal.score[rows], goal.hit[rows], goal.weight[rows], goal.rows[rows], goal.share
    )
    whole = shift_test(part.score, part.hit, part.weight, level, 1.0 - level)
    return RegionSearch(
        tree=tree,
        regions=judged(places, leaf[rows], part.weight, level, by_stated(part, level)),
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
) -> RegionSearch:
    """Regions judged by the PIT values of ``rows``."""
    whole = fault_parts(pit[rows], level, weight[rows])
    return RegionSearch(
        tree=tree,
        regions=judged(
            places, leaf[rows], weight[rows], level, by_pit(pit[rows], weight[rows], level)
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
            fix="Give one whole number a row, from 0 on, and at least one row a region.",
        )
    last = int(regions.max())
    if names is None and tree is None and last >= n:
        raise InputError(
            f"A row lies in region {last:,}, and there are {n:,} rows",
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
