"""How many neighbours, and in which space: cross-fitted CRPS over the choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.template import new_figure
from kdcal_core.data.types import FloatArray
from kdcal_core.diagnostics import Estimate
from kdcal_core.text import escape_html

_SYMBOLS = ("circle", "square", "triangle-up", "pentagon", "star", "hexagon")
_APART = 0.012  # of the logarithmic axis, so that bars of two spaces do not lie on each other


SELECTION = r"""
Cross-fitted CRPS, lower is better, over the number of neighbours, one curve for each space in which
neighbours are looked for. Few neighbours follow local faults closely but are noisy; many are steady
but blur (Torres et al., section 3). The ring is the choice; bars are 95%
intervals of the difference to it, row by row. Choices whose bars reach its height are as good, and
among them a larger k is steadier. Slate is the model without any repair.
"""


@dataclass(frozen=True, eq=False)
class SelectionCurve:
    """A space, which may carry a file's name, and its CRPS (q,) over k (q,).

    ``low`` and ``high`` are the CRPS with the interval of its difference to the chosen one.
    """

    space: str
    ks: FloatArray
    crps: FloatArray
    low: FloatArray
    high: FloatArray


def neighbour_selection_chart(
    curves: Sequence[SelectionCurve],
    words: str,
    *,
    dark: bool,
    chosen: tuple[str, int],
    model: Estimate | None = None,
) -> Chart:
    """How the neighbours were chosen; ``words`` are those of the selection itself."""
    return Chart(
        neighbour_selection_figure(curves, dark=dark, chosen=chosen, model=model),
        finding=words,
        alt=words,
        how_to_read=SELECTION,
        table=lambda: neighbour_selection_table(curves),
        name="neighbours",
    )


def neighbour_selection_figure(
    curves: Sequence[SelectionCurve],
    *,
    dark: bool,
    chosen: tuple[str, int],
    model: Estimate | None = None,
) -> go.Figure:
    """A curve a space over the number of neighbours; the choice in teal with a ring.

    ``chosen`` is the space and its number of neighbours, ``model`` the CRPS without any repair.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=340)
    if model is not None:
        _model(figure, model, curves, dark)
    for at, curve in enumerate(curves):
        ours = curve.space == chosen[0]
        colour = colours.calibrated if ours else colours.classes[at % len(colours.classes)]
        name = escape_html(curve.space, limit=40)
        shift = 1.0 + _APART * (2 * at - len(curves) + 1)
        figure.add_trace(
            go.Scatter(
                x=curve.ks * shift,
                y=curve.crps,
                mode="lines+markers",
                line={"color": colour, "width": 2.2 if ours else 1.4},
                marker={"symbol": _SYMBOLS[at % len(_SYMBOLS)], "size": 7, "color": colour},
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": curve.high - curve.crps,
                    "arrayminus": curve.crps - curve.low,
                    "color": faded(colour, 0.6),
                    "thickness": 1.2,
                    "width": 0,
                },
                name=name,
                customdata=np.column_stack([curve.ks, curve.low, curve.high]),
                hovertemplate=(
                    "k = %{customdata[0]:,.0f}: CRPS %{y:,.4~g}<br>"
                    "%{customdata[1]:,.4~g} to %{customdata[2]:,.4~g}"
                    "<extra>%{fullData.name}</extra>"
                ),
            )
        )
        place = np.flatnonzero(curve.ks == chosen[1])
        if ours and place.size:
            figure.add_trace(
                go.Scatter(
                    x=curve.ks[place] * shift,
                    y=curve.crps[place],
                    mode="markers",
                    marker={
                        "symbol": "circle-open",
                        "size": 17,
                        "color": colours.truth,
                        "line": {"width": 2},
                    },
                    name=f"Chosen: {name}, k = {chosen[1]:,}",
                    hoverinfo="skip",
                )
            )
    ticks = sorted({int(k) for curve in curves for k in curve.ks})
    figure.update_layout(
        xaxis={
            "type": "log",
            "title_text": "Neighbours, k",
            "tickvals": ticks,
            "ticktext": [f"{tick:,}" for tick in ticks],
        },
        yaxis={"title_text": "Cross-fitted CRPS", "nticks": 6},
        margin={"t": 64},
    )
    return figure


def neighbour_selection_table(curves: Sequence[SelectionCurve]) -> pd.DataFrame:
    """A line for each space and number of neighbours."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "space": curve.space,
                    "k": curve.ks,
                    "crps": curve.crps,
                    "low": curve.low,
                    "high": curve.high,
                }
            )
            for curve in curves
        ],
        ignore_index=True,
    )


def _model(
    figure: go.Figure, model: Estimate, curves: Sequence[SelectionCurve], dark: bool
) -> None:
    """The model's own CRPS as a grey line across, with its interval."""
    colour = palette(dark).model
    ks = np.concatenate([curve.ks for curve in curves]) if curves else np.ones(1)
    figure.add_hrect(
        y0=model.low, y1=model.high, fillcolor=faded(colour, 0.12), line_width=0, layer="below"
    )
    figure.add_trace(
        go.Scatter(
            x=[ks.min(), ks.max()],
            y=[model.value, model.value],
            mode="lines",
            line={"color": colour, "width": 2},
            name="Model as it is",
            hovertemplate="Model as it is: %{y:,.4~g}<extra></extra>",
        )
    )
