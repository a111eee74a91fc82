"""Results by declared group from a summary of the rows, named as those from the rows.

Counts and means are exact, and so are calibration errors of equal bins. An interval that takes each
row's own probability takes the mean of its cell instead
(:func:`kdcal_core.diagnostics.regions.shift.shift_of_cells`): its ends move by less than 7e-5 of
its width. What the cells hide of an AUC is as in
`kdcal_core.diagnostics.summaries.class_estimates`. With more than two classes a group has an AUC
only if every class was counted. Its interval is as wide as if the classes' areas always erred
together; measured with three classes, it is 1.3 times as wide as that of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.calibration_error import BinnedTargets, error_of_bins
from kdcal_core.diagnostics.estimate import of_event
from kdcal_core.diagnostics.group_measures import GroupMeasures, GroupTable, measures_of_group
from kdcal_core.diagnostics.regions import Region, RegionSearch
from kdcal_core.diagnostics.regions.judging import pit_regions_of_samples, regions_of_cells
from kdcal_core.diagnostics.scores import auroc_of
from kdcal_core.diagnostics.summaries.class_estimates import area_of_cells, areas_of_cells
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.group_summary import GroupSummary
from kdcal_core.diagnostics.summaries.pit_cells import PitCells
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
    return tuple(
        regions_of_cells([one.fine() for one in cells], names, summary.n, level)
        for names, cells in _scores(_groups(summary), event)
    )


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
    groups = _groups(summary)
    scores = _scores(groups, event)
    ranked = [1] if len(summary.classes) == 2 else list(range(len(summary.classes)))
    if not set(ranked) <= set(groups.targets):
        ranked = []  # only some classes were counted
    areas = [[one for _, cells in _scores(groups, at) for one in cells] for at in ranked]
    names = [name for one, _ in scores for name in one]
    cells = [one for _, each in scores for one in each]
    looks = max(len(cells), 1)
    wider = 1.0 - (1.0 - level) / looks
    fine = [one.fine() for one in cells]
    judged = regions_of_cells(fine, names, summary.n, level)
    wide = regions_of_cells(fine, names, summary.n, wider)

    def measured(
        at: Region, interval: Region, one: ScoreCells, area: list[ScoreCells], level: float
    ) -> GroupMeasures:
        return _measured(summary, at, interval, one, area, event, level, seed)

    found = tuple(
        measured(one, its, cell, [of_class[at] for of_class in areas], wider)
        for at, (one, its, cell) in enumerate(zip(judged, wide, cells, strict=True))
    )
    every = np.zeros(len(groups.values), np.int64), ["all rows"]
    (whole,) = _cells_of(groups, event, *every)
    (region,) = regions_of_cells([whole.fine()], every[1], summary.n, level)
    area = [_cells_of(groups, at, *every)[0] for at in ranked]
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
        pit_regions_of_samples(samples, names, summary.cells, level)
        for names, samples in _pits(_groups(summary))
    )


def summary_pit_group_search(summary: RegressionSummary, *, level: float = 0.95) -> RegionSearch:
    """The groups of all divisions as one, with p values corrected for all groups.

    As :func:`kdcal_core.diagnostics.join_searches`.
    """
    check_level(level)
    found = _pits(_groups(summary))
    samples = [one for _, each in found for one in each]
    names = [name for each, _ in found for name in each]
    return pit_regions_of_samples(samples, names, summary.cells, level)


def _groups(summary: ClassSummary | RegressionSummary) -> GroupSummary:
    if summary.groups is None:
        raise InputError("The summary has no groups", fix="Declare them before the rows are read.")
    return summary.groups


def _scores(
    groups: GroupSummary, target: int | None
) -> list[tuple[Sequence[str], list[ScoreCells]]]:
    """Names and cells of the groups of each division."""
    return [(names, _cells_of(groups, target, label, names)) for label, names in groups.divisions()]


def _cells_of(
    groups: GroupSummary, target: int | None, label: IntArray, names: Sequence[str]
) -> list[ScoreCells]:
    return [ScoreCells.of_counts(one, target) for one in _counts(groups, target, label, names)]


def _pits(groups: GroupSummary) -> list[tuple[Sequence[str], list[_GroupPit]]]:
    found = []
    for label, names in groups.divisions():
        each = []
        for counts in _counts(groups, None, label, names):
            score = ScoreCells.of_counts(counts).score
            each.append(_GroupPit(counts[:, 0], score))
        found.append((names, each))
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
    cells: ScoreCells,
    area: Sequence[ScoreCells],
    event: int | None,
    level: float,
    seed: int,
) -> GroupMeasures:
    n, hits = int(cells.n), float(cells.hits.sum())
    bins = BinnedTargets((cells.table(_BINS),), (1.0,), n)
    error = error_of_bins(bins, "confidence", "l1", _BINS, "uniform", False, level, _DRAWS, seed)
    jeffreys = None
    if event is not None:
        error = of_event(error)
        jeffreys = jeffreys_test(hits, n, float(cells.count @ cells.score) / n)
    if not area:
        nothing = (np.nan,) * 3
        auc = auroc_of("one against the rest", nothing, n, level, _NEEDS_ROWS)
    elif len(summary.classes) == 2:
        auc = area_of_cells(area[0], f"the class {summary.classes[1]}", n, level)
    else:
        auc = areas_of_cells(area, n, level)
    return measures_of_group(judged, wide, event, error, auc, jeffreys)
