"""Marks that several figures share: the identity, bands, histogram steps, thin data drawn thin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.palette import Palette, faded
from kdcal_core.data.types import FloatArray
from kdcal_core.diagnostics import HistogramAnchor

# (fewest rows, line width, opacity): what is known from few rows is drawn thin and pale
TIERS = ((100, 2.2, 1.0), (20, 1.5, 0.7), (1, 0.9, 0.4))


def tiers(count: NDArray[Any]) -> Iterator[tuple[NDArray[np.bool_], float, float]]:
    """The bins of each tier that has some, most rows first: mask, line width, opacity."""
    above = np.inf
    for fewest, width, opacity in TIERS:
        inside = (count >= fewest) & (count < above)
        above = fewest
        if inside.any():
            yield inside, width, opacity


def identity(colours: Palette, **axes: Any) -> go.Scatter:
    """The diagonal of perfect calibration."""
    return go.Scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
        name="Perfect calibration",
        legendgroup="identity",
        hoverinfo="skip",
        **axes,
    )


def boxes(
    left: FloatArray, right: FloatArray, low: FloatArray, high: FloatArray, colour: str, **more: Any
) -> go.Scatter:
    """One filled rectangle a bin, in a single trace; bins with NaN are left out."""
    known = np.isfinite(low) & np.isfinite(high)
    left, right, low, high = left[known], right[known], low[known], high[known]
    gap = np.full(left.shape, np.nan)
    x = np.column_stack([left, right, right, left, left, gap]).ravel()
    y = np.column_stack([low, low, high, high, low, gap]).ravel()
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        fill="toself",
        fillcolor=colour,
        line={"width": 0},
        hoverinfo="skip",
        **more,
    )


def ribbon(
    x: FloatArray, low: FloatArray, high: FloatArray, colour: str, **more: Any
) -> go.Scatter:
    """A filled band between two curves."""
    return go.Scatter(
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([high, low[::-1]]),
        mode="lines",
        fill="toself",
        fillcolor=colour,
        line={"width": 0},
        hoverinfo="skip",
        **more,
    )


def segments(
    left: FloatArray, right: FloatArray, height: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x and y of one horizontal stroke a bin, with gaps between the strokes."""
    gap = np.full(np.shape(left), np.nan)
    x = np.column_stack([left, right, gap]).ravel()
    y = np.column_stack([height, height, gap]).ravel()
    return x, y


def anchor_traces(
    anchor: HistogramAnchor,
    colours: Palette,
    *,
    intervals: bool = True,
    legend: bool = True,
    **axes: Any,
) -> list[go.Scatter]:
    """The histogram that lies under a smooth curve: dashed strokes, its intervals as pale boxes.

    The lowest bar is dotted: below the first rows a kernel density says little (Salamon et al.,
    section XIII.D).
    """
    left, right = anchor.edges[:-1], anchor.edges[1:]
    traces = []
    if intervals:
        traces.append(
            boxes(
                left,
                right,
                anchor.low,
                anchor.high,
                faded(colours.truth, 0.07),
                name="Its intervals",
                legendgroup="anchor",
                showlegend=False,
                **axes,
            )
        )
    filled = np.flatnonzero(anchor.count > 0)
    rest = np.isin(np.arange(left.size), filled[1:])
    for inside, width, opacity in tiers(np.where(rest, anchor.count, 0)):
        traces.append(_anchor_strokes(anchor, inside, colours, width, opacity, "6px,3px", axes))
    if filled.size:
        lowest = np.arange(left.size) == filled[0]
        traces.append(_anchor_strokes(anchor, lowest, colours, 1.2, 0.7, "2px,3px", axes))
        traces[-1 if filled.size == 1 else int(intervals)].showlegend = legend
    return traces


def _anchor_strokes(
    anchor: HistogramAnchor,
    inside: NDArray[np.bool_],
    colours: Palette,
    width: float,
    opacity: float,
    dash: str,
    axes: dict[str, Any],
) -> go.Scatter:
    left, right = anchor.edges[:-1][inside], anchor.edges[1:][inside]
    x, y = segments(left, right, anchor.confidence[inside])
    facts = np.column_stack(
        [left, right, anchor.low[inside], anchor.high[inside], anchor.count[inside]]
    )
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line={"color": faded(colours.truth, opacity), "width": width, "dash": dash},
        name="Histogram",
        legendgroup="anchor",
        showlegend=False,
        customdata=np.repeat(facts, 3, axis=0),
        hovertemplate=(
            "Scores %{customdata[0]:.2f} to %{customdata[1]:.2f}<br>"
            "right %{y:.1%} (%{customdata[2]:.1%} to %{customdata[3]:.1%})<br>"
            "%{customdata[4]:,.0f} rows<extra>Histogram</extra>"
        ),
        **axes,
    )
