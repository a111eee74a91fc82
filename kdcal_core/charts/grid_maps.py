"""Maps of single rows as means on a grid, for where no row may be kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import Chart, panel
from kdcal_core.charts.marks import PanelTitle, hovered, new_panels
from kdcal_core.charts.palette import palette
from kdcal_core.charts.recalibrated_rows import misses_alt, misses_words
from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.diagnostics import LocalPit, Misses
from kdcal_core.diagnostics.regression import local_finding

LOCAL_GRID = """
Each cell is the mean over the neighbourhoods whose centres lie in it; cells without one are empty.
**Left**: the mean PIT value. Amber, above one half: predictions are too low. Pink, below: too high.
**Right**: the standard deviation of PIT values over that of uniform ones. Red, above 1: the stated
spread is too narrow. Blue, below: too wide. Grey is right. The sentence counts what is beyond
chance; a cell alone shows no evidence.
"""
MISSES_GRID = """
Each cell is the share of outcomes outside their intervals, of ten or more rows; cells with fewer
are empty. Grey is none. Of calibrated intervals it is the same everywhere: one minus their stated
probability.
"""
_SIDE, _LEAST = 12, 10  # cells a side at most, and rows of a cell
_EACH = 6  # neighbourhoods of a cell on average, at least: each is of many rows
_ENDS = 0.01, 0.99  # quantiles of the places between which the grid lies: no row is an end
_FAR = 0.25  # of a mean PIT value from one half, and of the spread from 1, with the full colour


@dataclass(frozen=True, eq=False)
class _Grid:
    """Where each place lies: the edges of the cells, the cell of each place, and places a cell."""

    edges: tuple[FloatArray, FloatArray]
    cell: IntArray
    count: FloatArray
    least: int

    @property
    def few(self) -> NDArray[np.bool_]:
        """Cells with too few places to be drawn."""
        return self.count < self.least

    @classmethod
    def of(cls, xy: FloatArray, sides: int = _SIDE, least: int = _LEAST) -> _Grid:
        edges, inside, at = [], np.ones(len(xy), dtype=bool), []
        for values in np.asarray(xy, dtype=np.float64).T:
            low, high = np.quantile(values, _ENDS)
            side = np.linspace(low, high if high > low else low + 1.0, sides + 1)
            inside &= (side[0] <= values) & (values <= side[-1])
            at.append(np.clip(np.searchsorted(side, values, side="right") - 1, 0, sides - 1))
            edges.append(side)
        cell = np.where(inside, at[1] * sides + at[0], -1)
        count = np.bincount(cell[inside], minlength=sides**2).astype(np.float64)
        return cls((edges[0], edges[1]), cell, count.reshape(sides, sides), least)

    def mean(self, values: FloatArray) -> FloatArray:
        """The mean in each cell, (up, across); NaN of few places."""
        some = self.cell >= 0
        total = np.bincount(self.cell[some], values[some], minlength=self.count.size)
        mean = total.reshape(self.count.shape) / np.maximum(self.count, 1.0)
        return np.where(self.few, np.nan, mean)

    def table(self, columns: dict[str, FloatArray], places: str) -> pd.DataFrame:
        """A row for each cell that is drawn, with the number of its ``places``."""
        up, across = np.nonzero(~self.few)
        x, y = self.edges
        ends = {"x_low": x[across], "x_high": x[across + 1], "y_low": y[up], "y_high": y[up + 1]}
        cells = {name: values[up, across] for name, values in columns.items()}
        return pd.DataFrame({**ends, places: self.count[up, across], **cells}).round(4)


def local_grid_chart(local: LocalPit, *, dark: bool = False, x_title: str, y_title: str) -> Chart:
    """Location and spread of PIT values over the map of `local_map_chart`, without its rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> nothing = np.zeros(600)
    >>> local = LocalPit(
    ...     rng.uniform(size=(600, 2)), np.arange(600), nothing, nothing, nothing + 0.95,
    ...     nothing + 1, nothing + 1, np.full(600, "none"), 50, 600, 0.95, 99, 0,
    ... )
    >>> chart = local_grid_chart(local, x_title="a", y_title="b")
    >>> [trace.type for trace in chart.figure.data], len(chart.table())
    (['heatmap', 'heatmap'], 99)
    """
    sides = int(np.clip((len(local.xy) / _EACH) ** 0.5, 3, _SIDE))
    colours, grid = palette(dark), _Grid.of(local.xy, sides, 1)
    found = {"mean_pit": 0.5 + grid.mean(local.bias), "spread": 1.0 + grid.mean(local.spread)}
    looks = (
        (PanelTitle("Mean PIT value", "0.25 pink, 0.75 amber"), 0.5, "too_high", "too_low"),
        (PanelTitle("Spread of PIT values", "0.75 blue, 1.25 red"), 1.0, "too_wide", "too_narrow"),
    )
    figure = _panels([title for title, *_ in looks], dark, x_title, y_title)
    for at, ((_, middle, *names), values) in enumerate(zip(looks, found.values(), strict=True)):
        low, high = (getattr(colours, one) for one in names)
        ends = middle - _FAR, middle + _FAR
        figure.add_trace(_heat(grid, values, (low, colours.grid, high), ends, "{:.2f}", at))
    words = local_finding(local)
    return Chart(
        figure,
        finding=words,
        alt=f"Location and spread of PIT values over {x_title} and {y_title}. {words}",
        how_to_read=LOCAL_GRID,
        table=lambda: grid.table(found, "neighbourhoods"),
        name="neighbourhoods on a grid",
    )


def misses_grid_chart(
    xy: FloatArray,
    panels: Sequence[Misses],
    *,
    dark: bool = False,
    x_title: str,
    y_title: str,
    level: float,
) -> Chart:
    """Shares of outcomes outside their intervals over the map of `misses_chart`, without its rows.

    Parameters
    ----------
    xy : (m, 2) array
        Places of the rows on the map.
    panels : sequence of Misses
        Before and after.
    x_title, y_title : str
        Untrusted text.
    level : float
        Of the intervals.
    """
    colours, grid = palette(dark), _Grid.of(xy)
    shares = [grid.mean((one.below | one.above).astype(np.float64)) for one in panels]
    most = max([2.0 * (1.0 - level), *(float(np.nan_to_num(one).max()) for one in shares)])
    titles = [PanelTitle(one.name, f"missed: from none to {most:.0%}, red") for one in panels]
    figure = _panels(titles, dark, x_title, y_title)
    for at, values in enumerate(shares):
        scale = colours.grid, colours.miss
        figure.add_trace(_heat(grid, values, scale, (0.0, most), "{:.0%} missed", at))
    return Chart(
        figure,
        finding=misses_words(panels, level),
        alt=misses_alt(panels, x_title, y_title, level),
        how_to_read=MISSES_GRID,
        table=lambda: grid.table(
            {one.name: values for one, values in zip(panels, shares, strict=True)}, "rows"
        ),
        name="missed outcomes on a grid",
    )


def _panels(titles: Sequence[PanelTitle], dark: bool, x_title: str, y_title: str) -> go.Figure:
    figure = new_panels(titles, dark, columns=2, height=260, x_title=x_title, y_title=y_title)
    figure.update_xaxes(showgrid=False)
    return figure.update_yaxes(showgrid=False)


def _heat(
    grid: _Grid,
    values: FloatArray,
    scale: Sequence[str],
    ends: tuple[float, float],
    form: str,
    at: int,
) -> go.Heatmap:
    x, y = ((one[:-1] + one[1:]) / 2.0 for one in grid.edges)
    some = np.nan_to_num(values).ravel()
    said = hovered(f"{form}, {{:,.0f}} places", some, grid.count.ravel())["hovertext"]
    stops = np.linspace(0.0, 1.0, len(scale))
    return go.Heatmap(
        x=x,
        y=y,
        z=values.round(4),
        zmin=ends[0],
        zmax=ends[1],
        colorscale=[list(one) for one in zip(stops, scale, strict=True)],
        hovertext=np.reshape(said, values.shape).tolist(),
        hovertemplate="%{hovertext}<extra></extra>",
        hoverongaps=False,
        showscale=False,
        **panel(at),
    )
