"""Confusion tables: rows by true and predicted class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from kdcal_core.charts.chart import Chart, new_figure, square
from kdcal_core.charts.palette import Palette, ink_on, palette
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import confusion_finding
from kdcal_core.diagnostics.by_predicted_class import Confusion
from kdcal_core.text import escape_html

ConfusionTable = Literal["joint", "confusion", "reverse"]

MAX_CELL_TEXT = 15
MAX_TICKS = 25

CONFUSION = r"""
Rows of the table are true classes, columns predicted ones (Salamon et al., Fig. 1).

* **Counts**: the number of rows, or the sum of their weights where they have any; coloured by the
  square root, so that rare errors are visible.
* **By true class**: each row adds up to 1. The diagonal is the share of a class that is found.
* **By predicted class** (reverse confusion): each column adds up to 1. The diagonal is
  $\text{Conf}_1$, the probability that a prediction of this class is right (Eq. 1). A user of the
  prediction needs this one, and it is often the lower of the two.
"""
_CONFUSION_NAMES: dict[ConfusionTable, str] = {
    "joint": "confusion table",
    "confusion": "confusion by true class",
    "reverse": "confusion by predicted class",
}


def confusion_chart(
    confusion: Confusion, which: ConfusionTable, class_names: Sequence[str], *, dark: bool = False
) -> Chart:
    """One of the three tables of true and predicted classes."""
    return Chart(
        confusion_figure(confusion, which, class_names, dark=dark),
        finding=confusion_finding(confusion, class_names),
        alt=confusion_alt(confusion, which, class_names),
        how_to_read=CONFUSION,
        table=lambda: pd.DataFrame(getattr(confusion, which), columns=list(class_names)).assign(
            true_class=list(class_names)
        ),
        name=_CONFUSION_NAMES[which],
    )


_SHARE = "{:.2f}"
_READING = {
    "joint": "{:,.0f} rows",
    "confusion": "{:.1%} of the true class",
    "reverse": "{:.1%} of the predicted class",
}


def confusion_figure(
    confusion: Confusion,
    which: ConfusionTable,
    class_names: Sequence[str],
    *,
    dark: bool,
) -> go.Figure:
    """One of the three tables of Salamon et al., Fig. 1, as a heat table; rows true, columns
    predicted.

    Counts are coloured by their square root, so that errors are visible beside the diagonal. With
    up to 15 classes the cells contain numbers; with more, hovering shows them.
    """
    values = getattr(confusion, which)
    names = [escape_html(name, limit=16) for name in class_names]
    where = np.arange(len(names))
    colours = palette(dark)
    cells = "{:,.0f}" if which == "joint" else _SHARE
    figure = new_figure(dark, height=max(340, min(130 + 34 * len(names), 760)))
    figure.add_trace(
        go.Heatmap(
            x=where,
            y=where,
            z=np.sqrt(values),
            zmin=0,
            zmax=_largest(values) ** 0.5 if which == "joint" else 1,
            colorscale=[list(stop) for stop in colours.sequential],
            hovertext=[
                [
                    f"true {true}, predicted {guess}<br>{_cell(value, _READING[which])}"
                    for guess, value in zip(names, row, strict=True)
                ]
                for true, row in zip(names, values, strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
            xgap=1,
            ygap=1,
            showscale=False,
        )
    )
    if len(names) <= MAX_CELL_TEXT:
        figure.add_trace(_numbers(values, cells, colours))
    step = -(-len(names) // MAX_TICKS)
    ticks: dict[str, Any] = {
        "tickvals": where[::step],
        "ticktext": names[::step],
        "showgrid": False,
    }
    figure.update_layout(
        xaxis={**ticks, "title_text": "Predicted class", "side": "top"},
        yaxis={**ticks, "title_text": "True class", "range": [len(names) - 0.5, -0.5]},
        margin={"t": 76, "b": 12},
    )
    square(figure)
    return figure


def _numbers(values: FloatArray, form: str, colours: Palette) -> go.Scatter:
    """The cells' numbers, each in the ink that stands out from its cell."""
    shade = np.sqrt(np.nan_to_num(values if form == _SHARE else values / _largest(values))).ravel()
    cells = sample_colorscale([list(stop) for stop in colours.sequential], np.clip(shade, 0, 1))
    up, across = np.indices(values.shape).reshape(2, -1)
    return go.Scatter(
        x=across,
        y=up,
        mode="text",
        text=[_cell(value, form) for value in values.ravel()],
        textfont={"color": [ink_on(one) for one in cells], "size": 12},
        hoverinfo="skip",
        showlegend=False,
    )


def _largest(values: FloatArray) -> float:
    """The value of the strongest colour; 1 where there is none."""
    return float(np.nanmax(values)) or 1.0


def _cell(value: float, form: str) -> str:
    """A cell's number; empty for 0, so that errors stand out."""
    return form.format(value) if value > 0 else ""


def confusion_alt(confusion: Confusion, which: str, class_names: Sequence[str]) -> str:
    """Alternative text of one of the three tables."""
    values = getattr(confusion, which)
    form = "{:,.0f}" if which == "joint" else "{:.2f}"
    diagonal = ", ".join(
        f"{name} {form.format(value)}"
        for name, value in zip(class_names[:10], np.diag(values), strict=False)
    )
    title = {
        "joint": "Row counts by true and predicted class",
        "confusion": "Shares of each true class by predicted class",
        "reverse": "Shares of each predicted class by true class",
    }[which]
    return f"{title}. On the diagonal: {diagonal}."
