"""Measures against size or dimension, each method with its band, as the papers draw them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts import BandLine
from kdcal_core.charts.chart import new_figure
from kdcal_core.charts.marks import band_lines
from kdcal_core.charts.palette import palette


def measure_figure(
    lines: Sequence[BandLine],
    *,
    dark: bool,
    x_title: str,
    y_title: str,
    log_x: bool = True,
    log_y: bool = False,
    target: tuple[float, str] | None = None,
    band_words: str = "quartiles",
) -> go.Figure:
    """A measure against size or dimension: median and band of each method.

    ``target`` is a value to compare with and its name, drawn as the truth is.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=340)
    figure.add_traces(band_lines(lines, colours, "{}", y_title.lower(), band_words))
    places = np.concatenate([line.x for line in lines]) if lines else np.ones(1)
    if target is not None:
        figure.add_trace(
            go.Scatter(
                x=[places.min(), places.max()],
                y=[target[0]] * 2,
                mode="lines",
                line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
                name=target[1],
                hoverinfo="skip",
            )
        )
    figure.update_layout(
        xaxis={"title_text": x_title, "type": "log" if log_x else "linear"},
        yaxis={"title_text": y_title, "type": "log" if log_y else "linear"},
        margin={"t": 64},
    )
    return figure
