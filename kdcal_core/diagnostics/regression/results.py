"""Frozen results about predictive distributions. Figures, pages and records read these alone.

Rows of a set with weights count by their weights throughout: ``n`` is the number of rows,
``effective`` Kish's number (sum w)^2 / sum w^2, which all bands and p values use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.diagnostics.results import Estimate

FaultKind = Literal["none", "too low", "too high", "too narrow", "too wide", "other"]
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


@dataclass(frozen=True, eq=False)
class EcdfDifference:
    """Share of PIT values at or below each level, minus the level.

    Attributes
    ----------
    levels, difference : (G,)
    low, high : (G,)
        Band of the difference that uniform PIT values keep to at all levels at once, with
        probability ``level``.
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
        """-1 where the difference lies below its band, 1 where above, 0 inside, (G,)."""
        above = self.difference > self.high + 1e-12
        below = self.difference < self.low - 1e-12
        return above.astype(np.int64) - below

    def table(self) -> pd.DataFrame:
        """One row a level: the data of the figure, as offered for download."""
        return pd.DataFrame(
            {
                "level": self.levels,
                "difference": self.difference,
                "uniform_low": self.low,
                "uniform_high": self.high,
            }
        )


@dataclass(frozen=True)
class UniformityTest:
    """One test of the hypothesis that the PIT values are uniform, that is, calibrated.

    Attributes
    ----------
    name : str
        Key: "kolmogorov_smirnov", "cramer_von_mises", "anderson_darling" or "frosini".
    title : str
        Name that is shown.
    statistic, p_value : float
    n : int
    draws, seed : int or None
        Monte Carlo draws behind the p value, and their seed; None where it is computed.
    note : str
        What was done to the values, such as how many were clipped. May be empty.
    """

    name: str
    title: str
    statistic: float
    p_value: float
    n: int
    draws: int | None = None
    seed: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Fault:
    """The fault of the predictions of some rows, as one word and one sentence.

    Attributes
    ----------
    kind : str
        "too low" and "too high" concern the predicted values, "too narrow" and "too wide" the
        stated spread; "other" is a departure in neither; "none" if no test rejects.
    words : str
        A sentence with numbers.
    bias : Estimate
        Mean PIT minus 1/2, in [-0.5, 0.5]: above 0 the predictions are too low.
    spread : Estimate
        Standard deviation of the PIT values over that of uniform ones (0.2887), minus 1: above
        0 the stated spread is too narrow.
    p_value : float
        Of uniformity; adjusted if several regions were tested.
    n : int
    """

    kind: FaultKind
    words: str
    bias: Estimate
    spread: Estimate
    p_value: float
    n: int


@dataclass(frozen=True, eq=False)
class QuantileReliability:
    """How often the outcome lies at or below the stated quantile, for each level.

    Attributes
    ----------
    levels, observed : (G,)
    low, high : (G,)
        Clopper-Pearson interval of ``observed``, each by itself.
    band_low, band_high : (G,)
        Where ``observed`` lies at all levels at once, with probability ``level``, were the
        distributions calibrated.
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
        """One row a level: the data of the figure, as offered for download."""
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


@dataclass(frozen=True)
class CoverageRow:
    """The central intervals of one ``level``: how often they hold, how wide they are.

    ``level`` is the stated probability of the intervals, not that of the estimates' own.
    ``smis`` is the interval score over the scale of the outcomes; None where no scale is given.
    """

    level: float
    coverage: Estimate
    width: Estimate
    interval_score: Estimate
    smis: Estimate | None


@dataclass(frozen=True)
class Coverage:
    """Coverage over several levels. ``scale`` is the mean |y| of the calibration set (D71)."""

    rows: tuple[CoverageRow, ...]
    n: int
    scale: float | None

    def at(self, level: float) -> CoverageRow:
        """The row of one stated level; KeyError where it was not computed."""
        for row in self.rows:
            if abs(row.level - level) < 1e-9:
                return row
        raise KeyError(level)

    def table(self) -> pd.DataFrame:
        """One row a stated level: the data of the table, as offered for download."""
        return pd.DataFrame(
            {
                "stated": [row.level for row in self.rows],
                "coverage": [row.coverage.value for row in self.rows],
                "coverage_low": [row.coverage.low for row in self.rows],
                "coverage_high": [row.coverage.high for row in self.rows],
                "mean_width": [row.width.value for row in self.rows],
                "interval_score": [row.interval_score.value for row in self.rows],
                "smis": [row.smis.value if row.smis else np.nan for row in self.rows],
            }
        )


@dataclass(frozen=True, eq=False)
class RegionPit:
    """The PIT values of one region among several.

    Attributes
    ----------
    name : str
        The region. Comes from the user's table: untrusted text.
    n, share : int, float
        Its rows, and their share of all (by weight).
    pit, ecdf : PitHistogram, EcdfDifference
    tests : tuple of UniformityTest
        Kolmogorov-Smirnov.
    fault : Fault
        Judged by ``adjusted_p``: "none" where it does not reject.
    p_value, adjusted_p : float
        Of the fault's test, alone and after Holm's correction for all regions tested.
    coverage : CoverageRow or None
        Central 95% intervals; None where the distributions were not given.
    """

    name: str
    n: int
    share: float
    pit: PitHistogram
    ecdf: EcdfDifference
    tests: tuple[UniformityTest, ...]
    fault: Fault
    p_value: float
    adjusted_p: float
    coverage: CoverageRow | None


@dataclass(frozen=True, eq=False)
class LocalPit:
    """Faults over neighbourhoods, for a map of the rows.

    Arrays of length C run over the neighbourhoods, each the ``k`` rows nearest to a centre.

    Attributes
    ----------
    xy : (C, 2)
        The centres' coordinates on the map.
    rows : (C,) int
        The centres' rows.
    bias, spread : (C,)
        As in :class:`Fault`, for the neighbourhood.
    coverage : (C,)
        Share of the neighbourhood inside its central 95% intervals, read off the PIT values.
    p_value, adjusted_p : (C,)
        Of uniformity in the neighbourhood, alone and corrected for all neighbourhoods at once.
    kind : (C,) array of str
        The fault, by ``adjusted_p`` at ``level``.
    k, n : int
        Rows of a neighbourhood, and rows in all.
    draws, seed : int
        Of the Monte Carlo law of the largest statistic, and of the choice of the centres.
    near : (C, k) int
        The rows of each neighbourhood, ascending; may be left out.
    """

    xy: FloatArray
    rows: IntArray
    bias: FloatArray
    spread: FloatArray
    coverage: FloatArray
    p_value: FloatArray
    adjusted_p: FloatArray
    kind: np.ndarray[tuple[int], np.dtype[np.str_]]
    k: int
    n: int
    level: float
    draws: int
    seed: int
    near: IntArray = field(default_factory=lambda: np.empty((0, 0), np.int64))

    def around(self, row: int) -> IntArray:
        """The rows of the neighbourhood of a centre, ascending; none where it is no centre."""
        (at,) = np.nonzero(self.rows == row)
        return self.near[at[0]] if len(at) and len(self.near) else np.empty(0, np.int64)

    def share(self, kind: FaultKind) -> float:
        """Share of the neighbourhoods with this fault."""
        return float(np.mean(self.kind == kind))

    def table(self) -> pd.DataFrame:
        """One row a neighbourhood: the data of the map, as offered for download."""
        return pd.DataFrame(
            {
                "row": self.rows + 1,
                "x": self.xy[:, 0],
                "y": self.xy[:, 1],
                "bias": self.bias,
                "spread": self.spread,
                "coverage": self.coverage,
                "p_value": self.p_value,
                "adjusted_p": self.adjusted_p,
                "fault": self.kind,
            }
        )


@dataclass(frozen=True)
class RegressionScores:
    """Every measure of one method's distributions.

    ``rows`` maps a key to its estimate, in the order shown: "crps", "log_score", "mse" (against
    the outcomes), "rmse", "mse_truth" (against the true mean, where known), "qce",
    "wasserstein", "smis95", "coverage95", "width95", "kl" (where the truth is known). What
    cannot be computed is absent.
    """

    name: str
    rows: dict[str, Estimate]
    n: int

    def table(self) -> pd.DataFrame:
        """One row a measure: name, value, interval, rows."""
        return pd.DataFrame(
            {
                "measure": list(self.rows),
                "name": [e.name for e in self.rows.values()],
                "value": [e.value for e in self.rows.values()],
                "low": [e.low for e in self.rows.values()],
                "high": [e.high for e in self.rows.values()],
                "expected_by_chance": [e.expected for e in self.rows.values()],
                "n": [e.n for e in self.rows.values()],
            }
        )
