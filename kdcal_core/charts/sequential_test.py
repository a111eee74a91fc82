"""The sequential test of calibration over labelled rows: its e-value, and the gap in its band."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure
from kdcal_core.charts.palette import faded, palette
from kdcal_core.charts.watch import new_rows_ink
from kdcal_core.data.schema import IntArray
from kdcal_core.diagnostics import SequentialCalibration, estimate_text
from kdcal_core.text import counted, formatted

E_PROCESS = """
Across stand the labelled rows in the order in which they came, up the e-value: what a bet against
the stated probabilities has made of 1. If the probabilities are right, the chance that it **ever**
reaches the dashed line is at most alpha, so it may be looked at after every row (Ville's
inequality). Once it has been reached, the signal stands until a recalibrated model is watched.

The bets move the log odds of all rows or of one bin of scores up or down, or stretch them (Arnold,
Henzi and Ziegel, *Sequentially valid tests for forecast calibration*, follow the same principle).
A falling line means that the stated probabilities win. Where rows belong to clusters, such as
patients, a cluster is one step, taken at its last row: each bet pays the mean over the cluster's
rows, which is fair however they depend on one another.
"""
PIT_PROCESS = """
Across stand the labelled rows in the order in which they came, up the e-value: what a bet against
the forecasts has made of 1. If outcomes follow their stated distributions, the chance that it
**ever** reaches the dashed line is at most alpha, so it may be looked at after every row (Ville's
inequality). Once it has been reached, the signal stands until a recalibrated model is watched.

The bets are on the PIT values, which are then uniform: that outcomes lie higher or lower than
forecast, in all rows or in one bin of the predicted medians, or that the forecasts are too narrow
or too wide. A falling line means that the forecasts win. Where rows belong to clusters, such as
patients, a cluster is one step, taken at its last row: each bet pays the mean over the cluster's
rows, which is fair however they depend on one another.
"""
PIT_GAP = """
Across stand the labelled rows in the order in which they came, up the mean PIT value minus one
half, up to that row (with clusters, the mean of their means). The band is a confidence sequence:
all its intervals hold at once, with chance 1 - alpha, however often one looks
([Howard et al. 2021](https://doi.org/10.1214/20-AOS1991)). It is therefore wider than the interval
of a single look. Above the dashed line outcomes are higher than forecast, below it lower. Forecasts
that are too narrow or too wide do not move it.
"""
GAP = """
Across stand the labelled rows in the order in which they came, up the mean stated probability minus
the share of rows in which the event happened, up to that row (with clusters, the mean of their
gaps). The band is a confidence sequence: all its intervals hold at once, with chance 1 - alpha,
however often one looks ([Howard et al. 2021](https://doi.org/10.1214/20-AOS1991)). It is therefore
wider than the interval of a single look. Above the dashed line the model states too much, below it
too little.
"""
_HEIGHT = 300
_MOST_POINTS = 800


def e_process_chart(test: SequentialCalibration, *, dark: bool = False) -> Chart:
    """The e-value after each labelled row of the new table, with the line at which it signals."""
    words = e_process_words(test)
    return Chart(
        _e_figure(test, dark),
        finding=words,
        alt=f"A line over {len(test.log_e_values):,} labelled rows, and its limit. {words}",
        how_to_read=E_PROCESS if test.of == "probabilities" else PIT_PROCESS,
        table=lambda: _path_table(test),
        name="sequential test",
    )


def e_process_words(test: SequentialCalibration) -> str:
    """What the sequential test found.

    The evidence is the e-value: what a bet against the stated probabilities has made of 1.
    """
    e_value = e_value_text(test)
    least = formatted(1.0 / test.state.alpha, ",.3g")
    if test.crossed_at is None:
        return (
            f"No signal in {counted(test.state.n, 'labelled row')}: e-value {e_value}, "
            f"{least} would be one."
        )
    return (
        f"Recalibrate: the e-value reached {least} at labelled row {test.crossed_at:,} of "
        f"{test.state.n:,}, and is {e_value}. The richest bet was on {test.fault}."
    )


def e_value_text(test: SequentialCalibration) -> str:
    """The e-value after the last row, which may be too large for a number."""
    return _power_text(float(test.log_e_values[-1]) / math.log(10.0))


def _rows(test: SequentialCalibration) -> IntArray:
    """The number of each labelled row of this table, over all tables."""
    m = len(test.log_e_values)
    return np.arange(test.state.n - m + 1, test.state.n + 1)


def _path_table(test: SequentialCalibration) -> pd.DataFrame:
    """The rows that are drawn."""
    at = _drawn(test)
    return pd.DataFrame(
        {
            "labelled_row": _rows(test)[at],
            "log_e_value": test.log_e_values[at],
            "gap_low": test.gap_low[at],
            "gap_high": test.gap_high[at],
        }
    )


def _drawn(test: SequentialCalibration) -> IntArray:
    """Places of the rows that are drawn: of many, the largest e-value of each of equal parts."""
    path = test.log_e_values
    if len(path) <= _MOST_POINTS:
        return np.arange(len(path))
    starts = np.linspace(0, len(path), _MOST_POINTS, endpoint=False).astype(np.int64)
    parts = zip(starts, np.split(path, starts[1:]), strict=True)
    most = [start + int(part.argmax()) for start, part in parts]
    crossed = [] if test.crossed_at is None else [test.crossed_at - int(_rows(test)[0])]
    kept = [one for one in (*most, *crossed, len(path) - 1) if 0 <= one < len(path)]
    return np.unique(kept)


def _e_figure(test: SequentialCalibration, dark: bool) -> go.Figure:
    colours, at, rows = palette(dark), _drawn(test), _rows(test)
    height = test.log_e_values / math.log(10.0)
    limit = -math.log10(test.state.alpha)
    figure = new_figure(dark, height=_HEIGHT)
    figure.add_trace(
        go.Scatter(
            x=rows[at],
            y=height[at],
            mode="lines",
            line={"color": new_rows_ink(colours), "width": 2},
            customdata=[_power_text(one) for one in height[at]],
            hovertemplate="labelled row %{x:,}: e-value %{customdata}<extra></extra>",
            name="e-value",
            showlegend=False,
        )
    )
    figure.add_hline(
        y=limit,
        line={"color": colours.failed, "width": 1.5, "dash": "4px,4px"},
        annotation={
            "text": f"signal at {formatted(10.0**limit, ',.3g')}",
            "font": {"size": 12, "color": colours.failed},
        },
        annotation_position="top right" if test.crossed_at is None else "bottom right",
    )
    crossed = test.crossed_at
    if crossed is not None and crossed >= rows[0]:
        figure.add_trace(
            go.Scatter(
                x=[crossed],
                y=[height[crossed - rows[0]]],
                mode="markers",
                marker={"color": colours.failed, "size": 11, "symbol": "x"},
                hovertemplate="signal at labelled row %{x:,}<extra></extra>",
                name="signal",
                showlegend=False,
            )
        )
    low, high = min(float(height.min()), 0.0), max(float(height.max()), limit)
    room = 0.08 * (high - low)
    ticks = _powers(low, high)
    figure.update_layout(
        xaxis={"title_text": "Labelled row", "tickformat": ",d", "nticks": 5},
        yaxis={
            "title_text": "e-value",
            "range": [low - room, high + 1.5 * room],
            "tickvals": ticks,
            "ticktext": [_power_text(one) for one in ticks],
        },
        margin={"t": 16},
    )
    return figure


def _powers(low: float, high: float) -> list[int]:
    """Whole powers of ten between two, at most about six, and 1 among them."""
    first, last = math.floor(low), math.ceil(high)
    step = max(1, math.ceil((last - first) / 6))
    return [one for one in range(first - first % step, last + 1, step) if low - 1 < one < high + 1]


def _power_text(power: float) -> str:
    """Ten to a power, which may be too large for a number.

    Examples
    --------
    >>> _power_text(2), _power_text(-1), _power_text(400), _power_text(12.3)
    ('100', '0.1', '1 × 10⁴⁰⁰', '2 × 10¹²')
    """
    if abs(power) > 4:
        return formatted(Decimal(10) ** Decimal(power), ".1g")
    return formatted(10.0**power, ",.3g")


def gap_chart(test: SequentialCalibration, *, dark: bool = False) -> Chart:
    """Mean stated probability minus rate up to each labelled row, with its confidence sequence."""
    words = gap_words(test)
    return Chart(
        _gap_figure(test, dark),
        finding=words,
        alt=f"A band over {len(test.gap_low):,} labelled rows that narrows. {words}",
        how_to_read=GAP if test.of == "probabilities" else PIT_GAP,
        table=lambda: _path_table(test),
        name="confidence sequence",
    )


def gap_words(test: SequentialCalibration) -> str:
    """By how much the stated probabilities are too high or too low on average."""
    one = test.gap
    said = estimate_text(one, chance=False)
    if test.of == "forecasts":
        if one.low <= 0.0 <= one.high:
            return f"On average the forecasts may be right: mean PIT value minus one half {said}."
        how = "higher" if one.low > 0.0 else "lower"
        return f"On average outcomes are {how} than forecast: {said}."
    if one.low <= 0.0 <= one.high:
        return f"On average the stated probabilities may be right: stated minus seen {said}."
    return f"On average the model states too {'much' if one.low > 0.0 else 'little'}: {said}."


def _gap_figure(test: SequentialCalibration, dark: bool) -> go.Figure:
    colours, at, rows = palette(dark), _drawn(test), _rows(test)
    ink = new_rows_ink(colours)
    figure = new_figure(dark, height=_HEIGHT)
    common = {"x": rows[at], "mode": "lines", "showlegend": False}
    shares = test.of == "probabilities"
    form = ".1%" if shares else ".3f"
    line = {"color": ink, "width": 1}
    figure.add_trace(
        go.Scatter(y=test.gap_low[at], line=line, name="low", hoverinfo="skip", **common)
    )
    figure.add_trace(
        go.Scatter(
            y=test.gap_high[at],
            line=line,
            fill="tonexty",
            fillcolor=faded(ink, 0.18),
            customdata=[
                [formatted(float(one), form) for one in ends]
                for ends in zip(test.gap_low[at], test.gap_high[at], strict=True)
            ],
            hovertemplate="up to row %{x:,}: %{customdata[0]} to %{customdata[1]}<extra></extra>",
            name="high",
            **common,
        )
    )
    settled = slice(len(rows) // 20, None)  # the first few rows would hide all others
    reach = float(max(-test.gap_low[settled].min(), test.gap_high[settled].max()))
    figure.add_hline(y=0.0, line={"color": colours.truth, "width": 1, "dash": "4px,4px"})
    figure.update_layout(
        xaxis={"title_text": "Labelled row", "tickformat": ",d", "nticks": 5},
        yaxis={
            "title_text": "Stated minus seen" if shares else "Mean PIT value minus one half",
            "tickformat": ".0%" if shares else ".2f",
            "range": [-1.05 * reach, 1.05 * reach],
        },
        margin={"t": 16},
    )
    return figure
