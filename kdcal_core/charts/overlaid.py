"""Charts of two audits, one over the other: drawn from the data that each audit kept beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import (
    LEGEND_BELOW,
    Chart,
    cut,
    new_figure,
    new_grid,
    panel,
    square,
    unit_axis,
)
from kdcal_core.charts.marks import hovered, identity, ribbon
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.text import escape_html

_OVERLAID = """
The same chart of both audits on the same axes: the later one in slate grey, the earlier one in the
colour of another version, dashed or with squares. Bars and bands are the 95% intervals that each
audit kept; where they overlap, the two may differ by chance. Hollow points are of fewer than 20
rows. Audits of other rows differ by the rows too, not only by the model.

Histograms, consistency bands and further curves are in each audit's own chart.
"""
_FEW = 20  # rows below which a mark is hollow
_MOST = 2_000  # marks of a chart; ours have a hundred


@dataclass(frozen=True)
class _Kind:
    """How the data of a chart are drawn as one line: names of columns, titles of axes."""

    x: str
    y: str
    x_title: str
    y_title: str
    low: str = ""
    high: str = ""
    count: str = ""
    less: str = ""  # a column that is subtracted from y and its interval
    ideal: Literal["identity", "zero", "one", ""] = ""
    marks: str = "lines+markers"
    shape: str = "linear"
    last: str = ""  # a column whose last value ends the line
    only: tuple[str, str] = ("", "")  # a column, and its value in the rows that are drawn
    by: str = ""  # a column with a panel for each of its values


_Pair = tuple[tuple[str, pd.DataFrame, str], ...]
"""Of the earlier and of the later audit: its label, its data, and the style of its marks."""
_KINDS = {
    "reliability": _Kind(
        *("mean_confidence", "observed_frequency", "Stated probability", "How often it happened"),
        *("interval_low", "interval_high", "count"),
        ideal="identity",
    ),
    "net_benefit": _Kind(
        *("threshold", "net_benefit", "Threshold", "Net benefit per row"),
        *("net_benefit_low", "net_benefit_high"),
        ideal="zero",
        marks="lines",
    ),
    "coverage": _Kind(
        *("stated", "coverage", "Stated coverage", "Observed minus stated"),
        *("coverage_low", "coverage_high"),
        less="stated",
        ideal="zero",
    ),
    "quantiles": _Kind(
        *("level", "observed", "Stated quantile", "Share of outcomes at or below it"),
        *("interval_low", "interval_high"),
        ideal="identity",
    ),
    "pit_ecdf": _Kind(
        *("level", "difference", "PIT", "Observed minus stated share"), ideal="zero", marks="lines"
    ),
    "pit": _Kind(
        *("bin_low", "density", "PIT", "Relative density"),
        ideal="one",
        marks="lines",
        shape="hv",
        last="bin_high",
    ),
    "cost": _Kind(*("threshold", "cost", "Threshold", "Mean cost per row"), marks="lines"),
    "confidence": _Kind(
        *("score", "confidence", "Stated probability", "Probability by the curve"),
        ideal="identity",
        marks="lines",
    ),
    "far_away": _Kind(
        *("radius", "mean_max_confidence", "Distance from the centre", "Mean confidence"),
        marks="lines",
        only=("method", "Model"),
    ),
    "reliability_by_class": _Kind(
        *("mean_confidence", "observed_frequency", "Stated confidence", "How often it is right"),
        *("interval_low", "interval_high", "count"),
        ideal="identity",
        by="label",
    ),
}
_GROUPS = "groups"
_GROUP_KINDS = (
    ("group", "Observed minus stated"),
    ("rule", "Mean PIT value minus one half"),  # of a regression
)
_MOST_GROUPS, _MOST_PANELS = 60, 12
_APART = 0.16  # of a line, between its middle and a mark


def can_be_overlaid(key: str) -> bool:
    """Whether charts of two audits with this key can be drawn on the same axes.

    Examples
    --------
    >>> can_be_overlaid("reliability"), can_be_overlaid("confusion")
    (True, False)
    """
    return key in _KINDS or key == _GROUPS


def overlaid_chart(
    key: str,
    earlier: tuple[str, str, pd.DataFrame],
    later: tuple[str, str, pd.DataFrame],
    *,
    dark: bool = False,
) -> Chart:
    """Charts of the same kind of an earlier and of a later audit, one over the other.

    Parameters
    ----------
    key : str
        Of a chart for which `can_be_overlaid`.
    earlier, later : (str, str, DataFrame)
        The audit's label, the chart's finding and the chart's data. Untrusted.

    Raises
    ------
    KeyError, ValueError, TypeError
        If the data lack a column, or hold something else than numbers.
    """
    pair = tuple(
        (label, table.head(_MOST), style)
        for (label, _, table), style in ((earlier, "other_version"), (later, "model"))
    )
    panels = None
    if key == _GROUPS:
        figure = _forest(pair, dark)
    elif _KINDS[key].by:
        figure = _panels(_KINDS[key], pair, dark)
        panels = cut(figure, dark)
    else:
        figure = _one(_KINDS[key], pair, dark)
    both = (later, earlier)
    words = " ".join(f"{label}: {finding}" for label, finding, _ in both)
    return Chart(
        figure,
        finding=words,
        alt=f"Two audits on the same axes. {words}",
        how_to_read=_OVERLAID,
        table=lambda: pd.concat(
            [table.assign(audit=label) for label, _, table in both], ignore_index=True
        ),
        name=f"{key.replace('_', ' ')} of both",
        panels=panels,
    )


def _one(kind: _Kind, pair: _Pair, dark: bool) -> go.Figure:
    """Both lines in one plot."""
    colours, square_one = palette(dark), kind.ideal == "identity"
    figure = new_figure(dark, height=460 if square_one else 330)
    if kind.ideal:
        figure.add_trace(_ideal(kind, colours))
    for label, table, style in pair:
        figure.add_traces(_drawn(kind, table, label, style, colours))
    figure.update_layout(
        xaxis_title_text=kind.x_title,
        yaxis_title_text=kind.y_title,
        legend={**LEGEND_BELOW, "traceorder": "reversed"},
        margin={"t": 8, "b": 84, "l": 56},
    )
    if square_one:
        unit_axis(figure, "xaxis", kind.x_title)
        unit_axis(figure, "yaxis", kind.y_title)
        square(figure)
    return figure


def _panels(kind: _Kind, pair: _Pair, dark: bool) -> go.Figure:
    """Both lines in a panel for each class, those of the later audit with most rows."""
    colours, (_, (_, later, _)) = palette(dark), pair
    rows = later.groupby(kind.by)[kind.count].sum()
    most = rows[rows > 0].nlargest(_MOST_PANELS).index
    labels = [one for one in dict.fromkeys(later[kind.by]) if one in most]
    titles = [str(one) for one in labels]
    figure = new_grid(titles, dark, x_title=kind.x_title, y_title=kind.y_title)
    for at, one in enumerate(labels):
        figure.add_trace(identity(colours, **panel(at)).update(showlegend=False))
        for name, table, style in pair:
            mine = table[table[kind.by] == one]
            for line in _drawn(kind, mine, name, style, colours):
                # beside panels the legend is narrow: the moment of an audit in a second line
                line.update(name=line.name.replace(" (", "<br>("), showlegend=at == 0, **panel(at))
                figure.add_trace(line)
    return figure.update_layout(legend_traceorder="reversed")


def _forest(pair: _Pair, dark: bool) -> go.Figure:
    """The gap of every group, with the later audit's mark above the earlier one's."""
    colours, (_, earlier, _), (_, later, _) = palette(dark), *pair
    column, title = next(one for one in _GROUP_KINDS if one[0] in later)
    names = list(dict.fromkeys(map(str, (*later[column], *earlier[column]))))[:_MOST_GROUPS]
    figure = new_figure(dark, height=110 + 40 * len(names))
    for (label, table, style), aside in zip(pair, (-_APART, _APART), strict=True):
        colour, _, symbol = method_style(style, colours)
        shown = table[table[column].map(str).isin(names)]
        gap, low, high = (_numbers(shown, one) for one in ("gap", "gap_low", "gap_high"))
        at = [len(names) - 1 - names.index(str(one)) + aside for one in shown[column]]
        few = _numbers(shown, "rows") < _FEW
        name = escape_html(label, limit=60)
        dots = go.Scatter(
            x=gap,
            y=at,
            mode="markers",
            marker={
                "size": 9,
                "color": colour,
                "symbol": [f"{symbol}-open" if one else symbol for one in few],
            },
            error_x=_bars(gap, low, high, colour),
            name=name,
        )
        said = "{:.3g} ({:.3g} to {:.3g})"
        figure.add_trace(dots.update(hovered(said, gap, low, high, name=name)))
    figure.add_vline(x=0.0, line={"color": colours.truth, "width": 1, "dash": "4px,4px"})
    figure.update_layout(
        xaxis_title_text=title,
        yaxis={
            "tickvals": [*range(len(names))],
            "ticktext": [escape_html(one, limit=24) for one in reversed(names)],
            "range": [-0.6, len(names) - 0.4],
            "showgrid": False,
        },
        legend={**LEGEND_BELOW, "traceorder": "reversed"},
        margin={"t": 8, "b": 84},
    )
    return figure


def _ideal(kind: _Kind, colours: Palette) -> go.Scatter:
    if kind.ideal == "identity":
        return identity(colours).update(showlegend=False)
    height = 1.0 if kind.ideal == "one" else 0.0
    return go.Scatter(
        x=[0.0, 1.0],
        y=[height, height],
        mode="lines",
        line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
        hoverinfo="skip",
        showlegend=False,
    )


def _drawn(
    kind: _Kind, table: pd.DataFrame, label: str, style: str, colours: Palette
) -> list[go.Scatter]:
    """The line of an audit, with its intervals as a band or, of single points, as bars."""
    colour, dash, symbol = method_style(style, colours)
    name = escape_html(label, limit=60)
    where, value = kind.only
    if where:
        table = table[table[where] == value]
    less = _numbers(table, kind.less) if kind.less else 0.0
    x, y = _numbers(table, kind.x), _numbers(table, kind.y) - less
    if kind.last and len(x):
        x, y = np.append(x, _numbers(table, kind.last)[-1]), np.append(y, y[-1])
    line = go.Scatter(
        x=x,
        y=y,
        mode=kind.marks,
        line={"color": colour, "width": 2.0, "dash": dash, "shape": kind.shape},
        name=name,
        legendgroup=style,
    )
    if not kind.low:
        return [line.update(hovered("{:.3g}: {:.3g}", x, y, name=name))]
    low, high = _numbers(table, kind.low) - less, _numbers(table, kind.high) - less
    line.update(hovered("{:.3g}: {:.3g} ({:.3g} to {:.3g})", x, y, low, high, name=name))
    if kind.marks == "lines":
        band = ribbon(x, low, high, faded(colour, 0.15), legendgroup=style, showlegend=False)
        return [band, line]
    few = _numbers(table, kind.count) < _FEW if kind.count else np.zeros(len(x), dtype=bool)
    line.update(
        marker={"size": 8, "symbol": [f"{symbol}-open" if one else symbol for one in few]},
        error_y=_bars(y, low, high, colour),
    )
    return [line]


def _bars(value: FloatArray, low: FloatArray, high: FloatArray, colour: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": high - value,
        "arrayminus": value - low,
        "color": colour,
        "thickness": 1.2,
        "width": 0,
    }


def _numbers(table: pd.DataFrame, column: str) -> FloatArray:
    return np.asarray(table[column].to_numpy(dtype=np.float64))
