"""Reliability diagrams, overall and class by class, with the words beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.charts.chart import (
    LEGEND_BELOW,
    Chart,
    beside_text,
    cut,
    new_figure,
    new_grid,
    panel,
    square,
    unit_axis,
)
from kdcal_core.charts.marks import boxes, identity, ribbon, tiers
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.diagnostics import beyond_noise, reliability_finding
from kdcal_core.diagnostics.reliability import Reliability, ReliabilityCurve
from kdcal_core.text import counted, in_sentence

_ONE_BY_ONE = 2  # rows of a bin
MAX_PANELS = 12  # more are no longer three screens together with what stands above them

_OF_CONFIDENCE = """
**Horizontal axis**: the stated confidence. **Vertical axis**: how often the model is right. On the
dashed diagonal the two agree. **Red** between line and diagonal: over-confident, the model is right
less often than it states. **Blue**: under-confident. Either is pale where the line's band holds the
diagonal, so that chance may explain it. "Says 0.91, sees 0.83" means: the stated
confidence is 0.91 on average, and the model is right in 83% of those rows, with a 95% interval.
"""
_OF_CLASS = """
**Horizontal axis**: the stated probability of the class. **Vertical axis**: how often a row is of
it. On the dashed diagonal the two agree. **Red** between line and diagonal: over-confident, the
class is rarer than stated. **Blue**: under-confident, it is more frequent. Either is pale where the
line's band holds the diagonal, so that chance may explain it. "Says 0.91, sees 0.83"
means: the stated probability is 0.91 on average, and 83% of those rows are of the class, with a 95%
interval.
"""
_HOW_DRAWN = r"""
**Points** are bins: the mean of what is stated and the observed share, with its exact
(Clopper-Pearson) 95% interval. Points from fewer than 100 rows are smaller, from fewer than 20
hollow.

**Grey boxes** are the consistency band. It contains the point of a perfectly calibrated model in
95% of all samples of this size, so a point inside its box is no evidence against the model.

**The line** is a kernel average with its 95% band, **the dotted steps** are the isotonic (CORP)
curve; neither depends on the bins. **The bars below** count the rows of each bin: green where the
prediction is right, or the row is of the class, and orange where not.

A bin is $(a, b]$, the first closed at 0 (Salamon et al., Eq. 5).
"""
BY_CLASS = """
One diagram per class, on one scale, with its number of rows. **Red** between line and diagonal:
over-confident. **Blue**: under-confident. Either is pale where chance may explain it. Points from
fewer than 20 rows are hollow. Grey boxes
contain the points of a perfectly calibrated model in 95% of all samples. Salamon et al. (sections
III and VI) make them by predicted class: only rows predicted as the class count, right ones against
wrong ones. For the question "One class against the rest" every row counts in every diagram.
"""


def reliability_chart(
    found: Reliability, class_names: Sequence[str], *, dark: bool = False, small: bool = False
) -> Chart:
    """The diagram of one question: its first curve, drawn by `reliability_figure`.

    Examples
    --------
    >>> from kdcal_core.diagnostics import confidence_reliability
    >>> wrong = [0] * 30 + [1] * 70
    >>> found = confidence_reliability([0.95] * 100, wrong, n_bins=10)
    >>> chart = reliability_chart(found, (), dark=False)
    >>> chart.finding
    'Over-confident above 0.9: says 0.95, sees 0.70 (0.60 to 0.79, 100 rows).'
    >>> chart.alt
    'Reliability diagram of 100 rows: says 0.95 sees 0.70 (100 rows).'
    """
    curve, sure = found.curves[0], len(found.curves) > 1 or beyond_noise(found)[0]
    of_class = found.kind == "class"
    return Chart(
        reliability_figure(curve, dark=dark, of_class=of_class, small=small, sure=sure),
        finding=reliability_finding(found, class_names=class_names or None),
        alt=reliability_alt(curve),
        how_to_read=(_OF_CLASS if of_class else _OF_CONFIDENCE) + _HOW_DRAWN,
        table=curve.table,
        name="reliability diagram",
    )


def reliability_by_class_chart(
    found: Reliability, class_names: Sequence[str], *, dark: bool = False
) -> Chart:
    """One small diagram per class, for the `MAX_PANELS` classes with most rows."""
    curves = largest_curves(found)
    x_title, y_title = reliability_titles(found.kind == "class")
    off = dict(zip(map(id, found.curves), beyond_noise(found), strict=True))
    sure = [off[id(curve)] for curve in curves]  # as the finding says
    figure = small_multiples(
        curves, class_names, dark=dark, x_title=x_title, y_title=y_title, sure=sure
    )
    return Chart(
        figure,
        finding=reliability_finding(found, class_names=class_names),
        alt=_alt_by_class(curves, class_names),
        how_to_read=BY_CLASS,
        table=lambda: pd.concat(
            [
                curve.table().assign(
                    label=class_names[curve.label] if curve.label is not None else ""
                )
                for curve in found.curves
            ],
            ignore_index=True,
        ),
        name="reliability by class",
        panels=cut(figure, dark),
    )


def largest_curves(found: Reliability) -> list[ReliabilityCurve]:
    """The curves that are drawn class by class, in the order of the classes."""
    some = [curve for curve in found.curves if curve.n]
    curves = sorted(some, key=lambda curve: -curve.n)[:MAX_PANELS]
    return sorted(curves, key=lambda curve: curve.label or 0)


_SEEN = 0.002  # narrower areas are just a line


def reliability_titles(of_class: bool) -> tuple[str, str]:
    """Titles of both axes, for the probability of one class or for the confidence."""
    if of_class:
        return "Stated probability", "How often it is the class"
    return "Stated confidence", "How often it is right"


def reliability_figure(
    curve: ReliabilityCurve,
    *,
    dark: bool,
    calibrated: ReliabilityCurve | None = None,
    calibrated_name: str = "Calibrated",
    calibrated_by: str = "calibrated",
    drawn_as: str = "model",
    of_class: bool = False,
    small: bool = False,
    sure: bool = True,
) -> go.Figure:
    """One reliability diagram: a square from 0 to 1 over the counts of both outcomes.

    The colour between curve and diagonal shows the fault: red if stated exceeds observed, blue if
    it is lower. Points are the bins, with Clopper-Pearson bars. The grey boxes are the consistency
    band, where a perfectly calibrated model's points would lie. The line is the smooth curve with
    its band, the dotted steps are the isotonic curve.

    Parameters
    ----------
    calibrated : ReliabilityCurve, optional
        The points of the calibrator ``calibrated_by``, a key of `method_style`, with its colour
        and symbol, named ``calibrated_name``.
    drawn_as : str
        Whose colour the curve itself has, a key of `method_style`.
    of_class : bool
        Whether the stated probability is that of one class, and not the confidence.
    small : bool
        Whether to draw a lower picture without a legend, to be placed beside text.
    sure : bool
        False where a test of all rows finds nothing beyond noise: then every fault is pale.

    Examples
    --------
    >>> from kdcal_core.diagnostics import reliability
    >>> proba = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> diagram = reliability(proba, [0, 1, 1, 0], kind="confidence", n_bins=5)
    >>> figure = reliability_figure(diagram.curves[0], dark=False)
    >>> figure.layout.yaxis.scaleanchor
    'x'
    """
    colours = palette(dark)
    own, _, _ = method_style(drawn_as, colours)
    x_title, y_title = reliability_titles(of_class)
    figure = new_figure(dark, height=552)
    figure.add_trace(_band(curve, colours))
    faults = [one.update(showlegend=False) for one in _faults(curve, colours, sure)]
    figure.add_traces(faults)
    figure.add_trace(identity(colours))
    figure.add_traces(_smooth(curve, own))
    figure.add_trace(_isotonic(curve, own))
    figure.add_traces(bin_points(curve, own, "Bins"))
    if calibrated is not None:
        colour, _, symbol = method_style(calibrated_by, colours)
        figure.add_traces(bin_points(calibrated, colour, calibrated_name, symbol=symbol))
    figure.add_traces(_outcomes(curve, colours, of_class))
    unit_axis(figure, "xaxis", x_title, anchor="y2")
    unit_axis(figure, "yaxis", y_title, domain=[0.21, 1.0])
    figure.update_layout(
        yaxis2={
            "domain": [0.0, 0.16],
            "title_text": "Rows",
            "nticks": 3,
            "rangemode": "tozero",
            "tickformat": ",.0f",
        },
        annotations=[
            _name_of(one, curve, colours, small=small)
            for one in faults
            if one.name in (_OVER, _UNDER)
        ],
        barmode="stack",
        bargap=0,
        legend=LEGEND_BELOW,
        margin={"t": 14, "b": 136, "l": 52},
    )
    if small:
        beside_text(figure, 330)
    else:
        figure.update_xaxes(title_font_size=15, tickfont_size=13)
        figure.update_yaxes(title_font_size=15, tickfont_size=13)
    if curve.count.max() <= _ONE_BY_ONE:  # in halves, 1 would stand there twice
        figure.update_layout(yaxis2_dtick=1)
    square(figure)
    return figure


def small_multiples(
    curves: Sequence[ReliabilityCurve],
    class_names: Sequence[str],
    *,
    dark: bool,
    x_title: str = "Stated confidence",
    y_title: str = "How often it is right",
    sure: Sequence[bool] | None = None,
) -> go.Figure:
    """One small reliability diagram per curve, all on one scale; ``label`` picks the class name.

    The colour between curve and diagonal shows the fault, as in :func:`reliability_figure`, with
    one ``sure`` for each curve.
    """
    colours = palette(dark)
    titles = [
        f"{class_names[curve.label] if curve.label is not None else 'All'} ({curve.n:,})"
        for curve in curves
    ]
    figure = new_grid(titles, dark, x_title=x_title, y_title=y_title)
    named: set[str] = set()  # each name is in the legend once
    for at, curve in enumerate(curves):
        axes = panel(at)
        drawn = [
            _band(curve, colours, **axes),
            *_faults(curve, colours, sure is None or sure[at], **axes),
            identity(colours, **axes),
            *_smooth(curve, colours.model, width=2.0, **axes),
            *bin_points(curve, colours.model, "Bins", 0.8, **axes),
        ]
        for one in drawn:
            if one.showlegend is not False:
                one.showlegend = one.name not in named
                named.add(one.name)
        figure.add_traces(drawn)
    return figure


def _band(curve: ReliabilityCurve, colours: Palette, **axes: Any) -> go.Scatter:
    return boxes(
        curve.edges[:-1],
        curve.edges[1:],
        curve.band_low,
        curve.band_high,
        faded(colours.truth, 0.09),
        name="Consistency band",
        **axes,
    )


_HOLLOW = 1.0  # width of a line below which its marks are hollow


def bin_points(
    curve: ReliabilityCurve,
    colour: str,
    name: str,
    scale: float = 1.0,
    symbol: str = "circle",
    **axes: Any,
) -> list[go.Scatter]:
    """The bins as points with interval bars, one trace per tier of row counts."""
    traces: list[go.Scatter] = []
    for inside, width, opacity in tiers(curve.count):
        hollow = width < _HOLLOW
        seen, low, high = curve.accuracy[inside], curve.low[inside], curve.high[inside]
        facts = np.column_stack(
            [curve.edges[:-1][inside], curve.edges[1:][inside], low, high, curve.count[inside]]
        )
        pale = faded(colour, opacity)
        traces.append(
            go.Scatter(
                x=curve.confidence[inside],
                y=seen,
                mode="markers",
                marker={
                    "color": pale,
                    "size": (4 + 2.5 * width) * scale,
                    "symbol": f"{symbol}-open" if hollow else symbol,
                    "line": {"width": 1.2 if hollow else 0},
                },
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": high - seen,
                    "arrayminus": seen - low,
                    "color": pale,
                    "thickness": width * scale,
                    "width": 0,
                },
                name=name,
                legendgroup=name,
                showlegend=not traces,
                customdata=facts,
                hovertemplate=(
                    "Says %{x:.1%}, sees %{y:.1%}<br>"
                    "interval %{customdata[2]:.1%} to %{customdata[3]:.1%}<br>"
                    "%{customdata[4]:,.0f} rows, bin %{customdata[0]:.2f} to %{customdata[1]:.2f}"
                    "<extra></extra>"
                ),
                **axes,
            )
        )
    return traces


def _smooth(
    curve: ReliabilityCurve, colour: str, width: float = 2.6, **axes: Any
) -> list[go.Scatter]:
    if not curve.smooth_x.size:
        return []
    band = ribbon(
        curve.smooth_x,
        curve.smooth_low,
        curve.smooth_high,
        faded(colour, 0.18),
        legendgroup="smooth",
        showlegend=False,
        **axes,
    )
    line = go.Scatter(
        x=curve.smooth_x,
        y=curve.smooth_y,
        mode="lines",
        line={"color": colour, "width": width},
        name="Smooth curve",
        legendgroup="smooth",
        hoverinfo="skip",
        **axes,
    )
    return [band, line]


def _isotonic(curve: ReliabilityCurve, colour: str) -> go.Scatter:
    return go.Scatter(
        x=curve.isotonic_x,
        y=curve.isotonic_y,
        mode="lines",
        line={"color": faded(colour, 0.8), "width": 1.2, "dash": "1px,3px"},
        name="Isotonic",
        hoverinfo="skip",
    )


_OVER, _UNDER = "Over-confident", "Under-confident"
_MAYBE_OVER, _MAYBE_UNDER = "Perhaps over-confident", "Perhaps under-confident"


def _faults(curve: ReliabilityCurve, colours: Palette, sure: bool, **axes: Any) -> list[go.Scatter]:
    """The area between smooth curve and diagonal, coloured by which of the two is higher.

    Pale where the curve's band holds the diagonal, or unless it is ``sure``: few rows make wide
    areas that say nothing.
    """
    if not curve.smooth_x.size:
        return []
    says, sees = curve.smooth_x, curve.smooth_y
    under, over = colours.diverging[0][1], colours.diverging[-1][1]
    unsure = _within_band(curve) if sure else np.ones(len(says), dtype=bool)
    traces = []
    for name, colour, opacity, edge in (
        (_MAYBE_OVER, over, 0.18, np.minimum(says, np.where(unsure, sees, says))),
        (_MAYBE_UNDER, under, 0.18, np.maximum(says, np.where(unsure, sees, says))),
        (_OVER, over, 0.45, np.minimum(says, np.where(unsure, says, sees))),
        (_UNDER, under, 0.45, np.maximum(says, np.where(unsure, says, sees))),
    ):
        apart = np.flatnonzero(edge != says)
        if not apart.size or np.max(np.abs(edge - says)) < _SEEN:
            continue
        span = slice(max(apart[0] - 1, 0), apart[-1] + 2)
        across = says[span]
        traces.append(
            go.Scatter(
                x=np.concatenate([across, across[::-1]]),
                y=np.concatenate([edge[span], across[::-1]]),
                mode="lines",
                line={"width": 0},
                fill="toself",
                fillcolor=faded(colour, opacity),
                name=name,
                showlegend=name in (_OVER, _UNDER),  # "How to read this" explains the pale ones
                hoverinfo="skip",
                **axes,
            )
        )
    return traces


def _within_band(curve: ReliabilityCurve) -> NDArray[np.bool_]:
    """Where the smooth curve's band holds the diagonal."""
    return (curve.smooth_low <= curve.smooth_x) & (curve.smooth_x <= curve.smooth_high)


_ROOM = 0.3  # height of an area that holds its name
_HALF_NAME, _LETTERS = 0.13, 0.08  # of the axes: half the width of a name, and its height


def _name_of(
    area: go.Scatter, curve: ReliabilityCurve, colours: Palette, *, small: bool
) -> dict[str, Any]:
    """The name of a coloured area: in it if it has room, otherwise in the corner on its side."""
    over = area.name == _OVER
    away = (curve.smooth_x - curve.smooth_y) * (1 if over else -1)
    away = np.where(_within_band(curve), 0.0, away)
    at = int(np.argmax(away))
    name = f"<b>{area.name}</b>"
    beside = np.abs(curve.smooth_x - curve.smooth_x[at]) <= _HALF_NAME
    if away[at] >= _ROOM * (1.4 if small else 1.0) and away[beside].min() > _LETTERS:
        return {
            "text": name,
            "x": float(np.clip(curve.smooth_x[at], *((0.24, 0.76) if small else (0.18, 0.82)))),
            "y": (curve.smooth_x[at] + curve.smooth_y[at]) / 2,
            "showarrow": False,
            "font": {"size": 17, "color": colours.text},
        }
    corner = ("right", "bottom", 0.99, 0.01) if over else ("left", "top", 0.01, 0.99)
    side, end, x, y = corner
    colour = colours.diverging[-1 if over else 0][1]
    return {
        "text": name,
        "x": x,
        "y": y,
        "xanchor": side,
        "yanchor": end,
        "showarrow": False,
        "font": {"size": 17, "color": colour},
    }


def _outcomes(curve: ReliabilityCurve, colours: Palette, of_class: bool) -> list[go.Bar]:
    """The rows of every bin: those where the event happened, and above them the others."""
    left, right = curve.edges[:-1], curve.edges[1:]
    happened = np.where(curve.count > 0, curve.accuracy * curve.count, 0.0)
    yes, no = ("It is the class", "It is not") if of_class else ("Right", "Wrong")
    return [
        go.Bar(
            x=(left + right) / 2,
            y=rows,
            width=right - left,
            marker={"color": colour, "line": {"width": 0}},
            name=name,
            yaxis="y2",
            customdata=np.column_stack([left, right, curve.count]),
            hovertemplate=(
                f"{name}: about %{{y:,.0f}} of %{{customdata[2]:,.0f}} rows that say "
                "%{customdata[0]:.2f} to %{customdata[1]:.2f}<extra></extra>"
            ),
        )
        for name, colour, rows in (
            (yes, colours.right, happened),
            (no, colours.wrong, curve.count - happened),
        )
    ]


def _alt_by_class(curves: Sequence[ReliabilityCurve], class_names: Sequence[str]) -> str:
    """Alternative text of the diagrams of several classes: at most five of them."""
    said = [
        f"Class {class_names[one.label] if one.label is not None else ''}: "
        f"{in_sentence(reliability_alt(one))}"
        for one in curves[:5]
    ]
    if more := len(curves) - len(said):
        said.append(f"Further classes drawn: {more:,}.")
    return " ".join(said)


def reliability_alt(curve: ReliabilityCurve) -> str:
    """Alternative text of a reliability diagram: its bins with rows, at most eight."""
    filled = np.flatnonzero(curve.count > 0)
    shown = filled[np.unique(np.linspace(0, len(filled) - 1, 8).astype(int))] if filled.size else []
    bins = ", ".join(
        f"says {curve.confidence[at]:.2f} sees {curve.accuracy[at]:.2f} "
        f"({counted(int(curve.count[at]), 'row')})"
        for at in shown
    )
    return f"Reliability diagram of {counted(curve.n, 'row')}: {bins}."
