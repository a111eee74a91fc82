"""Regions of a set of very many rows: found on rows drawn from it, judged on counts of all others.

The region of every row follows from the columns of the tree alone, and its scores are counted as
those of a declared group are, so that no result needs the rows in order.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from kdcal_core.data import IntArray, ScoredSet, at_most
from kdcal_core.diagnostics import RegionSearch
from kdcal_core.diagnostics.regions.search import PitResidual, search_tree, stated_residuals
from kdcal_core.diagnostics.summaries import (
    ClassSummary,
    PitRegions,
    ScoreRegions,
    class_groups,
    pit_groups,
)
from kdcal_core.errors import InputWarning
from kdcal_core.partition.tree import BinnedInputs, Criterion, PartitionTree, bin_inputs
from kdcal_core.review import Which
from kdcal_core.tasks.decorators import Sets
from kdcal_core.tasks.pit_measures import pit_values

GROWN_ON = 500_000
"""Rows on which a tree is grown at most: half of the fewest rows that are summarised."""
_MAPPED = 200_000  # rows to which the map of every region is fitted


@dataclass(frozen=True, eq=False)
class CountedRegions:
    """A search of very many rows.

    Attributes
    ----------
    search : RegionSearch
        With the region of each row; -1 for those on which the tree was grown.
    cells : ScoreRegions or PitRegions
        Scores of the judged rows by region.
    """

    search: RegionSearch
    cells: ScoreRegions | PitRegions

    def drawn(self, scored: ScoredSet) -> tuple[ScoredSet, RegionSearch]:
        """Some of the judged rows, for what has to be fitted to rows."""
        rows = at_most(len(self.search.leaf), _MAPPED, seed=1)
        rows = rows[self.search.leaf[rows] >= 0]
        part = ScoredSet(scored.proba[rows], scored.y[rows], scored.classes, "", scored.name)
        return part, replace(self.search, leaf=self.search.leaf[rows], judged=np.arange(len(rows)))


def regions_by_counts(
    sets: Sets,
    which: Which,
    inputs: Sequence[str],
    *,
    target: int | None,
    max_depth: int,
    min_rows: int | None,
) -> CountedRegions | None:
    """As `kdcal_core.diagnostics.find_regions`, of a set with a summary; None of any other.

    Raises
    ------
    InputError
        As from there.
    """
    whole: object = sets.summary(which) if _classes(sets) else sets.regression_summary(which)
    if whole is None:
        return None
    names, n = tuple(inputs), sets.reader.review.tables[which].n_rows
    most = min(GROWN_ON, n // 2)
    sets.progress(0.1, "Reading drawn rows")
    with warnings.catch_warnings(action="ignore", category=InputWarning):  # of pooled categories
        binned = bin_inputs(sets.reader.frame(which, names, most, coded=True))
    rows = at_most(n, most)  # those of the frame
    sets.progress(0.2, "Looking for regions in drawn rows")
    if _classes(sets):
        scored = sets.read(which)
        part = ScoredSet(scored.proba[rows], scored.y[rows], scored.classes, "", which)
        criterion: Criterion = stated_residuals(part, "confidence" if target is None else target)
    else:
        criterion = PitResidual(pit_values(sets, which)[rows], np.ones(len(rows)))
    tree, least = search_tree(binned, criterion, max_depth, min_rows)
    sets.progress(0.4, "Finding the region of every row")
    leaf = _leaves(sets, which, tree, binned, n)
    leaf[rows] = -1
    sets.progress(0.6, "Counting the rows of every region")
    words = pd.Index([str(at) for at in range(tree.n_leaves)])
    frame = pd.DataFrame({"region": pd.Categorical.from_codes(leaf.astype(np.int16), words)})
    cells: ScoreRegions | PitRegions
    if isinstance(whole, ClassSummary):
        groups = class_groups(frame, sets.read(which), target)
        cells, what = ScoreRegions.of_groups(groups, target, tree.n_leaves), "the stated confidence"
        if target is not None:
            what = f"the probability of class {whole.classes[target]}"
    else:
        groups = pit_groups(frame, pit_values(sets, which))
        cells, what = PitRegions.of_groups(groups, None, tree.n_leaves), "PIT values"
    search = cells.search(tree, n_grow=len(rows), least=least, what=what)
    return CountedRegions(replace(search, leaf=leaf, judged=np.flatnonzero(leaf >= 0)), cells)


def _classes(sets: Sets) -> bool:
    return sets.reader.review.task == "classification"


def _leaves(sets: Sets, which: Which, tree: PartitionTree, drawn: BinnedInputs, n: int) -> IntArray:
    """The leaf of every row, of which only the columns are read that the tree asks for."""
    asked = np.unique(tree.feature[tree.feature >= 0])
    if not len(asked):
        return np.zeros(n, dtype=np.int64)
    columns = tuple(drawn.columns[at] for at in asked)
    frame = sets.reader.frame(which, tuple(one.name for one in columns), coded=True)
    codes = np.zeros((n, len(drawn.columns)), dtype=np.uint8, order="F")
    codes[:, asked] = bin_inputs(frame, like=columns).codes
    unknown = np.zeros(len(drawn.columns), dtype=np.int64)
    return tree.apply(BinnedInputs(codes, drawn.columns, unknown))
