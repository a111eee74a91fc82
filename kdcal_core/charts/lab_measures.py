"""The simulation lab: every measure of every method with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, panel, template
from kdcal_core.charts.marks import BESIDE_TITLES, TITLE_LETTERS, TITLE_LINE, in_two_lines
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.evaluation import meanings
from kdcal_core.text import listed

_ROW_HEIGHT = 27
_ABOVE, _BELOW, _BETWEEN = 58, 8, 52
_GAP = 0.03  # between panels, as a share of the width
DOTS = """
A dot is the value, its bar the 95% interval, and the pale band the model's interval.
"""


@dataclass(frozen=True)
class MeasuredMethod:
    """A method's line in `interval_figure`: its style, its name, and one estimate per panel."""

    key: str
    label: str
    estimates: tuple[Estimate, ...]


def measures_chart(
    titles: Mapping[str, str],
    methods: Sequence[MeasuredMethod],
    *,
    lead: str,
    how_to_read: str,
    dark: bool = False,
    narrow: bool = False,
) -> Chart:
    """Every measure of every method; ``titles`` name the measures by key.

    Measures that are infinite for a method are in the table only. The words give the measure
    ``lead``, and ``how_to_read`` says which rows are measured.
    """
    finite = {
        title: at
        for at, title in enumerate(titles.values())
        if all(np.isfinite(one.estimates[at].value) for one in methods)
    }
    drawn = [
        MeasuredMethod(one.key, one.label, tuple(one.estimates[at] for at in finite.values()))
        for one in methods
    ]
    words = lead_words(titles, methods, lead)
    return Chart(
        interval_figure([*finite], drawn, dark=dark, narrow=narrow),
        finding=words,
        alt=f"Measures of each method with their intervals. {words}",
        how_to_read=DOTS + how_to_read + meanings(titles),
        table=lambda: measured_table(titles, methods),
        name="measures",
    )


def lead_words(titles: Mapping[str, str], methods: Sequence[MeasuredMethod], lead: str) -> str:
    """One measure of every method, and which measures are infinite.

    Examples
    --------
    >>> crps, kl = Estimate("", "", 3.0, 2.9, 3.1, 9), Estimate("", "", np.inf, np.inf, np.inf, 9)
    >>> one = MeasuredMethod("global", "Global", (crps, kl))
    >>> lead_words({"crps": "CRPS", "kl": "KL"}, [one], "crps")
    'CRPS: Global 3.00 (2.90 to 3.10). KL is infinite for Global: its samples leave out a range of \
outcomes that is possible.'
    """
    at = list(titles).index(lead)
    parts = [f"{one.label} {estimate_text(one.estimates[at], chance=False)}" for one in methods]
    said = f"{titles[lead]}: {', '.join(parts)}."
    for at, title in enumerate(titles.values()):
        names = [one.label for one in methods if not np.isfinite(one.estimates[at].value)]
        if names:
            said += (
                f" {title} is infinite for {listed(names)}: its samples leave out a range of "
                "outcomes that is possible."
            )
    return said


def measured_table(titles: Mapping[str, str], methods: Sequence[MeasuredMethod]) -> pd.DataFrame:
    """One row for each method and measure."""
    return pd.DataFrame(
        [
            {
                "method": method.label,
                "measure": title,
                "name": estimate.name,
                "value": estimate.value,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "interval": estimate.interval,
            }
            for method in methods
            for title, estimate in zip(titles.values(), method.estimates, strict=True)
        ]
    )


def interval_figure(
    measures: Sequence[str], methods: Sequence[MeasuredMethod], *, dark: bool, narrow: bool = False
) -> go.Figure:
    """One panel per measure, one line per method: the value as a dot, its interval as a bar.

    The model's interval is a pale band through all lines of a panel, for comparison. On a
    ``narrow`` page, a phone's, the panels stand one below the other.
    """
    colours = palette(dark)
    columns = 1 if narrow else len(measures)
    width = (1.0 - _GAP * (columns - 1)) / columns
    titles = [in_two_lines(one, TITLE_LETTERS // columns) for one in measures]
    further = TITLE_LINE * any("<br>" in one for one in titles)
    names = [method.label for method in methods]
    rows, high = len(measures) // columns, _ROW_HEIGHT * len(methods) + 8
    down = high + _BETWEEN + further
    inside = rows * down - _BETWEEN - further
    bands: list[dict[str, Any]] = []
    # set at once, because plotly checks the whole layout at every change
    layout: dict[str, Any] = {
        "template": template(dark),
        "height": inside + _ABOVE + further + _BELOW,
        "showlegend": False,
        "margin": {"l": 8, "r": BESIDE_TITLES, "t": _ABOVE + further, "b": _BELOW},
        "shapes": bands,
    }
    for at, title in enumerate(titles):
        axes = panel(at)
        left = at % columns * (width + _GAP)
        top = 1.0 - at // columns * down / inside
        layout[axes["xaxis"].replace("x", "xaxis")] = {
            "domain": [left, min(left + width, 1.0)],
            "anchor": axes["yaxis"],
            "side": "top",
            "title_text": title,
            "nticks": 4,
        }
        layout[axes["yaxis"].replace("y", "yaxis")] = {
            "domain": [max(top - high / inside, 0.0), top],
            "anchor": axes["xaxis"],
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "showticklabels": at % columns == 0,
            "showgrid": False,
        }
        bands += [
            _models_band(method.estimates[at], axes, colours)
            for method in methods
            if method.key == "model"
        ]
    dots = [_dots(methods, at, colours) for at in range(len(measures))]
    return go.Figure(data=dots, layout=layout)


def _dots(methods: Sequence[MeasuredMethod], at: int, colours: Palette) -> go.Scatter:
    """The methods of one panel."""
    styles = [method_style(method.key, colours) for method in methods]
    estimates = [method.estimates[at] for method in methods]
    return go.Scatter(
        x=[estimate.value for estimate in estimates],
        y=[method.label for method in methods],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [max(each.high - each.value, 0.0) for each in estimates],
            "arrayminus": [max(each.value - each.low, 0.0) for each in estimates],
            "color": colours.muted,
            "thickness": 1.4,
            "width": 0,
        },
        mode="markers",
        marker={
            "size": 9,
            "color": [colour for colour, _, _ in styles],
            "symbol": [symbol for _, _, symbol in styles],
        },
        text=[estimate_text(estimate) for estimate in estimates],
        hovertemplate="%{y}<br>%{text}<extra></extra>",
        **panel(at),
    )


def _models_band(estimate: Estimate, axes: dict[str, str], colours: Palette) -> dict[str, Any]:
    return {
        "type": "rect",
        "xref": axes["xaxis"],
        "yref": f"{axes['yaxis']} domain",
        "x0": estimate.low,
        "x1": estimate.high,
        "y0": 0,
        "y1": 1,
        "fillcolor": faded(colours.model, 0.16),
        "line": {"width": 0},
        "layer": "below",
    }
