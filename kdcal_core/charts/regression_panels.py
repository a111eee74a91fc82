"""Panels side by side whose axes are not shares: histograms, maps, densities and measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from kdcal_core.charts.palette import palette
from kdcal_core.charts.template import panel, template
from kdcal_core.text import escape_html

MAX_MARKS = 5000
_TOP, _BOTTOM = 92, 58  # legend and the first titles; axis and its title
_TITLE = 46  # pixels between rows of panels for two lines of title
_TICKS = 26


@dataclass(frozen=True)
class PanelTitle:
    """What stands above a panel: a name that may come from a file, and our own words below it."""

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
        Axes that are one for all panels: tick labels then stand on the outer ones alone.

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
