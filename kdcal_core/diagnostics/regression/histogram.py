"""The PIT histogram with the band of uniform PIT values (Torres et al., Figs. 1 and 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics.regression.checks import checked_pit, effective_rows
from kdcal_core.diagnostics.regression.results import BandKind, PitHistogram
from kdcal_core.diagnostics.targets import check_choice, check_level


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
