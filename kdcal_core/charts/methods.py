"""Methods compared: one colour per method, their confidences, and their losses by class."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts.chart import Chart, new_figure, square, unit_axis
from kdcal_core.charts.marks import anchor_traces, identity
from kdcal_core.charts.palette import Palette, method_style, palette
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import HistogramAnchor, MethodLosses
from kdcal_core.text import escape_html, number_text, range_text

MAX_CLOUD = 2000
HOVER = "Score %{x:.3f}<br>confidence %{y:.1%}<extra>%{fullData.name}</extra>"
_WIDEST = 300.0  # largest loss over the smallest that is drawn to scale
_ROW_HEIGHT = 13

METHODS = r"""
All methods over one histogram. Methods that use only the score are lines. Methods that use the
whole probability vector (temperatures, isotonic, sigmoid) give rows of equal score different
confidences: they are clouds of rows of the calibration set (Salamon et al., Figs. 10 to 12).

* **For an event**, a line is the method's calibrated probability of the event. To the left of 0.5
  that is one minus its confidence in the other class, so lines may jump there.
* **Temperatures.** STS has one for all classes, which suits classes with similar errors and fails
  otherwise (sections IX and XIV). CSTS has one per class; TSwA adds an award for the predicted
  class (Eq. 18). An award may make another class's entry the largest: the prediction is still the
  model's (section XI).
* **Cum** is the probability of being right at *this score or better* (Eq. 11), not at this score.
  At low scores it promises too much; Cum+ and CwOC restrict it to scores above a cutoff.
"""

LOSSES = r"""
The mean of $-\log$ of the probability given to the outcome, right or wrong (Salamon et al., Eq.
14), by predicted class (Fig. 17), with its 95% interval. Lower is better; the axis is logarithmic.

A method's loss on the rows it was fitted on is too optimistic, and more so for flexible methods.
The chart therefore uses rows that the method has not seen: the evaluation set, or the calibration
set cross-fitted (fitted on four fifths, judged on the last, five times). **Hollow marks** are the
second kind of rows named above the chart. The distance between filled and hollow marks shows the
noise.
"""


def methods_chart(
    anchor: HistogramAnchor,
    points: Mapping[str, tuple[FloatArray, FloatArray]],
    curves: Collection[str],
    class_name: str,
    *,
    dark: bool = False,
) -> Chart:
    """Methods over one class's histogram.

    ``points`` maps a registry key to (scores, confidences). Methods in ``curves`` are sorted by
    score and drawn as lines, the others as clouds.
    """
    n_rows = int(anchor.count.sum())
    if anchor.kind == "class":
        finding = f"Each method's probability of {class_name} at every stated one, over the share "
        finding += f"of {n_rows:,} rows that are {class_name}."
    else:
        finding = f"Each method's confidence in predictions of class {class_name}, over the share "
        finding += f"of its {n_rows:,} rows that are right."
    return Chart(
        method_cloud(
            anchor,
            {key: xy for key, xy in points.items() if key not in curves},
            lines={key: xy for key, xy in points.items() if key in curves},
            dark=dark,
            n_rows=n_rows,
        ),
        finding=finding,
        alt=f"{len(points)} methods over a histogram. {finding}",
        how_to_read=METHODS,
        table=lambda: pd.concat(
            [
                pd.DataFrame({"method": key, "score": score, "confidence": confidence})
                for key, (score, confidence) in points.items()
            ],
            ignore_index=True,
        ),
        name=f"methods {class_name}",
    )


def method_cloud(
    anchor: HistogramAnchor,
    clouds: Mapping[str, tuple[FloatArray, FloatArray]],
    *,
    dark: bool,
    n_rows: int,
    lines: Mapping[str, tuple[FloatArray, FloatArray]] | None = None,
) -> go.Figure:
    """Methods over the histogram that they should follow (Salamon et al., Figs. 8 to 12).

    Methods that use the whole probability vector give a cloud, with one point per row, instead of
    a curve. Both mappings go from a registry key to (scores, confidences); ``lines`` are sorted by
    score. At most 2,000 points are drawn, evenly spaced over the rows given, and the figure says
    so; ``n_rows`` is the total number of rows.
    """
    colours = palette(dark)
    share = MAX_CLOUD // max(len(clouds), 1)
    drawn = {key: _evenly(len(score), share) for key, (score, _) in clouds.items()}
    figure = new_figure(dark, height=560)
    figure.add_trace(identity(colours))
    figure.add_traces(anchor_traces(anchor, colours))
    for key, (score, confidence) in clouds.items():
        colour, _, symbol = method_style(key, colours)
        figure.add_trace(
            go.Scatter(
                x=score[drawn[key]],
                y=confidence[drawn[key]],
                mode="markers",
                marker={"size": 4, "opacity": 0.45, "color": colour, "symbol": symbol},
                name=CALIBRATORS[key].label,
                hovertemplate=HOVER,
            )
        )
    for key, (score, confidence) in (lines or {}).items():
        figure.add_trace(_method_line(key, score, confidence, colours))
    if clouds:
        shown = max(len(rows) for rows in drawn.values())
        figure.add_annotation(
            text=f"Clouds: {shown:,} of {n_rows:,} rows drawn",
            font={"size": 12, "color": colours.muted},
            showarrow=False,
            x=1.0,
            y=0.02,
            xanchor="right",
            yanchor="bottom",
        )
    x_title, y_title = axis_titles(anchor)
    unit_axis(figure, "xaxis", x_title)
    unit_axis(figure, "yaxis", y_title)
    square(figure)
    return figure


def axis_titles(anchor: HistogramAnchor) -> tuple[str, str]:
    """Titles of both axes over a histogram of a predicted class, or of the probability of one."""
    if anchor.kind == "class":
        return "Stated probability of the event", "How often the event happens"
    return "Score: stated probability of the predicted class", "Confidence: how often it is right"


def _evenly(n: int, at_most: int) -> NDArray[np.int64]:
    """Positions of at most ``at_most`` of ``n`` rows, evenly spread."""
    return np.arange(n) if n <= at_most else np.linspace(0, n - 1, at_most).astype(np.int64)


def _method_line(
    key: str, score: FloatArray, confidence: FloatArray, colours: Palette
) -> go.Scatter:
    colour, dash, _ = method_style(key, colours)
    return go.Scatter(
        x=score,
        y=confidence,
        mode="lines",
        line={"width": 1.6, "color": colour, "dash": dash},
        name=CALIBRATORS[key].label,
        hovertemplate=HOVER,
    )


def losses_chart(
    losses: MethodLosses,
    beside: MethodLosses,
    methods: Sequence[str],
    class_names: Sequence[str],
    *,
    dark: bool = False,
) -> Chart:
    """Losses by class and method, with those on other rows (``beside``) as hollow marks."""
    return Chart(
        losses_figure(losses, class_names, dark=dark, beside=beside),
        finding=losses_words(losses, methods),
        alt=losses_alt(losses, methods),
        how_to_read=LOSSES,
        table=lambda: pd.concat(
            [part.table().assign(rows_used=part.rows) for part in (losses, beside)],
            ignore_index=True,
        ),
        name="losses",
    )


def losses_figure(
    losses: MethodLosses,
    class_names: Sequence[str],
    *,
    dark: bool,
    beside: MethodLosses | None = None,
) -> go.Figure:
    """Mean log loss by predicted class and method, with intervals (Salamon et al., Figs. 17 to 19).

    ``beside`` adds the losses on other rows as hollow marks; their distance shows the noise, as in
    the paper. The axis is logarithmic, so equal distances are equal ratios. It starts at a 300th of
    the largest loss, and smaller losses are drawn at its edge.
    """
    colours = palette(dark)
    keys = losses.methods
    names = ["All rows", *(escape_html(name, limit=24) for name in class_names)]
    group = _ROW_HEIGHT * len(keys) + 16
    figure = new_figure(dark, height=130 + group * len(names))
    both = [part for part in (losses, beside) if part is not None]
    low, high = _limits(both, keys)
    ticks = _ticks(low, high)
    for at, key in enumerate(keys):
        lane = np.arange(len(names), dtype=np.float64) * group + (at + 1) * _ROW_HEIGHT
        figure.add_trace(_lane(losses, key, lane, low, names, colours))
        if beside is not None:
            figure.add_trace(_hollow(beside, key, lane, low, names, colours))
    middle = np.arange(len(names)) * group + _ROW_HEIGHT * (len(keys) + 1) / 2
    figure.update_layout(
        xaxis={
            "type": "log",
            "range": [np.log10(low / 1.1), np.log10(high * 1.2)],
            "tickvals": ticks,
            "ticktext": [f"{tick:g}" for tick in ticks],
            "title_text": "Mean log loss of the top label (lower is better)",
        },
        yaxis={
            "tickvals": middle,
            "ticktext": names,
            "range": [group * len(names) - 4, -4],
            "showgrid": False,
        },
        shapes=[
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": edge,
                "y1": edge,
                "line": {"color": colours.grid, "width": 1},
            }
            for edge in np.arange(1, len(names)) * group - 1
        ],
        legend={"y": 1 + 12 / (group * len(names))},
        margin={"t": 84},
    )
    return figure


def _limits(parts: Sequence[MethodLosses], keys: Sequence[str]) -> tuple[float, float]:
    """Smallest and largest loss of the methods drawn, at most a factor of 300 apart."""
    values = np.concatenate(
        [part.nll[[part.methods.index(key) for key in keys]].ravel() for part in parts]
    )
    values = values[np.isfinite(values)]
    high = max(float(values.max()), 1e-3)
    return max(float(values.min()), high / _WIDEST), high


def _with_overall(overall: FloatArray, by_class: FloatArray, at: int) -> FloatArray:
    """A method's loss over all rows, followed by its losses by class."""
    together: FloatArray = np.concatenate([[overall[at]], by_class[at]])
    return together


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers for a logarithmic axis, closer together if its range is small."""
    mantissas = (1.0, 2.0, 5.0) if high > 8.0 * low else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    return [float(f"{mantissa}e{power}") for power in range(-5, 2) for mantissa in mantissas]


def _lane(
    losses: MethodLosses,
    key: str,
    lane: FloatArray,
    least: float,
    names: list[str],
    colours: Palette,
) -> go.Scatter:
    at = losses.methods.index(key)
    value = _with_overall(losses.overall_nll, losses.nll, at)
    low = _with_overall(losses.overall_nll_low, losses.nll_low, at)
    high = _with_overall(losses.overall_nll_high, losses.nll_high, at)
    rows = np.concatenate([[losses.n.sum()], losses.n])
    colour, _, symbol = method_style(key, colours)
    drawn = np.maximum(value, least)
    return go.Scatter(
        x=drawn,
        y=lane,
        mode="markers",
        marker={"color": colour, "size": 8, "symbol": symbol},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": np.maximum(high, least) - drawn,
            "arrayminus": drawn - np.maximum(low, least),
            "color": colour,
            "thickness": 1.2,
            "width": 0,
        },
        name=losses.labels[at],
        legendgroup=key,
        customdata=rows,
        text=[
            f"{name}: {number_text(one, most - fewest)} ({range_text(fewest, most)})"
            for name, one, fewest, most in zip(names, value, low, high, strict=True)
        ],
        hovertemplate=(
            f"%{{text}}<br>%{{customdata:,.0f}} rows, {losses.rows}"
            "<extra>%{fullData.name}</extra>"
        ),
    )


def _hollow(
    losses: MethodLosses,
    key: str,
    lane: FloatArray,
    least: float,
    names: list[str],
    colours: Palette,
) -> go.Scatter:
    at = losses.methods.index(key)
    value = _with_overall(losses.overall_nll, losses.nll, at)
    colour, _, symbol = method_style(key, colours)
    return go.Scatter(
        x=np.maximum(value, least),
        y=lane,
        mode="markers",
        marker={"color": colour, "size": 7, "symbol": f"{symbol}-open"},
        name=losses.labels[at],
        legendgroup=key,
        showlegend=False,
        text=[
            f"{name}: {number_text(one, np.nan)}" for name, one in zip(names, value, strict=True)
        ],
        hovertemplate=f"%{{text}}<br>{losses.rows}<extra>%{{fullData.name}}</extra>",
    )


def losses_words(losses: MethodLosses, methods: Sequence[str]) -> str:
    """The method with the lowest loss over all rows, and whether the model is clearly worse."""
    at = [losses.methods.index(key) for key in methods if key in losses.methods]
    best = min(at, key=lambda i: float(losses.overall_nll[i]))
    sentence = (
        f"Over all rows {losses.labels[best]} has the lowest mean log loss: "
        f"{_overall_text(losses, best)}, {losses.rows}"
    )
    model = losses.methods.index("uncalibrated") if "uncalibrated" in losses.methods else best
    if model == best:
        return sentence + "."
    clear = losses.overall_nll_low[model] > losses.overall_nll_high[best]
    return (
        f"{sentence}; uncalibrated {_overall_text(losses, model)}"
        f"{', clearly more.' if clear else ', which is within the intervals.'}"
    )


def _overall_text(losses: MethodLosses, at: int) -> str:
    """The mean log loss of a method over all rows, with its interval."""
    value, low, high = (
        float(each[at])
        for each in (losses.overall_nll, losses.overall_nll_low, losses.overall_nll_high)
    )
    return f"{number_text(value, high - low, largest=abs(high))} ({range_text(low, high)})"


def losses_alt(losses: MethodLosses, methods: Sequence[str]) -> str:
    """Alternative text of the losses: the mean over all rows of each method."""
    values = ", ".join(
        f"{losses.labels[i]} {_overall_text(losses, i)}"
        for i, key in enumerate(losses.methods)
        if key in methods
    )
    return f"Mean log loss by method and predicted class, {losses.rows}. Over all rows: {values}."
