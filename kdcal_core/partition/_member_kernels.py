"""Compiled loops that find the members of leaves. Imported only when needed: numba is heavy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

compiled = njit(nogil=True, cache=True)


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
