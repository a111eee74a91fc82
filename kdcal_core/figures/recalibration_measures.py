"""Every measure of every method, before and after, with intervals and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.data import escape_html
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.diagnostics.regression.results import RegressionScores
from kdcal_core.figures.palette import Palette, faded, palette
from kdcal_core.figures.template import panel, template
from kdcal_core.regression import RECALIBRATORS

MEASURES = {
    "crps": "CRPS",
    "log_score": "Log score",
    "rmse": "RMSE",
    "mse": "MSE, outcomes",
    "mse_truth": "MSE, true mean",
    "coverage95": "Inside 95% intervals",
    "width95": "Width of 95% intervals",
    "smis95": "sMIS, 95%",
    "qce": "Quantile error",
    "wasserstein": "PIT to uniform",
    "kl": "KL from the truth",
}
_STATED = {"coverage95": 0.95}
_COLUMNS = 4
_LINE, _TITLE = 26, 52
_TOP, _BOTTOM = 58, 12
_GAP = 0.045
_SYMBOLS = ("square", "triangle-up", "pentagon", "star", "hexagon", "x")


@dataclass(frozen=True, eq=False)
class MeasuredRecalibration:
    """A line of the figure.

    Attributes
    ----------
    key : str
        "parent", "truth" or a key of `RECALIBRATORS`: it sets colour and symbol.
    label : str
        Untrusted.
    scores : RegressionScores
    differences : mapping of measure to Estimate
        Mean paired difference to the parent, row by row; below 0 is better where lower is.
    """

    key: str
    label: str
    scores: RegressionScores
    differences: Mapping[str, Estimate] = field(default_factory=dict)


def recalibrator_style(key: str, colours: Palette) -> tuple[str, str]:
    """Colour and symbol of a method, the same on every chart.

    Examples
    --------
    >>> recalibrator_style("parent", palette(dark=False))[1]
    'circle'
    """
    own = {
        "parent": (colours.parent, "circle"),
        "local": (colours.calibrated, "diamond"),
        "truth": (colours.truth, "line-ns-open"),
    }
    if key in own:
        return own[key]
    at = [name for name in RECALIBRATORS if name not in own].index(key)
    return colours.classes[at % len(colours.classes)], _SYMBOLS[at % len(_SYMBOLS)]


def recalibration_measures_figure(
    methods: Sequence[MeasuredRecalibration],
    *,
    dark: bool,
    measures: Sequence[str] | None = None,
) -> go.Figure:
    """One panel a measure, one line a method: the value as a dot, its interval as a stroke.

    The parent's interval runs through all lines as a pale band; a dashed line is the stated
    value, where there is one. ``measures`` are keys of `MEASURES`, all that are known by default.
    """
    shown = [
        key
        for key in (measures or MEASURES)
        if any(key in method.scores.rows for method in methods)
    ]
    figure = _panels(methods, [MEASURES[key] for key in shown], dark)
    colours = palette(dark)
    for at, key in enumerate(shown):
        estimates = [method.scores.rows.get(key) for method in methods]
        figure.add_trace(_dots(methods, estimates, colours, **panel(at)))
        if methods[0].key == "parent":
            _band(figure, estimates[0], colours, panel(at))
        if key in _STATED:
            _mark(figure, _STATED[key], colours, panel(at))
        if any(each is not None and each.percent for each in estimates):
            axis = panel(at)["xaxis"].replace("x", "xaxis")
            figure.update_layout({axis: {"tickformat": ".0%"}})
    return figure


def recalibration_differences_figure(
    methods: Sequence[MeasuredRecalibration],
    *,
    dark: bool,
    measures: Sequence[str] | None = None,
) -> go.Figure:
    """Paired differences to the parent: rows against the same rows, with their intervals.

    An interval without 0 shows a difference that is more than noise. The parent, at 0, is left
    out.
    """
    others = [method for method in methods if method.key != "parent"]
    shown = [
        key for key in (measures or MEASURES) if any(key in method.differences for method in others)
    ]
    figure = _panels(others, [f"{MEASURES[key]}: change" for key in shown], dark)
    colours = palette(dark)
    for at, key in enumerate(shown):
        estimates = [method.differences.get(key) for method in others]
        figure.add_trace(_dots(others, estimates, colours, **panel(at)))
        _mark(figure, 0.0, colours, panel(at))
    return figure


def recalibration_measures_table(methods: Sequence[MeasuredRecalibration]) -> pd.DataFrame:
    """A line for each method and measure, with its paired difference where there is one."""
    lines = []
    for method in methods:
        for key, estimate in method.scores.rows.items():
            change = method.differences.get(key)
            lines.append(
                {
                    "method": method.label,
                    "measure": key,
                    "name": estimate.name,
                    "value": estimate.value,
                    "low": estimate.low,
                    "high": estimate.high,
                    "rows": estimate.n,
                    "difference": np.nan if change is None else change.value,
                    "difference_low": np.nan if change is None else change.low,
                    "difference_high": np.nan if change is None else change.high,
                }
            )
    return pd.DataFrame(lines)


def _panels(
    methods: Sequence[MeasuredRecalibration], titles: Sequence[str], dark: bool
) -> go.Figure:
    """Empty panels whose lines are the methods, named beside the first of each row."""
    columns = min(_COLUMNS, max(len(titles), 1))
    rows = max(-(-len(titles) // columns), 1)
    height = _LINE * len(methods) + 10
    inside = rows * height + (rows - 1) * _TITLE
    width = (1 - _GAP * (columns - 1)) / columns
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + _TOP + _BOTTOM,
        "margin": {"l": 8, "r": 14, "t": _TOP, "b": _BOTTOM},
        "showlegend": False,
    }
    places = np.arange(len(methods))
    names = [escape_html(method.label, limit=32) for method in methods]
    for at, title in enumerate(titles):
        down, across = divmod(at, columns)
        left, top = across * (width + _GAP), 1 - down * (height + _TITLE) / inside
        axes = panel(at)
        layout[axes["xaxis"].replace("x", "xaxis")] = {
            "domain": [left, min(left + width, 1.0)],
            "anchor": axes["yaxis"],
            "side": "top",
            "title_text": title,
            "nticks": 4,
        }
        layout[axes["yaxis"].replace("y", "yaxis")] = {
            "domain": [max(top - height / inside, 0.0), top],
            "anchor": axes["xaxis"],
            "tickvals": places,
            "ticktext": names,
            "range": [len(methods) - 0.5, -0.5],
            "showticklabels": across == 0,
            "showgrid": False,
        }
    return go.Figure(layout=layout)


def _dots(
    methods: Sequence[MeasuredRecalibration],
    estimates: Sequence[Estimate | None],
    colours: Palette,
    **axes: Any,
) -> go.Scatter:
    """The methods of one panel; a method without the measure, or an infinite one, has no dot."""
    known = [
        (at, method, estimate)
        for at, (method, estimate) in enumerate(zip(methods, estimates, strict=True))
        if estimate is not None and np.isfinite(estimate.value)
    ]
    styles = [recalibrator_style(method.key, colours) for _, method, _ in known]
    return go.Scatter(
        x=[estimate.value for _, _, estimate in known],
        y=[at for at, _, _ in known],
        mode="markers",
        marker={
            "size": 9,
            "color": [colour for colour, _ in styles],
            "symbol": [symbol for _, symbol in styles],
            # a stroke has no face, only its line
            "line": {
                "width": [2 if symbol == "line-ns-open" else 0 for _, symbol in styles],
                "color": [colour for colour, _ in styles],
            },
        },
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [_reach(estimate.high - estimate.value) for _, _, estimate in known],
            "arrayminus": [_reach(estimate.value - estimate.low) for _, _, estimate in known],
            "color": colours.muted,
            "thickness": 1.4,
            "width": 0,
        },
        text=[
            f"{escape_html(method.label, limit=32)}<br>{estimate_text(estimate)}"
            f"<br>{estimate.n:,} rows"
            for _, method, estimate in known
        ],
        hovertemplate="%{text}<extra></extra>",
        **axes,
    )


def _reach(length: float) -> float:
    return max(length, 0.0) if np.isfinite(length) else 0.0


def _band(
    figure: go.Figure, parent: Estimate | None, colours: Palette, axes: dict[str, str]
) -> None:
    """The parent's interval, to compare with."""
    if parent is None or not np.isfinite([parent.low, parent.high]).all():
        return
    figure.add_shape(
        type="rect",
        xref=axes["xaxis"],
        yref=f"{axes['yaxis']} domain",
        x0=parent.low,
        x1=parent.high,
        y0=0,
        y1=1,
        fillcolor=faded(colours.parent, 0.16),
        line={"width": 0},
        layer="below",
    )


def _mark(figure: go.Figure, value: float, colours: Palette, axes: dict[str, str]) -> None:
    figure.add_shape(
        type="line",
        xref=axes["xaxis"],
        yref=f"{axes['yaxis']} domain",
        x0=value,
        x1=value,
        y0=0,
        y1=1,
        line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
        layer="below",
    )
