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

Consistency bands and further curves are in each audit's own chart.
"""
_RATES = """
Three shares of both audits at every threshold: the later audit's line in slate grey, the earlier
one's in the colour of another version, dashed, with their 95% bands.
"""
_SCORED = """
How sure either model is where it is right (above) and where it is wrong (below), as shares of all
rows of its audit, because the audits may have other numbers of rows. The later audit is drawn in
slate grey, the earlier one dashed in the colour of another version.
"""
_CELLS = """
Rows of the table are true classes, columns what the model said. In each cell the later audit's
number stands above the earlier one's: rows, or the share of all rows where the audits have other
numbers of them; empty where both have none. The more a cell is shaded, the more its share of all
rows has changed. Whether a change is more than chance, the differences above say, with their
intervals.
"""
_HOW = {"scores": _SCORED, "rates": _RATES, "confusion": _CELLS, "decisions": _CELLS}
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
    "rates": _Kind(
        *("threshold", "share", "Threshold", "Share"),
        *("share_low", "share_high"),
        marks="lines",
        by="measure",
    ),
}
_FORESTS = "groups", "regions"
_NAMED_BY = "group", "rule"
_TABLES = "confusion", "decisions"
_SCORES = "scores"
_MOST_GROUPS, _MOST_PANELS, _MOST_NUMBERS, _FEW_CLASSES = 60, 12, 10, 4
_STEPS = 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2  # between numbers of an axis
_SHADE = 0.35  # of the cell that changed most, so that its numbers stand out
_APART = 0.16  # of a line, between its middle and a mark


def can_be_overlaid(key: str) -> bool:
    """Whether charts of two audits with this key can be drawn on the same axes.

    Examples
    --------
    >>> can_be_overlaid("reliability"), can_be_overlaid("compare")
    (True, False)
    """
    return key in _KINDS or key in (*_FORESTS, *_TABLES, _SCORES)


def same_lines(earlier: pd.DataFrame, later: pd.DataFrame) -> bool:
    """Whether two searches found the same regions, by their rules.

    Examples
    --------
    >>> one = pd.DataFrame({"rule": ["x <= 1", "x > 1"]})
    >>> same_lines(one, one[::-1]), same_lines(one, one[:1])
    (True, False)
    """
    return set(earlier["rule"]) == set(later["rule"])


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
    if key in _FORESTS:
        figure = _forest(pair, dark, key)
    elif key == _SCORES:
        figure = _histograms(pair, dark)
    elif key in _TABLES:
        figure = _cells(pair, dark)
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
        how_to_read=_HOW.get(key, _OVERLAID),
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
    labels = list(dict.fromkeys(later[kind.by]))
    if kind.count:
        rows = later.groupby(kind.by)[kind.count].sum()
        most = rows[rows > 0].nlargest(_MOST_PANELS).index
        labels = [one for one in labels if one in most]
    labels = labels[:_MOST_PANELS]
    titles = [str(one) for one in labels]
    figure = new_grid(titles, dark, x_title=kind.x_title, y_title=kind.y_title)
    if not kind.ideal:  # x is no share of what y is
        last = max(float(_numbers(table, kind.x).max()) for _, table, _ in pair)
        step = next((one for one in _STEPS if last <= 4 * one), 0.25)
        ticks = np.arange(0.0, last + 1e-9, step).tolist()
        figure.update_xaxes(range=[0.0, last], tickvals=ticks, tickformat=".3~%")
        figure.update_yaxes(scaleanchor=None, tickformat=".0%")
    for at, one in enumerate(labels):
        if kind.ideal:
            figure.add_trace(identity(colours, **panel(at)).update(showlegend=False))
        for name, table, style in pair:
            mine = table[table[kind.by] == one]
            for line in _drawn(kind, mine, name, style, colours):
                # beside panels the legend is narrow: the moment of an audit in a second line
                if line.name:
                    line.update(name=line.name.replace(" (", "<br>("), showlegend=at == 0)
                figure.add_trace(line.update(panel(at)))
    return figure.update_layout(legend_traceorder="reversed")


def _histograms(pair: _Pair, dark: bool) -> go.Figure:
    """Right predictions above and wrong ones below, each as a share of an audit's rows."""
    colours, figure = palette(dark), new_figure(dark, height=400)
    halves = ("right", "y", [0.54, 1.0]), ("wrong", "y2", [0.0, 0.46])
    for half, axis, domain in halves:
        for label, table, style in pair:
            colour, dash, _ = method_style(style, colours)
            name = escape_html(label, limit=60)
            low, high, rows = (_numbers(table, one) for one in ("bin_low", "bin_high", half))
            n = float(_numbers(table, "right").sum() + _numbers(table, "wrong").sum())
            share = rows / max(n, 1.0)
            line = go.Scatter(
                x=np.append(low, high[-1:]),
                y=np.append(share, share[-1:]),
                mode="lines",
                line={"color": colour, "width": 2.0, "dash": dash, "shape": "hv"},
                name=name,
                legendgroup=style,
                showlegend=half == "right",
                xaxis="x",
                yaxis=axis,
            )
            ends = (np.append(one, one[-1:]) for one in (low, high, share, rows))
            said = "{:.2f} to {:.2f}: {:.1%} of the rows ({:,.0f})"
            figure.add_trace(line.update(hovered(said, *ends, name=name)))
        figure.update_layout(
            {
                axis.replace("y", "yaxis"): {
                    "domain": domain,
                    "title_text": f"{half.capitalize()}",
                    "nticks": 4,
                    "tickformat": ".2~%",
                    "rangemode": "tozero",
                }
            }
        )
    unit_axis(figure, "xaxis", "Stated confidence", anchor="y2")
    return figure.update_layout(
        legend={**LEGEND_BELOW, "traceorder": "reversed"}, margin={"t": 8, "b": 84, "l": 64}
    )


def _cells(pair: _Pair, dark: bool) -> go.Figure:
    """One square for both audits: in each cell the later number above the earlier one."""
    colours = palette(dark)
    (_, earlier, _), (_, later, _) = pair
    classes = [str(one) for one in later["true_class"]]
    counts = []
    for table in (earlier, later):
        whole = table.set_index(table["true_class"].map(str)).drop(columns="true_class")
        counts.append(whole.loc[classes, classes].to_numpy(dtype=np.float64))
    n = [max(float(one.sum()), 1.0) for one in counts]
    shares = [one / rows for one, rows in zip(counts, n, strict=True)]
    names = [escape_html(one, limit=16) for one in classes]
    where = np.arange(len(names))
    labels = [escape_html(label, limit=60) for label, _, _ in pair]
    changed = np.abs(shares[1] - shares[0])
    figure = new_figure(dark, height=max(420, min(190 + 44 * len(names), 900)))
    figure.add_trace(
        go.Heatmap(
            x=where,
            y=where,
            z=np.sqrt(changed),
            zmin=0,
            zmax=max(float(np.sqrt(changed).max()), 1e-9),
            colorscale=[[0.0, faded(colours.muted, 0.04)], [1.0, faded(colours.muted, _SHADE)]],
            hovertext=[
                [
                    f"true {true}, said {guess}<br>"
                    + "<br>".join(
                        f"{label}: {rows[up, across]:,.0f} ({share[up, across]:.1%})"
                        for label, rows, share in reversed(
                            list(zip(labels, counts, shares, strict=True))
                        )
                    )
                    for across, guess in enumerate(names)
                ]
                for up, true in enumerate(names)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            xgap=1,
            ygap=1,
            showscale=False,
        )
    )
    up, across = np.indices(changed.shape).reshape(2, -1)
    values, form = (counts, "{:,.0f}") if n[0] == n[1] else (shares, "{:.1%}")
    size = 14 if len(names) <= _FEW_CLASSES else 12
    any_rows = counts[0] + counts[1] > 0.0
    marks = ("Below", "bottom center", 0), ("Above", "top center", 1)
    for place, at, which in marks if len(names) <= _MOST_NUMBERS else ():
        figure.add_trace(
            go.Scatter(
                x=across,
                y=up,
                mode="text",
                text=[
                    form.format(one) if some else ""
                    for one, some in zip(values[which].ravel(), any_rows.ravel(), strict=True)
                ],
                textposition=at,
                textfont={"color": colours.text, "size": size, "weight": 700 if which else 400},
                name=f"{place}: {labels[which]}",
                hoverinfo="skip",
            )
        )
    ticks = {"tickvals": where, "ticktext": names, "showgrid": False}
    figure.update_layout(
        xaxis={**ticks, "title_text": "What the model says", "side": "top"},
        yaxis={**ticks, "title_text": "True class", "range": [len(names) - 0.5, -0.5]},
        legend={**LEGEND_BELOW, "traceorder": "reversed", "y": -0.04},
        margin={"t": 76, "b": 60},
    )
    square(figure)
    return figure


def _forest(pair: _Pair, dark: bool, key: str) -> go.Figure:
    """The gap of every group or region, with the later audit's mark above the earlier one's."""
    colours, (_, earlier, _), (_, later, _) = palette(dark), *pair
    column = next(one for one in _NAMED_BY if one in later)
    of_pit = "spread" in later or (key, column) == ("groups", "rule")
    title = "Mean PIT value minus one half" if of_pit else "Observed minus stated"
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
            "ticktext": [escape_html(one, limit=34) for one in reversed(names)],
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
