"""Pictures of the simulation lab: a simulation at a glance, and measures beside their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.bands import BandLine, band_lines, line_style
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.template import new_figure, panel, square, template
from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.diagnostics import Estimate, estimate_text

_ROW_HEIGHT = 27
_ABOVE_AND_BELOW = 74
_GAP = 0.03  # between panels, as a share of the width
_WIDE_GAP = 0.085  # the same where each panel has its own vertical axis


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

    The model's interval runs through all lines of a panel as a pale band, to compare with.
    """
    colours = palette(dark)
    width = (1.0 - _GAP * (len(measures) - 1)) / len(measures)
    names = [method.label for method in methods]
    bands: list[dict[str, Any]] = []
    # set at once, because plotly checks the whole layout anew at every change
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": _ROW_HEIGHT * len(methods) + _ABOVE_AND_BELOW,
        "showlegend": False,
        "margin": {"l": 8, "r": 8, "t": 58, "b": 8},
        "shapes": bands,
    }
    for at, measure in enumerate(measures):
        axes = panel(at)
        left = at * (width + _GAP)
        layout[axes["xaxis"].replace("x", "xaxis")] = {
            "domain": [left, left + width],
            "anchor": axes["yaxis"],
            "side": "top",
            "title_text": measure,
            "nticks": 4,
        }
        layout[axes["yaxis"].replace("y", "yaxis")] = {
            "anchor": axes["xaxis"],
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "showticklabels": at == 0,
            "showgrid": False,
        }
        bands += [
            _models_band(method.estimates[at], axes, colours)
            for method in methods
            if method.key == "model"
        ]
    dots = [_dots(methods, at, colours) for at in range(len(measures))]
    return go.Figure(data=dots, layout=layout)


def sizes_figure(
    panels: Mapping[str, Sequence[BandLine]],
    *,
    dark: bool,
    target: tuple[str, float, str] | None = None,
) -> go.Figure:
    """Measures against the number of rows, one panel a measure, with one legend for all.

    ``target`` names a panel, a value to compare with in it, and what that is.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=380)
    width = (1.0 - _WIDE_GAP * (len(panels) - 1)) / len(panels)
    for at, (measure, lines) in enumerate(panels.items()):
        axes = panel(at)
        left = at * (width + _WIDE_GAP)
        for trace in band_lines(lines, colours, "%{x:,} rows", measure.lower(), "quartiles"):
            trace.update(**axes, showlegend=at == 0 and bool(trace.name) and trace.fill is None)
            figure.add_trace(trace)
        if target is not None and target[0] == measure:
            figure.add_shape(_target(target[1], axes, colours))
            figure.add_annotation(_target_name(target, axes, colours))
        figure.update_layout(
            {
                axes["xaxis"].replace("x", "xaxis"): {
                    "domain": [left, left + width],
                    "anchor": axes["yaxis"],
                    "type": "log",
                    "tickvals": list(lines[0].x) if lines else [],
                    "ticktext": [f"{place:,.0f}" for place in lines[0].x] if lines else [],
                    "title_text": "Rows drawn",
                },
                axes["yaxis"].replace("y", "yaxis"): {
                    "anchor": axes["xaxis"],
                    "title_text": measure,
                    "nticks": 6,
                },
            }
        )
    figure.update_layout(margin={"t": 64, "b": 52})
    return figure


def _target(value: float, axes: dict[str, str], colours: Palette) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": f"{axes['xaxis']} domain",
        "yref": axes["yaxis"],
        "x0": 0,
        "x1": 1,
        "y0": value,
        "y1": value,
        "line": {"color": colours.truth, "width": 1, "dash": "4px,4px"},
    }


def _target_name(
    target: tuple[str, float, str], axes: dict[str, str], colours: Palette
) -> dict[str, Any]:
    return {
        "text": target[2],
        "xref": f"{axes['xaxis']} domain",
        "yref": axes["yaxis"],
        "x": 1,
        "y": target[1],
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": colours.muted},
    }


def _dots(methods: Sequence[MeasuredMethod], at: int, colours: Palette) -> go.Scatter:
    """The methods of one panel."""
    styles = [line_style(method.key, colours) for method in methods]
    estimates = [method.estimates[at] for method in methods]
    return go.Scatter(
        x=[estimate.value for estimate in estimates],
        y=[method.label for method in methods],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [max(each.high - each.value, 0.0) for each in estimates],
            "arrayminus": [max(each.value - each.low, 0.0) for each in estimates],
            "color": colours.muted,
            "thickness": 1.4,
            "width": 0,
        },
        mode="markers",
        marker={
            "size": 9,
            "color": [colour for colour, _, _ in styles],
            "symbol": [symbol for _, _, symbol in styles],
        },
        text=[estimate_text(estimate) for estimate in estimates],
        hovertemplate="%{y}<br>%{text}<extra></extra>",
        **panel(at),
    )


def _models_band(estimate: Estimate, axes: dict[str, str], colours: Palette) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": axes["xaxis"],
        "yref": f"{axes['yaxis']} domain",
        "x0": estimate.low,
        "x1": estimate.high,
        "y0": 0,
        "y1": 1,
        "fillcolor": faded(colours.model, 0.16),
        "line": {"width": 0},
        "layer": "below",
    }
