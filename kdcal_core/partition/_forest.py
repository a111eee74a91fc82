"""Blocks of the search for the nearest centre, and of the forest's kernel.

The kernel's matches are sums of differences over runs, or sums of bits. Polytopes stand in
lexicographic order of their codes, so that neighbours share many leaves. A leaf's members are then
few runs of consecutive polytopes, and a row's matches the running sum of +1 where a run of one of
its leaves begins and -1 where it ends; from a row to the next only the leaves that change are
counted out and in. Where that would be more work than to compare a row with every polytope, the
members are bits and lists instead (:class:`Members`). All of it is in whole numbers, hence exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition.codes import LeafCodes


@dataclass(frozen=True, eq=False)
class Centres:
    """Coordinates of m rows, (m, d), and of p centres, (p, d)."""

    x: NDArray[np.float64]
    centres: NDArray[np.float64]


def nearest_centre_block(prepared: Centres, start: int, stop: int) -> tuple[NDArray[Any], ...]:
    """Index, kernel (NaN) and tie of the rows ``start`` to ``stop``."""
    index, tied = nearest_centre_of(np.arange(start, stop), prepared.x, prepared.centres)
    return index, np.full(stop - start, np.nan), tied


def nearest_centre_of(
    rows: NDArray[np.int64], x: NDArray[np.float64], centres: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The nearest of all centres for some rows, and whether another is as near."""
    from kdcal_core.partition._forest_kernels import nearest_of_all

    index = np.zeros(len(rows), dtype=np.int64)
    tied = np.zeros(len(rows), dtype=bool)
    if len(rows):
        nearest_of_all(rows, x, centres, index, tied, np.full(len(rows), np.inf))
    return index, tied


BIN_CELLS = 1 << 21  # bins of matches and classes that rows may fill at once, 50 MB


@dataclass(frozen=True, eq=False)
class Masses:
    """What the class masses of a forest's polytopes need; see :func:`prepare_masses`.

    ``label`` is the class of a polytope of a single row, else -1: then its classes and counts
    are ``entry_class`` and ``entry_count`` from ``entry_starts`` on. ``table`` is (trees + 1, G).
    """

    members: Members
    leaf: NDArray[np.int32]
    label: NDArray[np.int32]
    entry_starts: NDArray[np.int64]
    entry_class: NDArray[np.int64]
    entry_count: NDArray[np.int64]
    table: NDArray[np.float64]
    n_classes: int


def prepare_masses(
    codes: LeafCodes, counts: NDArray[np.int64], exponents: NDArray[np.float64]
) -> Masses:
    """Everything that is computed once for all blocks of :func:`masses_block`."""
    members, leaf = find_members(codes.leaves)
    label = np.where(counts.sum(axis=1) == 1, counts.argmax(axis=1), -1)
    several = np.flatnonzero(label < 0)
    at, entry_class = np.nonzero(counts[several])
    in_each = np.bincount(several[at], minlength=len(counts))
    return Masses(
        members,
        leaf,
        label=label.astype(np.int32),
        entry_starts=np.concatenate([[0], np.cumsum(in_each)]),
        entry_class=np.ascontiguousarray(entry_class),  # one layout: compiled once
        entry_count=counts[several[at], entry_class],
        table=(np.arange(members.n_trees + 1)[:, None] / members.n_trees) ** exponents,
        n_classes=counts.shape[1],
    )


def masses_block(prepared: Masses, start: int, stop: int) -> NDArray[np.float64]:
    """Class masses of the polytopes ``start`` to ``stop``, (G, stop - start, K)."""
    out = np.zeros((stop - start, prepared.n_classes, prepared.table.shape[1]))
    if prepared.members.dense:
        _dense_masses(prepared, start, stop, out)
    else:
        _sparse_masses(prepared, start, stop, out)
    return out.transpose(2, 0, 1)


def _sparse_masses(prepared: Masses, start: int, stop: int, out: NDArray[np.float64]) -> None:
    from kdcal_core.partition._forest_kernels import masses_rows

    members = prepared.members
    masses_rows(
        start,
        stop,
        prepared.leaf,
        members.starts,
        members.runs,
        prepared.label,
        prepared.entry_starts,
        prepared.entry_class,
        prepared.entry_count,
        prepared.table,
        members.differences(),
        out,
    )


def _dense_masses(prepared: Masses, start: int, stop: int, out: NDArray[np.float64]) -> None:
    from kdcal_core.partition._forest_kernels import dense_masses_rows

    members = prepared.members
    single = prepared.label >= 0
    label = np.full(members.matches(0).shape[1], prepared.n_classes, dtype=np.int32)
    label[: len(single)][single] = prepared.label[single]
    mixed = np.flatnonzero(~single)
    step = max(1, BIN_CELLS // (len(prepared.table) * (prepared.n_classes + 1)))
    for first in range(start, stop, step):
        last = min(first + step, stop)
        dense_masses_rows(
            first,
            last,
            prepared.leaf,
            members.starts,
            members.listed,
            members.large_of_leaf,
            members.vectors,
            label,
            mixed,
            prepared.entry_starts,
            prepared.entry_class,
            prepared.entry_count,
            prepared.table,
            members.matches(last - first),
            out[first - start : last - start],
        )


@dataclass(frozen=True, eq=False)
class Nearest:
    """What the nearest polytopes of a forest's queries need."""

    members: Members
    leaf: NDArray[np.int32]
    x: NDArray[np.float64]
    centres: NDArray[np.float64]


def prepare_nearest(
    queries: LeafCodes, codes: LeafCodes, x: NDArray[np.float64], centres: NDArray[np.float64]
) -> Nearest:
    """Everything that is computed once for all blocks of :func:`nearest_block`."""
    members, _ = find_members(codes.leaves)
    return Nearest(members, find_leaves(members, queries.leaves), x, centres)


def nearest_block(prepared: Nearest, start: int, stop: int) -> tuple[NDArray[Any], ...]:
    """Index, kernel and tie of the queries ``start`` to ``stop``."""
    members = prepared.members
    index, shared = np.zeros((2, stop - start), dtype=np.int64)
    tied = np.zeros(stop - start, dtype=bool)
    search = _dense_nearest if members.dense else _sparse_nearest
    search(prepared, start, stop, index, shared, tied)
    alone = np.flatnonzero(shared == 0)
    # A row that shares no leaf has kernel 0 with all polytopes: they are all tied.
    index[alone], _ = nearest_centre_of(start + alone, prepared.x, prepared.centres)
    tied[alone] = members.n_polytopes > 1
    return index, shared / members.n_trees, tied


def _sparse_nearest(prepared: Nearest, start: int, stop: int, *found: NDArray[Any]) -> None:
    from kdcal_core.partition._forest_kernels import nearest_rows

    members = prepared.members
    nearest_rows(
        start,
        stop,
        prepared.leaf,
        members.starts,
        members.runs,
        prepared.x,
        prepared.centres,
        members.differences(),
        *found,
    )


def _dense_nearest(prepared: Nearest, start: int, stop: int, *found: NDArray[Any]) -> None:
    from kdcal_core.partition._forest_kernels import dense_nearest_rows

    members = prepared.members
    dense_nearest_rows(
        start,
        stop,
        prepared.leaf,
        members.starts,
        members.listed,
        members.large_of_leaf,
        members.vectors,
        prepared.x,
        prepared.centres,
        members.matches(stop - start),
        *found,
    )


def kernel_block(a: LeafCodes, b: LeafCodes) -> NDArray[np.float64]:
    """Share of trees in which rows of ``a`` and ``b`` fall into one leaf, (n, m)."""
    kernel = np.zeros((len(a), len(b)))
    for ours, theirs in zip(a.leaves.T, b.leaves.T, strict=True):
        kernel += ours[:, None] == theirs[None, :]
    kernel /= a.leaves.shape[1]
    return kernel


# Costs in units of counting one run in or out, measured: counting one member, comparing one
# polytope with a large leaf, and one polytope that is passed over where nothing is skipped.
COUNTED, COMPARED, PASSED = 0.7, 1 / 400, 0.3
LARGE = 64  # leaves of a tree that two digits of eight values number
WIDEST = 4  # ids spread over more than this many times the rows are sorted, not tabled


@dataclass(frozen=True, eq=False)
class Members:
    """Which polytopes fall into each leaf.

    Where polytopes in their order share most leaves with the next, or few leaves with any, a
    leaf's members are few runs. Else the partition is called dense: each tree's largest leaves
    are bits to compare all polytopes with, and the others have their members listed.

    Attributes
    ----------
    ids, id_starts : ids of the leaves of every tree, ascending, one tree after the other
    starts : (leaves + 1,) first run of each leaf, or its first listed member
    runs : (runs, 2) where each run of polytopes begins and ends
    listed : (members,) uint32, polytopes
    large_of_leaf : (leaves,) uint8, a large leaf's number in its tree from 1, else 0
    vectors : (chunks, ., .) uint64, bits of the polytopes in large leaves, as
        ``_forest_kernels.write_vectors`` sets them; no chunks where the partition is not dense
    n_polytopes : int
    """

    ids: NDArray[np.int64]
    id_starts: NDArray[np.int64]
    starts: NDArray[np.int64]
    runs: NDArray[np.int32]
    listed: NDArray[np.uint32]
    large_of_leaf: NDArray[np.uint8]
    vectors: NDArray[np.uint64]
    n_polytopes: int

    @property
    def n_trees(self) -> int:
        return len(self.id_starts) - 1

    @property
    def dense(self) -> bool:
        return len(self.vectors) > 0

    def differences(self) -> NDArray[Any]:
        """Zeros, one a polytope and one more, in whole words of 64 bits."""
        whole_words = -(-(self.n_polytopes + 1) // 4) * 4
        return np.zeros(whole_words, dtype=np.int16 if self.n_trees < 2**15 else np.int32)

    def matches(self, n_rows: int) -> NDArray[Any]:
        """Room for the matches of rows with the polytopes, in whole chunks."""
        n_chunks, _, words = self.vectors.shape
        few = self.n_trees < 2**16
        return np.empty((n_rows, n_chunks * words * 64), dtype=np.uint16 if few else np.uint32)


def find_members(leaves: NDArray[Any]) -> tuple[Members, NDArray[np.int32]]:
    """The members of every leaf, and the leaf of each polytope as (trees, p) numbers."""
    numbers, ids, runs_of_leaf = _number_all(leaves)
    id_starts = np.concatenate([[0], np.cumsum([len(of_tree) for of_tree in ids])])
    numbers += id_starts[:-1, None].astype(np.int32)
    n_runs = np.concatenate(runs_of_leaf)
    dense, large_of_leaf, rows = _find_large(numbers, id_starts, n_runs)
    lengths = np.where(large_of_leaf, 0, rows) if dense else n_runs
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    members = Members(
        ids=np.concatenate(ids),
        id_starts=id_starts,
        starts=starts,
        runs=_runs(numbers, starts) if not dense else np.empty((0, 2), dtype=np.int32),
        listed=_listed(numbers, starts, large_of_leaf) if dense else np.empty(0, dtype=np.uint32),
        large_of_leaf=large_of_leaf,
        vectors=_vectors(numbers, large_of_leaf, dense),
        n_polytopes=len(leaves),
    )
    return members, numbers


def _number_all(
    leaves: NDArray[Any],
) -> tuple[NDArray[np.int32], list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Every tree's leaves numbered from 0, with their ids and their counts of runs."""
    from kdcal_core.partition._forest_kernels import count_runs, number_leaves

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
) -> tuple[bool, NDArray[np.uint8], NDArray[np.float64]]:
    """Whether the partition is dense, its large leaves, and the polytopes in each leaf."""
    n_trees, p = numbers.shape
    rows = np.zeros(len(runs))
    for of_tree, (first, last) in zip(numbers, pairwise(id_starts), strict=True):
        rows[first:last] = np.bincount(of_tree - first, minlength=last - first)
    tree = np.repeat(np.arange(n_trees), np.diff(id_starts))
    order = np.lexsort((-rows, tree))
    place = np.arange(len(runs)) - id_starts[:-1][tree]  # in its tree, the largest first
    large_of_leaf = np.zeros(len(runs), dtype=np.uint8)
    large_of_leaf[order] = np.where(place < LARGE, place + 1, 0)
    large_of_leaf[rows * COUNTED < COMPARED * p] = 0
    # A leaf's runs are counted in and out only where the rows change it.
    as_runs = (rows * runs).sum() * min(1.0, 2 * runs.sum() / (n_trees * p))
    as_dense = np.where(large_of_leaf, COMPARED * p, COUNTED * rows)
    dense = as_runs > (rows * as_dense).sum() + PASSED * p**2
    return bool(dense), large_of_leaf if dense else np.zeros_like(large_of_leaf), rows


def _runs(numbers: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int32]:
    from kdcal_core.partition._forest_kernels import write_runs

    runs = np.empty((starts[-1], 2), dtype=np.int32)
    next_run = starts[:-1].copy()
    for of_tree in numbers:
        write_runs(of_tree, next_run, runs)
    return runs


def _listed(
    numbers: NDArray[np.int32], starts: NDArray[np.int64], large_of_leaf: NDArray[np.uint8]
) -> NDArray[np.uint32]:
    from kdcal_core.partition._forest_kernels import write_members

    listed = np.empty(starts[-1], dtype=np.uint32)
    next_member = starts[:-1].copy()
    for of_tree in numbers:
        write_members(of_tree, large_of_leaf, next_member, listed)
    return listed


def _vectors(
    numbers: NDArray[np.int32], large_of_leaf: NDArray[np.uint8], dense: bool
) -> NDArray[np.uint64]:
    from kdcal_core.partition._forest_kernels import CHUNK, VECTORS, write_vectors

    n_trees, n_polytopes = numbers.shape
    n_chunks = -(-n_polytopes // CHUNK) if dense else 0
    vectors = np.zeros((n_chunks, VECTORS * n_trees + 1, CHUNK // 64), dtype=np.uint64)
    if dense:
        write_vectors(numbers, large_of_leaf, vectors)
    return vectors


def find_leaves(members: Members, leaves: NDArray[Any]) -> NDArray[np.int32]:
    """Numbers of the leaves that queries fall into, (trees, m); -1 where no polytope is."""
    numbers = np.empty(leaves.shape[::-1], dtype=np.int32)
    for tree in range(members.n_trees):
        first, last = members.id_starts[tree : tree + 2]
        ids = members.ids[first:last]
        at = np.minimum(np.searchsorted(ids, leaves[:, tree]), len(ids) - 1)
        numbers[tree] = np.where(ids[at] == leaves[:, tree], first + at, -1)
    return numbers
