"""What each way to calibrate did to the AUROC and to the log loss: changes with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.palette import palette
from kdcal_core.charts.template import new_figure
from kdcal_core.diagnostics import Estimate, PairedAuc
from kdcal_core.text import escape_html

_LINE = 40


def auc_lift_figure(lines: Sequence[tuple[str, PairedAuc]], *, dark: bool) -> go.Figure:
    """One line a way to calibrate: (b - a) / a with its interval (paper 004 Fig. 3, decision D108).

    At 0 the order of the rows is as it was. Titles are untrusted.
    """
    hover = [
        f"AUROC {pair.a.value:.4f} before, {pair.b.value:.4f} after<br>lift {pair.lift.value:.2%} "
        f"({pair.lift.low:.2%} to {pair.lift.high:.2%})"
        for _, pair in lines
    ]
    lifts = [(title, pair.lift) for title, pair in lines]
    figure, span = _changes(lifts, hover, dark, least=0.002)
    figure.update_xaxes(
        title_text="Relative lift of the AUROC", tickformat=".1%" if span > 0.005 else ".2%"
    )
    return figure


def loss_change_figure(lines: Sequence[tuple[str, Estimate]], *, dark: bool) -> go.Figure:
    """One line a way to calibrate: its log loss minus the model's, row by row, with the interval.

    Below 0 it is better than the model. Titles are untrusted.
    """
    hover = [f"{one.value:.4f} ({one.low:.4f} to {one.high:.4f})" for _, one in lines]
    figure, _ = _changes(lines, hover, dark, least=0.001)
    figure.update_xaxes(title_text="Change of the log loss")
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


def loss_change_table(lines: Sequence[tuple[str, Estimate]]) -> pd.DataFrame:
    """The changes as offered for download."""
    return pd.DataFrame(
        [
            {"calibrated_by": title, "change": one.value, "low": one.low, "high": one.high}
            for title, one in lines
        ]
    )


def _changes(
    lines: Sequence[tuple[str, Estimate]], hover: Sequence[str], dark: bool, *, least: float
) -> tuple[go.Figure, float]:
    """A mark a line with its interval, and the span of the axis, which is ``least`` or more."""
    colours = palette(dark)
    where = np.arange(len(lines))
    value, low, high = (
        np.array([getattr(one, part) for _, one in lines]) for part in ("value", "low", "high")
    )
    start, end = low.min(initial=0.0), high.max(initial=0.0)
    span = float(max(end - start, least))
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
            hovertext=hover,
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )
    figure.update_layout(
        xaxis={"range": [start - 0.06 * span, end + 0.06 * span], "nticks": 8},
        yaxis={
            "tickvals": where,
            "ticktext": [escape_html(title, limit=40) for title, _ in lines],
            "range": [len(lines) - 0.5, -0.5],
            "showgrid": False,
        },
        margin={"t": 16},
    )
    return figure, span
