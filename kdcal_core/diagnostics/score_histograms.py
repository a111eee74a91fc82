"""Histograms of scores: right and wrong rows, log odds by label, and log densities of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.data.binning import bin_index, bin_sums, uniform_edges
from kdcal_core.diagnostics.targets import Kind, targets
from kdcal_core.errors import InputError


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """Counts of scores per bin, split by whether the prediction was right."""

    label: int | None
    edges: FloatArray
    correct: FloatArray
    wrong: FloatArray


def score_histogram(
    proba: Any,
    y: Any,
    *,
    kind: Kind = "confidence",
    label: int | None = None,
    n_bins: int = 50,
    sample_weight: Any = None,
) -> ScoreHistogram:
    """Weight of rows per score bin on [0, 1], right and wrong rows separately.

    Parameters
    ----------
    proba, y, kind, sample_weight
        As in :func:`kdcal_core.diagnostics.reliability`. With "class", "correct" counts the rows
        of the class and "wrong" the others.
    label : int
        The class; required unless ``kind`` is "confidence".
    n_bins : int

    Raises
    ------
    InputError
        For arrays or settings not of this form.

    Examples
    --------
    >>> result = score_histogram([[0.9, 0.1], [0.2, 0.8]], [0, 0], n_bins=2)
    >>> result.correct.tolist(), result.wrong.tolist()
    ([0.0, 1.0], [0.0, 1.0])
    """
    if kind != "confidence" and label is None:
        raise InputError(f'Kind "{kind}" needs a class', fix="Give label, a class index.")
    (target,) = targets(proba, y, sample_weight, kind, label)
    edges = uniform_edges(n_bins)
    index = bin_index(target.score, edges)
    return ScoreHistogram(
        target.label,
        edges,
        correct=bin_sums(index, n_bins, target.weight * target.hit),
        wrong=bin_sums(index, n_bins, target.weight * (1.0 - target.hit)),
    )


FAR = 7.0  # log odds at the ends of the scale: 0.09% and 99.91%
_SPREAD_BINS = 28
EDGES = np.linspace(-FAR, FAR, _SPREAD_BINS + 1)
"""Edges of the bins, in log odds, (29,)."""


@dataclass(frozen=True, eq=False)
class ScoreSpread:
    """Stated probabilities of some rows by label.

    See Durfee et al., Heterogeneous Calibration, Figure 1.

    Attributes
    ----------
    n : int
        Rows.
    other, mine : (28,) float64
        Share of the other rows, and of the class's rows, in the bins of `EDGES`; the outermost
        bins include everything beyond. Of weighted rows, shares of their weight.
    certain : (float, float)
        Share of other rows with a probability below 0.01, and of the class's rows above 0.99.

    Examples
    --------
    >>> spread = ScoreSpread.of(np.array([0.001, 0.5, 0.999]), np.array([0.0, 0.0, 1.0]))
    >>> spread.n, spread.certain, float(spread.other.sum())
    (3, (0.5, 1.0), 1.0)
    >>> weighted = ScoreSpread.of(np.array([0.001, 0.5]), np.zeros(2), np.array([3.0, 1.0]))
    >>> weighted.certain
    (0.75, 0.0)
    """

    n: int
    other: FloatArray
    mine: FloatArray
    certain: tuple[float, float]

    @classmethod
    def of(
        cls, score: FloatArray, hit: FloatArray, weight: FloatArray | None = None
    ) -> ScoreSpread:
        """From stated probabilities (n,) in [0, 1] and whether each row is of the class, (n,).

        ``weight`` (n,) are positive row weights.
        """
        ends = np.clip(score, 1e-12, 1.0 - 1e-12)
        odds = np.clip(np.log(ends) - np.log1p(-ends), -FAR, FAR)
        each = np.ones(len(score)) if weight is None else weight
        sides = [(odds[one], score[one], each[one]) for one in (hit == 0, hit == 1)]
        (other, low, of_low), (mine, high, of_high) = sides
        return cls(
            len(score),
            _shares(other, of_low),
            _shares(mine, of_high),
            (_share(low < 0.01, of_low), _share(high > 0.99, of_high)),
        )


def _shares(odds: FloatArray, weight: FloatArray) -> FloatArray:
    sums = np.histogram(odds, bins=EDGES, weights=weight)[0]
    return np.asarray(sums / (sums.sum() or 1.0))


def _share(mask: np.ndarray[tuple[int], np.dtype[np.bool_]], weight: FloatArray) -> float:
    return float(weight[mask].sum() / weight.sum()) if len(mask) else 0.0


_DENSITY_BINS = 60


@dataclass(frozen=True, eq=False)
class DensityCounts:
    """Counts of one kind of rows by log density.

    Attributes
    ----------
    name : str
        Untrusted text.
    n : int
        Rows.
    median : float
        Median log density; NaN without rows.
    count : (60,) int64
        Rows in the bins of `LogDensities`.
    """

    name: str
    n: int
    median: float
    count: IntArray

    @property
    def share(self) -> FloatArray:
        """Share of the rows in each bin, (60,)."""
        share: FloatArray = self.count / max(self.n, 1)
        return share


@dataclass(frozen=True, eq=False)
class LogDensities:
    """Ordinary and foreign rows by log density, with the floor.

    Log densities of singleton kernels span many powers of ten. A row's place on the axis is
    therefore minus the logarithm (base 10) of one plus its distance below the densest row. Minus
    infinity counts in the first bin.

    Attributes
    ----------
    top : float
        The highest log density, at place 0.
    least : float
        The lowest finite log density, at the first edge.
    floor : float
        Log density below which rows count as unknown.
    edges : (61,) float64
        Places of the bins' edges, ascending to 0.
    ordinary : DensityCounts
    foreign : tuple of DensityCounts

    Examples
    --------
    >>> found = log_densities(np.array([-1.0, -2.0]), {"far": np.array([-np.inf])}, -10.0)
    >>> found.top, found.least, found.ordinary.n, int(found.foreign[0].count[0])
    (-1.0, -10.0, 2, 1)
    """

    top: float
    least: float
    floor: float
    edges: FloatArray
    ordinary: DensityCounts
    foreign: tuple[DensityCounts, ...]

    def place(self, values: FloatArray) -> FloatArray:
        """Places of log densities on the axis: 0 for the densest row, negative below."""
        return _place(values, self.top)

    def log_density(self, place: FloatArray) -> FloatArray:
        """The log densities at places of the axis."""
        value: FloatArray = self.top + 1.0 - 10.0**-place
        return value

    def table(self) -> pd.DataFrame:
        """One row per bin and kind of rows: the data of the figure, for download."""
        ends = self.log_density(self.edges)
        return pd.concat(
            [
                pd.DataFrame(
                    {
                        "rows": one.name,
                        "log_density_from": ends[:-1],
                        "log_density_to": ends[1:],
                        "count": one.count,
                        "share": one.share,
                    }
                )
                for one in (self.ordinary, *self.foreign)
            ],
            ignore_index=True,
        )


def log_densities(
    ordinary: FloatArray,
    foreign: Mapping[str, FloatArray],
    floor: float,
    *,
    ordinary_name: str = "Ordinary rows",
) -> LogDensities:
    """Count rows by log density.

    Parameters
    ----------
    ordinary : (n,)
        Log densities; minus infinity is allowed.
    foreign : dict of str to (m,)
        Log densities of foreign rows. The names are untrusted text.
    floor : float
        Log density of the floor; minus infinity for none.
    """
    top, least = _range([ordinary, *foreign.values()], floor)
    edges = np.linspace(_place(np.array([least]), top)[0], 0.0, _DENSITY_BINS + 1)

    def counted(name: str, values: FloatArray) -> DensityCounts:
        with np.errstate(divide="ignore"):
            places = np.clip(_place(values, top), edges[0], edges[-1])
        median = float(np.median(values)) if values.size else float("nan")
        return DensityCounts(name, values.size, median, np.histogram(places, bins=edges)[0])

    return LogDensities(
        top,
        least,
        floor,
        edges,
        counted(ordinary_name, ordinary),
        tuple(counted(name, values) for name, values in foreign.items()),
    )


def _range(parts: list[FloatArray], floor: float) -> tuple[float, float]:
    """Highest and lowest finite log density to show."""
    values = np.concatenate([*parts, [floor]])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, -10.0
    top = float(values.max())
    return top, min(float(values.min()), top - 1.0)


def _place(values: FloatArray, top: float) -> FloatArray:
    place: FloatArray = -np.log10(1.0 + np.maximum(top - values, 0.0))
    return place
