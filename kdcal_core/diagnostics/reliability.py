"""Reliability diagrams: stated probabilities against observed frequencies, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics.bins import BinTable, bin_table, edges_for, null_rates
from kdcal_core.diagnostics.smooth import fine_cells, isotonic_curve, smooth_curve
from kdcal_core.diagnostics.targets import (
    Kind,
    Strategy,
    Target,
    check_choice,
    check_level,
    confidence_target,
    targets,
)
from kdcal_core.statistics import clopper_pearson

BAND_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """One reliability diagram. Bins without rows keep count 0 and NaN elsewhere.

    All arrays of length B run over the bins.

    Attributes
    ----------
    label : int or None
        The class of a "top-label" or "class" curve; None for "confidence".
    edges : (B + 1,)
        Bin edges; bins are (a, b], the first closed at its left end.
    count : (B,) int
        Rows in the bin. ``weight`` holds the sum of their weights (the same without weights),
        ``effective`` Kish's effective number of rows, (sum w)^2 / sum w^2 (likewise).
    confidence, accuracy : (B,)
        Mean stated probability, and observed frequency.
    low, high : (B,)
        Clopper-Pearson interval of the observed frequency.
    band_low, band_high : (B,)
        Consistency band: where the observed frequency of a perfectly calibrated model would lie
        with probability ``level``.
    smooth_x, smooth_y, smooth_low, smooth_high : (G,)
        Kernel-smoothed curve on the range of the data with a pointwise band.
    isotonic_x, isotonic_y : (S,)
        The isotonic (CORP) curve as the corners of its step function.
    """

    label: int | None
    n: int
    edges: FloatArray
    count: IntArray
    weight: FloatArray
    effective: FloatArray
    confidence: FloatArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    band_low: FloatArray
    band_high: FloatArray
    smooth_x: FloatArray
    smooth_y: FloatArray
    smooth_low: FloatArray
    smooth_high: FloatArray
    isotonic_x: FloatArray
    isotonic_y: FloatArray

    def table(self) -> pd.DataFrame:
        """One row a bin: the data of the diagram, as offered for download."""
        return pd.DataFrame(
            {
                "bin_low": self.edges[:-1],
                "bin_high": self.edges[1:],
                "count": self.count,
                "weight": self.weight,
                "mean_confidence": self.confidence,
                "observed_frequency": self.accuracy,
                "interval_low": self.low,
                "interval_high": self.high,
                "consistency_low": self.band_low,
                "consistency_high": self.band_high,
            }
        )


@dataclass(frozen=True, eq=False)
class Reliability:
    """Reliability diagrams of one kind: one curve for "confidence", K for the other kinds."""

    kind: Kind
    strategy: Strategy
    n_bins: int
    level: float
    n: int
    curves: tuple[ReliabilityCurve, ...]


def reliability(
    proba: Any,
    y: Any,
    *,
    kind: Kind = "confidence",
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    sample_weight: Any = None,
    label: int | None = None,
    smooth: bool = True,
    seed: int = 0,
) -> Reliability:
    """Reliability diagrams of a classifier.

    Parameters
    ----------
    proba : (n, K) array
        Probabilities; rows sum to one.
    y : (n,) array of int
        True classes, 0 to K - 1.
    kind : {"confidence", "top-label", "class"}
        "confidence": all rows, the top label's probability against being right. "top-label":
        the same for the rows of each predicted class (Salamon et al., section IV). "class": p_k of
        all rows against being of class k.
    n_bins, strategy
        "uniform": equal widths of [0, 1]; "quantile": equal mass, where ties may merge bins.
        Bins are (a, b], the first closed at 0 (Salamon et al., Eq. 5, decision D46).
    level : float
        Level of all intervals and bands, between 0 and 1.
    sample_weight : (n,) array, optional
        Positive row weights; intervals then use Kish's effective number of rows.
    label : int, optional
        Only this class's curve; not for "confidence".
    smooth : bool
        Whether to compute the smooth and isotonic curves; without them they are empty.
    seed : int
        Seed of the consistency band's 2,000 draws.

    Returns
    -------
    Reliability
        One curve for "confidence", otherwise one a class.

    Raises
    ------
    InputError
        For arrays or settings not of this form; the message names the row.

    Notes
    -----
    The interval of a bin is Clopper-Pearson's. The consistency band holds, with probability
    ``level``, the frequency that the bin would show if every stated probability were right. It is
    simulated, not approximated by a normal, so that it is right near 1 where misses are few.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> curve = reliability(proba, [0, 0, 1, 0], n_bins=2).curves[0]
    >>> curve.count.tolist(), float(curve.confidence[1]), float(curve.accuracy[1])
    ([0, 4], 0.75, 0.75)
    """
    found = targets(proba, y, sample_weight, kind, label)
    return _diagrams(found, len(np.asarray(y)), kind, n_bins, strategy, level, smooth, seed)


def confidence_reliability(
    confidence: Any,
    correct: Any,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    sample_weight: Any = None,
    smooth: bool = True,
    seed: int = 0,
) -> Reliability:
    """The "confidence" diagram of calibrated confidences (n,) and whether each row was right.

    Settings as in :func:`reliability`.

    Examples
    --------
    >>> result = confidence_reliability([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0], n_bins=2)
    >>> float(result.curves[0].accuracy[1])
    0.75
    """
    target = confidence_target(confidence, correct, sample_weight)
    n = len(target.score)
    return _diagrams((target,), n, "confidence", n_bins, strategy, level, smooth, seed)


def _diagrams(
    found: tuple[Target, ...],
    n: int,
    kind: Kind,
    n_bins: int,
    strategy: Strategy,
    level: float,
    smooth: bool,
    seed: int,
) -> Reliability:
    check_choice("strategy", strategy, ("uniform", "quantile"))
    check_level(level)
    rng = np.random.default_rng(seed)
    curves = tuple(_curve(t, edges_for(t, n_bins, strategy), level, smooth, rng) for t in found)
    return Reliability(kind, strategy, n_bins, level, n, curves)


def _curve(
    target: Target, edges: FloatArray, level: float, smooth: bool, rng: np.random.Generator
) -> ReliabilityCurve:
    table = bin_table(target, edges)
    low, high = clopper_pearson(table.rate, table.effective, level)
    band_low, band_high = consistency_band(table, level, rng)
    nothing = np.empty(0)
    smoothed, steps = (nothing, nothing, nothing, nothing), (nothing, nothing)
    if smooth:
        cells = fine_cells(target)
        smoothed, steps = smooth_curve(cells, level), isotonic_curve(cells)
    return ReliabilityCurve(
        target.label,
        len(target.score),
        edges,
        table.count.astype(np.int64),
        table.weight,
        table.effective,
        table.score,
        table.rate,
        low,
        high,
        band_low,
        band_high,
        *smoothed,
        *steps,
    )


def consistency_band(
    table: BinTable, level: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Limits (B,), (B,) of each bin's frequency under perfect calibration; NaN where empty."""
    rates, _ = null_rates(table, BAND_DRAWS, rng)
    tail = (1.0 - level) / 2.0
    # frequencies are a lattice: quantiles must be values that occur, not means between them
    low, high = np.quantile(np.nan_to_num(rates), [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    some = table.count > 0
    return np.where(some, low, np.nan), np.where(some, high, np.nan)
