"""True against estimated mean and standard deviation, where the truth is known (003 Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart
from kdcal_core.charts.misses import drawn_rows
from kdcal_core.charts.palette import Palette, faded, palette
from kdcal_core.charts.recalibration_measures import recalibrator_style
from kdcal_core.charts.regression_panels import PanelTitle, new_panels
from kdcal_core.charts.template import panel, square
from kdcal_core.data.types import FloatArray, IntArray
from kdcal_core.text import escape_html

TRUTH = r"""
Each mark is a row: its true mean or standard deviation across, the estimate up (Torres et al., Fig.
2). Right estimates lie on the dashed diagonal. A global repair bends all rows alike; a local one
can move each. Shown only where the truth is known, as in simulations.
"""


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and standard deviation of each row's distribution, both (n,).

    ``key`` is "truth", "model" or a key of `RECALIBRATORS`; ``label`` is untrusted. ``std`` is
    None where it is not known, as where a table gives the true mean alone.
    """

    key: str
    label: str
    mean: FloatArray
    std: FloatArray | None = None


def truth_chart(
    truth: Moments,
    estimates: Sequence[Moments],
    distances: Sequence[float],
    *,
    dark: bool,
    rows: IntArray | None = None,
) -> Chart:
    """True against estimated moments.

    ``distances`` are the root mean squared distances of the estimated means from the true ones.
    """
    labels = [one.label for one in estimates]
    words = truth_words(list(zip(labels, distances, strict=True)))
    return Chart(
        truth_figure(truth, estimates, dark=dark, rows=rows),
        finding=words,
        alt=words,
        how_to_read=TRUTH,
        table=lambda: truth_table(truth, estimates, rows),
        name="true means",
    )


def truth_figure(
    truth: Moments,
    estimates: Sequence[Moments],
    *,
    dark: bool,
    rows: IntArray | None = None,
    seed: int = 0,
) -> go.Figure:
    """Two squares, mean and standard deviation: right estimates lie on the dashed diagonal.

    At most 5,000 marks: a uniform sample of rows, the same for every method.

    Parameters
    ----------
    rows : (m,) int array, optional
        The positions of these rows among all; None: they are all.
    """
    colours = palette(dark)
    quantities = ["mean"] + (["std"] if truth.std is not None else [])
    kept = drawn_rows(len(truth.mean), len(quantities) * max(len(estimates), 1), seed)
    numbers = kept if rows is None else rows[kept]
    titles = [PanelTitle({"mean": "Mean", "std": "Standard deviation"}[key]) for key in quantities]
    figure = new_panels(
        titles, dark, columns=2, height=340, x_title="True", y_title="Estimated", shared=""
    )
    for at, quantity in enumerate(quantities):
        axes = panel(at)
        exact = np.asarray(getattr(truth, quantity))[kept]
        figure.add_trace(_diagonal(exact, colours, first=at == 0, **axes))
        for shown in estimates:
            values = getattr(shown, quantity)
            if values is not None:
                figure.add_trace(
                    _points(exact, values[kept], numbers, shown, colours, first=at == 0, **axes)
                )
        square(figure, axes["xaxis"], axes["yaxis"])
    return figure


def truth_table(
    truth: Moments, estimates: Sequence[Moments], rows: IntArray | None = None
) -> pd.DataFrame:
    """A line for each row, counted from 1, with the true and every estimated moment."""
    numbers = (np.arange(len(truth.mean)) if rows is None else rows) + 1
    table = pd.DataFrame({"row": numbers})
    for shown in (truth, *estimates):
        table[f"{shown.label}: mean"] = shown.mean
        if shown.std is not None:
            table[f"{shown.label}: std"] = shown.std
    return table


def _points(
    exact: FloatArray,
    values: FloatArray,
    rows: Any,
    shown: Moments,
    colours: Palette,
    *,
    first: bool,
    **axes: Any,
) -> go.Scatter:
    colour, symbol = recalibrator_style(shown.key, colours)
    name = escape_html(shown.label, limit=40)
    return go.Scatter(
        x=exact,
        y=values,
        mode="markers",
        marker={"color": faded(colour, 0.4), "symbol": symbol, "size": 4.5},
        name=name,
        legendgroup=name,
        showlegend=first,
        customdata=rows + 1,
        hovertemplate=(
            f"Row %{{customdata:,}}: true %{{x:,.4~g}}, estimated %{{y:,.4~g}}<extra>{name}</extra>"
        ),
        **axes,
    )


def _diagonal(exact: FloatArray, colours: Palette, *, first: bool, **axes: Any) -> go.Scatter:
    ends = [float(exact.min()), float(exact.max())] if exact.size else [0.0, 1.0]
    return go.Scatter(
        x=ends,
        y=ends,
        mode="lines",
        line={"color": colours.truth, "width": 1.2, "dash": "4px,4px"},
        name="Right",
        legendgroup="right",
        showlegend=first,
        hoverinfo="skip",
        **axes,
    )


def truth_words(distances: Sequence[tuple[str, float]]) -> str:
    """Root mean squared distance of each method's mean from the true mean.

    Examples
    --------
    >>> truth_words([("Model", 2**0.5)])
    'Root mean squared distance from the true mean: Model 1.414.'
    """
    told = ", ".join(f"{label} {distance:,.4g}" for label, distance in distances)
    return f"Root mean squared distance from the true mean: {told}."
