"""Blocks of the forest's kernel: matches as sums of differences over runs, or as sums of bits.

Polytopes stand in lexicographic order of their codes, so that neighbours share many leaves. A
leaf's members are then few runs of consecutive polytopes, and a row's matches the running sum of
+1 where a run of one of its leaves begins and -1 where it ends; from a row to the next only the
leaves that change are counted out and in. Where that would be more work than to compare a row
with every polytope, the members are bits and lists instead (:class:`Members`). All of it is in
whole numbers, hence exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.partition._centres import nearest_centre_of
from kdcal_core.partition._members import Members, find_leaves, find_members
from kdcal_core.partition.codes import LeafCodes

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
        entry_class=entry_class,
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
    from kdcal_core.partition._dense_kernels import masses_rows

    members = prepared.members
    single = prepared.label >= 0
    label = np.full(members.matches(0).shape[1], prepared.n_classes, dtype=np.int32)
    label[: len(single)][single] = prepared.label[single]
    mixed = np.flatnonzero(~single)
    step = max(1, BIN_CELLS // (len(prepared.table) * (prepared.n_classes + 1)))
    for first in range(start, stop, step):
        last = min(first + step, stop)
        masses_rows(
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
    from kdcal_core.partition._dense_kernels import nearest_rows

    members = prepared.members
    nearest_rows(
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
