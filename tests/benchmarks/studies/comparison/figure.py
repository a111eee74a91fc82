"""Methods over many data sets: mean ranks, and which cannot be told apart (Demšar 2006)."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.chart import new_figure
from kdcal_core.charts.palette import palette
from kdcal_core.evaluation import CriticalDifference
from kdcal_core.text import escape_html, listed, p_text

_LINE = 28
_OUT = 0.35  # mean ranks between two bars


def critical_difference_figure(
    found: CriticalDifference, *, dark: bool, model: str | None = None
) -> go.Figure:
    """Mean rank of each method, best first; bars join methods that cannot be told apart.

    ``model`` is the name of the method to be drawn in the model's colour. The stroke at the
    foot is as long as the critical difference.
    """
    colours = palette(dark)
    order = np.argsort(found.mean_rank, kind="stable")
    line = {int(method): at for at, method in enumerate(order)}
    rank, n = found.mean_rank[order], len(order)
    names = [found.methods[at] for at in order]
    figure = new_figure(dark, height=_LINE * (n + 1) + 110)
    colour = [colours.model if name == model else colours.calibrated for name in names]
    figure.add_trace(
        go.Scatter(
            x=rank,
            y=np.arange(n),
            mode="markers",
            marker={
                "size": 10,
                "color": colour,
                "symbol": ["circle" if name == model else "diamond" for name in names],
            },
            text=[escape_html(name, limit=40) for name in names],
            hovertemplate="%{text}<br>mean rank %{x:.2f}<extra></extra>",
        )
    )
    edge = float(rank.max())
    for group in (one for one in found.groups if len(one) > 1):
        lines = [line[one] for one in group]
        edge += _OUT
        figure.add_trace(
            go.Scatter(
                x=[edge, edge],
                y=[min(lines) - 0.25, max(lines) + 0.25],
                mode="lines",
                line={"color": colours.muted, "width": 4},
                hovertemplate=f"{len(group)} methods that cannot be told apart<extra></extra>",
            )
        )
    start = float(rank.min())
    figure.add_trace(
        go.Scatter(
            x=[start, start + found.critical_difference],
            y=[n, n],
            mode="lines+text",
            line={"color": colours.truth, "width": 2},
            text=["", f" critical difference {found.critical_difference:.2f}"],
            textposition="middle right",
            hoverinfo="skip",
        )
    )
    figure.update_layout(
        showlegend=False,
        xaxis={
            "title_text": "Mean rank (1 is best on every data set)",
            "side": "top",
            "range": [start - _OUT, edge + _OUT],
        },
        yaxis={
            "tickvals": np.arange(n),
            "ticktext": [escape_html(name, limit=32) for name in names],
            "range": [n + 0.6, -0.6],
            "showgrid": False,
        },
        margin={"t": 62, "b": 12, "l": 8},
    )
    return figure


def ranks_words(found: CriticalDifference) -> str:
    """What ranks over data sets allow to say."""
    order = sorted(range(len(found.methods)), key=lambda at: float(found.mean_rank[at]))
    first = found.methods[order[0]]
    text = f"Friedman's test: p {p_text(found.friedman_p)}, over {found.n_datasets} data sets"
    if found.friedman_p >= 1.0 - found.level:
        return f"No method ranks better than another beyond chance ({text})."
    groups = [group for group in found.groups if order[0] in group]
    close = [found.methods[at] for group in groups for at in group if at != order[0]]
    lead = f"{first} ranks first, at {found.mean_rank[order[0]]:.2f} on average"
    if not close:
        return f"{lead}, beyond chance ({text})."
    return f"{lead}; {listed(close)} cannot be told apart from it by their ranks ({text})."
