"""PIT values: histograms with their band, small multiples, and the ECDF difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure, panel
from kdcal_core.charts.marks import PanelTitle, boxes, hovered, new_panels, ribbon
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.diagnostics.regression.pit_curves import EcdfDifference, PitHistogram
from kdcal_core.text import counted

FAULT_TITLES = {
    "none": "no fault found",
    "too low": "predictions too low",
    "too high": "predictions too high",
    "too narrow": "spread too narrow",
    "too wide": "spread too wide",
    "other": "not uniform in another way",
}
_BANDS = {"simultaneous": "all together", "pointwise": "each alone"}
_MAX_LEVELS = 1000


PIT_HISTOGRAM = r"""
Each outcome has a **PIT value** (probability integral transform): the probability that its
predictive distribution gives to values at or below it, $p_i = \hat F_i(y_i)$ (Torres et al.,
section 2). If the distributions are calibrated, these values are spread evenly from 0 to 1 and
every bar has height 1, the dashed line.

**High bars on the right**: outcomes are larger than predicted, so predictions are too low; **on the
left**: too high. **High bars at both ends** (a U): the stated spread is too narrow. **High bars in
the middle** (a hump): too wide.

Bars of calibrated distributions all end inside the grey band in 95% of all samples of this size.
Bars outside are strong, bars inside pale. A flat histogram over all rows does not prove that the
model is right: opposite faults in two places cancel. Look at neighbourhoods too.
"""
PIT_PANELS = r"""
The same picture for different groups of rows, on one scale (Torres et al., Figs. 1f, 5c and 5d).
The histogram over all rows mixes all neighbourhoods: a model can look right in it and be too low in
one place and too high in another. The grey band is wider for groups with fewer rows. The colour
shows the fault: amber too low, pink too high, red too narrow, blue too wide. Slate means that no
fault was found in the model, the recalibrator's colour that none was found after recalibration.
"""
ECDF = r"""
The share of PIT values at or below each level, minus the level: calibrated distributions stay near
0 (Torres et al., Eq. 1, for all levels). Where the line is **above** 0, more outcomes are below
that quantile than stated; where it is **below** 0, fewer. If the line is first above and then below
0, the stated spread is too narrow; if first below and then above, too wide.

The grey band is simultaneous: calibrated distributions stay inside everywhere in 95% of all
samples. Unlike a histogram it needs no bins.
"""
BEFORE_AFTER = r"""
PIT values of all judged rows before and after: the position of each outcome in its distribution
(Torres et al., section 2). If distributions are calibrated, these are spread evenly, and all bars
end inside the grey band in 95% of all samples. Every repair, even a global one, flattens this
histogram, so a flat one says nothing about single places. The maps of the page Recalibration do.
"""
AROUND_ROWS = r"""
PIT values of the judged rows nearest to each picked row, before and after (Torres et al., Figs. 5c
and 5d), in the space in which the repair searched for neighbours. High bars on the right mean that
predictions there are too low, high bars at both ends that intervals are too narrow. After a local
repair the histograms should be flat up to the grey band.
"""


@dataclass(frozen=True, eq=False)
class PitPanel:
    """One histogram of several: its name, possibly from a file, and the kind of its fault."""

    name: str
    histogram: PitHistogram
    kind: str = "none"
    who: str = "model"


def fault_colour(kind: str, colours: Palette, who: str = "model") -> str:
    """The colour of a fault; without a fault, that of the model or of the recalibrator ``who``.

    Examples
    --------
    >>> fault_colour("too narrow", palette(dark=False)) == palette(dark=False).too_narrow
    True
    >>> fault_colour("none", palette(dark=False), "local") == palette(dark=False).calibrated
    True
    """
    if kind in ("none", "other"):
        return method_style(who, colours)[0]
    return str(getattr(colours, kind.replace(" ", "_")))


def pit_chart(histogram: PitHistogram, *, kind: str, dark: bool = False) -> Chart:
    """The histogram of PIT values; ``kind`` is the fault that was found in them."""
    return Chart(
        pit_figure(histogram, dark=dark, kind=kind),
        finding=pit_words(histogram),
        alt=pit_alt(histogram),
        how_to_read=PIT_HISTOGRAM,
        table=histogram.table,
        name="PIT histogram",
    )


def pit_panels_chart(
    panels: Sequence[PitPanel],
    *,
    name: str,
    columns: int,
    dark: bool = False,
    most: int | None = None,
    narrow: bool = False,
) -> Chart:
    """Histograms of groups of rows on one scale, at most the ``most`` largest groups if given.

    On a ``narrow`` page, a phone's, they stand one below the other, so that titles do not overlap.
    """
    largest = sorted(panels, key=lambda one: -one.histogram.n)[:most]
    drawn = [one for one in panels if one in largest]
    return Chart(
        pit_panels(drawn, dark=dark, columns=1 if narrow else columns),
        finding=pit_panels_words(drawn),
        alt=pit_panels_alt(drawn),
        how_to_read=PIT_PANELS,
        table=lambda: pit_table(panels),
        name=name,
    )


def pit_before_after_chart(panels: Sequence[PitPanel], *, dark: bool = False) -> Chart:
    """All PIT values of the model and after recalibration."""
    chart = pit_panels_chart(panels, name="PIT before and after", columns=1, dark=dark)
    return replace(chart, how_to_read=BEFORE_AFTER)


def pit_around_rows_chart(
    panels: Sequence[PitPanel], *, dark: bool = False, narrow: bool = False
) -> Chart:
    """PIT values of the rows around single ones, of the model and after recalibration."""
    chart = pit_panels_chart(panels, name="neighbourhoods", columns=4, dark=dark, narrow=narrow)
    return replace(chart, how_to_read=AROUND_ROWS)


def ecdf_chart(difference: EcdfDifference, *, dark: bool = False) -> Chart:
    """Observed minus stated shares of PIT values below every level."""
    words = ecdf_words(difference)
    return Chart(
        ecdf_figure(difference, dark=dark),
        finding=words,
        alt=words,
        how_to_read=ECDF,
        table=difference.table,
        name="PIT ECDF",
    )


def pit_figure(histogram: PitHistogram, *, dark: bool, kind: str = "none") -> go.Figure:
    """The PIT histogram (Torres et al., Fig. 1d) as a relative density, 1 if calibrated.

    Bars of calibrated distributions end inside the grey boxes; bars outside are strong, bars inside
    pale. ``kind`` is the kind of a `Fault` and sets the colour.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=320)
    figure.add_traces(_histogram(histogram, colours, kind, "model"))
    figure.update_layout(
        xaxis=_pit_axis() | {"title_text": "PIT: position of the outcome in its distribution"},
        yaxis={
            "title_text": "Relative density",
            "range": [0, _highest([histogram])],
            "tickformat": ".2~f",
            "nticks": 6,
        },
        margin={"t": 56},
    )
    return figure


def pit_panels(panels: Sequence[PitPanel], *, dark: bool = False, columns: int = 3) -> go.Figure:
    """Histograms side by side on one scale: all rows, neighbourhoods, regions, before, after.

    Torres et al., Figs. 1f, 5c and 5d. The title of each gives its name, its rows and its fault.
    """
    colours = palette(dark)
    titles = [
        PanelTitle(
            shown.name,
            f"{counted(shown.histogram.n, 'row')}, {FAULT_TITLES[shown.kind]}",
            None if shown.kind == "none" else colours.text,  # the bars have the fault's colour
        )
        for shown in panels
    ]
    # before and after, one below the other, end in the first screen
    several = 140 if (columns, len(panels)) == (1, 2) else 170
    figure = new_panels(
        titles,
        dark,
        columns=columns,
        height=204 if len(panels) <= columns else several,
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


def ecdf_figure(curve: EcdfDifference, *, dark: bool) -> go.Figure:
    """ECDF of the PIT values minus the uniform's, with its simultaneous band around zero.

    A line that leaves the band anywhere rejects uniformity at ``1 - level``.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=300)
    kept = _thinned(curve.levels)
    figure.add_trace(
        ribbon(
            curve.levels[kept],
            curve.low[kept],
            curve.high[kept],
            faded(colours.truth, 0.09),
            name=f"Simultaneous {curve.level:.0%} band",
        )
    )
    figure.add_trace(_level(0.0, colours, "Calibrated distribution"))
    figure.add_trace(_difference(curve, colours.model, "Model"))
    figure.update_layout(
        xaxis=_pit_axis() | {"title_text": "PIT"},
        yaxis={"title_text": "Share below, minus expected", "nticks": 6},
        margin={"t": 56},
    )
    return figure


def pit_table(panels: Sequence[PitPanel]) -> pd.DataFrame:
    """The bars of several histograms, one row per bar."""
    tables = [shown.histogram.table().assign(histogram=shown.name) for shown in panels]
    return pd.concat(tables, ignore_index=True)


def _histogram(
    histogram: PitHistogram,
    colours: Palette,
    kind: str,
    who: str,
    *,
    legend: bool = True,
    **axes: Any,
) -> list[Any]:
    """Band, line of the uniform and bars; bars outside the band have full colour."""
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
    # drawn over the bars, because tall bars would hide where they should end
    band = boxes(
        left,
        right,
        low,
        high,
        faded(colours.truth, 0.13),
        name=f"Calibrated bars end here<br>({histogram.level:.0%}, {_BANDS[histogram.band]})",
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
        **hovered(
            "PIT up to {:.3f}: {:+z.3f}<br>band {:+z.3f} to {:+z.3f}",
            *(part[kept] for part in (curve.levels, curve.difference, curve.low, curve.high)),
            name="%{fullData.name}",
        ),
    )


def _thinned(levels: FloatArray) -> Any:
    """Evenly spaced places of a curve, including its ends."""
    return np.unique(np.linspace(0, levels.size - 1, min(levels.size, _MAX_LEVELS)).astype(int))


def _pit_axis() -> dict[str, Any]:
    return {"range": [-0.01, 1.01], "tickvals": [0, 0.25, 0.5, 0.75, 1], "tickformat": ".2~f"}


def _highest(histograms: Sequence[PitHistogram]) -> float:
    """The top of the shared axis: all bars and bands lie below it."""
    tops = [max(one.density.max(), one.density_band[1].max()) for one in histograms]
    return 1.06 * float(max([1.4, *tops]))


def pit_words(histogram: PitHistogram) -> str:
    """How many bars leave the band, and which leaves it furthest.

    Examples
    --------
    >>> flat = PitHistogram(np.linspace(0, 1, 5), np.array([90.0, 10, 50, 50]), np.full(4, 30.0),
    ...                     np.full(4, 70.0), 200, 200.0, 0.95, "simultaneous")
    >>> pit_words(flat)
    '2 of 4 bars leave the band; furthest off are PIT values of 0.00 to 0.25: 90 rows where 30 to
     70 are expected.'
    """
    far = np.flatnonzero(histogram.outside)
    if not far.size:
        return f"All {histogram.counts.size} bars stay in the band."
    beyond = np.maximum(histogram.counts - histogram.high, histogram.low - histogram.counts)
    worst = int(np.argmax(beyond))
    return (
        f"{far.size} of {histogram.counts.size} bars {'leaves' if far.size == 1 else 'leave'} the "
        f"band; furthest off are PIT values of {histogram.edges[worst]:.2f} to "
        f"{histogram.edges[worst + 1]:.2f}: {histogram.counts[worst]:,.0f} rows where "
        f"{histogram.low[worst]:,.0f} to {histogram.high[worst]:,.0f} are expected."
    )


def pit_alt(histogram: PitHistogram) -> str:
    """Alternative text of a PIT histogram: its density in five equal parts."""
    middle = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    share = np.histogram(middle, np.linspace(0, 1, 6), weights=histogram.counts)[0]
    parts = ", ".join(f"{5 * part / max(histogram.n, 1):.2f}" for part in share)
    return (
        f"Histogram of {histogram.n:,} PIT values. Relative density over five equal parts from "
        f"0 to 1: {parts}; calibrated distributions have 1 everywhere. {pit_words(histogram)}"
    )


def pit_panels_words(panels: Sequence[PitPanel]) -> str:
    """The faults of several groups of rows, and whether opposite ones cancel."""
    text = "; ".join(f"{shown.name}: {_panel_words(shown)}" for shown in panels)
    kinds = {shown.kind for shown in panels[1:]}
    opposite = {"too low", "too high"} <= kinds or {"too narrow", "too wide"} <= kinds
    ending = " Opposite faults cancel over all rows." if opposite else ""
    return f"{text}.{ending}"


def _panel_words(shown: PitPanel) -> str:
    """The fault of one group of rows; without a fault, bars may still leave the band."""
    out, all_bars = int(shown.histogram.outside.sum()), shown.histogram.counts.size
    but = f", but {out} of {all_bars} bars leave the band" if shown.kind == "none" and out else ""
    return f"{FAULT_TITLES[shown.kind]}{but}"


def pit_panels_alt(panels: Sequence[PitPanel]) -> str:
    """Alternative text of histograms side by side."""
    return " ".join(f"{shown.name}: {pit_alt(shown.histogram)}" for shown in panels)


def ecdf_words(curve: EcdfDifference) -> str:
    """Whether the line leaves the simultaneous band, and where it is furthest from zero."""
    worst = int(np.argmax(np.abs(curve.difference)))
    value = float(curve.difference[worst])
    stays = "leaves" if curve.outside.any() else "stays within"
    return (
        f"The model's line {stays} the {curve.level:.0%} band; it is furthest off at the "
        f"{curve.levels[worst]:.2f} quantile, below which {100 * abs(value):.1f} points "
        f"{'more' if value > 0 else 'fewer'} of the outcomes fall than stated."
    )
