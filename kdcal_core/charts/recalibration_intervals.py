"""Intervals of chosen rows, before and after, with their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.recalibration_measures import recalibrator_style
from kdcal_core.charts.template import new_figure
from kdcal_core.data.types import FloatArray
from kdcal_core.text import escape_html

MAX_ROWS = 40
_ROW_HEIGHT = 34
_APART = 0.18


INTERVALS = r"""
For each chosen row the central interval by the model (slate) and after recalibration (teal); the
tick is the median, the diamond the outcome. A few rows cannot show coverage: nineteen of twenty
right 95% intervals hold their outcome, on average over many rows.
"""


@dataclass(frozen=True, eq=False)
class RowIntervals:
    """Central intervals of some rows by one method, all (m,).

    ``key`` is "model" or a key of `RECALIBRATORS`; ``label`` is untrusted.
    """

    key: str
    label: str
    low: FloatArray
    middle: FloatArray
    high: FloatArray


def intervals_chart(
    names: Sequence[str],
    outcomes: FloatArray,
    methods: Sequence[RowIntervals],
    *,
    dark: bool,
    y_title: str,
    level: float,
    furthest_of: int | None = None,
) -> Chart:
    """Intervals of some rows; where they are the furthest out, of ``furthest_of`` rows in all."""
    if furthest_of is None:
        words = intervals_words(outcomes, methods, level)
    else:
        (first, *_) = methods
        missed = int(((outcomes < first.low) | (outcomes > first.high)).sum())
        words = (
            f"The {len(names):,} rows of {furthest_of:,} whose outcome lies furthest out: "
            f"{missed:,} outside the stated {level:.0%} interval."
        )
    return Chart(
        intervals_figure(names, outcomes, methods, dark=dark, y_title=y_title, level=level),
        finding=words,
        alt=words,
        how_to_read=INTERVALS,
        table=lambda: intervals_table(names, outcomes, methods),
        name="intervals drawn",
    )


def intervals_figure(
    names: Sequence[str],
    outcomes: FloatArray,
    methods: Sequence[RowIntervals],
    *,
    dark: bool,
    y_title: str,
    level: float = 0.95,
) -> go.Figure:
    """A line for each row: each method's interval with its median, and the outcome.

    The first 40 rows are drawn. Names and ``y_title``, the outcome's name, are untrusted.
    """
    colours = palette(dark)
    n = min(len(names), MAX_ROWS)
    figure = new_figure(dark, height=124 + _ROW_HEIGHT * max(n, 1))
    places = np.arange(n, dtype=np.float64)
    for at, shown in enumerate(methods):
        colour, _ = recalibrator_style(shown.key, colours)
        name = escape_html(shown.label, limit=40)
        low, middle, high = shown.low[:n], shown.middle[:n], shown.high[:n]
        inside = (outcomes[:n] >= low) & (outcomes[:n] <= high)
        figure.add_trace(
            go.Scatter(
                x=middle,
                y=places + _APART * (2 * at - len(methods) + 1),
                mode="markers",
                marker={"symbol": "line-ns-open", "size": 9, "color": colour, "line": {"width": 2}},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": high - middle,
                    "arrayminus": middle - low,
                    "color": faded(colour, 0.75),
                    "thickness": 4,
                    "width": 0,
                },
                name=f"{name}, {level:.0%}",
                customdata=np.column_stack([low, high]),
                text=["inside" if hit else "missed" for hit in inside],
                hovertemplate=(
                    "%{customdata[0]:,.4~g} to %{customdata[1]:,.4~g}, median %{x:,.4~g}<br>"
                    f"outcome %{{text}}<extra>{name}</extra>"
                ),
            )
        )
    figure.add_trace(
        go.Scatter(
            x=outcomes[:n],
            y=places,
            mode="markers",
            marker={"symbol": "diamond", "size": 8, "color": colours.truth},
            name="Outcome",
            hovertemplate="Outcome %{x:,.6~g}<extra></extra>",
        )
    )
    figure.update_layout(
        xaxis={"title_text": escape_html(y_title, limit=60), "nticks": 8},
        yaxis={
            "tickvals": places,
            "ticktext": [escape_html(name, limit=24) for name in names[:n]],
            "range": [n - 0.5, -0.5],
            "showgrid": False,
        },
        margin={"t": 56},
    )
    return figure


def intervals_table(
    names: Sequence[str],
    outcomes: FloatArray,
    methods: Sequence[RowIntervals],
) -> pd.DataFrame:
    """A line for each row with every method's interval, all rows."""
    table = pd.DataFrame({"row": list(names), "outcome": outcomes})
    for shown in methods:
        table[f"{shown.label}: low"] = shown.low
        table[f"{shown.label}: median"] = shown.middle
        table[f"{shown.label}: high"] = shown.high
    return table


def intervals_words(
    outcomes: FloatArray, methods: Sequence[RowIntervals], level: float = 0.95
) -> str:
    """How many of the chosen rows each method's intervals hold, and how wide they are.

    Examples
    --------
    >>> one = RowIntervals("model", "Model", np.zeros(2), np.ones(2), np.full(2, 2.0))
    >>> intervals_words(np.array([1.0, 5.0]), [one])
    'Of 2 chosen rows the 95% intervals hold: Model 1, mean width 2. Few rows say little about
     coverage; the whole set does.'
    """
    told = "; ".join(
        f"{shown.label} {int(((outcomes >= shown.low) & (outcomes <= shown.high)).sum()):,}, mean "
        f"width {np.mean(shown.high - shown.low):,.4g}"
        for shown in methods
    )
    return (
        f"Of {outcomes.size:,} chosen rows the {level:.0%} intervals hold: {told}. Few rows say "
        "little about coverage; the whole set does."
    )
