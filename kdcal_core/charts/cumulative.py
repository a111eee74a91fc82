"""Cumulative differences: stated minus seen, added up by stated probability, without bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from kdcal_core.charts.chart import LEGEND_BELOW, Chart, new_figure
from kdcal_core.charts.marks import hovered
from kdcal_core.charts.palette import faded, palette
from kdcal_core.diagnostics.cumulative_differences import CumulativeDifferences
from kdcal_core.statistics import normal_quantile
from kdcal_core.text import counted, number_text, p_text

CUMULATIVE = r"""
The rows in the order of their stated probability, from left to right. **Up** goes stated minus
seen, added up over the rows so far and divided by the number of all. Where the curve **rises** the
stated probabilities are too high, where it **falls** too low; where it is flat they are right. The
slope of a stretch is its average fault, so nothing depends on bins.

**The grey band** contains the curve of a calibrated model at each place in 95% of all samples of
this size. **The thick part** joins the lowest and the highest point. Their distance is Kuiper's
statistic (ECCE-R of Arrieta-Ibarra et al., JMLR 2022): no stretch of stated probabilities has rows
whose faults add up to more. Its p value says how often a calibrated model would show as large a
distance. Rows with equal stated probabilities are one step.
"""
_HEIGHT = 380
_WITHIN = normal_quantile(0.95)
_CHANCE = 0.05


def cumulative_chart(
    found: CumulativeDifferences, class_names: Sequence[str], *, dark: bool = False
) -> Chart:
    """The curve of cumulative differences with its band."""
    words = cumulative_words(found, class_names)
    return Chart(
        _figure(found, dark),
        finding=words,
        alt=f"A curve over {counted(found.n, 'row')} by stated probability. {words}",
        how_to_read=CUMULATIVE,
        table=found.table,
        name="cumulative differences",
    )


def cumulative_words(found: CumulativeDifferences, class_names: Sequence[str]) -> str:
    """Where the stated probabilities differ most from what is seen, and whether beyond chance.

    Examples
    --------
    >>> from kdcal_core.diagnostics import cumulative_differences
    >>> proba = np.tile([[0.3, 0.7], [0.1, 0.9]], (500, 1))
    >>> y = np.tile([1, 1, 0, 1], 250)  # half of the rows at 0.7, all of those at 0.9
    >>> cumulative_words(cumulative_differences(proba, y), ())[:75]
    'At 0.70 the stated probabilities are too high by 20.0 points on average, in'
    """
    of = "" if found.label is None else f" of class {class_names[found.label]}"
    first, last = found.steepest
    share = float(found.share[last] - found.share[first])
    chance = (
        f"a calibrated model would show {_points(found.expected)} on average (Kuiper's p value "
        f"{p_text(found.p_value)})"
    )
    if found.p_value > _CHANCE or not share > 0.0:
        return (
            f"No stretch of stated probabilities{of} is off beyond chance: the largest cumulative "
            f"difference is {_points(found.range)}; {chance}."
        )
    rise = float(found.difference[last] - found.difference[first])
    # the stretch begins after its first point, whose score is the last one before it
    low, high = (number_text(float(found.score[at]), 0.2) for at in (first + 1, last))
    where = f"At {low}" if low == high else f"From {low} to {high}"
    return (
        f"{where} the stated probabilities{of} are too "
        f"{'high' if rise > 0 else 'low'} by {_points(abs(rise) / share)} on average, in "
        f"{share:.0%} of the rows. Over all rows that is {_points(abs(rise))}; {chance}."
    )


def _points(value: float) -> str:
    """A difference of probabilities in percentage points."""
    return f"{number_text(100.0 * value, 1.0)} points"


def _figure(found: CumulativeDifferences, dark: bool) -> go.Figure:
    colours = palette(dark)
    figure = new_figure(dark, height=_HEIGHT)
    reach = 100.0 * _WITHIN * found.spread
    edge = {"width": 0.5, "color": colours.muted}
    common = {"x": 100.0 * found.share, "mode": "lines", "hoverinfo": "skip"}
    figure.add_trace(go.Scatter(y=-reach, line=edge, showlegend=False, **common))
    figure.add_trace(
        go.Scatter(
            y=reach,
            line=edge,
            fill="tonexty",
            fillcolor=faded(colours.muted, 0.18),
            name="Calibrated model, 95% at each place",
            **common,
        )
    )
    first, last = found.steepest
    stretch = slice(first, last + 1)
    across, up = 100.0 * found.share, 100.0 * found.difference
    figure.add_trace(
        go.Scatter(
            line={"color": colours.model, "width": 2},
            name="Stated minus seen, added up",
            x=across,
            y=up,
            mode="lines",
            **hovered(
                "up to {:.2f} ({:.0f}% of the rows): {:+.2f} points",
                found.score,
                across,
                up,
            ),
        )
    )
    figure.add_trace(
        go.Scatter(
            x=across[stretch],
            y=up[stretch],
            mode="lines+markers",
            marker={"size": np.where(np.isin(np.arange(first, last + 1), (first, last)), 9, 0)},
            line={"color": colours.model, "width": 4},
            name="Lowest to highest point",
            hoverinfo="skip",
        )
    )
    figure.add_hline(y=0.0, line={"color": colours.truth, "width": 1, "dash": "4px,4px"})
    figure.update_layout(
        xaxis={"title_text": "Rows by stated probability", "ticksuffix": "%", "range": [0, 100]},
        yaxis={"title_text": "Stated minus seen, added up (points)"},
        legend=LEGEND_BELOW,
        margin={"t": 16, "b": 96},
    )
    return figure
