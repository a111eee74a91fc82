"""Scores by label, panel by panel: training rows, held-out rows, and held-out rows calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.regression_panels import PanelTitle, new_panels
from kdcal_core.charts.template import panel
from kdcal_core.diagnostics.score_histograms import EDGES, FAR, ScoreSpread
from kdcal_core.text import counted

_TICKS = (0.01, 0.1, 0.5, 0.9, 0.99)

SCORES = r"""
How the scores of both labels are spread, on the scale of log odds (Durfee et al., Fig. 1). An
over-confident model parts its training rows far more cleanly than fresh rows: the two heaps stand
far apart on the left panel and run into each other on the next. Calibration pulls them back to
what fresh rows bear out. What lies beyond 0.1% and 99.9% stands in the outermost bars.
"""


@dataclass(frozen=True, eq=False)
class ScorePanel:
    """The scores of some rows; ``name`` is our own word for the rows."""

    name: str
    spread: ScoreSpread


def score_panels_chart(panels: Sequence[ScorePanel], *, dark: bool) -> Chart:
    """Scores of the rows of a class and of the others, panel by panel."""
    words = _score_words([one.name for one in panels], [one.spread.certain for one in panels])
    return Chart(
        score_panels_figure(panels, dark=dark, labels=("Other rows", "Rows of the class")),
        finding=words,
        alt=words,
        how_to_read=SCORES,
        table=lambda: score_panels_table(panels),
        name="scores by label",
    )


def score_panels_figure(
    panels: Sequence[ScorePanel], *, dark: bool, labels: tuple[str, str]
) -> go.Figure:
    """Histograms of scores by label on one scale of log odds (Durfee et al., Fig. 1).

    ``labels`` name the rows that are not of the class, and those that are: our own words.
    """
    colours = palette(dark)
    titles = [PanelTitle(one.name, counted(one.spread.n, "row")) for one in panels]
    odds = np.log(np.array(_TICKS) / (1.0 - np.array(_TICKS)))
    shares = [(one.spread.other, one.spread.mine) for one in panels]
    top = 1.06 * max((float(max(a.max(), b.max())) for a, b in shares), default=1.0)
    figure = new_panels(
        titles,
        dark,
        columns=3,
        height=230,
        x_title="Stated probability, on the scale of log odds",
        y_title="Share of the label's rows",
        x_axis={
            "range": [-FAR, FAR],
            "tickvals": odds,
            "ticktext": [f"{one:.0%}" for one in _TICKS],
        },
        y_axis={"range": [0, top], "tickformat": ".0%", "nticks": 5},
    )
    middle = (EDGES[:-1] + EDGES[1:]) / 2
    inks = (colours.classes[0], colours.classes[4])
    for at, both in enumerate(shares):
        for name, share, ink in zip(labels, both, inks, strict=True):
            figure.add_trace(
                go.Bar(
                    x=middle,
                    y=share,
                    width=np.diff(EDGES),
                    marker={"color": faded(ink, 0.5), "line": {"color": ink, "width": 0.6}},
                    name=name,
                    legendgroup=name,
                    showlegend=at == 0,
                    hovertemplate=f"%{{y:.1%}} of the rows<extra>{name}</extra>",
                    **panel(at),
                )
            )
    figure.update_layout(barmode="overlay")
    return figure


def score_panels_table(panels: Sequence[ScorePanel]) -> pd.DataFrame:
    """The histograms as offered for download."""
    edges = 1.0 / (1.0 + np.exp(-EDGES))
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "rows": one.name,
                    "bin_low": edges[:-1],
                    "bin_high": edges[1:],
                    "share_other": one.spread.other,
                    "share_class": one.spread.mine,
                }
            )
            for one in panels
        ],
        ignore_index=True,
    )


def _score_words(names: Sequence[str], shares: Sequence[tuple[float, float]]) -> str:
    """How many rows of each label are stated as nearly certain, panel by panel.

    ``shares`` are the shares of rows above 0.99 of the negatives (stated below 0.01) and of the
    positives.
    """
    parts = "; ".join(
        f"{name.lower()} {low:.0%} and {high:.0%}"
        for name, (low, high) in zip(names, shares, strict=True)
    )
    return (
        f"Rows of the other class stated below 1%, and rows of the class stated above 99%: {parts}."
    )
