"""Rows that hold the k nearest among them: a k-d tree's, or those of single-precision products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from kdcal_core.data.schema import FloatArray, IntArray

SPARE = 16
"""A tree's candidates beyond k, so that ties at the k-th are found."""
CHUNK = 2048
"""Rows whose products with a block of points stay in a core's cache."""
PILOT = 8192
"""Rows that show about how far the k-th nearest is."""
FARTHEST = 2.0**60
"""Beyond this multiple of the space's extent all distances are equal in double precision."""

Table = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Candidates:
    """A list of rows for each of b points.

    Attributes
    ----------
    index : (b, w) int
        Row i holds the list of point i in its first ``count[i]`` places.
    count : (b,) int64
    unsure : (b,) bool
        Where some of the k nearest may be missing in the list.
    """

    index: NDArray[Any]
    count: IntArray
    unsure: NDArray[np.bool_]


class Proposer(Protocol):
    """Anything that proposes candidates."""

    def __call__(self, points: FloatArray, k: int) -> Candidates: ...


class TreeCandidates:
    """The k nearest by scipy's k-d tree; exact for epsilon 0, except where a tie reaches beyond.

    Examples
    --------
    >>> found = TreeCandidates(np.array([[0.0], [5.0], [1.0]]))(np.array([[0.9]]), 2)
    >>> sorted(found.index[0, : found.count[0]].tolist()), found.unsure.tolist()
    ([0, 1, 2], [False])
    """

    def __init__(self, space: FloatArray, epsilon: float = 0.0) -> None:
        self._tree, self._epsilon = cKDTree(space), epsilon

    def __call__(self, points: FloatArray, k: int) -> Candidates:
        n = int(self._tree.n)
        wanted = k if self._epsilon else min(n, k + SPARE)
        asked = self._tree.query(points, k=[*range(1, wanted + 1)], eps=self._epsilon)
        distance, index = np.asarray(asked[0]), np.asarray(asked[1])
        unsure = distance[:, -1] <= distance[:, k - 1] * (1 + 1e-12)
        if self._epsilon or wanted == n:
            unsure[:] = False
        return Candidates(index, np.full(len(points), wanted), unsure)


class ProductCandidates:
    """All rows that single-precision products cannot separate from the k nearest.

    For a row x and a point p around the rows' mean, half the squared distance less |p|^2 / 2 is
    |x|^2 / 2 - x.p. In single precision its error is less than
    e = g (|x|^2 / 2 + |x| |p|), g = 2 (d + 10) 2^-24: twice the roundings of all terms. Minus
    e, which are two columns more in the product, it is a lower bound. The k-th smallest bound plus
    2 e is as far as the k-th nearest row can lie, and all rows with a lower bound up to there are
    candidates: seldom one more than k.

    Examples
    --------
    >>> space = np.random.default_rng(0).normal(size=(500, 9))
    >>> found = ProductCandidates(space)(space[:1], 3)
    >>> nearest = np.argsort(((space - space[0]) ** 2).sum(axis=1))[:3]
    >>> bool(np.isin(nearest, found.index[0, : found.count[0]]).all())
    True
    """

    def __init__(self, space: FloatArray) -> None:
        n, d = space.shape
        self._centre = space.mean(axis=0)
        self._slack = 2 * (d + 10) * 2.0**-24
        self._norms = np.empty(n)
        for rows in _chunks(n):
            self._norms[rows] = np.sqrt(((space[rows] - self._centre) ** 2).sum(axis=1))
        # a power of two changes no digit, and nothing overflows in single precision
        self._unit = 2.0 ** -float(np.frexp(self._norms.max())[1])
        self._norms *= self._unit
        self._lifted: Table = np.empty((n, d + 2), dtype=np.float32)
        for rows in _chunks(n):
            self._lifted[rows, :d] = (space[rows] - self._centre) * self._unit
        self._lifted[:, d] = self._norms
        self._lifted[:, d + 1] = self._norms**2 / 2 * (1 - self._slack)
        self._pilot = np.ascontiguousarray(self._lifted[:: max(1, n // PILOT)])

    def __call__(self, points: FloatArray, k: int) -> Candidates:
        away = (points - self._centre) * self._unit
        with np.errstate(over="ignore"):
            norms = np.sqrt((away**2).sum(axis=1))
        away *= np.minimum(1.0, FARTHEST / np.maximum(norms, 1.0))[:, np.newaxis]
        lifted: Table = np.empty((len(points), points.shape[1] + 2), dtype=np.float32)
        lifted[:, :-2] = -away
        lifted[:, -2] = -self._slack * np.minimum(norms, FARTHEST)
        lifted[:, -1] = 1.0
        found, complete = self._within(lifted, norms, k, self._guess(lifted, k))
        again = np.flatnonzero(~complete)
        if not len(again):
            return found
        anywhere = np.full(len(again), np.inf, dtype=np.float32)
        more, _ = self._within(lifted[again], norms[again], k, anywhere)
        width = max(found.index.shape[1], more.index.shape[1])
        index = np.zeros((len(points), width), dtype=found.index.dtype)
        index[:, : found.index.shape[1]] = found.index
        index[again, : more.index.shape[1]] = more.index
        found.count[again], found.unsure[again] = more.count, more.unsure
        return Candidates(index, found.count, found.unsure)

    def _guess(self, lifted: Table, k: int) -> Table:
        """A limit from the pilot rows that slightly more than k rows should meet, (b,)."""
        n, pilot = len(self._lifted), len(self._pilot)
        expected = k * pilot / n
        rank = int(expected + 5 * np.sqrt(expected)) + 5
        if rank >= pilot or pilot == n:
            return np.full(len(lifted), np.inf, dtype=np.float32)
        values = lifted @ self._pilot.T
        values.partition(rank, axis=1)
        return values[:, rank]

    def _within(
        self, lifted: Table, norms: FloatArray, k: int, guess: Table
    ) -> tuple[Candidates, NDArray[np.bool_]]:
        """Candidates among the rows within the guess, and whether they hold the k nearest."""
        from kdcal_core.regression import _nearest_kernels as kernels

        n, b = len(self._lifted), len(lifted)
        room = 2 * k + CHUNK
        index = np.empty((b, room + CHUNK), dtype=np.int32 if n < 2**31 else np.int64)
        value = np.full(index.shape, np.inf, dtype=np.float32)
        count, limit = np.zeros(b, dtype=np.int64), guess.copy()
        unsure = np.zeros(b, dtype=np.bool_)
        scratch: Table = np.empty(b * CHUNK, dtype=np.float32)
        for rows in _chunks(n):
            tile = scratch[: b * (rows.stop - rows.start)].reshape(b, -1)
            np.matmul(lifted, self._lifted[rows].T, out=tile)
            kernels.gather(tile, rows.start, limit, index, value, count)
            if rows.stop < n and count.max() <= room:
                continue
            kth = np.partition(value[:, : max(k, count.max())], k - 1, axis=1)[:, k - 1]
            norm = kernels.farthest(index, value, count, kth, self._norms)
            bound = kth + 2 * self._slack * (norm * norms + norm**2 / 2)
            # double-precision distances round, too
            bound += (lifted.shape[1] + 64) * 2.0**-52 * norms**2 + 2.0**-120
            with np.errstate(over="ignore"):
                limit = np.minimum(limit, bound + np.abs(bound) * 2.0**-22, dtype=np.float32)
            kernels.drop_beyond(limit, index, value, count)
            if rows.stop < n:
                # the list is full of ties
                unsure |= count > room
                limit[unsure] = -np.inf
        complete = unsure | (guess == np.inf) | (bound < guess)
        return Candidates(index[:, : max(k, count.max())], count, unsure), complete


def _chunks(n_rows: int) -> list[slice]:
    return [slice(start, min(start + CHUNK, n_rows)) for start in range(0, n_rows, CHUNK)]
