"""The nearest rows of the calibration set, in the same order for any number of threads.

Spaces are standardised, so that units do not decide which rows are near. Candidates that include
the k nearest come from a k-d tree or from single-precision products. Neighbours are weighted by
their distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from kdcal_core.blocks import Blocks, one_thread, run_blocks
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.progress import Progress
from kdcal_core.store import storable
from kdcal_core.store.estimators import check_array, demand


@dataclass(frozen=True, eq=False)
class Scaling:
    """Coordinates in standard deviations from the mean of the fit rows.

    Attributes
    ----------
    mean, scale : (d,)
        ``scale`` is the standard deviation, or infinite for a constant column, which then has no
        effect.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([[0.0, 7.0], [2.0, 7.0]]))
    >>> scaling(np.array([[3.0, 7.0]])).tolist()
    [[2.0, 0.0]]
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, space: FloatArray) -> Self:
        """The scaling of checked coordinates (n, d)."""
        varies = space.min(axis=0) < space.max(axis=0)
        std = space.std(axis=0)
        return cls(space.mean(axis=0), np.where(varies & (std > 0), std, np.inf))

    def __call__(self, space: FloatArray) -> FloatArray:
        """Scaled coordinates of new rows, (m, d)."""
        scaled: FloatArray = (space - self.mean) / self.scale
        return scaled


Kernel = Literal["epanechnikov", "uniform"]

MOST_RANKS = 2**16
BEYOND = 1e-3
"""Margin of the scale u beyond the last neighbour, which gives it a positive weight."""


def kernel_weights(distance: FloatArray, kernel: Kernel, radius: float | None = None) -> FloatArray:
    """Weights of every row's neighbours, (m, k), zero or positive and not normalised.

    Parameters
    ----------
    distance : (m, k) array
        Ascending in every row.
    kernel : {"epanechnikov", "uniform"}
        1 - (d / u)^2, or 1 for all.
    radius : float, optional
        The scale u. By default slightly beyond the last neighbour of each row, with uniform weights
        if that is at distance zero.

    Returns
    -------
    (m, k) array
        With a radius, neighbours at or beyond it have weight 0 (with the uniform kernel: beyond).

    Examples
    --------
    >>> kernel_weights(np.array([[0.0, 1.0, 2.0]]), "epanechnikov", radius=2.0).tolist()
    [[1.0, 0.75, 0.0]]
    >>> kernel_weights(np.array([[0.0, 0.0]]), "epanechnikov").tolist()
    [[1.0, 1.0]]
    """
    if kernel == "uniform":
        return np.ones_like(distance) if radius is None else (distance <= radius).astype(np.float64)
    scale = distance[:, -1:] * (1 + BEYOND) if radius is None else np.full((1, 1), radius)
    share = np.divide(distance, scale, out=np.zeros_like(distance), where=scale > 0)
    weights: FloatArray = np.maximum(1 - share**2, 0.0)
    return weights


def sorting_keys(values: FloatArray) -> NDArray[Any]:
    """Keys that sort as these values (n,) do: their ranks, where these fit into 16 bits.

    numpy's stable sort then goes by digits, in a tenth of the time and with the same result.

    Examples
    --------
    >>> sorting_keys(np.array([0.5, 0.1, 0.5]))
    array([1, 0, 1], dtype=uint16)
    """
    different, rank = np.unique(values, return_inverse=True)
    return rank.astype(np.uint16) if len(different) <= MOST_RANKS else values


DENSE = 16
"""A tree is not asked for more than one row in so many."""
SPARE = 16
"""Number of a tree's candidates beyond k, to find ties at the k-th."""
CHUNK = 2048
"""Number of rows whose products with a block of points stay in a core's cache."""
PILOT = 8192
"""Number of rows used to estimate the distance of the k-th nearest."""
FARTHEST = 2.0**60
"""Beyond this multiple of the space's extent all distances are equal in double precision."""

Table = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Candidates:
    """A list of rows for each of b points.

    Attributes
    ----------
    index : (b, w) int
        Row i holds the list of point i in its first ``count[i]`` entries.
    count : (b,) int64
    unsure : (b,) bool
        Whether some of the k nearest may be missing from the list.
    """

    index: NDArray[Any]
    count: IntArray
    unsure: NDArray[np.bool_]


class Proposer(Protocol):
    """A function that proposes candidates."""

    def __call__(self, points: FloatArray, k: int) -> Candidates: ...


class TreeCandidates:
    """The k nearest by scipy's k-d tree; exact for epsilon 0, except for longer ties.

    A tree asked for a good part of all rows takes longer than looking at each of them.

    Examples
    --------
    >>> found = TreeCandidates(np.array([[0.0], [5.0], [1.0]]))(np.array([[0.9]]), 2)
    >>> sorted(found.index[0, : found.count[0]].tolist()), found.unsure.tolist()
    ([0, 2], [False])
    """

    def __init__(self, space: FloatArray, epsilon: float = 0.0) -> None:
        self._tree, self._epsilon = cKDTree(space), epsilon
        self._columns = np.ascontiguousarray(space.T)

    def __call__(self, points: FloatArray, k: int) -> Candidates:
        n = int(self._tree.n)
        if not self._epsilon and n <= DENSE * k:
            return self._among_all(points, k)
        wanted = k if self._epsilon else min(n, k + SPARE)
        asked = self._tree.query(points, k=[*range(1, wanted + 1)], eps=self._epsilon)
        distance, index = np.asarray(asked[0]), np.asarray(asked[1])
        unsure = _may_lack(distance, k, n)
        if self._epsilon:
            unsure[:] = False
        return Candidates(index, np.full(len(points), wanted), unsure)

    def _among_all(self, points: FloatArray, k: int) -> Candidates:
        from kdcal_core.regression import _nearest_kernels as kernels

        index = np.empty((len(points), self._columns.shape[1]), dtype=np.int32)
        count = np.empty(len(points), dtype=np.int64)
        kernels.among_all(points, self._columns, k, index, count)
        return Candidates(index[:, : count.max()], count, np.zeros(len(points), dtype=np.bool_))


class LineCandidates:
    """The k nearest in a space of one column, from both sides of each point.

    Takes a fiftieth of the time of a k-d tree.

    Examples
    --------
    >>> found = LineCandidates(np.array([[0.0], [5.0], [1.0]]))(np.array([[0.9]]), 2)
    >>> found.index[0].tolist(), found.unsure.tolist()
    ([2, 0, 1], [False])
    """

    def __init__(self, space: FloatArray) -> None:
        self._row = np.argsort(space[:, 0], kind="stable")
        self._ordered = space[self._row, 0]

    def __call__(self, points: FloatArray, k: int) -> Candidates:
        from kdcal_core.regression import _nearest_kernels as kernels

        wanted = min(len(self._row), k + SPARE)
        shape = (len(points), wanted)
        index, distance = np.empty(shape, dtype=np.int64), np.empty(shape)
        line = np.ascontiguousarray(points[:, 0])
        kernels.along_line(line, self._ordered, self._row, wanted, index, distance)
        return Candidates(
            index, np.full(len(points), wanted), _may_lack(distance, k, len(self._row))
        )


def _may_lack(distance: FloatArray, k: int, n: int) -> NDArray[np.bool_]:
    """Whether a row tied with the k-th of n may lie beyond the distances (b, w) found, (b,)."""
    if distance.shape[1] == n:
        return np.zeros(len(distance), dtype=np.bool_)
    return np.asarray(distance[:, -1] <= distance[:, k - 1] * (1 + 1e-12))


class ProductCandidates:
    """All rows that single-precision products cannot distinguish from the k nearest.

    For a row x and a point p around the rows' mean, half the squared distance less |p|^2 / 2 is
    |x|^2 / 2 - x.p. In single precision its error is less than e = g (|x|^2 / 2 + |x| |p|), g = 2
    (d + 10) 2^-24, which is twice the rounding of all terms. Subtracting e, which takes two more
    columns in the product, gives a lower bound. The k-th smallest bound plus 2 e is the largest
    possible distance of the k-th nearest row. All rows with a lower bound up to there are
    candidates, rarely more than k.

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
        # scaling by a power of two is exact and avoids overflow in single precision
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
        """A limit from the pilot rows that about k rows, or slightly more, should meet, (b,)."""
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
        """Candidates among the rows within the guess, and whether they include the k nearest."""
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
            # double-precision distances are rounded, too
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


SearchKind = Literal["exact", "approximate"]

TREE_COLUMNS = 4
"""Up to this many columns, a k-d tree is faster than products of all points with all rows."""
POINTS = 256
"""Number of points searched together."""
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
        Euclidean distances.
    """

    index: IntArray
    distance: FloatArray


class NeighbourSearch:
    """Finds the nearest rows in ``space`` (Torres et al., Alg. 1 step 8).

    Parameters
    ----------
    space : (n, d) array
        Finite coordinates of the calibration rows.
    kind : {"exact", "approximate"}
        "approximate" lets a k-d tree stop early (Arya et al. 1998; epsilon in Torres et al.).
    epsilon : float
        For "approximate" search: the i-th neighbour found is at most (1 + epsilon) times as far as
        the true one.

    Notes
    -----
    Exact search walks along the values of one column, uses scipy's k-d tree for two to four (or
    looks at all rows for a good part of them), and single-precision products above. All propose
    candidates that include the k nearest in spite of rounding. Their distances are then computed in
    double precision from differences, coordinate by coordinate. Points whose ties leave a proposer
    uncertain are searched in full. Ties therefore always go to the lowest row, for any method and
    number of threads.

    A search of 10,000 points among 100,000 rows with k = 1,000 takes 1.5 to 3.5 s of processor time
    with 1 to 4 columns and 1.5 to 2 s with 5 to 20. Approximate search is offered because Torres et
    al. use it. It saves little with 2 columns (epsilon 1: 18%) and takes twelve times as long with
    20. An inverted file of 632 k-means cells would not be better: with 20 independent normal
    columns 95% of the neighbours lie in the cells of about 45% of the rows, and finding the cells
    takes longer than the search.

    Examples
    --------
    >>> found = NeighbourSearch(np.array([[0.0], [1.0], [1.0], [5.0]])).query(np.array([[0.9]]), 2)
    >>> found.index.tolist(), found.distance.round(2).tolist()
    ([[1, 2]], [[0.1, 0.1]])
    """

    def __init__(self, space: FloatArray, kind: SearchKind = "exact", epsilon: float = 0.0) -> None:
        self._space = np.ascontiguousarray(space, dtype=np.float64)
        self._propose: Proposer
        if kind == "exact" and space.shape[1] == 1:
            self._propose = LineCandidates(self._space)
        elif kind == "approximate" or space.shape[1] <= TREE_COLUMNS:
            self._propose = TreeCandidates(self._space, epsilon)
        else:
            self._propose = ProductCandidates(self._space)

    def __len__(self) -> int:
        return len(self._space)

    @property
    def n_columns(self) -> int:
        return int(self._space.shape[1])

    def count_within(self, points: FloatArray, radius: float) -> IntArray:
        """Number of rows at distance ``radius`` or less from each of m points, (m,)."""
        tree = cKDTree(self._space)
        counts = tree.query_ball_point(points, radius, return_length=True, workers=-1)
        return np.asarray(counts, dtype=np.int64)

    def query(self, points: FloatArray, k: int, progress: Progress | None = None) -> Neighbours:
        """The ``k`` (1 to n) nearest rows of each of m points.

        ``progress`` is called between blocks and may raise to cancel.
        """
        # Equal points have equal neighbours, so they are searched once.
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
        with one_thread("blas"):
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
        """Squared distances of the candidates, (b, w), infinite after the end of a list."""
        from kdcal_core.regression import _nearest_kernels as kernels

        squared = np.empty((len(points), found.index.shape[1]))
        kernels.squared_distances(points, self._space, found.index, found.count, squared)
        return squared

    def _nearest_first(
        self, points: FloatArray, found: Candidates, k: int
    ) -> tuple[IntArray, FloatArray]:
        """The k nearest candidates, nearest first, with lower rows first in ties."""
        from kdcal_core.regression import _nearest_kernels as kernels

        squared = self._squared(points, found)
        order = np.argsort(squared, axis=1)
        sorted_ = np.take_along_axis(squared, order, axis=1)
        # a tie within the k nearest, or between the k-th and the next
        near = sorted_[:, : k + 1]
        ties = np.flatnonzero((near[:, 1:] == near[:, :-1]).any(axis=1))
        if len(ties):
            order[ties] = kernels.lowest_first(order[ties], sorted_[ties], found.index[ties], k)
        index = np.take_along_axis(found.index, order[:, :k], axis=1).astype(np.int64, copy=False)
        return index, np.sqrt(sorted_[:, :k])

    def _in_full(self, points: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        """The k nearest of all rows, with the lowest rows in ties."""
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


@storable
@dataclass(frozen=True, eq=False)
class ScaledSearch:
    """Neighbours among the calibration rows of one space, which is scaled by column first.

    Its fields are all that is kept of the rows, in memory and in files.

    Attributes
    ----------
    points : (n, d) float64
        Scaled coordinates of the calibration rows.
    mean, scale : (d,) float64
        Of the scaling; 0 and 1 where the space is used as it is.
    kind : {"exact", "approximate"}
    epsilon : float
        As in :class:`NeighbourSearch`.

    Examples
    --------
    >>> search = ScaledSearch.of(np.array([[0.0, 7.0], [2.0, 7.0]]))
    >>> search.query(np.array([[3.0, 9.0]]), 1).distance.tolist()
    [[1.0]]
    """

    points: FloatArray
    mean: FloatArray
    scale: FloatArray
    kind: SearchKind = "exact"
    epsilon: float = 0.0

    @classmethod
    def of(
        cls,
        space: FloatArray,
        *,
        standardise: bool = True,
        kind: SearchKind = "exact",
        epsilon: float = 0.0,
    ) -> Self:
        """The search among checked coordinates (n, d)."""
        d = space.shape[1]
        scaling = Scaling.of(space) if standardise else Scaling(np.zeros(d), np.ones(d))
        return cls(scaling(space), scaling.mean, scaling.scale, kind, epsilon)

    @property
    def n_columns(self) -> int:
        return int(self.points.shape[1])

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def _search(self) -> NeighbourSearch:
        return NeighbourSearch(self.points, self.kind, self.epsilon)

    def scaled(self, space: FloatArray) -> FloatArray:
        """Scaled coordinates of new rows, (m, d)."""
        return Scaling(self.mean, self.scale)(space)

    def query(self, space: FloatArray, k: int, progress: Progress | None = None) -> Neighbours:
        """The k nearest rows of each of m new ones, (m, d) in the space before scaling."""
        return self._search.query(self.scaled(space), k, progress)

    def count_within(self, space: FloatArray, radius: float) -> IntArray:
        """Number of rows within a scaled distance of each new row, (m,)."""
        return self._search.count_within(self.scaled(space), radius)

    def others(self, space: FloatArray, k: int, own: IntArray) -> Neighbours:
        """The k nearest rows of calibration rows (m, d) whose positions are ``own``, without these.

        k is less than the number of rows.
        """
        found = self.query(space, k + 1)
        other = found.index != own[:, np.newaxis]
        other[other.all(axis=1), -1] = False  # many equal rows: the own one is not listed
        return Neighbours(found.index[other].reshape(-1, k), found.distance[other].reshape(-1, k))

    def recall(self, space: FloatArray, found: IntArray, sample: int) -> float:
        """Share of the true nearest rows among those found, on evenly spaced rows."""
        return recall(self._search, found, self.scaled(space), sample)

    def check_state(self, name: str) -> None:
        """Refuse arrays of a file that are no search among at least one row."""
        d = self.points.shape[1] if self.points.ndim == 2 else 0
        demand(d > 0 and len(self.points) > 0, name)
        check_array(self, "points", (None, d))
        check_array(self, "mean", (d,))
        demand(self.scale.shape == (d,) and bool((self.scale > 0).all()), name)
        demand(self.kind in get_args(SearchKind) and 0 <= self.epsilon < np.inf, name)


def recall(search: NeighbourSearch, found: IntArray, points: FloatArray, sample: int) -> float:
    """Share of the true k nearest rows that were found, on evenly spaced points.

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
