"""Reliability of stated quantiles: Torres et al., Eq. 1, drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.parts import identity, ribbon
from kdcal_core.charts.template import new_figure, square, unit_axis
from kdcal_core.diagnostics.regression.pit_curves import QuantileReliability
from kdcal_core.text import counted, escape_html

QUANTILES = r"""
**Across**: a stated quantile. **Up**: the share of outcomes at or below it (Torres et al., Eq. 1).
On the dashed diagonal both agree. Bars are exact (Clopper-Pearson) intervals of each point alone,
the grey band is where all points of right distributions stay at once. A curve above the diagonal
all along: predictions too high; below: too low. First above and then below it: the stated spread is
too narrow; first below and then above: too wide.
"""


def quantile_reliability_chart(
    before: QuantileReliability,
    *,
    dark: bool,
    after: QuantileReliability | None = None,
    after_name: str = "Recalibrated",
) -> Chart:
    """Stated against observed quantiles, of the model and after recalibration."""
    return Chart(
        quantile_reliability_figure(before, dark=dark, after=after, after_name=after_name),
        finding=quantile_words(before, after),
        alt=quantile_alt(before, after),
        how_to_read=QUANTILES,
        table=lambda: quantile_reliability_table(before, after),
        name="quantile reliability",
    )


def quantile_reliability_figure(
    before: QuantileReliability,
    *,
    dark: bool,
    after: QuantileReliability | None = None,
    after_name: str = "Recalibrated",
) -> go.Figure:
    """Share of outcomes at or below each stated quantile, a square from 0 to 1.

    Right quantiles lie on the dashed diagonal; the grey band is where they would fall by
    chance, the bars are exact intervals. ``after_name`` is untrusted.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=520)
    figure.add_trace(
        ribbon(
            before.levels,
            before.band_low,
            before.band_high,
            faded(colours.truth, 0.09),
            name="Consistency band",
        )
    )
    figure.add_trace(identity(colours).update(name="Right quantiles"))
    figure.add_trace(_curve(before, colours.model, "Model", "circle"))
    if after is not None:
        name = escape_html(after_name, limit=40)
        figure.add_trace(_curve(after, colours.calibrated, name, "diamond"))
    unit_axis(figure, "xaxis", "Stated quantile")
    unit_axis(figure, "yaxis", "Share of outcomes at or below it")
    figure.update_layout(margin={"t": 64}, legend={"y": 1.01})
    square(figure)
    return figure


def quantile_reliability_table(
    before: QuantileReliability, after: QuantileReliability | None = None
) -> pd.DataFrame:
    """A line for each stated quantile, and for before and after."""
    tables = [before.table().assign(distribution="model")]
    if after is not None:
        tables.append(after.table().assign(distribution="recalibrated"))
    return pd.concat(tables, ignore_index=True)


def _curve(curve: QuantileReliability, colour: str, name: str, symbol: str) -> go.Scatter:
    return go.Scatter(
        x=curve.levels,
        y=curve.observed,
        mode="lines+markers",
        line={"color": faded(colour, 0.6), "width": 1.4},
        marker={"color": colour, "symbol": symbol, "size": 7},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": curve.high - curve.observed,
            "arrayminus": curve.observed - curve.low,
            "color": colour,
            "thickness": 1.4,
            "width": 0,
        },
        name=f"{name} ({counted(curve.n, 'row')})",
        customdata=np.column_stack([curve.low, curve.high]),
        hovertemplate=(
            "Stated %{x:.1%}, observed %{y:.1%}<br>"
            "interval %{customdata[0]:.1%} to %{customdata[1]:.1%}<extra>%{fullData.name}</extra>"
        ),
    )


def quantile_words(before: QuantileReliability, after: QuantileReliability | None = None) -> str:
    """The largest distance between stated and observed quantiles, before and after."""
    worst = int(np.argmax(np.abs(before.observed - before.levels)))
    told = (
        f"Furthest off is the {before.levels[worst]:.0%} quantile: "
        f"{before.observed[worst]:.1%} of {before.n:,} outcomes lie at or below it "
        f"({before.low[worst]:.1%} to {before.high[worst]:.1%})"
    )
    if after is None:
        return f"{told}."
    gap = float(np.abs(after.observed - after.levels).max())
    return f"{told}. Recalibrated, the furthest is off by {100 * gap:.1f} points."


def quantile_alt(before: QuantileReliability, after: QuantileReliability | None = None) -> str:
    """Alternative text of the reliability of quantiles, at most nine levels."""
    at = np.unique(np.linspace(0, before.levels.size - 1, 9).astype(int))
    told = ", ".join(f"{before.levels[i]:.0%} sees {before.observed[i]:.1%}" for i in at)
    return f"Stated against observed quantiles: {told}. {quantile_words(before, after)}"
