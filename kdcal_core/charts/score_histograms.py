"""Histograms of scores: of right and wrong predictions, and of the rows of each label.

Scores by label have one panel each for training rows, held-out rows and calibrated held-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure, panel, unit_axis
from kdcal_core.charts.marks import PanelTitle, new_panels
from kdcal_core.charts.palette import faded, palette
from kdcal_core.diagnostics.score_histograms import EDGES, FAR, ScoreHistogram, ScoreSpread
from kdcal_core.text import counted

SCORES = """
How sure the model is when it is right (above) and when it is wrong (below). The two axes of counts
differ, because errors are rarer. Salamon et al. (section V) compute confidence from these two, as
the share of right rows among all rows at one score. Every row counts once, whatever its weight.
"""


def scores_chart(histogram: ScoreHistogram, *, dark: bool = False) -> Chart:
    """Scores of right and of wrong predictions."""
    words = histogram_words(histogram)
    return Chart(
        score_histogram_figure(histogram, dark=dark),
        finding=words,
        alt=words,
        how_to_read=SCORES,
        table=lambda: pd.DataFrame(
            {
                "bin_low": histogram.edges[:-1],
                "bin_high": histogram.edges[1:],
                "right": histogram.correct,
                "wrong": histogram.wrong,
            }
        ),
        name="scores",
    )


def score_histogram_figure(histogram: ScoreHistogram, *, dark: bool) -> go.Figure:
    """Scores of right predictions above and of wrong ones below, each on its own axis."""
    colours = palette(dark)
    figure = new_figure(dark, height=360)
    middle = (histogram.edges[:-1] + histogram.edges[1:]) / 2
    facts = np.column_stack([histogram.edges[:-1], histogram.edges[1:]])
    halves = (
        (histogram.correct, "Right", colours.right, "y", [0.54, 1.0]),
        (histogram.wrong, "Wrong", colours.wrong, "y2", [0.0, 0.46]),
    )
    for count, name, colour, axis, domain in halves:
        figure.add_trace(
            go.Bar(
                x=middle,
                y=count,
                width=np.diff(histogram.edges),
                marker={"color": colour, "line": {"width": 0}},
                name=f"{name}: {count.sum():,.0f} rows",
                xaxis="x",
                yaxis=axis,
                customdata=facts,
                hovertemplate=(
                    "Scores %{customdata[0]:.2f} to %{customdata[1]:.2f}<br>"
                    f"%{{y:,.0f}} rows<extra>{name}</extra>"
                ),
            )
        )
        figure.update_layout(
            {
                axis.replace("y", "yaxis"): {
                    "domain": domain,
                    "title_text": f"Rows {name.lower()}",
                    "nticks": 4,
                    "rangemode": "tozero",
                }
            }
        )
    unit_axis(figure, "xaxis", "Stated confidence", anchor="y2")
    return figure


def histogram_words(histogram: ScoreHistogram) -> str:
    """How many errors, and how many right predictions, the model is very sure of."""
    wrong, right = histogram.wrong.sum(), histogram.correct.sum()
    if wrong == 0:
        return f"All {right:,.0f} predictions are right: there are no errors."
    if right == 0:
        return f"All {wrong:,.0f} predictions are wrong."
    sure = histogram.edges[:-1] >= 0.9 - 1e-9
    return (
        f"{histogram.wrong[sure].sum():,.0f} of {wrong:,.0f} wrong predictions are stated with a "
        f"confidence above 90%, as are {histogram.correct[sure].sum():,.0f} of {right:,.0f} right "
        "ones."
    )


_TICKS = (0.01, 0.1, 0.5, 0.9, 0.99)
SCORES_BY_LABEL = r"""
The distribution of the scores of both labels, on the scale of log odds (Durfee et al., Fig. 1). An
over-confident model separates its training rows far better than fresh rows: the two histograms are
far apart in the left panel and overlap in the next. Calibration moves the scores back to what fresh
rows support. The outermost bars include everything beyond 0.1% and 99.9%.
"""


@dataclass(frozen=True, eq=False)
class ScorePanel:
    """The scores of some rows; ``name`` is our own name for the rows."""

    name: str
    spread: ScoreSpread


def score_panels_chart(panels: Sequence[ScorePanel], *, dark: bool = False) -> Chart:
    """Scores of the rows of a class and of the others, panel by panel."""
    words = _score_words([one.name for one in panels], [one.spread.certain for one in panels])
    return Chart(
        score_panels_figure(panels, dark=dark, labels=("Other rows", "Rows of the class")),
        finding=words,
        alt=words,
        how_to_read=SCORES_BY_LABEL,
        table=lambda: score_panels_table(panels),
        name="scores by label",
    )


def score_panels_figure(
    panels: Sequence[ScorePanel], *, dark: bool, labels: tuple[str, str]
) -> go.Figure:
    """Histograms of scores by label on one scale of log odds (Durfee et al., Fig. 1).

    ``labels`` name the rows that are not of the class, and those that are: our own text.
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
    """The histograms, for download."""
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
    """How many rows of each label have a nearly certain probability, panel by panel.

    ``shares`` are the share of negatives stated below 0.01 and that of positives stated above 0.99.
    """
    parts = "; ".join(
        f"{name.lower()} {low:.0%} and {high:.0%}"
        for name, (low, high) in zip(names, shares, strict=True)
    )
    return (
        f"Rows of the other class stated below 1%, and rows of the class stated above 99%: {parts}."
    )
