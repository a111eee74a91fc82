"""What pairs two estimates of the same rows without the rows: influence, summed over groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from zlib import compress

import numpy as np
from numpy.typing import NDArray

from kdcal_core.statistics.dependence import Dependence, pooled, small_sample_factor

FloatArray = NDArray[np.float64]

MOST_GROUPS = 128
LEAST_GROUPS = 16
LEAST_ROWS = 10
"""Rows of every group, at least: no sum is to say what a single row holds."""
_RULE = b"groups of rows, first rule"


@dataclass(frozen=True, eq=False)
class GroupSums:
    """How strongly each group of rows pulls at an estimate: all that its pairing needs.

    Attributes
    ----------
    rows : str
        Digest of the rows' outcomes, weights and dependence, and of the rule of the groups. Sums
        of other rows have another one.
    error : float
        Standard error of the estimate, from the groups.
    sums : (G,) float16 array
        Of unit length, so that the products of two are a correlation.
    """

    rows: str
    error: float
    sums: NDArray[np.float16] = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse what no groups of rows give: it may have been read from a file.

        Raises
        ------
        ValueError
        """
        whole = self.sums.ndim == 1 and len(self.sums) >= LEAST_GROUPS
        if not (whole and np.isfinite(self.sums).all() and 0.0 < self.error < np.inf):
            raise ValueError("no sums over groups of rows")

    def and_of(self, other: GroupSums) -> GroupSums:
        """Of an estimate that two sets of rows move, each as sums of its own say.

        Examples
        --------
        >>> y = np.random.default_rng(0).integers(0, 2, 1000)
        >>> one, other = RowGroups.of(y, np.ones(1000)), RowGroups.of(y[::2], np.ones(500))
        >>> both = one.sums(1.0 * y).and_of(other.sums(-1.0 * y[::2]))
        >>> len(both.sums), bool(both.error > one.sums(1.0 * y).error)
        (150, True)
        """
        error = float(np.hypot(self.error, other.error))
        parts = [one.error / error * one.sums.astype(np.float64) for one in (self, other)]
        return GroupSums(self.rows + other.rows, error, np.concatenate(parts).astype(np.float16))


@dataclass(frozen=True, eq=False)
class RowGroups:
    """The groups of some rows: the same for every model that is judged on these rows.

    At most 128 random groups of rows, or of clusters; of rows in time as many stretches of
    neighbouring times. Each has ten rows or more.

    Examples
    --------
    >>> y = np.random.default_rng(0).integers(0, 2, 1000)
    >>> groups = RowGroups.of(y, np.ones(1000))
    >>> one, other = (groups.sums(y * x) for x in (1.0, -3.0))
    >>> round(correlation(one, other), 3), round(other.error / one.error, 3)
    (-1.0, 3.0)
    >>> RowGroups.of(y[:100], np.ones(100)) is None
    True
    >>> RowGroups.of(np.sort(y), np.ones(1000)) is None
    True
    """

    rows: str
    weight: FloatArray
    groups: Dependence

    @classmethod
    def of(
        cls,
        outcome: NDArray[Any],
        weight: FloatArray,
        dependence: Dependence | None = None,
        file: str = "",
    ) -> RowGroups | None:
        """The groups of n rows; None of fewer than 160, or of too few clusters or times.

        None too where nothing says which rows they are.

        Parameters
        ----------
        outcome : (n,) array
            Of each row. Their order identifies the rows, unless it is sorted (`is_telling`).
        weight : (n,) array
        dependence : Dependence, optional
        file : str
            Digest of the file of the rows, which identifies them where outcomes do not.
        """
        n = len(outcome)
        told_by = "" if is_telling(outcome) else file
        if not (told_by or is_telling(outcome)):
            return None
        units = dependence or Dependence.of_units("cluster", np.arange(n))
        at_most = min(MOST_GROUPS, n // LEAST_ROWS)
        while at_most >= LEAST_GROUPS:
            groups = units.coarser(at_most)
            size = np.bincount(groups.unit, minlength=groups.n_units)
            if len(size) < LEAST_GROUPS:
                return None
            if size.min() >= LEAST_ROWS:
                return cls(_digest(told_by, outcome, weight, dependence), weight, groups)
            at_most = at_most * 3 // 4
        return None

    def sums(self, influence: FloatArray) -> GroupSums | None:
        """The sums of influence values (n,); None where they are all alike, or one is infinite.

        A constant does not matter: the values are centred.
        """
        if not np.isfinite(influence).all():
            return None
        share = self.weight / self.weight.sum()
        centred = share * (influence - share @ influence)
        totals = pooled(centred, self.groups)
        length = float(np.linalg.norm(totals))
        scale = float(np.abs(share * influence).sum())
        if length <= 1e-12 * scale:
            return None
        factor = small_sample_factor(self.groups.n_units, self.groups.lags)
        error = length * factor**0.5
        return GroupSums(self.rows, error, (totals / length).astype(np.float16))


_FIRST = 10_000
LEAST_CHANGES = 20
"""Fewest fractions, or bytes of what their order says, that make values more than a coincidence."""


def is_telling(values: NDArray[Any]) -> bool:
    """Whether two sets with these values in this order have them from the same rows.

    Either many of them are no whole numbers, or the steps from one row to the next say much: sorted
    classes, or classes that take turns, are alike in any set. How much steps say is how far they
    can be compressed.

    Examples
    --------
    >>> drawn = np.random.default_rng(0).integers(0, 2, 300)
    >>> is_telling(drawn), is_telling(np.sort(drawn)), is_telling(np.arange(300) % 2)
    (True, False, False)
    """
    if len(values) > _FIRST and is_telling(values[:_FIRST]):
        return True  # then all of them are
    distinct, rank = np.unique(values, return_inverse=True)
    numbers = np.issubdtype(distinct.dtype, np.floating)
    if numbers and np.count_nonzero(distinct % 1.0) >= LEAST_CHANGES:
        return True
    steps = np.diff(rank).astype(np.min_scalar_type(-max(len(distinct), 1)))
    said, least = (len(compress(one.tobytes(), 9)) for one in (steps, np.zeros_like(steps)))
    return said - least >= LEAST_CHANGES


def _digest(
    file: str, outcome: NDArray[Any], weight: FloatArray, dependence: Dependence | None
) -> str:
    found = blake2b(_RULE + file.encode(), digest_size=16)
    found.update(np.ascontiguousarray(outcome, dtype=np.float64).tobytes())
    found.update(np.ascontiguousarray(weight, dtype=np.float64).tobytes())
    if dependence is not None:
        found.update(dependence.kind.encode())
        found.update(np.ascontiguousarray(dependence.unit, dtype=np.int64).tobytes())
    return found.hexdigest()


def correlation(one: GroupSums | None, other: GroupSums | None) -> float | None:
    """Correlation of the sampling errors of two estimates of the same rows; None without it.

    None too where either has no sums, or those of other rows.
    """
    if one is None or other is None or one.rows != other.rows or one.sums.shape != other.sums.shape:
        return None
    a, b = (np.asarray(each.sums, dtype=np.float64) for each in (one, other))
    if np.array_equal(a, b):
        return 1.0
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.clip(a @ b / length, -1.0, 1.0)) if length else None
