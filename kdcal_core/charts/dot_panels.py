"""Panels side by side whose lines are methods: a value as a dot, its interval as a stroke."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.palette import Palette, faded
from kdcal_core.charts.template import panel, template
from kdcal_core.diagnostics import Estimate
from kdcal_core.text import escape_html

COLUMNS = 4
_LINE, _TITLE = 26, 52
_TOP, _BOTTOM = 58, 12
_GAP = 0.045


def dot_panels(names: Sequence[str], titles: Sequence[str], dark: bool) -> go.Figure:
    """Empty panels, one a title, whose lines are named beside the first panel of each row.

    ``names`` are untrusted and escaped. Panel ``at`` is reached by the axes of
    :func:`kdcal_core.charts.template.panel`; line ``i`` lies at y = i.
    """
    columns = min(COLUMNS, max(len(titles), 1))
    rows = max(-(-len(titles) // columns), 1)
    height = _LINE * len(names) + 10
    inside = rows * height + (rows - 1) * _TITLE
    width = (1 - _GAP * (columns - 1)) / columns
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + _TOP + _BOTTOM,
        "margin": {"l": 8, "r": 14, "t": _TOP, "b": _BOTTOM},
        "showlegend": False,
    }
    shown = [escape_html(name, limit=32) for name in names]
    for at, title in enumerate(titles):
        down, across = divmod(at, columns)
        left, top = across * (width + _GAP), 1 - down * (height + _TITLE) / inside
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
