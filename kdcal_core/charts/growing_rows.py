"""Confidence by class as rows are added: the curves and their densities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.calibration import ConfidenceCurve, EventCurve
from kdcal_core.charts.chart import LEGEND_BELOW, Chart, new_figure, square, unit_axis
from kdcal_core.charts.marks import identity
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.text import listed

SHARES = ("A quarter of the rows", "Half of the rows", "All rows")
_DASHES = ("2px,3px", "6px,3px", "solid")
_WIDTHS = (1.4, 1.8, 2.4)
_POINTS = 250  # drawn of each line: there are nine
_FEWEST = 5.0  # rows near a score, for a difference there to count
GROWTH = """
**Above** the curve of Salamon et al. (Eq. 9) fitted on a quarter, on half and on all of the rows,
each part of the next; its bandwidth becomes smaller as rows are added. **Below** the densities of
right and wrong rows that define it, times their numbers, of a quarter (dotted), half (dashed) and
all of the rows. Where the lines still move from half to all, more rows would move them again.

All rows are added in the shares that they have, so the curve settles. If only rows of the class
itself are added, as in Fig. 15 of the paper, its density of right rows alone grows and confidence
can only rise: the frequencies have changed, and Watch says how to allow for it.
"""


def growth_chart(
    curves: Sequence[ConfidenceCurve], class_name: str, *, dark: bool = False
) -> Chart:
    """One class's curves by number of rows, ascending, with their densities."""
    words = growth_words(curves, class_name)

    def table() -> pd.DataFrame:
        parts = zip(SHARES, curves, strict=True)
        return pd.concat([one.table().assign(fitted_on=share) for share, one in parts])

    return Chart(
        _figure([one.thinned(_POINTS) for one in curves], dark=dark),
        finding=words,
        alt=words,
        how_to_read=GROWTH,
        table=table,
        name=f"growing rows {class_name}",
    )


def growth_words(curves: Sequence[ConfidenceCurve], class_name: str) -> str:
    """By how much the curves of fewer rows differ from that of all, where there are rows."""
    last = curves[-1]
    if last.fallback or last.rows is None:
        return f"{class_name}: there are too few rows for a curve."
    near = (last.rows >= _FEWEST) & np.isfinite(last.confidence)  # an event's curve has a break
    parts = []
    for share, one in zip(SHARES[:-1], curves[:-1], strict=True):
        n = one.n_tp + one.n_fp
        known = np.isfinite(one.confidence)
        said = np.interp(last.score[near], one.score[known], one.confidence[known])
        gap = np.abs(said - last.confidence[near])
        off = f"by up to {100 * gap.max():.0f} points" if gap.size else "nowhere with rows"
        parts.append(f"with {share.lower()} ({n:,}) {off}")
    return (
        f"{class_name}: the curve differs {listed(parts)} from that of all "
        f"{last.n_tp + last.n_fp:,} rows."
    )


def _figure(curves: Sequence[ConfidenceCurve], *, dark: bool) -> go.Figure:
    colours = palette(dark)
    colour, _, _ = method_style("kde_mon2", colours)
    figure = new_figure(dark, height=558)
    figure.add_trace(identity(colours))
    of_event = isinstance(curves[-1], EventCurve)
    for at, (share, curve) in enumerate(zip(SHARES, curves, strict=True)):
        line = {"dash": _DASHES[at], "width": _WIDTHS[at]}
        figure.add_trace(
            go.Scatter(
                x=curve.score,
                y=curve.confidence,
                mode="lines",
                line={**line, "color": faded(colour, 0.55 + 0.15 * (at + 1))},
                name=f"{share} ({curve.n_tp + curve.n_fp:,})",
                hovertemplate="Score %{x:.3f}, confidence %{y:.1%}<extra>%{fullData.name}</extra>",
            )
        )
        figure.add_traces(_densities(curve, line, colours, share, of_event))
    x_title, y_title = ("Stated probability", "How often") if of_event else ("Score", "Confidence")
    unit_axis(figure, "xaxis", x_title, anchor="y2", showgrid=True)
    unit_axis(figure, "yaxis", y_title, domain=[0.3, 1.0])
    figure.update_layout(
        yaxis2={
            "domain": [0.0, 0.22],
            "title_text": "Density",
            "nticks": 3,
            "rangemode": "tozero",
        },
        legend=LEGEND_BELOW,
        margin={"t": 14, "b": 136, "l": 52},
    )
    square(figure)
    return figure


def _densities(
    curve: ConfidenceCurve, line: dict[str, object], colours: Palette, share: str, of_event: bool
) -> list[go.Scatter]:
    """Densities of right and wrong rows times their numbers; the legend names those of all rows."""
    names = ("Rows with the event", "Rows without it") if of_event else ("Right", "Wrong")
    sides = (
        (curve.density_tp, curve.n_tp, names[0], colours.right),
        (curve.density_fp, curve.n_fp, names[1], colours.wrong),
    )
    return [
        go.Scatter(
            x=curve.score,
            y=density * n,
            mode="lines",
            line={**line, "color": colour},
            name=name,
            legendgroup=name,
            showlegend=share == SHARES[-1],
            yaxis="y2",
            hovertemplate=f"Score %{{x:.3f}}<br>%{{y:,.0f}} rows per unit<extra>{share}: {name}"
            "</extra>",
        )
        for density, n, name, colour in sides
        if n and np.isfinite(density).any()
    ]
