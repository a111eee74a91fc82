"""Curves of two versions of a model, one over the other."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import LEGEND_BELOW, Chart, new_figure, square, unit_axis
from kdcal_core.charts.coverage import quantile_curve, quantile_words
from kdcal_core.charts.marks import identity, ribbon
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.charts.reliability import bin_points, reliability_alt, reliability_titles
from kdcal_core.diagnostics import QuantileReliability, Reliability, reliability_finding
from kdcal_core.diagnostics.reliability import ReliabilityCurve

CURVES = """
**Horizontal axis**: the stated probability. **Vertical axis**: how often it happened. On the dashed
diagonal the two agree; below it a model is over-confident, above it under-confident. **Lines** are
kernel averages with 95% bands, **points** are bins with exact (Clopper-Pearson) 95% intervals.
Points from fewer than 100 rows are smaller, from fewer than 20 hollow.

Where the bands of the two reviews overlap, the curves may differ by chance.
"""
QUANTILE_CURVES = """
**Horizontal axis**: a stated quantile. **Vertical axis**: the share of outcomes at or below it,
with its exact 95% interval. On the dashed diagonal the two agree. Where the intervals of the two
reviews overlap, the curves may differ by chance.
"""
_SQUARE_HEIGHT = 370
_OPEN, _OTHER = "Open review", "Other review"


def version_curves_chart(
    before: Reliability, after: Reliability, class_names: Sequence[str], *, dark: bool = False
) -> Chart:
    """The reliability diagrams of the other and of the open review, one over the other."""
    colours = palette(dark)
    of_class = after.kind == "class"
    figure = new_figure(dark, height=_SQUARE_HEIGHT)
    figure.add_trace(identity(colours).update(showlegend=False))
    for found, key, name in ((before, "other_version", _OTHER), (after, "model", _OPEN)):
        figure.add_traces(_version_curve(found.curves[0], key, name, colours))
    x_title, y_title = reliability_titles(of_class)
    return Chart(
        _overlaid(figure, x_title, y_title),
        finding=" ".join(
            f"{name}: {reliability_finding(found, class_names=class_names or None)}"
            for found, name in ((after, _OPEN), (before, _OTHER))
        ),
        alt=" ".join(
            f"{name}: {reliability_alt(found.curves[0])}"
            for found, name in ((after, _OPEN), (before, _OTHER))
        ),
        how_to_read=CURVES,
        table=lambda: pd.concat(
            [
                found.curves[0].table().assign(review=name.lower())
                for found, name in ((after, _OPEN), (before, _OTHER))
            ],
            ignore_index=True,
        ),
        name="reliability of both",
    )


def _version_curve(
    curve: ReliabilityCurve, key: str, name: str, colours: Palette
) -> list[go.Scatter]:
    """The bins of one version and its smooth line with its band."""
    colour, dash, symbol = method_style(key, colours)
    traces: list[go.Scatter] = []
    if curve.smooth_x.size:
        edges = curve.smooth_x, curve.smooth_low, curve.smooth_high
        traces.append(ribbon(*edges, faded(colour, 0.15), legendgroup=name, showlegend=False))
        traces.append(
            go.Scatter(
                x=curve.smooth_x,
                y=curve.smooth_y,
                mode="lines",
                line={"color": colour, "width": 2.4, "dash": dash},
                name=name,
                legendgroup=name,
                showlegend=False,
                hoverinfo="skip",
            )
        )
    return [*traces, *bin_points(curve, colour, name, symbol=symbol)]


def version_quantiles_chart(
    before: QuantileReliability, after: QuantileReliability, *, dark: bool = False
) -> Chart:
    """Stated against observed quantiles of the other and of the open review."""
    colours = palette(dark)
    figure = new_figure(dark, height=_SQUARE_HEIGHT)
    figure.add_trace(identity(colours).update(showlegend=False))
    for curve, key, name in ((before, "other_version", _OTHER), (after, "model", _OPEN)):
        colour, dash, symbol = method_style(key, colours)
        figure.add_trace(quantile_curve(curve, colour, name, symbol).update(line_dash=dash))
    words = " ".join(
        f"{name}: {quantile_words(curve)}" for curve, name in ((after, _OPEN), (before, _OTHER))
    )
    return Chart(
        _overlaid(figure, "Stated quantile", "Share of outcomes at or below it"),
        finding=words,
        alt=f"Stated against observed quantiles of two reviews. {words}",
        how_to_read=QUANTILE_CURVES,
        table=lambda: pd.concat(
            [
                curve.table().assign(review=name.lower())
                for curve, name in ((after, _OPEN), (before, _OTHER))
            ],
            ignore_index=True,
        ),
        name="quantiles of both",
    )


def _overlaid(figure: go.Figure, x_title: str, y_title: str) -> go.Figure:
    unit_axis(figure, "xaxis", x_title)
    unit_axis(figure, "yaxis", y_title)
    figure.update_layout(
        legend={**LEGEND_BELOW, "traceorder": "reversed"}, margin={"t": 8, "b": 70, "l": 48}
    )
    square(figure)
    return figure
