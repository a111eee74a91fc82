"""Charts of two audits, one over the other: drawn from the data that each audit kept beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import LEGEND_BELOW, Chart, new_figure, square, unit_axis
from kdcal_core.charts.marks import hovered, identity, ribbon
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.data.schema import FloatArray
from kdcal_core.text import escape_html

_OVERLAID = """
The same chart of both audits on the same axes: the later one in slate grey, the earlier one in the
colour of another version, dashed and with squares. Bars and bands are the 95% intervals that each
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
    ),
}


def can_be_overlaid(key: str) -> bool:
    """Whether charts of two audits with this key can be drawn on the same axes.

    Examples
    --------
    >>> can_be_overlaid("reliability"), can_be_overlaid("confusion")
    (True, False)
    """
    return key in _KINDS


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
    kind, colours = _KINDS[key], palette(dark)
    square_one = kind.ideal == "identity"
    figure = new_figure(dark, height=460 if square_one else 330)
    figure.add_trace(_ideal(kind, colours))
    for (label, _, table), style in ((earlier, "other_version"), (later, "model")):
        figure.add_traces(_drawn(kind, table.head(_MOST), label, style, colours))
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
        name=f"{key} of both",
    )


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
    less = _numbers(table, kind.less) if kind.less else 0.0
    x, y = _numbers(table, kind.x), _numbers(table, kind.y) - less
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
        error_y={
            "type": "data",
            "symmetric": False,
            "array": high - y,
            "arrayminus": y - low,
            "color": colour,
            "thickness": 1.2,
            "width": 0,
        },
    )
    return [line]


def _numbers(table: pd.DataFrame, column: str) -> FloatArray:
    return np.asarray(table[column].to_numpy(dtype=np.float64))
