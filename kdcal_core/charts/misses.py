"""Outcomes that their intervals missed, on a map before and after: Torres et al., Figs. 3e, 3f."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import Chart
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.regression_panels import MAX_MARKS, PanelTitle, new_panels
from kdcal_core.charts.template import panel
from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.diagnostics import Misses

_OTHERS = 10  # marks that are no rows, such as the ends of a line

MISSES = r"""
Every mark is a row at its place on the map; light red ones are outcomes that their interval missed
(Torres et al., Figs. 3e and 3f), with the triangle pointing to the side on which they lie. If
intervals are right **everywhere**, misses are strewn evenly over the rows; clusters of them, and
regions without any, are local faults even where the total is right. The same rows are drawn on both
sides, a uniform sample where they are too many; the counts above are those of all rows.
"""


def misses_chart(
    xy: FloatArray,
    panels: Sequence[Misses],
    *,
    dark: bool,
    x_title: str,
    y_title: str,
    level: float,
    rows: IntArray | None = None,
) -> Chart:
    """Hits and misses on a map, before and after; the parameters are those of `misses_figure`."""
    return Chart(
        misses_figure(
            xy, panels, dark=dark, x_title=x_title, y_title=y_title, level=level, rows=rows
        ),
        finding=misses_words(panels, level),
        alt=misses_alt(panels, x_title, y_title, level),
        how_to_read=MISSES,
        table=lambda: misses_table(xy, panels, x_title, y_title, rows),
        name="missed outcomes",
    )


def misses_figure(
    xy: FloatArray,
    panels: Sequence[Misses],
    *,
    dark: bool,
    x_title: str,
    y_title: str,
    level: float = 0.95,
    rows: IntArray | None = None,
    seed: int = 0,
) -> go.Figure:
    """The same rows on the same axes for each panel: hits faint grey, misses light red.

    At most 5,000 marks are sent: a uniform sample of rows, the same in every panel and drawn
    without looking at hits and misses, so that the shares seen are the shares there are. The
    counts in the titles are those of all rows. Triangles point to where the outcome lies.

    Parameters
    ----------
    xy : (m, 2)
        Places of the rows on the map.
    x_title, y_title : str
        Untrusted, as the panels' names.
    level : float
        Of the intervals.
    rows : (m,) int array, optional
        The positions of these rows among all; None: they are all.
    """
    colours = palette(dark)
    kept = drawn_rows(len(xy), len(panels), seed)
    titles = [PanelTitle(shown.name, _told(shown, level)) for shown in panels]
    figure = new_panels(
        titles, dark, columns=2, height=360, x_title=x_title, y_title=y_title, y_axis={"nticks": 6}
    )
    named: set[str] = set()
    for at, shown in enumerate(panels):
        for trace in _marks(xy, shown, kept, rows, colours, **panel(at)):
            if trace.x.size:
                figure.add_trace(trace.update(showlegend=trace.name not in named))
                named.add(trace.name)
    figure.update_layout(legend={"itemsizing": "constant"})
    n = max((shown.n for shown in panels), default=len(xy))
    if kept.size < n:
        figure.add_annotation(_few(kept.size, n, colours))
    return figure


def drawn_rows(n: int, n_panels: int, seed: int = 0) -> NDArray[np.int64]:
    """The rows that are drawn, ascending: all, or a uniform sample without replacement.

    Examples
    --------
    >>> drawn_rows(3, 2), drawn_rows(1_000_000, 2).size
    (array([0, 1, 2]), 2495)
    """
    most = (MAX_MARKS - _OTHERS) // max(n_panels, 1)
    if n <= most:
        return np.arange(n, dtype=np.int64)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False)).astype(np.int64)


def misses_table(
    xy: FloatArray,
    panels: Sequence[Misses],
    x_title: str,
    y_title: str,
    rows: IntArray | None = None,
) -> pd.DataFrame:
    """A line for each row, counted from 1: its place, and "hit", "below" or "above" by panel."""
    numbers = (np.arange(len(xy)) if rows is None else rows) + 1
    table = pd.DataFrame({"row": numbers, f"x: {x_title}": xy[:, 0], f"y: {y_title}": xy[:, 1]})
    for shown in panels:
        table[shown.name] = np.where(shown.below, "below", np.where(shown.above, "above", "hit"))
    return table


def _told(shown: Misses, level: float) -> str:
    return f"{shown.missed:,} of {shown.n:,} missed: {shown.share:.1%}, stated {1 - level:.0%}"


def _marks(
    xy: FloatArray,
    shown: Misses,
    kept: NDArray[np.int64],
    rows: IntArray | None,
    colours: Palette,
    **axes: Any,
) -> list[go.Scatter]:
    hits = ~(shown.below | shown.above)
    looks = (
        ("Inside the interval", hits, "circle", faded(colours.muted, 0.22), 4.0),
        ("Outcome above the interval", shown.above, "triangle-up", colours.miss, 7.5),
        ("Outcome below the interval", shown.below, "triangle-down", colours.miss, 7.5),
    )
    traces = []
    for name, mask, symbol, colour, size in looks:
        mine = kept[mask[kept]]
        traces.append(
            go.Scatter(
                x=xy[mine, 0],
                y=xy[mine, 1],
                mode="markers",
                marker={"symbol": symbol, "color": colour, "size": size, "line": {"width": 0}},
                name=name,
                legendgroup=name,
                customdata=(mine if rows is None else rows[mine]) + 1,
                hovertemplate=f"Row %{{customdata:,}}<extra>{name}</extra>",
                **axes,
            )
        )
    return traces


def _few(kept: int, n: int, colours: Palette) -> dict[str, Any]:
    return {
        "text": f"{kept:,} of {n:,} rows are drawn, the same in both panels",
        "x": 1,
        "y": 0,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "top",
        "yshift": -38,
        "showarrow": False,
        "font": {"size": 12, "color": colours.muted},
    }


def misses_words(panels: Sequence[Misses], level: float = 0.95) -> str:
    """How many outcomes the intervals missed before and after, and on which side."""
    told = "; ".join(f"{shown.name} {_missed(shown)}" for shown in panels)
    return f"Outcomes outside their {level:.0%} intervals: {told}. Stated are {1 - level:.0%}."


def _missed(shown: Misses) -> str:
    return (
        f"{shown.missed:,} of {shown.n:,} ({shown.share:.1%}), {shown.n_above:,} above and "
        f"{shown.n_below:,} below"
    )


def misses_alt(panels: Sequence[Misses], x_title: str, y_title: str, level: float = 0.95) -> str:
    """Alternative text of the maps of misses."""
    return f"Maps of hits and misses over {x_title} and {y_title}. {misses_words(panels, level)}"
