"""Rows of a classifier drawn at random while a summary is made, the same for every order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray, IntArray, check_proba
from kdcal_core.data.array_checks import digest_arrays
from kdcal_core.errors import InputError

DRAWN = 20_000
"""Rows that a summary keeps, at most: as many as a calibrator chooses its shrinkage by."""

_CHUNK = 2**16  # rows looked at together
_ALL = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class DrawnRows:
    """The rows of the smallest random numbers, each of which follows from the row's position.

    Up to `DRAWN` rows they are all rows, in the order of the table.

    Attributes
    ----------
    position : (m,) int64
        In the whole table, from 0, ascending.
    proba : (m, K) float64
        Rows sum to one.
    y : (m,) int64

    Examples
    --------
    >>> one = DrawnRows(np.array([3]), np.array([[0.9, 0.1]]), np.array([0]))
    >>> two = DrawnRows(np.array([1]), np.array([[0.2, 0.8]]), np.array([1]))
    >>> (one + two).y.tolist(), (one + two).digest == (two + one).digest
    ([1, 0], True)
    """

    position: IntArray
    proba: FloatArray
    y: IntArray

    def __post_init__(self) -> None:
        m = len(self.position)
        if (
            self.position.shape != (m,)
            or self.y.shape != (m,)
            or self.proba.ndim != 2
            or len(self.proba) != m
            or m > DRAWN
            or (np.diff(self.position, prepend=0) < 0).any()
        ):
            raise InputError(
                "The drawn rows of a summary are damaged", fix="Summarise the rows again."
            )

    def __len__(self) -> int:
        return len(self.position)

    def __add__(self, other: DrawnRows) -> DrawnRows:
        """What is drawn of the rows of both."""
        return _drawn_of([self, other])

    def may_be_of(self, n: int, n_classes: int) -> bool:
        """Whether they may have been drawn of so many rows of so many classes."""
        right = self.proba.shape[1] == n_classes and len(self) == min(n, DRAWN)
        return right and bool(((self.y >= 0) & (self.y < n_classes)).all())

    @property
    def digest(self) -> str:
        """SHA-256 of the numbers."""
        return digest_arrays("drawn rows", self.position, self.proba, self.y)


class RowDraw:
    """Draws rows while batches are added; `rows` gives them.

    Parameters
    ----------
    n_classes : int

    Examples
    --------
    >>> draw = RowDraw(2)
    >>> draw.add(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 1]), 0)
    >>> draw.rows().position.tolist()
    [0, 1]
    """

    def __init__(self, n_classes: int) -> None:
        nothing = np.empty(0, np.int64)
        self._known = DrawnRows(nothing, np.empty((0, n_classes)), nothing)
        self._new: list[DrawnRows] = []
        self._limit = _ALL  # random numbers above it are too large

    def add(self, proba: FloatArray, y: IntArray, first: int) -> None:
        """Add checked rows, of which the first has this position."""
        from kdcal_core.diagnostics.summaries._summary_kernels import rows_within

        for start in range(0, len(y), _CHUNK):
            n = min(_CHUNK, len(y) - start)
            found = np.empty(n, np.int64)
            some = found[: rows_within(first + start, n, self._limit, found)]
            least = some[_least(first + start + some)]
            if len(least):
                rows = start + least
                self._new.append(DrawnRows(first + rows, check_proba(proba[rows]), y[rows]))
            if sum(map(len, self._new)) > DRAWN:
                self._gather()

    def rows(self) -> DrawnRows:
        """The rows drawn so far."""
        self._gather()
        return self._known

    def _gather(self) -> None:
        self._known = _drawn_of([self._known, *self._new])
        self._new = []
        if len(self._known) == DRAWN:
            self._limit = row_numbers(self._known.position).max()


def row_numbers(position: IntArray) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """A random number of each row by its position (SplitMix64), all different, (n,).

    Examples
    --------
    >>> row_numbers(np.arange(2)).tolist()
    [16294208416658607535, 7960286522194355700]
    """
    z = (position.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: np.ndarray[tuple[int], np.dtype[np.uint64]] = z ^ (z >> np.uint64(31))
    return found


def _least(position: IntArray) -> IntArray:
    """Which of these rows have the smallest numbers, ascending; all if they are few."""
    if len(position) <= DRAWN:
        return np.arange(len(position))
    return np.sort(np.argsort(row_numbers(position), kind="stable")[:DRAWN])


def _drawn_of(parts: list[DrawnRows]) -> DrawnRows:
    position, proba, y = (
        np.concatenate([getattr(one, name) for one in parts]) for name in ("position", "proba", "y")
    )
    order = np.argsort(position)
    if (np.diff(position[order]) == 0).any():  # batches of which none said where it begins
        order = np.lexsort((*proba.T, y, position))
    rows = order[_least(position[order])]
    return DrawnRows(position[rows], proba[rows], y[rows])
