"""What a summary keeps of rows that depend on one another: sums over groups of clusters or times.

A cluster, such as a patient, may have rows in many files. Each falls into one of 1,024 blocks by a
number that follows from its name, and the rows of a block are counted together. Sums of blocks have
the variance that sums of their clusters have (the random groups of survey statistics; Wolter 2007,
chapter 2), so they say by how much dependence widens an interval. Fewer clusters than some hundred
mostly have a block each; of very many a variance is estimated from 1,023 degrees of freedom.

Times have a block each, in their order, or of more than 1,024 stretches of as many neighbouring
times have one. Near blocks may depend on one another, as near times do in a table
(:meth:`kdcal_core.statistics.Dependence.coarser`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import uniform_edges
from kdcal_core.diagnostics.summaries.drawn_rows import row_numbers
from kdcal_core.diagnostics.summaries.score_grid import upper_ends
from kdcal_core.errors import InputError
from kdcal_core.statistics import (
    BinDependence,
    Dependence,
    dependence_of_bins,
    lags_for,
    normal_quantile,
    small_sample_factor,
)
from kdcal_core.text import counted

BLOCKS = 1024
FEWER_BLOCKS = 256
"""Of more than `_MANY_CLASSES` classes, each of which needs its own sums."""
_MANY_CLASSES = 20
SCORE_BITS, LOSS_BITS = 30, 24
EffectOf = Literal["mean", "share", "sum"]
_KNOWN = 4096  # clusters that are counted exactly
_LARGEST = 2.0**63


@dataclass(frozen=True, eq=False)
class RowClusters:
    """Which rows of a batch depend on one another.

    Attributes
    ----------
    number : (n,) int64
        The number of each row's cluster (:func:`cluster_numbers`), or the place of its time among
        all times of the table, from 0.
    column : str
        Name of the column that says so. Untrusted text.
    n_times : int
        Different times of the whole table; 0 where rows are in clusters.

    Examples
    --------
    >>> RowClusters(np.array([0, 3, 1]), "day", n_times=4).blocks(2).tolist()
    [0, 1, 0]
    """

    number: IntArray
    column: str = ""
    n_times: int = 0

    def blocks(self, size: int) -> IntArray:
        """Block of each row, of so many, (n,)."""
        if not self.n_times:
            return self.number % size
        return stretches(self.n_times, size).unit[self.number]

    def only(self, rows: Any) -> RowClusters:
        """Those of some rows."""
        return replace(self, number=self.number[rows])


@lru_cache(maxsize=16)
def stretches(n_times: int, most: int) -> Dependence:
    """How stretches of so many times depend on one another: ``unit`` (n_times,) is that of each.

    Examples
    --------
    >>> stretches(5, 8).unit.tolist(), stretches(1000, 100).n_units, stretches(1000, 100).lags
    ([0, 1, 2, 3, 4], 100, 5)
    """
    return Dependence.of_units("time", np.arange(n_times, dtype=np.int64)).coarser(most)


@dataclass(frozen=True, eq=False)
class ClusterNames:
    """How many clusters there are, from the smallest of their numbers; they add in any order.

    Attributes
    ----------
    column : str
        Name of the column that names the clusters. Untrusted text.
    least : (m,) int64
        The smallest different numbers of clusters, ascending, at most 4,096.
    n_times : int
        As of `RowClusters`.

    Examples
    --------
    >>> one, two = (
    ...     ClusterNames.of(RowClusters(cluster_numbers(ids), "id")) for ids in (["a", "b"], ["b"])
    ... )
    >>> (one + two).count, two.count
    (2, 1)
    """

    column: str
    least: IntArray
    n_times: int = 0

    def __post_init__(self) -> None:
        if self.least.dtype != np.int64 or not 1 <= len(self.least) <= _KNOWN or self.n_times < 0:
            raise InputError(
                "The clusters of a summary are damaged", fix="Summarise the rows again."
            )

    @classmethod
    def of(cls, rows: RowClusters) -> ClusterNames:
        """Of the rows' clusters."""
        return cls(rows.column, np.unique(rows.number)[:_KNOWN], rows.n_times)

    def __add__(self, other: ClusterNames) -> ClusterNames:
        if (self.column, self.n_times) != (other.column, other.n_times):
            raise InputError(
                "Two summaries have clusters of different columns, or times of different tables",
                fix="Summarise the rows of both with one column.",
            )
        least = np.unique(np.concatenate([self.least, other.least]))[:_KNOWN]
        return ClusterNames(self.column, least, self.n_times)

    @property
    def exact(self) -> bool:
        """Whether there are so few that each was counted."""
        return len(self.least) < _KNOWN

    @property
    def count(self) -> int:
        """Times of the whole table, or clusters: exactly up to 4,095, else to about 2%."""
        if self.n_times:
            return self.n_times
        if self.exact:
            return len(self.least)
        return int(float(f"{(_KNOWN - 1) * _LARGEST / float(self.least[-1]):.1e}"))

    @property
    def words(self) -> str:
        """How the rows count."""
        if self.n_times:
            return (
                f"Rows are ordered by {self.column[:60]}, and near ones may depend on one another: "
                f"intervals and p values count {counted(self.n_times, 'time')}, each with the "
                f"{lags_for(self.n_times):,} before it."
            )
        about = "" if self.exact else "about "
        return (
            f"Rows of one {self.column[:60]} depend on one another: intervals and p values count "
            f"{about}{counted(self.count, 'cluster')}."
        )


def cluster_numbers(values: Any) -> IntArray:
    """A number of 0 to 2^63 - 1 for each row's cluster, (n,): equal for equal names, everywhere.

    Whole numbers are the same whether they are stored as integers or as floating-point numbers, as
    where a file has a missing value elsewhere. The same names have the same numbers in every file.

    Parameters
    ----------
    values : (n,) array or Series
        Names, numbers, dates or truth values, none of them missing.

    Raises
    ------
    InputError
        For a missing value; the error names the row.

    Examples
    --------
    >>> bool((cluster_numbers([7, 8]) == cluster_numbers([7.0, 8.0])).all())
    True
    >>> len(set(cluster_numbers(["a", "b", "a"]).tolist()))
    2
    """
    code, found = pd.factorize(pd.Series(values), use_na_sentinel=True)
    if (code < 0).any():
        raise InputError(
            "The cluster is missing",
            fix="Fill it in, or leave the row out.",
            row=int(np.argmax(code < 0)) + 1,
        )
    return np.asarray(_numbers(pd.Series(found))[code])


def _numbers(names: pd.Series[Any]) -> IntArray:
    if isinstance(names.dtype, pd.CategoricalDtype):
        names = names.astype(names.cat.categories.dtype)
    if pd.api.types.is_datetime64_any_dtype(names.dtype):
        if names.dt.tz is not None:
            names = names.dt.tz_convert(None)
        names = names.dt.as_unit("ns").astype(np.int64)
    if pd.api.types.is_bool_dtype(names.dtype) or pd.api.types.is_integer_dtype(names.dtype):
        number = row_numbers(names.to_numpy(dtype=np.int64))
    elif pd.api.types.is_float_dtype(names.dtype):
        plain = names.to_numpy(dtype=np.float64)
        whole = (plain == np.floor(plain)) & (np.abs(plain) < 2.0**53)
        as_whole = np.where(whole, plain, 0.0).astype(np.int64)
        number = row_numbers(np.where(whole, as_whole, plain.view(np.int64)))
    else:
        text = names.astype(str).to_numpy(dtype=object)
        number = pd.util.hash_array(text, categorize=False)
    return (number >> np.uint64(1)).astype(np.int64)


def blocks_for(n_classes: int) -> int:
    """Number of blocks whose scores are kept, where there are so many classes."""
    return BLOCKS if n_classes <= _MANY_CLASSES else FEWER_BLOCKS


@lru_cache(maxsize=1)
def coarse_ends() -> FloatArray:
    """Upper ends of the bins in which blocks count scores, from 0 to 1, (U,); read-only.

    They are ends of cells of the grid. The scores 0 and 1 stand alone. Fifteen equal bins follow
    exactly; near 0 and 1 the bins are finer.

    Examples
    --------
    >>> len(coarse_ends()), bool(np.isin(coarse_ends(), upper_ends()).all())
    (33, True)
    """
    near = [*uniform_edges(100)[[1, 2, 3, 5]], *(2.0**-one for one in (8, 10, 13, 20))]
    far = [*uniform_edges(100)[[95, 97, 98, 99]], *(1.0 - 2.0**-one for one in (8, 10, 13, 20))]
    inner = uniform_edges(15)[1:-1]
    ends = np.unique(np.concatenate([[0.0], near, inner, far, [np.nextafter(1.0, 0.0), 1.0]]))
    ends.flags.writeable = False
    return ends


@lru_cache(maxsize=1)
def pit_ends() -> FloatArray:
    """Upper ends of the bins in which blocks count PIT values, ending at 1, (V,); read-only.

    Multiples of 0.01, and 0.025 and 0.975, between which 95% of uniform values lie.
    """
    ends = np.unique(np.concatenate([uniform_edges(100)[1:], uniform_edges(40)[[1, 39]]]))
    ends.flags.writeable = False
    return ends


@lru_cache(maxsize=1)
def group_pit_ends() -> FloatArray:
    """As `pit_ends`, for the blocks of every group: multiples of 0.05, 0.025 and 0.975."""
    ends = np.unique(np.concatenate([uniform_edges(20)[1:], uniform_edges(40)[[1, 39]]]))
    ends.flags.writeable = False
    return ends


@lru_cache(maxsize=1)
def coarse_of_cells() -> IntArray:
    """Bin of `coarse_ends` of every cell of the grid, (C,)."""
    return np.searchsorted(coarse_ends(), upper_ends())


@dataclass(frozen=True, eq=False)
class ClassBlocks:
    """Counts and sums of a classifier's rows by random block of clusters; they add.

    Attributes
    ----------
    names : ClusterNames
    cells : (2, B, K, U, 3) int64
        Rows, rows of which it is true, and sum of scores by bin of `coarse_ends`: first of the
        confidence of rows predicted to be each class, then of each class's probability.
    sums : (B, 6) int64
        Of the quantities of a row whose sums the summary holds.
    """

    names: ClusterNames
    cells: IntArray
    sums: IntArray

    def __post_init__(self) -> None:
        shape = self.cells.shape
        if (
            len(shape) != 5
            or shape != (2, blocks_for(shape[2]), shape[2], len(coarse_ends()), 3)
            or self.sums.shape != (shape[1], 6)
            or self.cells.dtype != np.int64
            or self.sums.dtype != np.int64
            or self.cells.min() < 0
        ):
            raise InputError(
                "The clusters of a summary are damaged", fix="Summarise the rows again."
            )

    def __add__(self, other: ClassBlocks) -> ClassBlocks:
        return ClassBlocks(
            self.names + other.names, self.cells + other.cells, self.sums + other.sums
        )


@dataclass(frozen=True, eq=False)
class ForecastBlocks:
    """Counts and sums of a regression's rows by random block of clusters; they add.

    Attributes
    ----------
    names : ClusterNames
    pit : (1024, V) int64
        Rows by bin of `pit_ends` that holds their PIT value.
    inside, below : (1024, I), (1024, L) int64
        As of the summary.
    place : (m,) int64
        Ascending: the number of a quantity times `_PLACES`, plus a group of eight powers of two.
    sums : (m, 1024) int64
        Of the rows' values whose size is in it, each rounded to 22 bits.
    """

    names: ClusterNames
    pit: IntArray
    inside: IntArray
    below: IntArray
    place: IntArray
    sums: IntArray

    def __post_init__(self) -> None:
        arrays = self.pit, self.inside, self.below, self.place, self.sums
        if (
            any(one.dtype != np.int64 for one in arrays)
            or self.pit.shape != (BLOCKS, len(pit_ends()))
            or any(one.ndim != 2 or len(one) != BLOCKS for one in (self.inside, self.below))
            or self.sums.shape != (len(self.place), BLOCKS)
            or (np.diff(self.place, prepend=-1) <= 0).any()
        ):
            raise InputError(
                "The clusters of a summary are damaged", fix="Summarise the rows again."
            )

    def __add__(self, other: ForecastBlocks) -> ForecastBlocks:
        place = np.union1d(self.place, other.place)
        sums = np.zeros((len(place), BLOCKS), np.int64)
        for one in (self, other):
            sums[np.searchsorted(place, one.place)] += one.sums
        return ForecastBlocks(
            self.names + other.names,
            self.pit + other.pit,
            self.inside + other.inside,
            self.below + other.below,
            place,
            sums,
        )

    def totals(self, quantity: int) -> FloatArray:
        """Sum of a quantity over the rows of each block, (1024,)."""
        total = np.zeros(BLOCKS)
        for place, sums in zip(self.place, self.sums, strict=True):
            number, group = divmod(int(place), _PLACES)
            if number == quantity:
                total += np.ldexp(sums.astype(np.float64), _POWERS * group - _LOWEST - _BITS)
        return total


_POWERS, _LOWEST, _BITS, _PLACES = 8, 1104, 22, 512
_AT_ONCE = 4_000_000  # rows whose sums are whole numbers below 2^53


def block_sums(
    values: FloatArray, block: IntArray, quantity: int
) -> tuple[list[int], list[IntArray]]:
    """Places and sums of values (n,) as of `ForecastBlocks`, from the block of each row."""
    places: dict[int, IntArray] = {}
    for start in range(0, len(values), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        part, exponent = np.frexp(values[rows])
        group, shift = np.divmod(exponent.astype(np.int64) + _LOWEST, _POWERS)
        whole = np.rint(np.ldexp(part, _BITS + shift))
        for one in np.unique(group[whole != 0.0]):
            mine = group == one
            found = np.bincount(block[rows][mine], whole[mine], BLOCKS).astype(np.int64)
            place = quantity * _PLACES + int(one)
            places[place] = places[place] + found if place in places else found
    return list(places), list(places.values())


@dataclass(frozen=True, eq=False)
class BlockSums:
    """What sums of blocks say of the variance of means.

    Attributes
    ----------
    mass : (B,) float64
        Rows of each block, or as many as they count for.
    n_times : int
        As of `RowClusters`: of times the blocks are stretches in their order.
    """

    mass: FloatArray
    n_times: int = field(default=0, kw_only=True)

    @property
    def n(self) -> float:
        """Rows of all blocks."""
        return float(self.mass.sum())

    @property
    def present(self) -> int:
        """Blocks that have rows."""
        return int(np.count_nonzero(self.mass))

    @property
    def lags(self) -> int:
        """Blocks before and after a block on which it may depend."""
        return 0 if self.times is None else self.times.lags

    @cached_property
    def times(self) -> Dependence | None:
        """How near blocks depend on one another; None of clusters."""
        if not self.n_times:
            return None
        found = stretches(self.n_times, len(self.mass))
        return replace(found, lags=min(found.lags, lags_for(self.present)))

    def together(self, sums: FloatArray) -> FloatArray:
        """Sums of blocks (B, ...) as those whose squares add up to what dependent rows share.

        Of clusters the same; of times as :meth:`kdcal_core.statistics.Dependence.near`.
        """
        if self.times is None:
            return sums
        used = sums[: self.times.n_units]
        near = self.times.near(np.ascontiguousarray(used.reshape(len(used), -1).T))
        return np.asarray(near.T).reshape(-1, *sums.shape[1:])

    @property
    def grown(self) -> float:
        """How many times a variance would grow if the rows of every cluster were equal.

        The squares of the clusters' sizes follow from those of the blocks, into which clusters fall
        at random.
        """
        together = float(self.products(self.mass[:, np.newaxis])[0, 0])
        return max(together / max(self.n, 1e-300), 1.0)

    def products(self, together: FloatArray) -> FloatArray:
        """Products (J, J), added up over the clusters, of their sums (B, J) in two bins each.

        Those of blocks without what different clusters of one block have by chance.
        """
        if self.times is not None:
            near = self.together(together)
            return np.asarray(near.T @ near)
        total, blocks = together.sum(axis=0), len(together)
        chance = np.outer(total, total) / blocks
        return np.asarray((together.T @ together - chance) / (1.0 - 1.0 / blocks))

    def bins(
        self,
        together: FloatArray,
        itself: FloatArray,
        pairs: Callable[[FloatArray], tuple[float, float]],
    ) -> BinDependence:
        """How the means of J bins vary, as :func:`kdcal_core.statistics.bin_dependence`.

        Parameters
        ----------
        together : (B, J) array
            Rows of each block in each bin.
        itself : (J,) array
            What each row adds to the squares of these numbers.
        pairs : callable
            From how much more each bin would vary if its rows were equal (J,), as of
            :func:`kdcal_core.statistics.dependence_of_bins`.
        """
        mass, products = together.sum(axis=0), self.products(together)
        beyond = np.maximum(np.diag(products) - itself, 0.0)
        more = np.divide(beyond, mass, out=np.zeros_like(mass), where=mass > 0.0)
        shares = np.outer(mass, mass)
        alike = np.divide(products, shares, out=np.zeros_like(products), where=shares > 0.0)
        n = max(round(self.n), 2)
        return dependence_of_bins(pairs(more), 1.0 + more, alike, self.present, n, self.lags)

    @property
    def units(self) -> float:
        """As how many blocks of equal size they count (Kish)."""
        return self.n**2 / max(float(np.square(self.mass).sum()), 1e-300)

    def effect(self, totals: FloatArray, own: float, of: EffectOf = "mean") -> float:
        """By how much clusters multiply the variance of a mean.

        Where nothing varies, or all rows are of one block, the rows of a cluster are taken as
        equal.

        Parameters
        ----------
        totals : (B,) array
            Sum over each block of the rows' values less their mean, or less a stated one.
        own : float
            Sum of the squares of these rows' values.
        of : {"mean", "share", "sum"}
            Of a mean as :func:`kdcal_core.statistics.mean_interval` takes it, with the square of
            Student's quantile over the normal one; of a share as
            :func:`kdcal_core.statistics.design_effect`, at least 1; or of the sum alone.
        """
        present = self.present
        if present < 2:
            return max(self.n, 1.0) * _wider(1.0)
        square = np.square(self.together(totals)).sum()
        if self.times is None:
            # around another value than their mean, clusters of one block agree by chance
            square -= totals.sum() ** 2 / len(totals)
        square = float(square)
        grown, factor = self.grown, small_sample_factor(present, self.lags)
        if of == "share":
            more = min(max(square / own, 1.0), grown) if own > 0.0 else grown
            more *= factor / small_sample_factor(present)
            return more * _wider(present - 1.0) / _wider(max(self.n - 1.0, 1.0))
        if own > 0.0:  # the variance that is multiplied has the factor n / (n - 1)
            more = square * factor / own * max(1.0 - 1.0 / max(self.n, 1.0), 0.0)
        else:
            more = grown
        return more if of == "sum" else more * _wider(max(self.units - 1.0, 1.0))


def _wider(freedom: float) -> float:
    """The square of Student's quantile of 95% over the normal one."""
    return float(stdtrit(freedom, 0.975) / normal_quantile(0.95)) ** 2


@dataclass(frozen=True, eq=False)
class BlockCells(BlockSums):
    """The scores of one target by block and bin of `coarse_ends`.

    Attributes
    ----------
    count, hits, score : (B, U) float64
        Rows, rows of which it is true, and sums of their scores.
    """

    count: FloatArray
    hits: FloatArray
    score: FloatArray

    @classmethod
    def of(cls, cells: IntArray, share: float = 1.0, *, n_times: int = 0) -> BlockCells:
        """From (B, U, 3) counts as of `ClassBlocks`, each times ``share``."""
        count, hits, score = (cells[..., part].astype(np.float64) * share for part in range(3))
        score = np.asarray(np.ldexp(score, -SCORE_BITS))
        return cls(count.sum(axis=1), count, hits, score, n_times=n_times)
