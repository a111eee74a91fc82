"""PIT values: histograms with their band, small multiples of them, and the ECDF difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.parts import boxes, ribbon
from kdcal_core.charts.regression_panels import PanelTitle, new_panels
from kdcal_core.charts.template import new_figure, panel
from kdcal_core.data.types import FloatArray
from kdcal_core.diagnostics.regression.results import EcdfDifference, PitHistogram
from kdcal_core.text import counted

Who = Literal["model", "calibrated"]
FAULT_TITLES = {
    "none": "no fault found",
    "too low": "predictions too low",
    "too high": "predictions too high",
    "too narrow": "spread too narrow",
    "too wide": "spread too wide",
    "other": "not uniform in another way",
}
_BANDS = {"simultaneous": "all at once", "pointwise": "each by itself"}
_MAX_LEVELS = 1000


@dataclass(frozen=True, eq=False)
class PitPanel:
    """One histogram among several: its name, which may come from a file, and its fault's kind."""

    name: str
    histogram: PitHistogram
    kind: str = "none"
    who: Who = "model"


def fault_colour(kind: str, colours: Palette, who: Who = "model") -> str:
    """The colour of a fault; where there is none, that of whose distribution it is.

    Examples
    --------
    >>> fault_colour("too narrow", palette(dark=False)) == palette(dark=False).too_narrow
    True
    >>> fault_colour("none", palette(dark=False), "calibrated") == palette(dark=False).calibrated
    True
    """
    if kind in ("none", "other"):
        return str(getattr(colours, who))
    return str(getattr(colours, kind.replace(" ", "_")))


def pit_figure(
    histogram: PitHistogram, *, dark: bool, kind: str = "none", who: Who = "model"
) -> go.Figure:
    """The PIT histogram (paper 003 Fig. 1d): relative density, where 1 is a right distribution.

    The grey boxes are where the bars of a right distribution would stand; bars outside are
    strong, bars inside pale. ``kind`` is the kind of a `Fault` and sets the colour.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=340)
    figure.add_traces(_histogram(histogram, colours, kind, who))
    figure.update_layout(
        xaxis=_pit_axis() | {"title_text": "PIT: where the outcome fell in its distribution"},
        yaxis={
            "title_text": "Relative density",
            "range": [0, _highest([histogram])],
            "tickformat": ".2~f",
            "nticks": 6,
        },
        margin={"t": 56},
    )
    return figure


def pit_panels(panels: Sequence[PitPanel], *, dark: bool, columns: int = 3) -> go.Figure:
    """Histograms beside each other on one scale: all rows, neighbourhoods, regions, before, after.

    Paper 003 Figs. 1f, 5c and 5d. Above each stand its name, its rows and its fault in words.
    """
    colours = palette(dark)
    titles = [
        PanelTitle(
            shown.name,
            f"{counted(shown.histogram.n, 'row')}, {FAULT_TITLES[shown.kind]}",
            None if shown.kind == "none" else fault_colour(shown.kind, colours),
        )
        for shown in panels
    ]
    figure = new_panels(
        titles,
        dark,
        columns=columns,
        height=220 if len(panels) <= columns else 170,
        x_title="PIT",
        y_title="Relative density",
        x_axis=_pit_axis(),
        y_axis={
            "range": [0, _highest([shown.histogram for shown in panels])],
            "tickformat": ".2~f",
            "nticks": 5,
        },
    )
    for at, shown in enumerate(panels):
        figure.add_traces(
            _histogram(shown.histogram, colours, shown.kind, shown.who, legend=False, **panel(at))
        )
    figure.update_layout(showlegend=False, margin={"t": 56})
    figure.update_layout(height=figure.layout.height - 36)
    return figure


def ecdf_figure(
    model: EcdfDifference, *, dark: bool, calibrated: EcdfDifference | None = None
) -> go.Figure:
    """ECDF of the PIT values minus the uniform's, with its simultaneous band.

    A line that leaves the band anywhere rejects uniformity at ``1 - level``. The band is drawn
    around zero, once: that of the curve with the fewer rows, which is the wider one.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=320)
    shown = [(model, colours.model, "Model")]
    if calibrated is not None:
        shown.append((calibrated, colours.calibrated, "Recalibrated"))
    widest = min((curve for curve, _, _ in shown), key=lambda curve: curve.n)
    kept = _thinned(widest.levels)
    figure.add_trace(
        ribbon(
            widest.levels[kept],
            widest.low[kept],
            widest.high[kept],
            faded(colours.truth, 0.09),
            name=f"Simultaneous {widest.level:.0%} band",
        )
    )
    figure.add_trace(_level(0.0, colours, "Right distribution"))
    for curve, colour, name in shown:
        figure.add_trace(_difference(curve, colour, name))
    figure.update_layout(
        xaxis=_pit_axis() | {"title_text": "PIT"},
        yaxis={"title_text": "Share below, minus expected", "nticks": 6},
        margin={"t": 56},
    )
    return figure


def pit_table(panels: Sequence[PitPanel]) -> pd.DataFrame:
    """The bars of several histograms, a line each."""
    tables = [shown.histogram.table().assign(histogram=shown.name) for shown in panels]
    return pd.concat(tables, ignore_index=True)


def _histogram(
    histogram: PitHistogram,
    colours: Palette,
    kind: str,
    who: Who,
    *,
    legend: bool = True,
    **axes: Any,
) -> list[Any]:
    """Band, line of the uniform and bars, the bars outside the band in full colour."""
    left, right = histogram.edges[:-1], histogram.edges[1:]
    low, high = histogram.density_band
    colour = fault_colour(kind, colours, who)
    bars = go.Bar(
        x=(left + right) / 2,
        y=histogram.density,
        width=right - left,
        marker={
            "color": [faded(colour, 0.9 if far else 0.45) for far in histogram.outside],
            "line": {"color": colour, "width": 0.6},
        },
        name="Outcomes, strong where outside the band",
        showlegend=False,
        customdata=np.column_stack([left, right, histogram.counts, histogram.low, histogram.high]),
        hovertemplate=(
            "PIT %{customdata[0]:.2f} to %{customdata[1]:.2f}: %{customdata[2]:,.0f} rows<br>"
            "expected %{customdata[3]:,.0f} to %{customdata[4]:,.0f}<br>"
            "density %{y:.2f}<extra></extra>"
        ),
        **axes,
    )
    # over the bars, or tall bars would hide where they should have ended
    band = boxes(
        left,
        right,
        low,
        high,
        faded(colours.truth, 0.13),
        name=f"Right bars end here ({histogram.level:.0%}, {_BANDS[histogram.band]})",
        showlegend=legend,
        **axes,
    )
    return [bars, band, _level(1.0, colours, "Uniform", showlegend=legend, **axes)]


def _level(height: float, colours: Palette, name: str, **more: Any) -> go.Scatter:
    return go.Scatter(
        x=[0, 1],
        y=[height, height],
        mode="lines",
        line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
        name=name,
        hoverinfo="skip",
        **more,
    )


def _difference(curve: EcdfDifference, colour: str, name: str) -> go.Scatter:
    kept = _thinned(curve.levels)
    return go.Scatter(
        x=curve.levels[kept],
        y=curve.difference[kept],
        mode="lines",
        line={"color": colour, "width": 2},
        name=f"{name} ({counted(curve.n, 'row')})",
        customdata=np.column_stack([curve.low[kept], curve.high[kept]]),
        hovertemplate=(
            "PIT up to %{x:.3f}: %{y:+.3f}<br>band %{customdata[0]:+.3f} to %{customdata[1]:+.3f}"
            "<extra>%{fullData.name}</extra>"
        ),
    )


def _thinned(levels: FloatArray) -> Any:
    """Evenly spaced places of a curve, the ends among them."""
    return np.unique(np.linspace(0, levels.size - 1, min(levels.size, _MAX_LEVELS)).astype(int))


def _pit_axis() -> dict[str, Any]:
    return {"range": [-0.01, 1.01], "tickvals": [0, 0.25, 0.5, 0.75, 1], "tickformat": ".2~f"}


def _highest(histograms: Sequence[PitHistogram]) -> float:
    """The top of the shared axis: all bars and bands lie below it."""
    tops = [max(one.density.max(), one.density_band[1].max()) for one in histograms]
    return 1.06 * float(max([1.4, *tops]))
