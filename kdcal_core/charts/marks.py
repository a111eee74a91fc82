"""Marks that several figures share: the identity, steps, thin data drawn thin, curves with bands.

The curves are confidence against distance, and loss against the kernel's exponent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import new_figure
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.data.schema import FloatArray
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


# key -> (colour's name in the palette or number of its class colour, dash, symbol)
STYLES: dict[str, tuple[str | int, str, str]] = {
    "model": ("model", "solid", "circle"),
    "geodesic": ("calibrated", "solid", "circle"),
    "geodesic_ratio": ("calibrated", "3px,3px", "circle-open"),
    "euclidean": (4, "6px,3px", "diamond"),
    "isotonic": (0, "2px,3px", "square"),
    "sigmoid": (6, "8px,3px,2px,3px", "triangle-up"),
    "kde_mon2": (5, "4px,2px", "triangle-down"),
    "geodesic_paper": (5, "6px,2px", "circle-open"),
    "euclidean_paper": (1, "6px,2px", "diamond-open"),
}


@dataclass(frozen=True, eq=False)
class BandLine:
    """A curve and its band, ready to be drawn.

    Attributes
    ----------
    key : str
        One of `STYLES`: it sets colour, dash and symbol, the same on every chart.
    label : str
        For the legend; our own text.
    x, middle, low, high : (R,)
        Places, the curve, and its band.
    filled : bool
        Whether the band is drawn; where not, it still shows on hover.
    """

    key: str
    label: str
    x: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    filled: bool = True


def line_style(key: str, colours: Palette) -> tuple[str, str, str]:
    """Colour, dash and symbol of a method, the same on every chart.

    Examples
    --------
    >>> line_style("model", palette(dark=False))[1:]
    ('solid', 'circle')
    """
    colour, dash, symbol = STYLES[key]
    if isinstance(colour, int):
        return colours.classes[colour], dash, symbol
    return str(getattr(colours, colour)), dash, symbol


def distance_figure(
    lines: Sequence[BandLine],
    prior: float,
    *,
    dark: bool,
    data_radius: float = 1.0,
    band_words: str = "middle 80%",
) -> go.Figure:
    """Mean max confidence against distance from the data (Dey et al., Fig. 3; Fig. 1 of the earlier
    version).

    ``x`` is the distance from the centre in units of the data's largest norm; the data end at
    ``data_radius``. ``prior`` is the largest class prior: where confidence should end.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=420)
    figure.add_traces(band_lines(lines, colours, "Distance %{x:.3g}", "confidence", band_words))
    last = max((float(line.x[-1]) for line in lines if line.x.size), default=data_radius)
    figure.add_trace(
        go.Scatter(
            x=[0, last],
            y=[prior, prior],
            mode="lines",
            line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
            name=f"Prior {prior:.0%}",
            hoverinfo="skip",
        )
    )
    figure.add_vrect(
        x0=0, x1=data_radius, fillcolor=faded(colours.muted, 0.09), line_width=0, layer="below"
    )
    figure.add_annotation(
        x=data_radius,
        y=1.0,
        yref="paper",
        text="data end here",
        showarrow=False,
        xanchor="left",
        yanchor="top",
        xshift=6,
        font={"size": 12, "color": colours.muted},
    )
    lowest = min([prior, *(float(np.nanmin(line.low)) for line in lines if line.x.size)])
    figure.update_layout(
        xaxis={
            "title_text": "Distance from the data's centre (1 = the farthest ordinary row)",
            "range": [0, last],
        },
        yaxis={
            "title_text": "Mean max confidence",
            "range": [max(lowest - 0.05, -0.01), 1.02],
            "tickformat": ".0%",
        },
        margin={"t": 64},
    )
    return figure


def selection_figure(
    exponents: FloatArray, losses: Mapping[str, FloatArray], chosen: float, *, dark: bool
) -> go.Figure:
    """Held-out log loss over the kernel's exponents, with the one in use marked.

    ``losses`` are curves by label; the first is the one that chose.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=260)
    for at, (label, loss) in enumerate(losses.items()):
        figure.add_trace(
            go.Scatter(
                x=exponents,
                y=loss,
                mode="lines+markers",
                line={"color": colours.model if at else colours.calibrated, "width": 2},
                marker={"size": 5},
                name=label,
                hovertemplate="Exponent %{x:.3g}<br>log loss %{y:.4f}<extra></extra>",
            )
        )
    figure.add_vline(x=chosen, line={"color": colours.truth, "width": 1, "dash": "4px,4px"})
    figure.update_layout(
        xaxis={
            "type": "log",
            "title_text": "Exponent of the kernel, γ log n",
            "tickvals": [0.5, 1, 2, 5, 10, 20, 50],
        },
        yaxis={"title_text": "Held-out log loss"},
        showlegend=len(losses) > 1,
    )
    return figure


def band_lines(
    lines: Sequence[BandLine], colours: Palette, place: str, what: str, band_words: str
) -> list[go.Scatter]:
    """Bands first, so that no curve lies under another's band."""
    bands, curves = [], []
    for line in lines:
        colour, dash, symbol = line_style(line.key, colours)
        if line.filled:
            known = np.isfinite(line.low) & np.isfinite(line.high)
            bands.append(
                ribbon(
                    line.x[known],
                    line.low[known],
                    line.high[known],
                    faded(colour, 0.16),
                    name=line.label,
                    legendgroup=line.key,
                    showlegend=False,
                )
            )
        curves.append(
            go.Scatter(
                x=line.x,
                y=line.middle,
                mode="lines+markers",
                line={"color": colour, "width": 2.2, "dash": dash},
                marker={"size": 5, "symbol": symbol},
                name=line.label,
                legendgroup=line.key,
                customdata=np.column_stack([line.low, line.high]),
                hovertemplate=(
                    f"{place}: {what} %{{y:.3f}}<br>{band_words} %{{customdata[0]:.3f}} to "
                    "%{customdata[1]:.3f}<extra>%{fullData.name}</extra>"
                ),
            )
        )
    return [*bands, *curves]
