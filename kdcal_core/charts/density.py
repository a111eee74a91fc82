"""Ordinary and foreign rows by their log density, with the floor between them."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.template import new_figure
from kdcal_core.diagnostics import DensityCounts, LogDensities
from kdcal_core.text import escape_html

_DASHES = ("solid", "6px,3px", "2px,3px", "9px,3px,2px,3px")


def density_figure(found: LogDensities, *, dark: bool) -> go.Figure:
    """Shares of rows by log density; what lies left of the floor is treated as unknown.

    The axis shows the distance below the densest row on a logarithmic scale, and its ticks the
    log densities themselves. Names of foreign sets are untrusted.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=360)
    edges = found.edges
    figure.add_trace(_filled(found, colours))
    for at, one in enumerate(found.foreign):
        figure.add_trace(_outline(found, one, colours, _DASHES[at % len(_DASHES)]))
    floor = found.place(np.array([found.floor]))[0] if np.isfinite(found.floor) else edges[0]
    figure.add_vline(
        x=float(floor),
        line={"color": colours.truth, "width": 1.5, "dash": "4px,4px"},
        annotation={"text": "floor", "font": {"size": 12, "color": colours.muted}},
        annotation_position="top left",
    )
    ticks, texts = _ticks(found)
    figure.update_layout(
        xaxis={
            "title_text": "Log density (far from the data on the left)",
            "tickvals": ticks,
            "ticktext": texts,
            "range": [edges[0], max(0.05, -edges[0] * 0.02)],
        },
        yaxis={"title_text": "Share of rows", "tickformat": ".0%", "rangemode": "tozero"},
        bargap=0.0,
        margin={"t": 64},
    )
    return figure


def _filled(found: LogDensities, colours: Palette) -> go.Bar:
    edges, one = found.edges, found.ordinary
    return go.Bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=one.share,
        width=np.diff(edges),
        marker={"color": faded(colours.calibrated, 0.45), "line": {"width": 0}},
        name=f"{escape_html(one.name)} ({one.n:,})",
        customdata=_hovered(found, one),
        hovertemplate=_HOVER,
    )


def _outline(found: LogDensities, one: DensityCounts, colours: Palette, dash: str) -> go.Scatter:
    edges = found.edges
    return go.Scatter(
        x=(edges[:-1] + edges[1:]) / 2,
        y=one.share,
        mode="lines",
        line={"color": colours.foreign, "width": 2, "shape": "hvh", "dash": dash},
        name=f"{escape_html(one.name, limit=40)} ({one.n:,})",
        customdata=_hovered(found, one),
        hovertemplate=_HOVER,
    )


_HOVER = (
    "Log density about %{customdata[0]:.3g}<br>%{y:.1%}, %{customdata[1]:,.0f} rows"
    "<extra>%{fullData.name}</extra>"
)


def _hovered(found: LogDensities, one: DensityCounts) -> np.ndarray:
    return np.column_stack([found.log_density(found.edges[:-1]), one.count])


def _ticks(found: LogDensities) -> tuple[list[float], list[str]]:
    """The densest row, and round log densities each about ten times as far below it."""
    powers = 10.0 ** np.arange(1, 16)
    below = np.floor((found.top - powers) / powers) * powers
    values = np.concatenate([[found.top], below[below >= found.least]])
    return list(found.place(values)), [_short(value) for value in values]


def _short(value: float) -> str:
    """Few digits: 3.2, -100, -9,900, -100,000, -1e6."""
    if abs(value) < 1e6:
        return f"{value:.2g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
