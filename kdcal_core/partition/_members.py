"""Members of the leaves of a forest, as runs of consecutive polytopes or as columns to compare."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Costs in units of counting one run in or out, measured: a polytope compared with a large leaf,
# and a polytope passed over in a row's tally that nothing lets us skip.
COMPARED, PASSED = 1 / 150, 0.6
WIDEST = 4  # ids spread over more than this many times the rows are sorted, not tabled


@dataclass(frozen=True, eq=False)
class Members:
    """Which polytopes fall into each leaf.

    Attributes
    ----------
    ids, id_starts : ids of the leaves of every tree, ascending, one tree after the other
    starts : (leaves + 1,) first run of each leaf
    runs : (runs, 2) where each run of polytopes begins and ends
    large_of_leaf : (leaves,) uint8, a large leaf's number in its tree from 1, else 0
    large : (trees, p) uint8, each polytope's large leaf; (0, p) where no leaf is large
    n_polytopes : int
    """

    ids: NDArray[np.int64]
    id_starts: NDArray[np.int64]
    starts: NDArray[np.int64]
    runs: NDArray[np.int32]
    large_of_leaf: NDArray[np.uint8]
    large: NDArray[np.uint8]
    n_polytopes: int

    @property
    def n_trees(self) -> int:
        return len(self.id_starts) - 1

    def scratch(self, n_rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Zeros: the differences of the matches, and the matches in large leaves."""
        few = self.n_trees < 2**15
        whole_words = -(-(self.n_polytopes + 1) // 4) * 4
        change = np.zeros(whole_words, dtype=np.int16 if few else np.int32)
        compared = self.n_polytopes if len(self.large) else 0
        return change, np.zeros((n_rows, compared), dtype=np.uint16 if few else np.uint32)


def find_members(leaves: NDArray[Any]) -> tuple[Members, NDArray[np.int32]]:
    """The members of every leaf, and the leaf of each polytope as (trees, p) numbers."""
    from kdcal_core.partition._member_kernels import write_runs

    numbers, ids, runs_of_leaf = _number_all(leaves)
    id_starts = np.concatenate([[0], np.cumsum([len(of_tree) for of_tree in ids])])
    numbers += id_starts[:-1, None].astype(np.int32)
    n_runs = np.concatenate(runs_of_leaf)
    large_of_leaf, large = _find_large(numbers, id_starts, n_runs)
    starts = np.concatenate([[0], np.cumsum(np.where(large_of_leaf, 0, n_runs))])
    runs = np.empty((starts[-1], 2), dtype=np.int32)
    next_run = starts[:-1].copy()
    for of_tree in numbers:
        write_runs(of_tree, large_of_leaf, next_run, runs)
    members = Members(
        ids=np.concatenate(ids),
        id_starts=id_starts,
        starts=starts,
        runs=runs,
        large_of_leaf=large_of_leaf,
        large=large,
        n_polytopes=len(leaves),
    )
    return members, numbers


def _number_all(
    leaves: NDArray[Any],
) -> tuple[NDArray[np.int32], list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Every tree's leaves numbered from 0, with their ids and their counts of runs."""
    from kdcal_core.partition._member_kernels import count_runs, number_leaves

    columns = np.ascontiguousarray(leaves.T)
    numbers = np.empty(columns.shape, dtype=np.int32)
    ids, runs_of_leaf = [], []
    for tree, column in enumerate(columns):
        smallest = int(column.min())
        spread = int(column.max()) - smallest + 1
        if spread > WIDEST * len(column) + 1024:
            found, numbers[tree] = np.unique(column, return_inverse=True)
        else:
            table = np.zeros(spread, dtype=np.int32)
            number_leaves(column, smallest, numbers[tree], table)
            found = np.flatnonzero(table) + smallest
        ids.append(found.astype(np.int64))
        runs = np.zeros(len(found), dtype=np.int64)
        count_runs(numbers[tree], runs)
        runs_of_leaf.append(runs)
    return numbers, ids, runs_of_leaf


def _find_large(
    numbers: NDArray[np.int32], id_starts: NDArray[np.int64], runs: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Leaves of so many runs that comparing every polytope costs less; see :class:`Members`."""
    n_trees, n_polytopes = numbers.shape
    none = np.zeros(len(runs), dtype=np.uint8), np.empty((0, n_polytopes), dtype=np.uint8)
    # A leaf is counted in and out only where the rows change it, twice as often as they do.
    counted = runs * min(1.0, 2 * runs.sum() / (n_trees * n_polytopes))
    saved = np.maximum(counted - COMPARED * n_polytopes, 0)
    if not saved.any():
        return none
    rows = np.zeros(len(runs))
    for of_tree, (first, last) in zip(numbers, pairwise(id_starts), strict=True):
        rows[first:last] = np.bincount(of_tree - first, minlength=last - first)
    if (rows * saved).sum() < PASSED * n_polytopes**2:
        return none
    ahead = np.concatenate([[0], np.cumsum(saved > 0)])
    of_its_tree = ahead[1:] - np.repeat(ahead[id_starts[:-1]], np.diff(id_starts))
    large_of_leaf = np.where(saved > 0, of_its_tree, 0).astype(np.uint8)
    return large_of_leaf, large_of_leaf[numbers]


def find_leaves(members: Members, leaves: NDArray[Any]) -> NDArray[np.int32]:
    """Numbers of the leaves that queries fall into, (trees, m); -1 where no polytope is."""
    numbers = np.empty(leaves.shape[::-1], dtype=np.int32)
    for tree in range(members.n_trees):
        first, last = members.id_starts[tree : tree + 2]
        ids = members.ids[first:last]
        at = np.minimum(np.searchsorted(ids, leaves[:, tree]), len(ids) - 1)
        numbers[tree] = np.where(ids[at] == leaves[:, tree], first + at, -1)
    return numbers
