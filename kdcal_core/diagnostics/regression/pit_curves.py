"""Histogram and distribution function of PIT values, with bands for uniform ones.

Row weights are used throughout: ``n`` is the number of rows, ``effective`` Kish's effective number
(sum w)^2 / sum w^2, which all bands and p values use. For dependent rows it is the number of
independent ones with as wide a band.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import bdtr, bdtrc
from scipy.stats import binom

from kdcal_core.data import FloatArray, IntArray, check_weight
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics.regression.dependent_pit import band_rows, share_rows
from kdcal_core.diagnostics.targets import check_choice, check_level
from kdcal_core.errors import InputError
from kdcal_core.statistics import clopper_pearson, dependence_of
from kdcal_core.text import formatted


def checked_pit(pit: Any, sample_weight: Any = None) -> tuple[FloatArray, FloatArray]:
    """PIT values (n,) in [0, 1] and row weights (n,) that sum to one.

    Raises
    ------
    InputError
        If there are no rows, a value is missing or outside [0, 1] (the message names the row), or
        the weights do not match.
    """
    values = np.asarray(pit, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            f"The PIT values must be one column with rows, but have shape {values.shape}",
            fix="Give one PIT value for each row.",
        )
    bad = ~((values >= 0.0) & (values <= 1.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"A PIT value is {formatted(values[row], '.6g')}",
            fix="PIT values are probabilities: each lies between 0 and 1.",
            row=row + 1,
        )
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


LEVELS: tuple[float, ...] = tuple(i / 100 for i in range(1, 100))
BAND_DRAWS = 10_000
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
        Positive row weights; the band then uses Kish's effective number of rows. With a
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

    Examples
    --------
    >>> found = ecdf_difference([0.1, 0.2, 0.3, 0.6], levels=[0.25, 0.5])
    >>> found.difference.tolist()
    [0.25, 0.25]
    """
    check_level(level)
    values, weight = checked_pit(pit, sample_weight)
    at = checked_levels(levels)
    effective = effective_rows(weight)
    if (together := dependence_of(sample_weight)) is not None:
        effective = band_rows(values, weight, at, together, level)
    return ecdf_of_shares(share_below(values, weight, at), at, len(values), effective, level)


def ecdf_of_shares(
    share: FloatArray, at: FloatArray, n: int, effective: float, level: float
) -> EcdfDifference:
    """:func:`ecdf_difference` of rows of which the shares at or below ``at`` are known, (g,)."""
    low, high = simultaneous_band(max(round(effective), 1), tuple(at), level)
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
    rows = np.full(len(at), effective)
    if (together := dependence_of(sample_weight)) is not None:
        effective = band_rows(values, weight, at, together, level)
        shares = zip(at, observed, strict=True)
        rows = np.array([share_rows(values <= p, weight, seen, together) for p, seen in shares])
    return quantiles_of_shares(observed, at, rows, len(values), effective, level)


def quantiles_of_shares(
    observed: FloatArray,
    at: FloatArray,
    rows: FloatArray,
    n: int,
    effective: float,
    level: float,
) -> QuantileReliability:
    """:func:`quantile_reliability` of rows of which the shares at or below ``at`` are known.

    ``rows`` (g,) are the effective rows of each share.
    """
    low, high = clopper_pearson(observed, rows, level)
    band_low, band_high = simultaneous_band(max(round(effective), 1), tuple(at), level)
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
def simultaneous_band(
    n: int, levels: tuple[float, ...], level: float
) -> tuple[FloatArray, FloatArray]:
    """Band of the shares of n uniform values below all ``levels`` at once, (g,) each."""
    at = np.asarray(levels)
    rng = np.random.default_rng(_SEED)
    cells = np.diff(at, prepend=0.0, append=1.0)
    counts = np.cumsum(rng.multinomial(n, cells, size=BAND_DRAWS)[:, :-1], axis=1)
    least = np.ones(BAND_DRAWS)
    for p, count in zip(at, counts.T, strict=True):
        # few different counts occur, so the two binomial tails are looked up
        seen = np.arange(count.min(), count.max() + 1)
        above = np.where(seen > 0, bdtrc(seen - 1.0, n, p), 1.0)
        tail = np.minimum(bdtr(seen.astype(np.float64), n, p), above)
        np.minimum(least, tail[count - seen[0]], out=least)
    # the largest tail probability for which at most 1 - level of the draws leave the band
    tail = np.sort(least)[int((1.0 - level) * BAND_DRAWS)] * (1.0 - 1e-9)
    low = np.asarray(binom.ppf(tail, n, at) / n)
    high = np.asarray(1.0 - binom.ppf(tail, n, 1.0 - at) / n)
    low.flags.writeable = high.flags.writeable = False
    return low, high
