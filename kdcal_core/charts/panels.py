"""Panels side by side whose axes are not shares, and panels whose lines are methods.

The first hold histograms, maps, densities and measures; in the second a value is a dot and its
interval a stroke.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.chart import panel, template
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.diagnostics import Estimate
from kdcal_core.text import escape_html

MAX_MARKS = 5000
_TOP, _BOTTOM = 92, 58  # legend and the first titles; axis and its title
_TITLE = 46  # pixels between rows of panels for two lines of title
_TICKS = 26


@dataclass(frozen=True)
class PanelTitle:
    """The title of a panel: a name that may come from a file, and our own text below it."""

    name: str
    words: str = ""
    colour: str | None = None


def new_panels(
    titles: Sequence[PanelTitle],
    dark: bool,
    *,
    columns: int,
    height: int,
    x_title: str = "",
    y_title: str = "",
    x_axis: dict[str, Any] | None = None,
    y_axis: dict[str, Any] | None = None,
    shared: str = "xy",
) -> go.Figure:
    """Empty panels in our look, ``columns`` in a row; a trace finds its own by :func:`panel`.

    Parameters
    ----------
    height : int
        Of one panel, in pixels.
    x_title, y_title : str
        Untrusted; below the lowest panels and beside the first of each row.
    x_axis, y_axis : dict, optional
        Settings of every panel's axes.
    shared : {"xy", "x", "y", ""}
        Axes that are one for all panels: then only the outer ones have tick labels.

    Examples
    --------
    >>> figure = new_panels([PanelTitle("All"), PanelTitle("Some")], False, columns=2, height=200)
    >>> figure.layout.xaxis2.anchor, figure.layout.yaxis2.matches
    ('y2', 'y')
    """
    columns = min(columns, max(len(titles), 1))
    rows = max(-(-len(titles) // columns), 1)
    between = _TITLE + (0 if "x" in shared else _TICKS)
    inside = rows * height + (rows - 1) * between
    across_gap = (0.035 if "y" in shared else 0.09) * min(1.0, 3 / columns)
    width = (1 - across_gap * (columns - 1)) / columns
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + _TOP + _BOTTOM,
        "margin": {"l": 62, "r": 12, "t": _TOP, "b": _BOTTOM},
        "legend": {"y": 1 + 46 / inside},
        "annotations": [],
    }
    for at, title in enumerate(titles):
        down, across = divmod(at, columns)
        left, top = across * (width + across_gap), 1 - down * (height + between) / inside
        names = panel(at)
        lowest = at + columns >= len(titles)
        bottom = max(top - height / inside, 0.0)
        layout[names["xaxis"].replace("x", "xaxis")] = {
            "domain": [left, min(left + width, 1.0)],
            "anchor": names["yaxis"],
            "showticklabels": lowest or "x" not in shared,
            "title_text": escape_html(x_title, limit=60) if lowest else "",
            **({"matches": "x"} if at and "x" in shared else {}),
            **(x_axis or {}),
        }
        layout[names["yaxis"].replace("y", "yaxis")] = {
            "domain": [bottom, top],
            "anchor": names["xaxis"],
            "showticklabels": across == 0 or "y" not in shared,
            "title_text": escape_html(y_title, limit=60) if across == 0 else "",
            **({"matches": "y"} if at and "y" in shared else {}),
            **(y_axis or {}),
        }
        layout["annotations"].append(_title(title, left + width / 2, top, dark))
    return go.Figure(layout=layout)


def _title(title: PanelTitle, x: float, y: float, dark: bool) -> dict[str, Any]:
    colours = palette(dark)
    second = ""
    if title.words:
        ink = title.colour or colours.muted
        second = f'<br><span style="font-size:12px;color:{ink}">{title.words}</span>'
    return {
        "text": escape_html(title.name, limit=44) + second,
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "center",
        "yanchor": "bottom",
        "yshift": 2,
        "showarrow": False,
        "font": {"size": 13, "color": colours.text},
    }


COLUMNS = 4
_LINE_HEIGHT, _DOT_TITLE = 26, 52
_DOT_TOP, _DOT_BOTTOM = 58, 12
_GAP = 0.045


def dot_panels(names: Sequence[str], titles: Sequence[str], dark: bool) -> go.Figure:
    """Empty panels, one a title, whose lines are named beside the first panel of each row.

    ``names`` are untrusted and escaped. Panel ``at`` is reached by the axes of
    :func:`kdcal_core.charts.chart.panel`; line ``i`` lies at y = i.
    """
    columns = min(COLUMNS, max(len(titles), 1))
    rows = max(-(-len(titles) // columns), 1)
    height = _LINE_HEIGHT * len(names) + 10
    inside = rows * height + (rows - 1) * _DOT_TITLE
    width = (1 - _GAP * (columns - 1)) / columns
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + _DOT_TOP + _DOT_BOTTOM,
        "margin": {"l": 8, "r": 14, "t": _DOT_TOP, "b": _DOT_BOTTOM},
        "showlegend": False,
    }
    shown = [escape_html(name, limit=32) for name in names]
    for at, title in enumerate(titles):
        down, across = divmod(at, columns)
        left, top = across * (width + _GAP), 1 - down * (height + _DOT_TITLE) / inside
        axes = panel(at)
        layout[axes["xaxis"].replace("x", "xaxis")] = {
            "domain": [left, min(left + width, 1.0)],
            "anchor": axes["yaxis"],
            "side": "top",
            "title_text": title,
            "nticks": 4,
        }
        layout[axes["yaxis"].replace("y", "yaxis")] = {
            "domain": [max(top - height / inside, 0.0), top],
            "anchor": axes["xaxis"],
            "tickvals": np.arange(len(names)),
            "ticktext": shown,
            "range": [len(names) - 0.5, -0.5],
            "showticklabels": across == 0,
            "showgrid": False,
        }
    return go.Figure(layout=layout)


def strokes(estimates: Sequence[Estimate], colours: Palette) -> dict[str, Any]:
    """Intervals as plotly's ``error_x``; an end that is not finite is not drawn."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [_reach(one.high - one.value) for one in estimates],
        "arrayminus": [_reach(one.value - one.low) for one in estimates],
        "color": colours.muted,
        "thickness": 1.4,
        "width": 0,
    }


def band(figure: go.Figure, one: Estimate | None, colour: str, axes: dict[str, str]) -> None:
    """An interval through all lines of a panel, to compare with."""
    if one is None or not np.isfinite([one.low, one.high]).all():
        return
    figure.add_shape(
        type="rect",
        xref=axes["xaxis"],
        yref=f"{axes['yaxis']} domain",
        x0=one.low,
        x1=one.high,
        y0=0,
        y1=1,
        fillcolor=faded(colour, 0.16),
        line={"width": 0},
        layer="below",
    )


def mark(
    figure: go.Figure, value: float, colour: str, axes: dict[str, str], dash: str = "4px,4px"
) -> None:
    """A line through all lines of a panel."""
    figure.add_shape(
        type="line",
        xref=axes["xaxis"],
        yref=f"{axes['yaxis']} domain",
        x0=value,
        x1=value,
        y0=0,
        y1=1,
        line={"color": colour, "width": 1, "dash": dash},
        layer="below",
    )


def _reach(length: float) -> float:
    return max(length, 0.0) if np.isfinite(length) else 0.0
