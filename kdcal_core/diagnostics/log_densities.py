"""Rows by their log density: counts on an axis that spans many powers of ten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray

_BINS = 60


@dataclass(frozen=True, eq=False)
class DensityCounts:
    """Rows of one kind by their log density.

    Attributes
    ----------
    name : str
        Untrusted text.
    n : int
        Rows.
    median : float
        Of their log densities; NaN without rows.
    count : (60,) int64
        Rows between the edges of `LogDensities`.
    """

    name: str
    n: int
    median: float
    count: IntArray

    @property
    def share(self) -> FloatArray:
        """Share of the rows between the edges, (60,)."""
        share: FloatArray = self.count / max(self.n, 1)
        return share


@dataclass(frozen=True, eq=False)
class LogDensities:
    """Ordinary and foreign rows by log density, with the floor.

    Log densities of singleton kernels span many powers of ten, so a row's place on the axis is
    minus the logarithm (base 10) of one plus its distance below the densest row. Minus infinity
    counts into the first bin.

    Attributes
    ----------
    top : float
        The highest log density: place 0.
    least : float
        The lowest finite one: the first edge.
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
        """One row a bin and kind of rows: the data of the figure, as offered for download."""
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
        The same of foreign rows. Untrusted names.
    floor : float
        Log density of the floor; minus infinity for none.
    """
    top, least = _range([ordinary, *foreign.values()], floor)
    edges = np.linspace(_place(np.array([least]), top)[0], 0.0, _BINS + 1)

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
    """Highest and lowest finite log density to be shown."""
    values = np.concatenate([*parts, [floor]])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, -10.0
    top = float(values.max())
    return top, min(float(values.min()), top - 1.0)


def _place(values: FloatArray, top: float) -> FloatArray:
    place: FloatArray = -np.log10(1.0 + np.maximum(top - values, 0.0))
    return place
