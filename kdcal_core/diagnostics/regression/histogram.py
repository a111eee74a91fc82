"""The PIT histogram with the band of uniform PIT values (Torres et al., Figs. 1 and 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import binom

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics.regression.checks import checked_pit, effective_rows
from kdcal_core.diagnostics.targets import check_choice, check_level

BandKind = Literal["simultaneous", "pointwise"]


@dataclass(frozen=True, eq=False)
class PitHistogram:
    """Counts of PIT values per bin, with the band that uniform PIT values would keep to.

    Attributes
    ----------
    edges : (B + 1,)
        Equal widths from 0 to 1; bins are (a, b], the first closed at 0.
    counts : (B,)
        Rows in each bin; with row weights rescaled so that they still sum to ``n``.
    low, high : (B,)
        Counts between which uniform PIT values stay at ``level``: all bins at once
        ("simultaneous"), or each bin by itself ("pointwise").
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
        """Height of each bar where a uniform histogram has height 1, (B,)."""
        return np.asarray(self.counts / (self.n * np.diff(self.edges)))

    @property
    def density_band(self) -> tuple[FloatArray, FloatArray]:
        """The band on the scale of ``density``, two arrays (B,)."""
        scale = self.n * np.diff(self.edges)
        return np.asarray(self.low / scale), np.asarray(self.high / scale)

    @property
    def outside(self) -> IntArray:
        """-1 where a bin lies below its band, 1 where above, 0 inside, (B,)."""
        return (self.counts > self.high).astype(np.int64) - (self.counts < self.low)

    def table(self) -> pd.DataFrame:
        """One row a bin: the data of the figure, as offered for download."""
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
    """Counts of PIT values in bins of equal width, and where uniform ones would lie.

    Parameters
    ----------
    pit : (n,) array in [0, 1]
    bins : int
        Decision D88: 20.
    level : float
        Probability that uniform PIT values keep to the band.
    band : {"simultaneous", "pointwise"}
        The binomial interval of each bin at ``level`` ("pointwise"), or at a level so much
        higher that all bins together keep inside with probability at least ``level``
        (Bonferroni): one bar outside the simultaneous band is then evidence by itself.
    sample_weight : (n,) array, optional
        Positive row weights; the band then goes by Kish's effective number of rows.

    Raises
    ------
    InputError
        For values outside [0, 1] (the row is named) or settings not of this form.

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
    tail = (1.0 - level) / 2.0
    tail = tail / bins if band == "simultaneous" else tail
    rows = max(round(effective), 1)
    low, high = (binom.ppf(p, rows, 1.0 / bins) * n / rows for p in (tail, 1.0 - tail))
    if sample_weight is None:
        counts = np.rint(counts)
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
