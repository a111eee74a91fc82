"""The picture that comes with every calibrator: reliability diagrams side by side on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart
from kdcal_core.charts.comparison import method_name
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.parts import boxes, identity
from kdcal_core.charts.reliability import bin_points
from kdcal_core.charts.template import template
from kdcal_core.diagnostics import ReliabilityCurve
from kdcal_core.evaluation import Comparison
from kdcal_core.text import escape_html

_COLUMNS = 5
_TITLE, _SQUARE, _BETWEEN, _STRIP, _TICKS = 34, 172, 8, 36, 34
_HEIGHT = _TITLE + _SQUARE + _BETWEEN + _STRIP + _TICKS
_GAP = 0.03

PICTURES = """
No calibrator without its picture (Salamon et al., section XII). Each point is a bin: across the
stated confidence, up how often it was right, with its Clopper-Pearson interval; pale points have
few rows. The grey boxes are where a perfectly calibrated model's points would lie. The bars below
count the rows on the same scale in every panel: where they are thin, the picture says little, and a
calibrator that states one number for all rows looks perfect in its only bin.
"""


def method_reliability_chart(found: Comparison, order: Sequence[str], *, dark: bool) -> Chart:
    """The reliability diagram of every method, on one scale."""
    return Chart(
        method_reliability_figure(found, order, dark=dark),
        finding=_finding(found, order),
        alt=_alt(found, order),
        how_to_read=PICTURES,
        table=lambda: method_reliability_table(found, order),
        name="reliability of every method",
    )


def method_reliability_figure(found: Comparison, order: Sequence[str], *, dark: bool) -> go.Figure:
    """One small diagram a method, with the rows of each bin below it on the same axis.

    All panels have the same scales, those of the counts too. Points are the bins with
    Clopper-Pearson bars, pale where rows are few; grey boxes the consistency band.
    """
    colours = palette(dark)
    columns = min(_COLUMNS, max(len(order), 1))
    curves = [found.method(key).reliability.curves[0] for key in order]
    figure = go.Figure(layout=_layout(found, order, columns, _most(curves), dark))
    for at, (key, curve) in enumerate(zip(order, curves, strict=True)):
        colour = colours.model if key == found.reference else colours.calibrated
        x, y, below = _axes(at)
        figure.add_trace(
            boxes(
                curve.edges[:-1],
                curve.edges[1:],
                curve.band_low,
                curve.band_high,
                faded(colours.truth, 0.09),
                xaxis=x,
                yaxis=y,
            )
        )
        figure.add_trace(identity(colours, xaxis=x, yaxis=y))
        figure.add_traces(bin_points(curve, colour, "Bins", scale=0.6, xaxis=x, yaxis=y))
        figure.add_trace(_counts(curve, colour, xaxis=x, yaxis=below))
    return figure


def method_reliability_table(found: Comparison, order: Sequence[str]) -> pd.DataFrame:
    """The bins of every diagram, one below the other."""
    parts = []
    for key in order:
        table = found.method(key).reliability.curves[0].table()
        table.insert(0, "method", method_name(found, key))
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def _most(curves: Sequence[ReliabilityCurve]) -> float:
    return float(max(curve.count.max(initial=1) for curve in curves))


def _axes(at: int) -> tuple[str, str, str]:
    """The axis across, that of the square, and that of the counts below it."""

    def numbered(letter: str, place: int) -> str:
        return letter if place == 0 else f"{letter}{place + 1}"

    return numbered("x", at), numbered("y", 2 * at), numbered("y", 2 * at + 1)


def _layout(
    found: Comparison, order: Sequence[str], columns: int, most: float, dark: bool
) -> dict[str, Any]:
    colours = palette(dark)
    rows = -(-len(order) // columns)
    inside = rows * _HEIGHT
    width = (1 - _GAP * (columns - 1)) / columns
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + 40,
        "margin": {"l": 66, "r": 12, "t": 4, "b": 36},
        "showlegend": False,
        "annotations": [
            _writing("Stated confidence", colours, x=0.5, y=0, yshift=-34, yanchor="bottom"),
            _writing("How often it is right, and rows", colours, x=0, y=0.5, xshift=-64)
            | {"textangle": -90, "xanchor": "left", "yanchor": "middle"},
        ],
    }
    for at, key in enumerate(order):
        down, across = divmod(at, columns)
        left = across * (width + _GAP)
        top = down * _HEIGHT + _TITLE
        x, y, below = (one.replace(one[0], f"{one[0]}axis") for one in _axes(at))
        layout[x] = {
            "domain": [left, min(left + width, 1.0)],
            "anchor": _axes(at)[2],
            "range": [-0.03, 1.04],
            "tickvals": (0, 0.5, 1),
            "constrain": "domain",
        }
        layout[y] = {
            "domain": _domain(top, top + _SQUARE, inside),
            "anchor": _axes(at)[0],
            "range": [-0.03, 1.04],
            "tickvals": (0, 0.5, 1),
            "scaleanchor": _axes(at)[0],
            "scaleratio": 1,
            "constrain": "domain",
            "showticklabels": across == 0,
        }
        start = top + _SQUARE + _BETWEEN
        layout[below] = {
            "domain": _domain(start, start + _STRIP, inside),
            "anchor": _axes(at)[0],
            "range": [0, 1.05 * most],
            "tickvals": (0, most),
            "tickformat": ",.0f",
            "showticklabels": across == 0,
        }
        layout["annotations"].append(
            _writing(
                escape_html(method_name(found, key), limit=26),
                colours,
                x=left + width / 2,
                y=1 - top / inside,
                yshift=2,
                yanchor="bottom",
            )
        )
    return layout


def _domain(top: float, bottom: float, inside: float) -> list[float]:
    """Pixels from above as plotly's share from below."""
    return [max(1 - bottom / inside, 0.0), 1 - top / inside]


def _writing(text: str, colours: Palette, **place: Any) -> dict[str, Any]:
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "showarrow": False,
        "xanchor": "center",
        "font": {"size": 13, "color": colours.muted},
        **place,
    }


def _counts(curve: ReliabilityCurve, colour: str, **axes: str) -> go.Bar:
    left, right = curve.edges[:-1], curve.edges[1:]
    return go.Bar(
        x=(left + right) / 2,
        y=curve.count,
        width=right - left,
        marker={"color": faded(colour, 0.45), "line": {"color": colour, "width": 0.5}},
        customdata=np.column_stack([left, right]),
        hovertemplate=(
            "%{y:,} rows say %{customdata[0]:.2f} to %{customdata[1]:.2f}<extra></extra>"
        ),
        **axes,
    )


def _finding(found: Comparison, order: Sequence[str]) -> str:
    """How often the bins of each diagram leave the band that chance allows."""
    outside = []
    for key in order:
        (curve,) = found.method(key).reliability.curves
        some = curve.count > 0
        missed = (curve.accuracy < curve.band_low) | (curve.accuracy > curve.band_high)
        outside.append((key, int((missed & some).sum()), int(some.sum())))
    model = next(one for one in outside if one[0] == found.reference)
    fewest = min((one for one in outside if one is not model), key=lambda one: one[1] / one[2])
    return (
        f"Bins outside the band that chance allows: {model[1]} of {model[2]} for the model as "
        f"it is, {fewest[1]} of {fewest[2]} for {method_name(found, fewest[0])}. About one bin in "
        "twenty leaves it by chance alone."
    )


def _alt(found: Comparison, order: Sequence[str]) -> str:
    """Alternative text of the small diagrams."""
    names = ", ".join(method_name(found, key) for key in order)
    return f"Reliability diagrams on one scale with the rows of each bin below: {names}"
