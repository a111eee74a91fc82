"""Frozen results of the diagnostics. Figures, pages, reports and records read these alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from kdcal_core.data.types import FloatArray, IntArray

Kind = Literal["confidence", "top-label", "class"]
Strategy = Literal["uniform", "quantile"]
Norm = Literal["l1", "l2", "max"]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, its sample size and its full name.

    Attributes
    ----------
    name : str
        Full name of the estimator: target, bins, norm. Example: "Confidence ECE, l1 norm, 15
        equal-width bins, debiased".
    label : str
        Short name for a tile: "ECE".
    value, low, high : float
        The estimate and its interval at confidence ``level``.
    n : int
        Rows that entered it.
    interval : str
        How the interval was made: "percentile bootstrap, 1,000 draws", "Clopper-Pearson", ...
    expected : float or None
        Mean value for a perfectly calibrated model with these very confidences and row count:
        the finite-sample floor. None where the notion does not apply.
    percent : bool
        Whether it is shown as a percentage.
    lower_is_better : bool or None
        None where neither direction is better (mean max confidence).
    """

    name: str
    label: str
    value: float
    low: float
    high: float
    n: int
    level: float = 0.95
    interval: str = ""
    expected: float | None = None
    percent: bool = False
    lower_is_better: bool | None = True

    @property
    def largest(self) -> float:
        """The largest magnitude among value and interval: they are written in one form."""
        known = [abs(v) for v in (self.value, self.low, self.high) if math.isfinite(v)]
        return max(known, default=0.0)


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


@dataclass(frozen=True, eq=False)
class Confusion:
    """Salamon et al., Fig. 1: counts, and their two normalisations. Rows true, columns predicted.

    ``joint`` is (K, K) counts (weights summed); ``confusion`` is normalised by row (true
    class), ``reverse`` by column (predicted class): its diagonal is Conf1, Eq. 1. A class
    without rows gives NaN. ``effective`` (K,) is Kish's effective number of each predicted
    class's rows; None where rows have no weights.
    """

    joint: FloatArray
    confusion: FloatArray
    reverse: FloatArray
    effective: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """Counts of scores per bin, split by whether the prediction was right."""

    label: int | None
    edges: FloatArray
    correct: FloatArray
    wrong: FloatArray
