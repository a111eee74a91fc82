"""Pictures of the simulation lab: a simulation at a glance, and measures beside their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.figures.bands import line_style
from kdcal_core.figures.palette import Palette, faded, palette
from kdcal_core.figures.template import new_figure, panel, square

_ROW_HEIGHT = 27
_ABOVE_AND_BELOW = 74
_GAP = 0.03  # between panels, as a share of the width


@dataclass(frozen=True)
class MeasuredMethod:
    """A method's line in `interval_figure`: its style's key, its name, and one estimate a panel."""

    key: str
    label: str
    estimates: tuple[Estimate, ...]


def glance_figure(X: FloatArray, y: IntArray, *, dark: bool) -> go.Figure:
    """The first two dimensions of some drawn rows (m, d), small and without axes."""
    colours = palette(dark)
    figure = new_figure(dark, height=230)
    for label in np.unique(y):
        figure.add_trace(
            go.Scatter(
                x=X[y == label, 0].astype(np.float32),
                y=X[y == label, 1].astype(np.float32),
                mode="markers",
                marker={"size": 4, "opacity": 0.75, "color": colours.classes[label]},
                name=f"Class {label}",
                hoverinfo="skip",
            )
        )
    figure.update_layout(
        xaxis={"visible": False},
        yaxis={"visible": False},
        margin={"l": 4, "r": 4, "t": 24, "b": 4},
        dragmode=False,
    )
    square(figure)
    return figure


def interval_figure(
    measures: Sequence[str], methods: Sequence[MeasuredMethod], *, dark: bool
) -> go.Figure:
    """One panel a measure, one line a method: the value as a dot and its interval as a stroke.

    The parent's interval runs through all lines of a panel as a pale band, to compare with.
    """
    colours = palette(dark)
    height = _ROW_HEIGHT * len(methods) + _ABOVE_AND_BELOW
    figure = new_figure(dark, height=height)
    width = (1.0 - _GAP * (len(measures) - 1)) / len(measures)
    names = [method.label for method in methods]
    for at, measure in enumerate(measures):
        axes = panel(at)
        left = at * (width + _GAP)
        for method in methods:
            figure.add_trace(_dot(method, at, colours, axes))
            if method.key == "parent":
                figure.add_shape(_parents_band(method.estimates[at], axes, colours))
        x_axis = axes["xaxis"].replace("x", "xaxis")
        y_axis = axes["yaxis"].replace("y", "yaxis")
        figure.update_layout(
            {
                x_axis: {
                    "domain": [left, left + width],
                    "anchor": axes["yaxis"],
                    "side": "top",
                    "title_text": measure,
                    "nticks": 4,
                },
                y_axis: {
                    "anchor": axes["xaxis"],
                    "categoryorder": "array",
                    "categoryarray": names[::-1],
                    "showticklabels": at == 0,
                    "showgrid": False,
                },
            }
        )
    figure.update_layout(showlegend=False, margin={"l": 8, "r": 8, "t": 58, "b": 8})
    return figure


def _dot(method: MeasuredMethod, at: int, colours: Palette, axes: dict[str, str]) -> go.Scatter:
    colour, _, symbol = line_style(method.key, colours)
    estimate = method.estimates[at]
    return go.Scatter(
        x=[estimate.value],
        y=[method.label],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [max(estimate.high - estimate.value, 0.0)],
            "arrayminus": [max(estimate.value - estimate.low, 0.0)],
            "color": colour,
            "thickness": 1.6,
            "width": 0,
        },
        mode="markers",
        marker={"size": 9, "color": colour, "symbol": symbol, "line": {"width": 1.5}},
        name=method.label,
        hovertemplate=f"{method.label}<br>{estimate_text(estimate)}<extra></extra>",
        **axes,
    )


def _parents_band(estimate: Estimate, axes: dict[str, str], colours: Palette) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": axes["xaxis"],
        "yref": f"{axes['yaxis']} domain",
        "x0": estimate.low,
        "x1": estimate.high,
        "y0": 0,
        "y1": 1,
        "fillcolor": faded(colours.parent, 0.16),
        "line": {"width": 0},
        "layer": "below",
    }
