"""Ordinary and foreign rows by their log density, with the floor between them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.template import new_figure
from kdcal_core.data.types import FloatArray
from kdcal_core.text import escape_html

_BINS = 60
_DASHES = ("solid", "6px,3px", "2px,3px", "9px,3px,2px,3px")


def density_figure(
    ordinary: FloatArray,
    foreign: Mapping[str, FloatArray],
    floor: float,
    *,
    dark: bool,
    ordinary_label: str = "Ordinary rows",
) -> go.Figure:
    """Shares of rows by log density; what lies left of the floor is treated as unknown.

    Log densities of singleton kernels span many powers of ten, so the axis shows the distance
    below the densest row on a logarithmic scale, and its ticks the log densities themselves.
    Minus infinity is drawn at the left edge. Names of foreign sets are untrusted.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=360)
    top, least = _range([ordinary, *foreign.values()], floor)
    edges = np.linspace(_place(np.array([least]), top)[0], 0.0, _BINS + 1)
    figure.add_trace(_filled(ordinary, ordinary_label, top, edges, colours))
    for at, (name, values) in enumerate(foreign.items()):
        figure.add_trace(_outline(values, name, top, edges, colours, _DASHES[at % len(_DASHES)]))
    where = float(_place(np.array([floor]), top)[0]) if np.isfinite(floor) else float(edges[0])
    figure.add_vline(
        x=where,
        line={"color": colours.truth, "width": 1.5, "dash": "4px,4px"},
        annotation={"text": "floor", "font": {"size": 12, "color": colours.muted}},
        annotation_position="top left",
    )
    ticks, texts = _ticks(top, least)
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


def _range(parts: list[FloatArray], floor: float) -> tuple[float, float]:
    """Highest and lowest finite log density to be drawn."""
    values = np.concatenate([*parts, [floor]])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, -10.0
    top = float(values.max())
    return top, min(float(values.min()), top - 1.0)


def _place(values: FloatArray, top: float) -> FloatArray:
    """Where a log density stands on the axis: 0 for the densest row, negative below."""
    place: FloatArray = -np.log10(1.0 + np.maximum(top - values, 0.0))
    return place


def _shares(values: FloatArray, top: float, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    with np.errstate(divide="ignore"):
        places = np.clip(_place(values, top), edges[0], edges[-1])
    count = np.histogram(places, bins=edges)[0]
    return count / max(values.size, 1), count.astype(np.float64)


def _filled(
    values: FloatArray, name: str, top: float, edges: FloatArray, colours: Palette
) -> go.Bar:
    share, count = _shares(values, top, edges)
    return go.Bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=share,
        width=np.diff(edges),
        marker={"color": faded(colours.calibrated, 0.45), "line": {"width": 0}},
        name=f"{escape_html(name)} ({values.size:,})",
        customdata=np.column_stack([_log_density(edges[:-1], top), count]),
        hovertemplate=(
            "Log density about %{customdata[0]:.3g}<br>%{y:.1%}, %{customdata[1]:,.0f} rows"
            "<extra>%{fullData.name}</extra>"
        ),
    )


def _outline(
    values: FloatArray, name: str, top: float, edges: FloatArray, colours: Palette, dash: str
) -> go.Scatter:
    share, count = _shares(values, top, edges)
    return go.Scatter(
        x=(edges[:-1] + edges[1:]) / 2,
        y=share,
        mode="lines",
        line={"color": colours.foreign, "width": 2, "shape": "hvh", "dash": dash},
        name=f"{escape_html(name, limit=40)} ({values.size:,})",
        customdata=np.column_stack([_log_density(edges[:-1], top), count]),
        hovertemplate=(
            "Log density about %{customdata[0]:.3g}<br>%{y:.1%}, %{customdata[1]:,.0f} rows"
            "<extra>%{fullData.name}</extra>"
        ),
    )


def _log_density(place: FloatArray, top: float) -> FloatArray:
    value: FloatArray = top + 1.0 - 10.0**-place
    return value


def _ticks(top: float, least: float) -> tuple[list[float], list[str]]:
    """The densest row, and round log densities each about ten times as far below it."""
    powers = 10.0 ** np.arange(1, 16)
    below = np.floor((top - powers) / powers) * powers
    values = np.concatenate([[top], below[below >= least]])
    return list(_place(values, top)), [_short(value) for value in values]


def _short(value: float) -> str:
    """Few digits: 3.2, -100, -9,900, -100,000, -1e6."""
    if abs(value) < 1e6:
        return f"{value:.2g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
