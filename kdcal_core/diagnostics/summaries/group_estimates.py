"""Results by declared group from a summary of the rows, named as those from the rows.

Counts and means are exact, and so are calibration errors of equal bins. An interval that takes each
row's own probability takes the mean of its cell instead
(:func:`kdcal_core.diagnostics.regions.shift.shift_of_cells`): its ends move by less than 7e-5 of
its width. What the cells hide of an AUC is as in
`kdcal_core.diagnostics.summaries.class_estimates`. With more than two classes a group has an AUC
only if every class was counted. Its interval is as wide as if the classes' areas always erred
together; measured with three classes, it is 1.3 times as wide as that of the rows.

Where rows have weights, a group counts as Kish's number of its rows. Where they have clusters, sums
of 128 random blocks of these say by how much each group's gap and, with two classes, its AUC are
wider. With more, its AUC is taken to be wider by as much as the gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.calibration_error import BinnedTargets, error_of_bins
from kdcal_core.diagnostics.estimate import of_event
from kdcal_core.diagnostics.group_measures import GroupMeasures, GroupTable, measures_of_group
from kdcal_core.diagnostics.regions import Region, RegionSearch
from kdcal_core.diagnostics.regions.judging import (
    Counted,
    pit_regions_of_samples,
    regions_of_cells,
)
from kdcal_core.diagnostics.scores import auroc_of
from kdcal_core.diagnostics.summaries.class_areas import area_of_cells, areas_of_cells
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.cluster_blocks import (
    SCORE_BITS,
    BlockCells,
    BlockSums,
    group_pit_ends,
)
from kdcal_core.diagnostics.summaries.group_summary import GroupSummary
from kdcal_core.diagnostics.summaries.pit_cells import ClusteredPit, PitCells
from kdcal_core.diagnostics.summaries.regression_summary import RegressionSummary
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells
from kdcal_core.diagnostics.summaries.score_grid import upper_ends
from kdcal_core.diagnostics.targets import check_level
from kdcal_core.errors import InputError
from kdcal_core.statistics import jeffreys_test

_BINS, _DRAWS = 15, 1000
_NEEDS_ROWS = "not available: with more than two classes it needs the rows themselves"


@dataclass(frozen=True, eq=False)
class _GroupPit(PitCells):
    """PIT values of a group, each cell's at their mean, so that the mean of all is exact."""

    mean: FloatArray

    @property
    def pit(self) -> FloatArray:  # type: ignore[override]
        return self.mean


@dataclass(frozen=True, eq=False)
class _ClusteredGroupPit(ClusteredPit):
    """As `_GroupPit`, of rows in clusters."""

    mean: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def pit(self) -> FloatArray:  # type: ignore[override]
        return self.mean

    @property
    def effective(self) -> float:
        away = self.mean - float(self.weight @ self.mean)
        return self.n / self.effect(away, "share")


@dataclass(frozen=True, eq=False)
class _Group:
    """The scores of a group, in units of the rows' weights.

    Attributes
    ----------
    name : str
    cells : ScoreCells
    rows : int
    kish : float
        Its rows that count alike.
    effective : float
        As how many independent rows of them its gap counts.
    """

    name: str
    cells: ScoreCells
    rows: int
    kish: float
    effective: float

    @property
    def counted(self) -> Counted:
        return Counted(self.rows, self.effective)

    def fewer(self, cells: ScoreCells) -> ScoreCells:
        """Cells of this group as those of independent rows."""
        return cells.fewer(self.cells.n / self.effective)


def summary_group_regions(
    summary: ClassSummary, event: int | None = None, *, level: float = 0.95
) -> tuple[tuple[Region, ...], ...]:
    """The groups of each division, with p values corrected for all groups of the division.

    As :func:`kdcal_core.diagnostics.describe_regions` of each of
    :func:`kdcal_core.diagnostics.declared_divisions`.

    Raises
    ------
    InputError
        If the summary has no groups, or their counts are not of what is judged.
    """
    check_level(level)
    groups = _groups(summary)
    return tuple(_judged(each, _mass(groups), level) for each in _scores(groups, event))


def summary_groups(
    summary: ClassSummary, event: int | None = None, *, level: float = 0.95, seed: int = 0
) -> GroupTable:
    """As :func:`kdcal_core.diagnostics.measure_groups` of all divisions.

    Raises
    ------
    InputError
        As `summary_group_regions`.

    Examples
    --------
    >>> import pandas as pd
    >>> from dataclasses import replace
    >>> from kdcal_core.data import ScoredSet
    >>> from kdcal_core.diagnostics.summaries import class_groups, summarise
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.2, 0.8, 2_000)
    >>> y = (rng.random(2_000) < np.where(np.arange(2_000) < 1_000, p, p**3)).astype(int)
    >>> rows = ScoredSet(np.stack([1 - p, p], axis=1), y, ("no", "yes"), "", "evaluation")
    >>> frame = pd.DataFrame({"place": np.repeat(["north", "south"], 1_000)})
    >>> whole = summarise(rows.proba, y, rows.classes)
    >>> found = summary_groups(replace(whole, groups=class_groups(frame, rows, 1)), 1)
    >>> [(one.name, one.region.fault) for one in found.groups]
    [('north', 'none'), ('south', 'over-confident')]
    """
    check_level(level)
    groups, scores = _groups(summary), _scores(_groups(summary), event)
    ranked = [1] if len(summary.classes) == 2 else list(range(len(summary.classes)))
    if not set(ranked) <= set(groups.targets):
        ranked = []  # only some classes were counted
    divisions = _labels(groups)
    areas = [[one for pair in divisions for one in _ranked(groups, at, *pair)] for at in ranked]
    each = [one for division in scores for one in division]
    looks = max(len(each), 1)
    wider = 1.0 - (1.0 - level) / looks
    judged = _judged(each, _mass(groups), level)
    wide = _judged(each, _mass(groups), wider)

    def measured(
        at: Region, interval: Region, one: _Group, area: list[ScoreCells], level: float
    ) -> GroupMeasures:
        return _measured(summary, at, interval, one, area, event, level, seed)

    found = tuple(
        measured(one, its, cell, [of_class[at] for of_class in areas], wider)
        for at, (one, its, cell) in enumerate(zip(judged, wide, each, strict=True))
    )
    every = np.zeros(len(groups.values), np.int64), ["all rows"]
    (whole,) = _of_division(groups, event, *every)
    (region,) = _judged([whole], _mass(groups), level)
    area = [_ranked(groups, at, every[1], every[0])[0] for at in ranked]
    overall = measured(region, region, whole, area, level)
    said = "the stated confidence"
    if event is not None:
        said = f"the probability of class {summary.classes[event]}"
    return GroupTable(found, overall, level, said)


def summary_pit_groups(
    summary: RegressionSummary, *, level: float = 0.95
) -> tuple[RegionSearch, ...]:
    """Place and spread of the PIT values of the groups of each division.

    As :func:`kdcal_core.diagnostics.describe_pit_regions` of each of
    :func:`kdcal_core.diagnostics.declared_divisions`.

    Raises
    ------
    InputError
        If the summary has no groups.
    """
    check_level(level)
    return tuple(
        pit_regions_of_samples(samples, names, summary.cells, level, shares, rows)
        for names, samples, shares, rows in _pits(_groups(summary))
    )


def summary_pit_group_search(summary: RegressionSummary, *, level: float = 0.95) -> RegionSearch:
    """The groups of all divisions as one, with p values corrected for all groups.

    As :func:`kdcal_core.diagnostics.join_searches`.
    """
    check_level(level)
    found = _pits(_groups(summary))
    return pit_regions_of_samples(
        [one for _, samples, *_ in found for one in samples],
        [one for names, *_ in found for one in names],
        summary.cells,
        level,
        [one for *_, shares, _ in found for one in shares],
        [one for *_, rows in found for one in rows],
    )


def _groups(summary: ClassSummary | RegressionSummary) -> GroupSummary:
    if summary.groups is None:
        raise InputError("The summary has no groups", fix="Declare them before the rows are read.")
    return summary.groups


def _mass(groups: GroupSummary) -> float:
    """Units of the weights of all rows, or their number."""
    return float(groups.count[groups.places[1] == 0, 0].sum())


def _labels(groups: GroupSummary) -> list[tuple[Sequence[str], IntArray]]:
    return [(names, label) for label, names in groups.divisions()]


def _judged(each: Sequence[_Group], mass: float, level: float) -> tuple[Region, ...]:
    fine, names = [one.cells.fine() for one in each], [one.name for one in each]
    return regions_of_cells(fine, names, mass, level, [one.counted for one in each])


def _scores(groups: GroupSummary, target: int | None) -> list[list[_Group]]:
    """The groups of each division."""
    return [_of_division(groups, target, label, names) for names, label in _labels(groups)]


def _of_division(
    groups: GroupSummary, target: int | None, label: IntArray, names: Sequence[str]
) -> list[_Group]:
    found = []
    for at, (name, cells) in enumerate(
        zip(names, _cells_of(groups, target, label, names), strict=True)
    ):
        rows, kish = _kish(groups, label, at, cells.n)
        effective = kish / _effect(groups, label, at, cells, kish)
        found.append(_Group(name, cells, rows, kish, effective))
    return found


def _kish(groups: GroupSummary, label: IntArray, group: int, mass: float) -> tuple[int, float]:
    """Rows of a group, and Kish's number of those that count alike."""
    if groups.weights is None:
        return int(mass), mass
    rows, squares = groups.weights[label == group].sum(axis=0).tolist()
    return rows, mass * mass / max(squares, 1)


def _effect(
    groups: GroupSummary, label: IntArray, group: int, cells: ScoreCells, kish: float
) -> float:
    """By how much clusters multiply the variance of a group's gap."""
    counts = groups.by_block(label, group)
    if counts is None or not cells.n:
        return 1.0
    rows, hits, said = counts.sum(axis=1).astype(np.float64).T * (kish / cells.n)
    said = np.ldexp(said, -SCORE_BITS)
    blocks = BlockSums(rows, n_times=groups.n_times)
    gap = float(hits.sum() - said.sum()) / blocks.n
    hit, miss = 1.0 - cells.score - gap, -cells.score - gap
    own = float(cells.hits @ np.square(hit) + cells.misses @ np.square(miss)) * kish / cells.n
    return blocks.effect(hits - said - gap * rows, own, "share")


def _cells_of(
    groups: GroupSummary, target: int | None, label: IntArray, names: Sequence[str]
) -> list[ScoreCells]:
    return [ScoreCells.of_counts(one, target) for one in _counts(groups, target, label, names)]


def _ranked(
    groups: GroupSummary, target: int | None, names: Sequence[str], label: IntArray
) -> list[ScoreCells]:
    """Cells of groups whose area is asked, with their blocks where these count the target."""
    found = _cells_of(groups, target, label, names)
    if groups.block_cells is None or len(groups.targets) > 2:
        return found
    number = groups.targets.index(target)
    for at, cells in enumerate(found):
        counts = groups.by_block(label, at, number)
        assert counts is not None
        _, kish = _kish(groups, label, at, cells.n)
        of_kish = cells.fewer(cells.n / kish) if kish else cells
        share = of_kish.n / max(cells.n, 1.0)
        found[at] = replace(of_kish, clusters=BlockCells.of(counts, share, n_times=groups.n_times))
    return found


_Pits = tuple[Sequence[str], list[PitCells], list[float], list[int]]


def _pits(groups: GroupSummary) -> list[_Pits]:
    """Names, samples, shares of the weight and rows of the groups of each division."""
    found, whole = [], _mass(groups)
    for names, label in _labels(groups):
        each: list[PitCells] = []
        shares, rows = [], []
        for at, counts in enumerate(_counts(groups, None, label, names)):
            score, mass = ScoreCells.of_counts(counts).score, float(counts[:, 0].sum())
            n, kish = _kish(groups, label, at, mass)
            blocks = groups.by_block(label, at)
            count: Any = counts[:, 0] if groups.weights is None else counts[:, 0] * (kish / mass)
            if blocks is None:
                each.append(_GroupPit(count, score))
            else:
                scaled = blocks[..., 0].astype(np.float64) * (kish / mass)
                ends, n_times = group_pit_ends(), groups.n_times
                each.append(_ClusteredGroupPit(count, scaled, ends, score, n_times=n_times))
            shares.append(mass / whole)
            rows.append(n)
        found.append((names, each, shares, rows))
    return found


def _counts(
    groups: GroupSummary, target: int | None, label: IntArray, names: Sequence[str]
) -> Iterator[IntArray]:
    """Counts of each group by cell, (C, 4), from the group of each combination (g,)."""
    if target not in groups.targets:
        raise InputError(
            "The groups of the summary were counted for another event",
            fix="Summarise the rows again.",
        )
    combination, number, cell = groups.places
    mine = np.flatnonzero(number == groups.targets.index(target))
    mine = mine[np.argsort(label[combination[mine]], kind="stable")]
    ends = np.searchsorted(label[combination[mine]], np.arange(len(names) + 1))
    for a, b in pairwise(ends):
        total = np.zeros((len(upper_ends()), 4), np.int64)
        np.add.at(total, cell[mine[a:b]], groups.count[mine[a:b]])
        yield total


def _measured(
    summary: ClassSummary,
    judged: Region,
    wide: Region,
    group: _Group,
    area: Sequence[ScoreCells],
    event: int | None,
    level: float,
    seed: int,
) -> GroupMeasures:
    cells, n = group.fewer(group.cells), group.rows
    bins = BinnedTargets((cells.table(_BINS),), (1.0,), n)
    error = error_of_bins(bins, "confidence", "l1", _BINS, "uniform", False, level, _DRAWS, seed)
    jeffreys = None
    if event is not None:
        error = of_event(error)
        mean = float(cells.count @ cells.score) / cells.n
        jeffreys = jeffreys_test(float(cells.hits.sum()), cells.n, mean)
    by_gap = any(one.clusters is None for one in area)
    if by_gap:
        area = [group.fewer(one) for one in area]
    if not area:
        nothing = (np.nan,) * 3
        auc = auroc_of("one against the rest", nothing, n, level, _NEEDS_ROWS)
    elif len(summary.classes) == 2:
        auc = area_of_cells(area[0], f"the class {summary.classes[1]}", n, level)
    else:
        auc = areas_of_cells(area, n, level)
    if summary.clusters is not None and by_gap:
        auc = replace(auc, interval=f"{auc.interval}; clusters widen it as they do the gap's")
    return measures_of_group(judged, wide, event, error, auc, jeffreys)
