"""Predictive densities of picked rows, before and after (Torres et al., Figs. 1c and 5b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, panel
from kdcal_core.charts.marks import PanelTitle, hovered, new_panels
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.diagnostics import DensityCurve
from kdcal_core.text import figures_text

_NAMES = {"model": "Model", "calibrated": "Recalibrated"}


DENSITIES = r"""
The predictive density of single rows before (slate) and after recalibration (the method's colour),
with the outcome as a dashed line (Torres et al., Figs. 1c and 5b). The bars below are the central
95% intervals. The PIT is the share of each density to the left of the outcome.

After Algorithm 1 a distribution is a set of weighted samples, which has no density. The curve is a
Gaussian kernel density of its quantiles (Silverman's bandwidth), marked as smoothed. Intervals and
PIT values come from the samples themselves. One outcome says little about one density; the other
pictures judge many.
"""


@dataclass(frozen=True, eq=False)
class DensityPanel:
    """One row: its name, its outcome and its densities, before and after."""

    name: str
    outcome: float
    curves: tuple[DensityCurve, ...]


def predictive_density_chart(
    panels: Sequence[DensityPanel],
    *,
    dark: bool = False,
    y_title: str,
    after_by: str = "calibrated",
) -> Chart:
    """The predictive densities of single rows before and after; ``y_title`` is the outcome.

    ``after_by`` is the recalibrator's key.
    """
    return Chart(
        predictive_density_figure(panels, dark=dark, y_title=y_title, after_by=after_by),
        finding=density_words(panels),
        alt=density_alt(panels),
        how_to_read=DENSITIES,
        table=lambda: density_table(panels),
        name="densities",
    )


def predictive_density_figure(
    panels: Sequence[DensityPanel], *, dark: bool, y_title: str, after_by: str = "calibrated"
) -> go.Figure:
    """One panel per row: its densities, their 95% intervals as bars below, and its outcome.

    Names of rows and ``y_title``, the outcome's name, are untrusted.
    """
    colours = palette(dark)
    titles = [PanelTitle(shown.name, _subtitle(shown)) for shown in panels]
    figure = new_panels(
        titles,
        dark,
        columns=2,
        height=112,
        x_title=y_title,
        y_title="Density",
        x_axis={"nticks": 6},
        y_axis={"showticklabels": False, "showgrid": False},
        shared="",
    )
    for at, shown in enumerate(panels):
        top = max((float(curve.density.max()) for curve in shown.curves), default=1.0)
        for place, curve in enumerate(shown.curves):
            below = -top * 0.06 * (place + 1)
            by = "model" if curve.who == "model" else after_by
            colour, _, _ = method_style(by, colours)
            figure.add_traces(_curve(curve, below, colour, first=at == 0, **panel(at)))
        figure.add_trace(_outcome(shown.outcome, top, colours, first=at == 0, **panel(at)))
        low, high = _range(shown)
        axes = panel(at)
        figure.update_layout(
            {
                axes["xaxis"].replace("x", "xaxis"): {"range": [low, high]},
                axes["yaxis"].replace("y", "yaxis"): {
                    "range": [-top * 0.06 * (len(shown.curves) + 1), top * 1.08]
                },
            }
        )
    return figure


def density_table(panels: Sequence[DensityPanel]) -> pd.DataFrame:
    """The curves of all rows, one table row per point."""
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "row": shown.name,
                    "outcome": shown.outcome,
                    "distribution": _NAMES[curve.who],
                    "smoothed": curve.smoothed,
                    "y": curve.y,
                    "density": curve.density,
                }
            )
            for shown in panels
            for curve in shown.curves
        ],
        ignore_index=True,
    )


def _subtitle(shown: DensityPanel) -> str:
    """The PIT before and after, as beside the density in Torres et al., Fig. 1c."""
    return "PIT " + ", then ".join(f"{curve.pit:.4f}" for curve in shown.curves)


def _curve(
    curve: DensityCurve, below: float, colour: str, *, first: bool, **axes: Any
) -> list[go.Scatter]:
    name = _NAMES[curve.who] + (" (smoothed)" if curve.smoothed else "")
    line = go.Scatter(
        x=curve.y,
        y=curve.density,
        mode="lines",
        line={"color": colour, "width": 2.2},
        fill="tozeroy",
        fillcolor=faded(colour, 0.12),
        name=name,
        legendgroup=curve.who,
        showlegend=first,
        **hovered("{}: density {:.3g}", curve.y, curve.density, name=name),
        **axes,
    )
    interval = go.Scatter(
        x=[curve.low, curve.high],
        y=[below, below],
        mode="lines",
        line={"color": colour, "width": 4},
        name=f"{name}: 95% interval",
        legendgroup=curve.who,
        showlegend=False,
        hovertemplate=f"95% interval {_interval(curve)}<extra>{name}</extra>",
        **axes,
    )
    return [line, interval]


def _interval(curve: DensityCurve) -> str:
    return " to ".join(figures_text(end) for end in (curve.low, curve.high))


def _outcome(
    outcome: float, top: float, colours: Palette, *, first: bool, **axes: Any
) -> go.Scatter:
    return go.Scatter(
        x=[outcome, outcome],
        y=[0.0, top],
        mode="lines+markers",
        line={"color": colours.truth, "width": 1.6, "dash": "4px,4px"},
        marker={"size": [0, 8], "symbol": "diamond", "color": colours.truth},
        name="Outcome",
        legendgroup="outcome",
        showlegend=first,
        hovertemplate=f"Outcome {figures_text(outcome)}<extra></extra>",
        **axes,
    )


def _range(shown: DensityPanel) -> tuple[float, float]:
    """All densities and the outcome, with a little room."""
    ends = [shown.outcome, *(end for curve in shown.curves for end in (curve.y[0], curve.y[-1]))]
    low, high = float(np.min(ends)), float(np.max(ends))
    room = 0.03 * (high - low) or max(abs(low), 1.0) * 0.01
    return low - room, high + room


def density_words(panels: Sequence[DensityPanel]) -> str:
    """The outcome of each row and its PIT value, before and after.

    A PIT near 0 or 1 means that the distribution gave the outcome almost no probability.
    """
    text = "; ".join(
        f"{shown.name}: outcome {figures_text(shown.outcome)}, PIT "
        + ", recalibrated ".join(f"{curve.pit:.4f}" for curve in shown.curves)
        for shown in panels
    )
    smoothed = any(curve.smoothed for shown in panels for curve in shown.curves)
    note = " Densities of samples and quantiles are smoothed." if smoothed else ""
    return f"{text}.{note}"


def density_alt(panels: Sequence[DensityPanel]) -> str:
    """Alternative text of the densities: their 95% intervals and the outcomes."""
    names = {"model": "model", "calibrated": "recalibrated"}
    text = "; ".join(
        f"{shown.name}: "
        + ", ".join(f"{names[curve.who]} {_interval(curve)}" for curve in shown.curves)
        + f", outcome {figures_text(shown.outcome)}"
        for shown in panels
    )
    return f"Predictive densities. 95% intervals: {text}."
