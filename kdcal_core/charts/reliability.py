"""Reliability diagrams, score histograms and confusion tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.parts import boxes, identity, ribbon, tiers
from kdcal_core.charts.template import new_figure, new_grid, panel, square, unit_axis
from kdcal_core.diagnostics.results import Confusion, ReliabilityCurve, ScoreHistogram
from kdcal_core.text import escape_html

MAX_CELL_TEXT = 15
MAX_TICKS = 25


def reliability_figure(
    curve: ReliabilityCurve,
    *,
    dark: bool,
    title: str | None = None,
    calibrated: ReliabilityCurve | None = None,
    calibrated_name: str = "Calibrated",
    repaired: bool = False,
    x_title: str = "Stated confidence",
    y_title: str = "How often it is right",
) -> go.Figure:
    """One reliability diagram: a square from 0 to 1 with the row counts on the same axis below.

    Points are the bins, with Clopper-Pearson bars; the grey boxes are the consistency band,
    where a perfectly calibrated model's points would lie; the thin line is the smooth curve
    with its band, the dotted steps the isotonic curve. ``calibrated`` adds the points of a
    calibrator in its own colour, ``calibrated_name`` to the legend. ``repaired`` draws the curve
    itself in that colour, for a diagram of calibrated output beside the model's.

    Examples
    --------
    >>> from kdcal_core.diagnostics import reliability
    >>> proba = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> diagram = reliability(proba, [0, 1, 1, 0], kind="confidence", n_bins=5)
    >>> figure = reliability_figure(diagram.curves[0], dark=False)
    >>> figure.layout.yaxis.scaleanchor
    'x'
    """
    colours = palette(dark)
    own = colours.calibrated if repaired else colours.model
    figure = new_figure(dark, height=620, title=title)
    figure.add_trace(
        boxes(
            curve.edges[:-1],
            curve.edges[1:],
            curve.band_low,
            curve.band_high,
            faded(colours.truth, 0.09),
            name="Consistency band",
        )
    )
    figure.add_trace(identity(colours))
    figure.add_traces(_smooth(curve, own))
    figure.add_trace(_isotonic(curve, own))
    figure.add_traces(bin_points(curve, own, "Bins, pale where rows are few"))
    if calibrated is not None:
        figure.add_traces(bin_points(calibrated, colours.calibrated, calibrated_name))
    figure.add_trace(_counts(curve, own))
    unit_axis(figure, "xaxis", x_title, anchor="y2")
    unit_axis(figure, "yaxis", y_title, domain=[0.2, 1.0])
    figure.update_layout(
        yaxis2={"domain": [0.0, 0.15], "title_text": "Rows", "nticks": 3, "rangemode": "tozero"},
        legend={"y": 1.01},
        margin={"t": 64 if title is None else 120},
    )
    square(figure)
    return figure


def small_multiples(
    curves: Sequence[ReliabilityCurve],
    class_names: Sequence[str],
    *,
    dark: bool,
    x_title: str = "Stated confidence",
    y_title: str = "How often it is right",
) -> go.Figure:
    """One small reliability diagram a curve, all on one scale; ``label`` picks the class name."""
    colours = palette(dark)
    titles = [
        f"{class_names[curve.label] if curve.label is not None else 'All'} ({curve.n:,})"
        for curve in curves
    ]
    figure = new_grid(titles, dark, x_title=x_title, y_title=y_title)
    for at, curve in enumerate(curves):
        axes = panel(at)
        figure.add_trace(
            boxes(
                curve.edges[:-1],
                curve.edges[1:],
                curve.band_low,
                curve.band_high,
                faded(colours.truth, 0.09),
                **axes,
            )
        )
        figure.add_trace(identity(colours, **axes))
        figure.add_traces(bin_points(curve, colours.model, "Bins", scale=0.6, **axes))
    figure.update_layout(showlegend=False)
    return figure


def score_histogram_figure(
    histogram: ScoreHistogram, *, dark: bool, x_title: str = "Stated confidence"
) -> go.Figure:
    """Scores of the right predictions above and of the wrong ones below, each on its own axis."""
    colours = palette(dark)
    figure = new_figure(dark, height=360)
    middle = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    facts = np.column_stack([histogram.edges[:-1], histogram.edges[1:]])
    halves = (
        (histogram.correct, "Right", colours.right, "y", [0.54, 1.0]),
        (histogram.wrong, "Wrong", colours.wrong, "y2", [0.0, 0.46]),
    )
    for count, name, colour, axis, domain in halves:
        figure.add_trace(
            go.Bar(
                x=middle,
                y=count,
                width=np.diff(histogram.edges),
                marker={"color": faded(colour, 0.75), "line": {"color": colour, "width": 1}},
                name=f"{name}: {count.sum():,.0f} rows",
                xaxis="x",
                yaxis=axis,
                customdata=facts,
                hovertemplate=(
                    "Scores %{customdata[0]:.2f} to %{customdata[1]:.2f}<br>"
                    f"%{{y:,.0f}} rows<extra>{name}</extra>"
                ),
            )
        )
        figure.update_layout(
            {
                axis.replace("y", "yaxis"): {
                    "domain": domain,
                    "title_text": f"Rows {name.lower()}",
                    "nticks": 4,
                    "rangemode": "tozero",
                }
            }
        )
    unit_axis(figure, "xaxis", x_title, anchor="y2")
    return figure


_READING = {
    "joint": "{:,.0f} rows",
    "confusion": "{:.1%} of the true class",
    "reverse": "{:.1%} of the predicted class",
}


def confusion_figure(
    confusion: Confusion,
    which: Literal["joint", "confusion", "reverse"],
    class_names: Sequence[str],
    *,
    dark: bool,
) -> go.Figure:
    """One of the three tables of paper 002 Fig. 1 as a heat table; rows true, columns predicted.

    Counts are coloured by their square root, so that the errors show beside the diagonal.
    Numbers stand in the cells up to 15 classes; beyond, hovering tells them.
    """
    values = getattr(confusion, which)
    names = [escape_html(name, limit=16) for name in class_names]
    where = np.arange(len(names))
    colours = palette(dark)
    cells = "{:,.0f}" if which == "joint" else "{:.2f}"
    figure = new_figure(dark, height=max(300, min(130 + 34 * len(names), 760)))
    figure.add_trace(
        go.Heatmap(
            x=where,
            y=where,
            z=np.sqrt(values),
            zmin=0,
            zmax=None if which == "joint" else 1,
            colorscale=[list(stop) for stop in colours.sequential],
            text=[[_cell(value, cells) for value in row] for row in values],
            hovertext=[
                [
                    f"true {true}, predicted {guess}<br>{_cell(value, _READING[which])}"
                    for guess, value in zip(names, row, strict=True)
                ]
                for true, row in zip(names, values, strict=True)
            ],
            texttemplate="%{text}" if len(names) <= MAX_CELL_TEXT else "",
            hovertemplate="%{hovertext}<extra></extra>",
            xgap=1,
            ygap=1,
            showscale=False,
        )
    )
    step = -(-len(names) // MAX_TICKS)
    ticks: dict[str, Any] = {
        "tickvals": where[::step],
        "ticktext": names[::step],
        "showgrid": False,
    }
    figure.update_layout(
        xaxis={**ticks, "title_text": "Predicted class", "side": "top"},
        yaxis={**ticks, "title_text": "True class", "autorange": "reversed"},
        margin={"t": 76, "b": 12},
    )
    return figure


def _cell(value: float, form: str) -> str:
    """A cell's number; nothing where there is nothing, so that the errors stand out."""
    return form.format(value) if value > 0 else ""


def bin_points(
    curve: ReliabilityCurve, colour: str, name: str, scale: float = 1.0, **axes: Any
) -> list[go.Scatter]:
    """The bins as points with interval bars, in one trace a tier of row counts."""
    traces: list[go.Scatter] = []
    for inside, width, opacity in tiers(curve.count):
        seen, low, high = curve.accuracy[inside], curve.low[inside], curve.high[inside]
        facts = np.column_stack(
            [curve.edges[:-1][inside], curve.edges[1:][inside], low, high, curve.count[inside]]
        )
        pale = faded(colour, opacity)
        traces.append(
            go.Scatter(
                x=curve.confidence[inside],
                y=seen,
                mode="markers",
                marker={"color": pale, "size": (4 + 2.5 * width) * scale, "line": {"width": 0}},
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": high - seen,
                    "arrayminus": seen - low,
                    "color": pale,
                    "thickness": width * scale,
                    "width": 0,
                },
                name=name,
                legendgroup=name,
                showlegend=not traces,
                customdata=facts,
                hovertemplate=(
                    "Says %{x:.1%}, sees %{y:.1%}<br>"
                    "interval %{customdata[2]:.1%} to %{customdata[3]:.1%}<br>"
                    "%{customdata[4]:,.0f} rows, bin %{customdata[0]:.2f} to %{customdata[1]:.2f}"
                    "<extra></extra>"
                ),
                **axes,
            )
        )
    return traces


def _smooth(curve: ReliabilityCurve, colour: str) -> list[go.Scatter]:
    if not curve.smooth_x.size:
        return []
    band = ribbon(
        curve.smooth_x,
        curve.smooth_low,
        curve.smooth_high,
        faded(colour, 0.18),
        legendgroup="smooth",
        showlegend=False,
    )
    line = go.Scatter(
        x=curve.smooth_x,
        y=curve.smooth_y,
        mode="lines",
        line={"color": faded(colour, 0.9), "width": 1.4},
        name="Smooth curve",
        legendgroup="smooth",
        hoverinfo="skip",
    )
    return [band, line]


def _isotonic(curve: ReliabilityCurve, colour: str) -> go.Scatter:
    return go.Scatter(
        x=curve.isotonic_x,
        y=curve.isotonic_y,
        mode="lines",
        line={"color": faded(colour, 0.8), "width": 1.2, "dash": "1px,3px"},
        name="Isotonic",
        hoverinfo="skip",
    )


def _counts(curve: ReliabilityCurve, colour: str) -> go.Bar:
    left, right = curve.edges[:-1], curve.edges[1:]
    return go.Bar(
        x=(left + right) / 2,
        y=curve.count,
        width=right - left,
        marker={"color": faded(colour, 0.45), "line": {"color": colour, "width": 0.5}},
        showlegend=False,
        yaxis="y2",
        customdata=np.column_stack([left, right]),
        hovertemplate=(
            "%{y:,} rows say %{customdata[0]:.2f} to %{customdata[1]:.2f}<extra></extra>"
        ),
    )
