"""Histogram and distribution function of PIT values, with bands for uniform ones.

Row weights are used throughout: ``n`` is the number of rows, ``effective`` Kish's effective number
(sum w)^2 / sum w^2, which bands and p values use; the band of a distribution function is drawn with
the weights. For dependent rows it is the number of independent ones with as wide a band.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import bdtr, bdtrc, betainc
from scipy.stats import binom

from kdcal_core.data import FloatArray, IntArray, check_weight
from kdcal_core.data.array_checks import unit_column
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics.regression.dependent_pit import band_rows, share_rows
from kdcal_core.diagnostics.targets import check_choice, check_level
from kdcal_core.errors import InputError
from kdcal_core.statistics import clopper_pearson, dependence_of


def checked_pit(pit: Any, sample_weight: Any = None) -> tuple[FloatArray, FloatArray]:
    """PIT values (n,) in [0, 1] and row weights (n,) that sum to one.

    Raises
    ------
    InputError
        If there are no rows, a value is missing or outside [0, 1] (the message names the row), or
        the weights do not match.
    """
    fix = "PIT values are probabilities: each lies between 0 and 1."
    values = unit_column(pit, "PIT value", fix)
    weight = check_weight(sample_weight, len(values))
    return values, weight / weight.sum()


def effective_rows(weight: FloatArray) -> float:
    """Kish's effective number of rows for weights that sum to one."""
    return float(1.0 / np.square(weight).sum())


def checked_levels(levels: Any) -> FloatArray:
    """Levels in (0, 1), increasing, (g,)."""
    values = np.asarray(levels, dtype=np.float64)
    inside = values.ndim == 1 and len(values) > 0 and bool(np.all((values > 0) & (values < 1)))
    if not inside or np.any(np.diff(values) <= 0):
        raise InputError(
            "The levels are not increasing numbers between 0 and 1",
            fix="Give levels such as 0.05, 0.5, 0.95.",
        )
    return values


BandKind = Literal["simultaneous", "pointwise"]


@dataclass(frozen=True, eq=False)
class PitHistogram:
    """Counts of PIT values per bin, with a band for uniform PIT values.

    Attributes
    ----------
    edges : (B + 1,)
        Equal widths from 0 to 1; bins are (a, b], the first closed at 0.
    counts : (B,)
        Rows in each bin; with row weights rescaled so that they still sum to ``n``.
    low, high : (B,)
        Counts between which uniform PIT values stay with probability ``level``: in all bins
        together ("simultaneous"), or in each bin separately ("pointwise").
    n : int
    effective : float
    level : float
    band : {"simultaneous", "pointwise"}
    """

    edges: FloatArray
    counts: FloatArray
    low: FloatArray
    high: FloatArray
    n: int
    effective: float
    level: float
    band: BandKind

    @property
    def density(self) -> FloatArray:
        """Height of each bar, on a scale where a uniform histogram has height 1, (B,)."""
        return np.asarray(self.counts / (self.n * np.diff(self.edges)))

    @property
    def density_band(self) -> tuple[FloatArray, FloatArray]:
        """The band on the scale of ``density``, two arrays (B,)."""
        scale = self.n * np.diff(self.edges)
        return np.asarray(self.low / scale), np.asarray(self.high / scale)

    @property
    def outside(self) -> IntArray:
        """-1 if a bin lies below its band, 1 if above, 0 if inside, (B,)."""
        return (self.counts > self.high).astype(np.int64) - (self.counts < self.low)

    def table(self) -> pd.DataFrame:
        """One row per bin: the data of the figure, for download."""
        return pd.DataFrame(
            {
                "bin_low": self.edges[:-1],
                "bin_high": self.edges[1:],
                "count": self.counts,
                "density": self.density,
                "uniform_low": self.low,
                "uniform_high": self.high,
            }
        )


def pit_histogram(
    pit: Any,
    bins: int = 20,
    level: float = 0.95,
    *,
    band: BandKind = "simultaneous",
    sample_weight: Any = None,
) -> PitHistogram:
    """Counts of PIT values in bins of equal width, with a band for uniform ones.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    bins : int
        20 by default.
    level : float
        Probability that uniform PIT values stay inside the band.
    band : {"simultaneous", "pointwise"}
        "pointwise": the binomial interval of each bin at ``level``. "simultaneous": at a higher
        level, so that all bins together stay inside with probability at least ``level``
        (Bonferroni); a single bar outside is then evidence of a fault.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights; the band then uses Kish's effective number of rows. With a
        :class:`kdcal_core.statistics.RowDesign` rows may depend on one another; the band is then
        that of as many independent rows as vary equally.

    Raises
    ------
    InputError
        For values outside [0, 1] (the message names the row) or settings out of range.

    Examples
    --------
    >>> found = pit_histogram([0.05, 0.15, 0.9, 0.95], bins=2)
    >>> found.counts.tolist(), found.density.tolist()
    ([2.0, 2.0], [1.0, 1.0])
    """
    check_level(level)
    check_choice("band", band, ("simultaneous", "pointwise"))
    values, weight = checked_pit(pit, sample_weight)
    edges = uniform_edges(bins)
    n, effective = len(values), effective_rows(weight)
    counts = bin_sums(bin_index(values, edges), bins, weight) * n
    if np.all(weight == weight[0]):
        counts = np.rint(counts)
    if (together := dependence_of(sample_weight)) is not None and bins > 1:
        effective = band_rows(values, weight, edges[1:-1], together, level, bins=True)
    return histogram_of_counts(counts, n, effective, level, band)


def histogram_of_counts(
    counts: FloatArray, n: int, effective: float, level: float, band: BandKind
) -> PitHistogram:
    """:func:`pit_histogram` of rows that are counted already, (B,)."""
    bins = len(counts)
    edges = uniform_edges(bins)
    tail = (1.0 - level) / 2.0
    tail = tail / bins if band == "simultaneous" else tail
    rows = max(round(effective), 1)
    low, high = (binom.ppf(p, rows, 1.0 / bins) * n / rows for p in (tail, 1.0 - tail))
    return PitHistogram(
        edges=edges,
        counts=counts,
        low=np.full(bins, low),
        high=np.full(bins, high),
        n=n,
        effective=effective,
        level=level,
        band=band,
    )


Band = tuple[FloatArray, FloatArray]
"""Lower and upper ends at each level, (g,) each."""
LEVELS: tuple[float, ...] = tuple(i / 100 for i in range(1, 100))
BAND_DRAWS = 10_000
_MOST_COUNTS = 1_000  # 100 a standard deviation
_SINGLE = 400  # rows drawn one by one, those of the largest weights
_DRAWN_AT_ONCE, _TRIED = 1_000_000, 400
_SEED = 0  # of the band's draws: part of its definition, like a table of critical values


@dataclass(frozen=True, eq=False)
class EcdfDifference:
    """Share of PIT values at or below each level, minus the level.

    Attributes
    ----------
    levels, difference : (G,)
    low, high : (G,)
        Band inside which the difference stays at all levels together with probability ``level``,
        if PIT values are uniform.
    """

    levels: FloatArray
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    n: int
    effective: float
    level: float

    @property
    def outside(self) -> IntArray:
        """-1 if the difference lies below its band, 1 if above, 0 if inside, (G,)."""
        above = self.difference > self.high + 1e-12
        below = self.difference < self.low - 1e-12
        return above.astype(np.int64) - below

    def table(self) -> pd.DataFrame:
        """One row per level: the data of the figure, for download."""
        return pd.DataFrame(
            {
                "level": self.levels,
                "difference": self.difference,
                "uniform_low": self.low,
                "uniform_high": self.high,
            }
        )


@dataclass(frozen=True, eq=False)
class QuantileReliability:
    """How often the outcome lies at or below the stated quantile, for each level.

    Attributes
    ----------
    levels, observed : (G,)
    low, high : (G,)
        Clopper-Pearson interval of ``observed`` at each level separately.
    band_low, band_high : (G,)
        Band inside which ``observed`` stays at all levels together with probability ``level``, if
        the distributions are calibrated.
    """

    levels: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    n: int
    effective: float
    level: float

    def table(self) -> pd.DataFrame:
        """One row per level: the data of the figure, for download."""
        return pd.DataFrame(
            {
                "level": self.levels,
                "observed": self.observed,
                "interval_low": self.low,
                "interval_high": self.high,
                "consistency_low": self.band_low,
                "consistency_high": self.band_high,
            }
        )


def ecdf_difference(
    pit: Any, levels: Any = LEVELS, *, level: float = 0.95, sample_weight: Any = None
) -> EcdfDifference:
    """Share of PIT values at or below each level, minus the level, with a simultaneous band.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    levels : (g,) increasing array in (0, 1)
    level : float
        Probability that uniform PIT values stay inside the band at all ``levels`` together.
    sample_weight : (n,) array or RowDesign, optional
        Positive row weights; the band is then drawn with them (Notes). With a
        :class:`kdcal_core.statistics.RowDesign` rows may depend on one another; the band is then
        that of as many independent rows as vary equally.

    Raises
    ------
    InputError
        For values outside [0, 1] (the message names the row) or settings out of range.

    Notes
    -----
    The band consists of the levels' binomial intervals, all with the same tail probability. It is
    chosen from 10,000 draws so that uniform PIT values stay inside all intervals with probability
    ``level`` (Saeilynoja, Buerkner and Vehtari 2022).

    With unequal weights the intervals are those of Kish's effective number of rows, continued to
    fractions of a row, and the draws weigh uniform values as the rows are weighed: the 400 rows of
    the largest weights each, the others as their effective number of equal ones. With 100
    to 5,000 rows and four kinds of weights, uniform values left a band of 95% in 4.4 to 5.8% of
    2,000 runs; a band of Kish's number of equal rows in 4.9 to 12.1% (tests/benchmarks/
    RESULTS_coverage.md).

    Examples
    --------
    >>> found = ecdf_difference([0.1, 0.2, 0.3, 0.6], levels=[0.25, 0.5])
    >>> found.difference.tolist()
    [0.25, 0.25]
    """
    check_level(level)
    values, weight = checked_pit(pit, sample_weight)
    at = checked_levels(levels)
    effective, band = effective_rows(weight), None
    if (together := dependence_of(sample_weight)) is not None:
        effective = band_rows(values, weight, at, together, level)
    else:
        band = weighted_band(weight, at, level)
    share = share_below(values, weight, at)
    return ecdf_of_shares(share, at, len(values), effective, level, band)


def ecdf_of_shares(
    share: FloatArray,
    at: FloatArray,
    n: int,
    effective: float,
    level: float,
    band: Band | None = None,
) -> EcdfDifference:
    """:func:`ecdf_difference` of rows of which the shares at or below ``at`` are known, (g,).

    ``band`` is that of the shares; by default that of as many equal rows as ``effective`` says.
    """
    low, high = band or simultaneous_band(max(round(effective), 1), tuple(at), level)
    return EcdfDifference(
        levels=at,
        difference=share - at,
        low=low - at,
        high=high - at,
        n=n,
        effective=effective,
        level=level,
    )


def quantile_reliability(
    pit: Any, levels: Any = LEVELS, *, level: float = 0.95, sample_weight: Any = None
) -> QuantileReliability:
    """How often outcomes lie at or below their stated quantiles (Torres et al., Eq. 1).

    The outcome lies at or below the quantile of level p exactly if its PIT value is at most p.
    Arguments and errors as in :func:`ecdf_difference`.

    Examples
    --------
    >>> found = quantile_reliability([0.1, 0.2, 0.3, 0.6], levels=[0.25, 0.5])
    >>> found.observed.tolist()
    [0.5, 0.75]
    """
    check_level(level)
    values, weight = checked_pit(pit, sample_weight)
    at = checked_levels(levels)
    effective = effective_rows(weight)
    observed = share_below(values, weight, at)
    rows, band = np.full(len(at), effective), None
    if (together := dependence_of(sample_weight)) is not None:
        effective = band_rows(values, weight, at, together, level)
        shares = zip(at, observed, strict=True)
        rows = np.array([share_rows(values <= p, weight, seen, together) for p, seen in shares])
    else:
        band = weighted_band(weight, at, level)
    return quantiles_of_shares(observed, at, rows, len(values), effective, level, band)


def quantiles_of_shares(
    observed: FloatArray,
    at: FloatArray,
    rows: FloatArray,
    n: int,
    effective: float,
    level: float,
    band: Band | None = None,
) -> QuantileReliability:
    """:func:`quantile_reliability` of rows of which the shares at or below ``at`` are known.

    ``rows`` (g,) are the effective rows of each share; ``band`` as for :func:`ecdf_of_shares`.
    """
    low, high = clopper_pearson(observed, rows, level)
    band_low, band_high = band or simultaneous_band(max(round(effective), 1), tuple(at), level)
    return QuantileReliability(
        levels=at,
        observed=observed,
        low=low,
        high=high,
        band_low=band_low,
        band_high=band_high,
        n=n,
        effective=effective,
        level=level,
    )


def share_below(pit: FloatArray, weight: FloatArray, levels: FloatArray) -> FloatArray:
    """Weighted share of the PIT values at or below each of the increasing ``levels``, (g,)."""
    cell = np.searchsorted(levels, pit, side="left")
    plain = bool(np.all(weight == weight[0]))
    mass = bin_sums(cell, len(levels) + 1, None if plain else weight)
    total = len(pit) if plain else mass.sum()
    return np.asarray(np.minimum(np.cumsum(mass)[:-1] / total, 1.0))


@lru_cache(maxsize=256)
def simultaneous_band(n: int, levels: tuple[float, ...], level: float) -> Band:
    """Band of the shares of n uniform values below all ``levels`` at once, (g,) each."""
    at = np.asarray(levels)
    rng = np.random.default_rng(_SEED)
    cells = np.diff(at, prepend=0.0, append=1.0)
    counts = np.cumsum(rng.multinomial(n, cells, size=BAND_DRAWS)[:, :-1], axis=1)
    least = np.zeros(BAND_DRAWS)
    for p, count in zip(at, counts.T, strict=True):
        # few different counts occur, so the two binomial tails are looked up, and between many
        # counts interpolated on the log scale
        few = min(int(count.max() - count.min()) + 1, _MOST_COUNTS)
        seen = np.linspace(count.min(), count.max(), few).round()
        above = np.where(seen > 0, bdtrc(seen - 1.0, n, p), 1.0)
        tail = np.log(np.minimum(bdtr(seen, n, p), above))
        np.minimum(least, np.interp(count, seen, tail), out=least)
    # the largest tail probability for which at most 1 - level of the draws leave the band
    tail = np.exp(np.sort(least)[int((1.0 - level) * BAND_DRAWS)]) * (1.0 - 1e-9)
    low = np.asarray(binom.ppf(tail, n, at) / n)
    high = np.asarray(1.0 - binom.ppf(tail, n, 1.0 - at) / n)
    low.flags.writeable = high.flags.writeable = False
    return low, high


def weighted_band(weight: FloatArray, at: FloatArray, level: float) -> Band | None:
    """As :func:`simultaneous_band`, of independent rows of these weights; None if all are equal.

    Examples
    --------
    >>> weight, at = np.repeat([1.0, 9.0], 50), np.array([0.5])
    >>> low, high = weighted_band(weight, at, 0.95)
    >>> bool(high[0] - low[0] > 0.25)  # of 100 equal rows: 0.2
    True
    """
    if np.all(weight == weight[0]):
        return None
    few = len(weight) - _SINGLE
    if few <= 0:
        return _drawn_band(np.sort(weight).tobytes(), 0.0, 0, tuple(at), level)
    ordered = np.partition(weight, few)
    rest, mass = ordered[:few], float(ordered[:few].sum())
    rows = max(round(mass**2 / float(np.square(rest).sum())), 1)
    return _drawn_band(np.sort(ordered[few:]).tobytes(), mass, rows, tuple(at), level)


@lru_cache(maxsize=32)
def _drawn_band(
    single: bytes, mass: float, rows: int, levels: tuple[float, ...], level: float
) -> Band:
    """The band of rows of ``single`` weights, and of ``rows`` equal ones of this mass together."""
    at, weight = np.asarray(levels), np.frombuffer(single)
    total = float(weight.sum()) + mass
    n = total**2 / (float(np.square(weight).sum()) + (mass**2 / rows if rows else 0.0))
    rng = np.random.default_rng(_SEED)
    steps, cells = np.diff(at, prepend=0.0, append=1.0), len(at) + 1
    shares = np.empty((BAND_DRAWS, len(at)))
    block = max(1, _DRAWN_AT_ONCE // len(weight))
    for first in range(0, BAND_DRAWS, block):
        draws = min(block, BAND_DRAWS - first)
        place = np.searchsorted(at, rng.random((draws, len(weight))), side="left")
        place += cells * np.arange(draws)[:, None]
        sums = bin_sums(place.ravel(), draws * cells, np.tile(weight, draws)).reshape(draws, cells)
        if rows:
            sums += rng.multinomial(rows, steps, size=draws) * (mass / rows)
        shares[first : first + draws] = np.cumsum(sums, axis=1)[:, :-1] / total
    shares = np.clip(shares, 0.0, 1.0)
    least = np.ones(BAND_DRAWS)
    for p, share in zip(at, shares.T, strict=True):
        tried = np.linspace(share.min(), share.max(), _TRIED)
        tail = np.minimum(_tail_below(tried, n, p), _tail_below(1.0 - tried, n, 1.0 - p))
        np.minimum(least, np.interp(share, tried, tail), out=least)
    tail = np.sort(least)[int((1.0 - level) * BAND_DRAWS)] * (1.0 - 1e-9)
    low, high = _share_at(tail, n, at), 1.0 - _share_at(tail, n, 1.0 - at)
    low.flags.writeable = high.flags.writeable = False
    return low, high


def _tail_below(share: FloatArray, n: float, p: float | FloatArray) -> FloatArray:
    """Probability that at most this share of n rows is a hit, continued to fractions of a row."""
    hits = n * share
    inside = np.minimum(hits, n * (1.0 - 1e-12))
    return np.where(hits >= n, 1.0, 1.0 - betainc(inside + 1.0, n - inside, p))


def _share_at(tail: float, n: float, p: FloatArray) -> FloatArray:
    """The share of n rows below which :func:`_tail_below` is less than ``tail``, (g,); or 0."""
    low, high = np.zeros(len(p)), np.ones(len(p))
    for _ in range(50):
        middle = 0.5 * (low + high)
        above = _tail_below(middle, n, p) >= tail
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return low
