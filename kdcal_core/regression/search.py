"""The nearest rows of the calibration set, in an order that no number of threads changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.regression.base import Progress, part_of

SearchKind = Literal["exact", "approximate"]

TREE_COLUMNS = 8
"""Up to so many columns a k-d tree is faster than all distances by matrix products."""
SPARE = 16
"""Candidates beyond the k asked for, so that ties at the k-th are seen."""
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
    """Finds nearest rows of ``space`` (paper 003 Alg. 1 step 8).

    Parameters
    ----------
    space : (n, d) array
        Finite coordinates of the calibration rows.
    kind : {"exact", "approximate"}
        "approximate" asks a k-d tree to stop early (Arya et al. 1998, the paper's epsilon).
    epsilon : float
        For "approximate": the i-th neighbour found is at most (1 + epsilon) times as far as the
        true one.

    Notes
    -----
    Exact search takes scipy's k-d tree up to eight columns and scikit-learn's blocked matrix
    products above. Either proposes a few candidates more than asked for; their distances are
    computed anew in double precision from differences, and rows where a tie reaches beyond the
    candidates are searched in full. So ties at equal distance go to the lowest row, whatever the
    method or the number of threads.

    Examples
    --------
    >>> found = NeighbourSearch(np.array([[0.0], [1.0], [1.0], [5.0]])).query(np.array([[0.9]]), 2)
    >>> found.index.tolist(), found.distance.round(2).tolist()
    ([[1, 2]], [[0.1, 0.1]])
    """

    def __init__(self, space: FloatArray, kind: SearchKind = "exact", epsilon: float = 0.0) -> None:
        self._space = np.ascontiguousarray(space, dtype=np.float64)
        self._approximate, self._epsilon = kind == "approximate", epsilon
        self._tree: cKDTree | None = None
        self._products: NearestNeighbors | None = None
        if self._approximate or space.shape[1] <= TREE_COLUMNS:
            self._tree = cKDTree(self._space)
        else:
            # matrix products lose digits far from the origin
            self._centre = self._space.mean(axis=0)
            around = self._space - self._centre
            self._products = NearestNeighbors(algorithm="brute").fit(around)
            # what the products may get wrong in a squared distance
            self._slack = 64 * np.finfo(np.float64).eps * float((around**2).sum(axis=1).max())

    def __len__(self) -> int:
        return len(self._space)

    @property
    def n_columns(self) -> int:
        return int(self._space.shape[1])

    def count_within(self, points: FloatArray, radius: float) -> IntArray:
        """How many rows lie within ``radius`` of each of m points, itself included, (m,)."""
        tree = cKDTree(self._space) if self._tree is None else self._tree
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
        report = part_of(progress, 0.0, 1.0)
        for rows in _blocks(m, 4 * k):
            report(rows.start / m, "Looking for neighbours")
            index[rows], distance[rows] = self._block(points[rows], k)
        report(1.0, "Neighbours found")
        return Neighbours(index, distance)

    def _block(self, points: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        n = len(self)
        wanted = k if self._approximate else min(n, k + SPARE)
        index, distance = self._nearest_first(points, self._candidates(points, wanted))
        if wanted < n and not self._approximate:
            slack = self._allowance(points)
            tied = distance[:, -1] ** 2 - slack <= distance[:, k - 1] ** 2
            index, distance = index[:, :k], distance[:, :k]
            for rows in _blocks(int(tied.sum()), n):
                at = np.flatnonzero(tied)[rows]
                full = self._in_full(points[at], k)
                index[at], distance[at] = self._nearest_first(points[at], full)
        return index[:, :k], distance[:, :k]

    def _candidates(self, points: FloatArray, k: int) -> IntArray:
        if self._tree is not None:
            _, index = self._tree.query(points, k=[*range(1, k + 1)], eps=self._epsilon, workers=-1)
        else:
            assert self._products is not None
            index = self._products.kneighbors(points - self._centre, k, return_distance=False)
        return np.asarray(index, dtype=np.int64)

    def _allowance(self, points: FloatArray) -> FloatArray | float:
        if self._tree is not None:
            return 0.0
        slack: FloatArray = self._slack + 64 * np.finfo(np.float64).eps * (
            (points - self._centre) ** 2
        ).sum(axis=1)
        return slack

    def _nearest_first(self, points: FloatArray, index: IntArray) -> tuple[IntArray, FloatArray]:
        """The candidates with their distances, nearest first and lower rows first in ties."""
        squared = np.empty(index.shape)
        for rows in _blocks(len(points), index.shape[1] * self._space.shape[1]):
            away = self._space[index[rows]]
            away -= points[rows, None, :]
            np.einsum("mkd,mkd->mk", away, away, out=squared[rows])
        order = np.argsort(squared, axis=1, kind="stable")
        index = np.take_along_axis(index, order, axis=1)
        squared = np.take_along_axis(squared, order, axis=1)
        ties = np.flatnonzero((np.diff(squared, axis=1) == 0).any(axis=1))
        if len(ties):
            order = np.lexsort((index[ties], squared[ties]), axis=1)
            index[ties] = np.take_along_axis(index[ties], order, axis=1)
        return index, np.sqrt(squared)

    def _in_full(self, points: FloatArray, k: int) -> IntArray:
        """The k nearest of all rows, of equally far ones the lowest."""
        squared = cdist(points, self._space, "sqeuclidean")
        last = np.partition(squared, k - 1, axis=1)[:, k - 1 : k]
        nearer, level = squared < last, squared == last
        room = k - nearer.sum(axis=1, keepdims=True)
        level &= np.cumsum(level, axis=1) <= room
        return np.nonzero(nearer | level)[1].reshape(len(points), k)


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
