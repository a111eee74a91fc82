"""Compiled loops of the forest's kernel and of the members of its leaves.

Imported only when they are needed: numba is heavy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from kdcal_core.partition._centre_kernels import nearest_of

Array = np.ndarray[Any, Any]

compiled: Any = njit(nogil=True, cache=True)


@compiled
def add_leaf(change: Array, sign: int, starts: Array, runs: Array, leaf: int) -> None:
    """Count one leaf's members in (sign 1) or out (sign -1) of the differences of the matches."""
    for run in range(starts[leaf], starts[leaf + 1]):
        change[runs[run, 0]] += sign
        change[runs[run, 1]] -= sign


@compiled
def move_to(leaf: Array, row: int, held: Array, change: Array, starts: Array, runs: Array) -> None:
    """Turn the differences of the matches into those of ``row``, the cheaper of two ways.

    ``held`` has the leaves that ``change`` stands for, -1 for none: next to each other in
    lexicographic order, rows share many of their leaves, and only the others are touched.
    """
    anew, onward = len(change) // 16, 0
    for tree in range(len(held)):
        old, new = held[tree], leaf[tree, row]
        needed = starts[new + 1] - starts[new] if new >= 0 else 0
        anew += needed
        if old != new:
            onward += needed + (starts[old + 1] - starts[old] if old >= 0 else 0)
    if anew < onward:
        change[:] = 0
        held[:] = -1
    for tree in range(len(held)):
        old, new = held[tree], leaf[tree, row]
        if old == new:
            continue
        if old >= 0:
            add_leaf(change, -1, starts, runs, old)
        if new >= 0:
            add_leaf(change, 1, starts, runs, new)
        held[tree] = new


@compiled
def tally(
    change: Array,
    blocks: Array,
    label: Array,
    entry_starts: Array,
    entry_class: Array,
    entry_count: Array,
    histogram: Array,
) -> int:
    """Rows of each class at each number of matches; returns the largest number of matches.

    ``blocks`` is ``change`` seen as words of 64 bits. ``label`` is the class of a polytope of one
    row, and -1 where its rows are in the entries.
    """
    running, largest, width = 0, 0, len(change) // len(blocks)
    for block in range(len(blocks)):
        if running == 0 and blocks[block] == 0:
            continue
        for s in range(width * block, min(width * block + width, len(label))):
            running += change[s]
            if running == 0:
                continue
            largest = max(largest, running)
            if label[s] >= 0:
                histogram[running, label[s]] += 1
            else:
                for entry in range(entry_starts[s], entry_starts[s + 1]):
                    histogram[running, entry_class[entry]] += entry_count[entry]
    return largest


@compiled
def smooth(histogram: Array, largest: int, table: Array, out: Array) -> None:
    """Turn a histogram of matches into class masses, and make it zero again.

    ``table`` is (matches, exponents) of the kernel's powers and ``out`` (exponents, classes).
    """
    n_classes, n_exponents = histogram.shape[1], table.shape[1]
    for shared in range(1, largest + 1):
        for label in range(n_classes):
            if histogram[shared, label]:
                rows = np.float64(histogram[shared, label])
                histogram[shared, label] = 0
                for g in range(n_exponents):
                    out[label, g] += table[shared, g] * rows


@compiled
def find_largest(change: Array, blocks: Array, ties: Array) -> tuple[int, int]:
    """The largest number of matches and how many polytopes have it, listed in ``ties``."""
    running, largest, n_ties, width = 0, 1, 0, len(change) // len(blocks)
    for block in range(len(blocks)):
        if running == 0 and blocks[block] == 0:
            continue
        for s in range(width * block, min(width * block + width, len(ties))):
            running += change[s]
            if running < largest:
                continue
            if running > largest:
                largest, n_ties = running, 0
            ties[n_ties] = s
            n_ties += 1
    return largest, n_ties


@compiled
def masses_rows(
    first: int,
    last: int,
    leaf: Array,
    starts: Array,
    runs: Array,
    label: Array,
    entry_starts: Array,
    entry_class: Array,
    entry_count: Array,
    table: Array,
    change: Array,
    out: Array,
) -> None:
    """Class masses of the polytopes ``first`` to ``last``, (rows, classes, exponents)."""
    n_trees, n_classes = leaf.shape[0], out.shape[1]
    held = np.full(n_trees, -1, dtype=np.int32)
    histogram = np.zeros((n_trees + 1, n_classes), dtype=np.int64)
    blocks = change.view(np.uint64)
    for row in range(first, last):
        move_to(leaf, row, held, change, starts, runs)
        largest = tally(
            change,
            blocks,
            label,
            entry_starts,
            entry_class,
            entry_count,
            histogram,
        )
        smooth(histogram, largest, table, out[row - first])


@compiled
def nearest_rows(
    first: int,
    last: int,
    leaf: Array,
    starts: Array,
    runs: Array,
    x: Array,
    centres: Array,
    change: Array,
    index: Array,
    shared: Array,
    tied: Array,
) -> None:
    """Nearest polytopes of the queries ``first`` to ``last`` that share a leaf with any."""
    held = np.full(leaf.shape[0], -1, dtype=np.int32)
    ties = np.empty(len(centres), dtype=np.int32)
    blocks = change.view(np.uint64)
    for row in range(first, last):
        move_to(leaf, row, held, change, starts, runs)
        largest, n_ties = find_largest(change, blocks, ties)
        at = row - first
        if n_ties == 0:
            continue
        shared[at] = largest
        tied[at] = n_ties > 1
        index[at] = nearest_of(x[row], centres, ties[:n_ties])


@compiled
def number_leaves(leaf: Array, smallest: int, numbers: Array, table: Array) -> int:
    """Number the leaves of one tree 0, 1, ... by ascending id; ``table`` is zero at first.

    Writes the number of each row's leaf, and to ``table`` one more than the number of each id.
    """
    for row in range(len(leaf)):
        table[leaf[row] - smallest] = 1
    n_leaves = 0
    for at in range(len(table)):
        if table[at]:
            n_leaves += 1
            table[at] = n_leaves
    for row in range(len(leaf)):
        numbers[row] = table[leaf[row] - smallest] - 1
    return n_leaves


@compiled
def count_runs(numbers: Array, runs_of_leaf: Array) -> None:
    """Add the runs of consecutive rows in one leaf to each leaf's count."""
    before = -1
    for row in range(len(numbers)):
        now = numbers[row]
        if now != before:
            runs_of_leaf[now] += 1
        before = now


@compiled
def write_runs(numbers: Array, next_run: Array, runs: Array) -> None:
    """Write where the runs of each leaf begin and end, at the places ``next_run`` counts on."""
    n_rows = len(numbers)
    begin = 0
    for row in range(1, n_rows + 1):
        if row == n_rows or numbers[row] != numbers[begin]:
            at = next_run[numbers[begin]]
            runs[at, 0] = begin
            runs[at, 1] = row
            next_run[numbers[begin]] = at + 1
            begin = row


@compiled
def write_members(numbers: Array, large_of_leaf: Array, next_member: Array, listed: Array) -> None:
    """List the rows of each leaf that is not large, at the places ``next_member`` counts on."""
    for row in range(len(numbers)):
        at = numbers[row]
        if not large_of_leaf[at]:
            listed[next_member[at]] = row
            next_member[at] += 1
