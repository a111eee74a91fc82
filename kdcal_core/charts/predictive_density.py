"""Predictive densities of picked rows, before and after (paper 003 Figs. 1c and 5b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.pit import Who
from kdcal_core.charts.regression_panels import PanelTitle, new_panels
from kdcal_core.charts.template import panel
from kdcal_core.data.types import FloatArray
from kdcal_core.distributions import PredictiveDistribution

SMOOTH_FAMILIES = ("normal", "lognormal", "gamma", "student_t")
_POINTS = 240
_QUANTILES = 400
_TAIL = 5e-4  # probability left out on either side
_NAMES = {"parent": "Model", "calibrated": "Recalibrated"}


@dataclass(frozen=True, eq=False)
class DensityCurve:
    """A predictive density to be drawn.

    Attributes
    ----------
    who : {"parent", "calibrated"}
    y, density : (g,)
    low, high : float
        Ends of the central 95% interval.
    pit : float
        Where the outcome fell.
    smoothed : bool
        Whether the density is smoothed from quantiles, because the distribution has none.
    """

    who: Who
    y: FloatArray
    density: FloatArray
    low: float
    high: float
    pit: float
    smoothed: bool


@dataclass(frozen=True, eq=False)
class DensityPanel:
    """One row: its name, its outcome and its densities, before and after."""

    name: str
    outcome: float
    curves: tuple[DensityCurve, ...]


def density_curve(
    distribution: PredictiveDistribution, outcome: float, who: Who = "parent"
) -> DensityCurve:
    """The density of a distribution of one row, ready to be drawn.

    Samples, weighted samples and quantiles have no density to be drawn as it is; theirs is a
    Gaussian kernel density of 400 equally likely quantiles, its bandwidth by Silverman's rule.

    Parameters
    ----------
    distribution : PredictiveDistribution
        Of exactly one row.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> curve = density_curve(Normal(np.zeros(1), np.ones(1)), 1.0)
    >>> round(float(curve.density.max()), 3), curve.smoothed, round(curve.pit, 3)
    (0.399, False, 0.841)
    """
    low, high = (float(end[0]) for end in distribution.interval(0.95))
    pit = float(distribution.cdf(outcome)[0])
    if distribution.family in SMOOTH_FAMILIES:
        ends = distribution.ppf(np.array([[_TAIL, 1.0 - _TAIL]]))[0]
        y = np.linspace(ends[0], ends[1], _POINTS)
        density = np.exp(distribution.log_density(y[None, :])[0])
        return DensityCurve(who, y, density, low, high, pit, smoothed=False)
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    y, density = _smoothed(distribution.ppf(levels[None, :])[0])
    return DensityCurve(who, y, density, low, high, pit, smoothed=True)


def predictive_density_figure(
    panels: Sequence[DensityPanel], *, dark: bool, y_title: str
) -> go.Figure:
    """One panel a row: its densities, their 95% intervals as strokes below, and its outcome.

    Names of rows and ``y_title``, the outcome's name, are untrusted.
    """
    colours = palette(dark)
    titles = [PanelTitle(shown.name, _told(shown)) for shown in panels]
    figure = new_panels(
        titles,
        dark,
        columns=2,
        height=250,
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
            figure.add_traces(_curve(curve, below, colours, first=at == 0, **panel(at)))
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
    """The curves of all rows, a line each point."""
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


def _smoothed(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gaussian kernel density of equally likely values; a spike where they are all one."""
    quartiles = np.subtract(*np.quantile(values, [0.75, 0.25])) / 1.349
    spread = min(part for part in (float(values.std()), float(quartiles), np.inf) if part > 0)
    if not np.isfinite(spread):
        spread = max(abs(float(values[0])), 1.0) * 1e-3
    bandwidth = 0.9 * spread * values.size**-0.2
    y = np.linspace(values[0] - 3.0 * bandwidth, values[-1] + 3.0 * bandwidth, _POINTS)
    scaled = (y[:, None] - values[None, :]) / bandwidth
    density = np.exp(-0.5 * scaled**2).mean(axis=1) / (bandwidth * np.sqrt(2.0 * np.pi))
    return y, density


def _told(shown: DensityPanel) -> str:
    """The PIT before and after: paper 003 writes it beside the density (Fig. 1c)."""
    return "PIT " + ", then ".join(f"{curve.pit:.4f}" for curve in shown.curves)


def _curve(
    curve: DensityCurve, below: float, colours: Palette, *, first: bool, **axes: Any
) -> list[go.Scatter]:
    colour = str(getattr(colours, curve.who))
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
        hovertemplate=f"%{{x:,.4~g}}: density %{{y:.3~g}}<extra>{name}</extra>",
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
        hovertemplate=(f"95% interval {curve.low:,.4g} to {curve.high:,.4g}<extra>{name}</extra>"),
        **axes,
    )
    return [line, interval]


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
        hovertemplate=f"Outcome {outcome:,.6g}<extra></extra>",
        **axes,
    )


def _range(shown: DensityPanel) -> tuple[float, float]:
    """All densities and the outcome, with a hair of room."""
    ends = [shown.outcome, *(end for curve in shown.curves for end in (curve.y[0], curve.y[-1]))]
    low, high = float(np.min(ends)), float(np.max(ends))
    room = 0.03 * (high - low) or max(abs(low), 1.0) * 0.01
    return low - room, high + room
