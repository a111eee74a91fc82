"""The nearest rows of the calibration set, in the same order for any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.partition._blocks import Blocks, run_blocks
from kdcal_core.progress import Progress
from kdcal_core.regression.candidates import (
    Candidates,
    ProductCandidates,
    Proposer,
    TreeCandidates,
)

SearchKind = Literal["exact", "approximate"]

TREE_COLUMNS = 4
"""Up to this many columns a k-d tree is faster than products of all points with all rows."""
POINTS = 256
"""Points searched together."""
BLOCK_FLOATS = 2**22
"""Floats of one temporary array: 32 MB."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest calibration rows of m new rows.

    Attributes
    ----------
    index : (m, k) int64
        Rows of the calibration set, nearest first; the lower row first at equal distance.
    distance : (m, k) float64
        Euclidean.
    """

    index: IntArray
    distance: FloatArray


class NeighbourSearch:
    """Finds nearest rows of ``space`` (Torres et al., Alg. 1 step 8).

    Parameters
    ----------
    space : (n, d) array
        Finite coordinates of the calibration rows.
    kind : {"exact", "approximate"}
        "approximate" lets a k-d tree stop early (Arya et al. 1998; epsilon in Torres et al.).
    epsilon : float
        For "approximate": the i-th neighbour found is at most (1 + epsilon) times as far as the
        true one.

    Notes
    -----
    Exact search uses scipy's k-d tree up to four columns, and single-precision products above.
    Both propose candidates that certainly hold the
    k nearest in spite of rounding; their distances are computed again in double precision from
    differences, coordinate by coordinate. Points with ties that leave a proposer uncertain are
    searched in full. So ties at equal distance go to the lowest row, whatever the method or the
    number of threads.

    10,000 points among 100,000 rows, k = 1,000, take 1.5 to 3.5 s of processor time in 1 to 4
    columns and 1.5 to 2 s in 5 to 20. Approximate search exists because Torres et al. use it; it
    saves little in 2 columns (epsilon 1: 18%) and takes twelve times as long in 20. An inverted
    file of 632 k-means cells would not be better: among 20 independent normal columns 95% of the
    neighbours lie in the cells of some 45% of the rows, and learning the cells takes longer than
    the search.

    Examples
    --------
    >>> found = NeighbourSearch(np.array([[0.0], [1.0], [1.0], [5.0]])).query(np.array([[0.9]]), 2)
    >>> found.index.tolist(), found.distance.round(2).tolist()
    ([[1, 2]], [[0.1, 0.1]])
    """

    def __init__(self, space: FloatArray, kind: SearchKind = "exact", epsilon: float = 0.0) -> None:
        self._space = np.ascontiguousarray(space, dtype=np.float64)
        tree = kind == "approximate" or space.shape[1] <= TREE_COLUMNS
        self._propose: Proposer = (
            TreeCandidates(self._space, epsilon) if tree else ProductCandidates(self._space)
        )

    def __len__(self) -> int:
        return len(self._space)

    @property
    def n_columns(self) -> int:
        return int(self._space.shape[1])

    def count_within(self, points: FloatArray, radius: float) -> IntArray:
        """How many rows lie within ``radius`` of each of m points, itself included, (m,)."""
        tree = cKDTree(self._space)
        counts = tree.query_ball_point(points, radius, return_length=True, workers=-1)
        return np.asarray(counts, dtype=np.int64)

    def query(self, points: FloatArray, k: int, progress: Progress | None = None) -> Neighbours:
        """The ``k`` (1 to n) nearest rows of each of m points.

        ``progress`` is called between blocks and may raise to cancel.
        """
        # Equal points have equal neighbours: they are searched once.
        different, place = np.unique(points, axis=0, return_inverse=True)
        if len(different) == len(points):
            return self._query(points, k, progress)
        found = self._query(different, k, progress)
        return Neighbours(found.index[place.ravel()], found.distance[place.ravel()])

    def _query(self, points: FloatArray, k: int, progress: Progress | None) -> Neighbours:
        m = len(points)
        index, distance = np.empty((m, k), dtype=np.int64), np.empty((m, k))

        def work(prepared: None, start: int, stop: int) -> tuple[IntArray, FloatArray]:
            return self._block(points[start:stop], k)

        def write(start: int, stop: int, found: tuple[IntArray, FloatArray]) -> None:
            index[start:stop], distance[start:stop] = found

        blocks = Blocks(work, min(POINTS, max(1, BLOCK_FLOATS // (4 * k))))
        note = "Searching for neighbours"
        # the blocks share the cores
        with threadpool_limits(1, user_api="blas"):
            run_blocks(blocks, lambda: None, m, write, note=note, progress=progress)
        return Neighbours(index, distance)

    def _block(self, points: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        found = self._propose(points, k)
        index, distance = self._nearest_first(points, found, k)
        unsure = np.flatnonzero(found.unsure)
        for rows in _blocks(len(unsure), len(self)):
            at = unsure[rows]
            index[at], distance[at] = self._in_full(points[at], k)
        return index, distance

    def _squared(self, points: FloatArray, found: Candidates) -> FloatArray:
        """Squared distances of the candidates, (b, w), infinite beyond the end of a list."""
        from kdcal_core.regression import _nearest_kernels as kernels

        squared = np.empty((len(points), found.index.shape[1]))
        kernels.squared_distances(points, self._space, found.index, found.count, squared)
        return squared

    def _nearest_first(
        self, points: FloatArray, found: Candidates, k: int
    ) -> tuple[IntArray, FloatArray]:
        """The k nearest candidates, nearest first and lower rows first in ties."""
        squared = self._squared(points, found)
        order = np.argsort(squared, axis=1)
        sorted_ = np.take_along_axis(squared, order, axis=1)
        # a tie within the k nearest, or of the k-th with the next
        near = sorted_[:, : k + 1]
        ties = np.flatnonzero((near[:, 1:] == near[:, :-1]).any(axis=1))
        if len(ties):
            order[ties] = np.lexsort((found.index[ties], squared[ties]), axis=1)
        index = np.take_along_axis(found.index, order[:, :k], axis=1).astype(np.int64)
        return index, np.sqrt(sorted_[:, :k])

    def _in_full(self, points: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        """The k nearest of all rows, of equally far ones the lowest."""
        b, n = len(points), len(self)
        count, sure = np.full(b, n), np.zeros(b, dtype=np.bool_)
        every = Candidates(np.broadcast_to(np.arange(n), (b, n)), count, sure)
        squared = self._squared(points, every)
        last = np.partition(squared, k - 1, axis=1)[:, k - 1 : k]
        nearer, level = squared < last, squared == last
        room = k - nearer.sum(axis=1, keepdims=True)
        level &= np.cumsum(level, axis=1) <= room
        nearest = np.nonzero(nearer | level)[1].reshape(b, k)
        return self._nearest_first(points, Candidates(nearest, np.full(b, k), sure), k)


def recall(search: NeighbourSearch, found: IntArray, points: FloatArray, sample: int) -> float:
    """Share of the true k nearest rows among those found, on evenly spaced points.

    Examples
    --------
    >>> space = np.arange(6.0)[:, None]
    >>> recall(NeighbourSearch(space), np.array([[0, 1], [1, 3]]), space[:2], sample=2)
    0.75
    """
    rows = np.unique(np.linspace(0, len(points) - 1, sample).astype(np.int64))
    k = found.shape[1]
    true = NeighbourSearch(search._space).query(points[rows], k).index
    offset = len(search) * np.arange(len(rows))[:, None]
    return float(np.isin(found[rows] + offset, true + offset).mean())


def _blocks(n_rows: int, floats_a_row: int) -> Iterator[slice]:
    size = max(1, BLOCK_FLOATS // floats_a_row)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))
