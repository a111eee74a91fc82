"""What each partition does to the AUC: relative lift with its paired interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.data import escape_html
from kdcal_core.diagnostics import PairedAuc
from kdcal_core.figures.palette import palette
from kdcal_core.figures.template import new_figure

_LINE = 40


def auc_lift_figure(lines: Sequence[tuple[str, PairedAuc]], *, dark: bool) -> go.Figure:
    """One line a way to calibrate: (b - a) / a with its interval (paper 004 Fig. 3, decision D108).

    At 0 the order of the rows is as it was. Titles are untrusted.
    """
    colours = palette(dark)
    where = np.arange(len(lines))
    value, low, high = (
        np.array([getattr(pair.lift, part) for _, pair in lines])
        for part in ("value", "low", "high")
    )
    figure = new_figure(dark, height=96 + _LINE * len(lines))
    figure.add_vline(x=0, line={"color": colours.truth, "width": 1, "dash": "4px,4px"})
    figure.add_trace(
        go.Scatter(
            x=value,
            y=where,
            mode="markers",
            marker={"color": colours.calibrated, "size": 10},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": high - value,
                "arrayminus": value - low,
                "color": colours.calibrated,
                "thickness": 2,
                "width": 0,
            },
            customdata=[
                [pair.a.value, pair.b.value, pair.lift.low, pair.lift.high] for _, pair in lines
            ],
            hovertemplate=(
                "AUC %{customdata[0]:.4f} before, %{customdata[1]:.4f} after<br>"
                "lift %{x:.2%} (%{customdata[2]:.2%} to %{customdata[3]:.2%})<extra></extra>"
            ),
            showlegend=False,
        )
    )
    span = float(max(high.max(initial=0.0) - min(low.min(initial=0.0), 0.0), 0.002))
    figure.update_layout(
        xaxis={
            "title_text": "Relative lift of the AUC",
            "tickformat": ".1%" if span > 0.005 else ".2%",
            "range": [
                min(low.min(initial=0.0), 0.0) - 0.06 * span,
                max(high.max(initial=0.0), 0.0) + 0.06 * span,
            ],
            "nticks": 8,
        },
        yaxis={
            "tickvals": where,
            "ticktext": [escape_html(title, limit=40) for title, _ in lines],
            "range": [len(lines) - 0.5, -0.5],
            "showgrid": False,
        },
        margin={"t": 16},
    )
    return figure


def auc_lift_table(lines: Sequence[tuple[str, PairedAuc]]) -> pd.DataFrame:
    """The lifts as offered for download."""
    return pd.DataFrame(
        [
            {
                "calibrated_by": title,
                "auc_before": pair.a.value,
                "auc_after": pair.b.value,
                "lift": pair.lift.value,
                "lift_low": pair.lift.low,
                "lift_high": pair.lift.high,
                "difference": pair.difference.value,
                "p_value": pair.p_value,
            }
            for title, pair in lines
        ]
    )
