"""How many outcomes fall inside their intervals and below their quantiles.

Coverage over a column and at every stated level; reliability of stated quantiles (Torres et al.,
Eq. 1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure, square, unit_axis
from kdcal_core.charts.marks import hovered, identity, ribbon, tiers
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.diagnostics import estimate_text, interval_text, value_text
from kdcal_core.diagnostics.estimate import Estimate
from kdcal_core.diagnostics.regression.coverage import Coverage, CoverageRow
from kdcal_core.diagnostics.regression.pit_curves import QuantileReliability
from kdcal_core.text import counted, escape_html, number_text, range_text

_SHIFT = 0.11  # of a bin's width, so that before and after do not hide each other
_MAX_NAMES = 25

COVERAGE_BY = r"""
The share of outcomes inside their central intervals, for each bin of one column. The dashed line is
the stated level; points above it are too cautious, points below it too sure. Bars are exact
(Clopper-Pearson) 95% intervals for each bin alone, so one of twenty may miss the line by chance.
Bins with fewer than 100 rows are pale, with fewer than 20 paler. Slate circles are the model.
"""
COVERAGE = r"""
Observed minus stated coverage of central intervals at several levels: above 0 the intervals are
wider than they need to be, below 0 too narrow. Bars are exact (Clopper-Pearson) 95% intervals.
"""


def coverage_by_chart(
    names: Sequence[str],
    before: Sequence[CoverageRow],
    *,
    column: str,
    dark: bool = False,
    after: Sequence[CoverageRow] | None = None,
    after_name: str = "Recalibrated",
    after_by: str = "calibrated",
) -> Chart:
    """Coverage in each bin of a column, for the model and after recalibration."""
    held = [row.coverage for row in before]
    repaired = None if after is None else [row.coverage for row in after]
    return Chart(
        coverage_by_figure(
            names,
            before,
            dark=dark,
            column=column,
            after=after,
            after_name=after_name,
            after_by=after_by,
        ),
        finding=coverage_words(names, held, before[0].level if before else 0.95, repaired),
        alt=coverage_alt(column, names, held, repaired),
        how_to_read=COVERAGE_BY,
        table=lambda: coverage_table(names, before, after),
        name=f"coverage by {column}",
    )


def coverage_chart(found: Coverage, *, dark: bool = False) -> Chart:
    """Coverage at every stated level."""
    levels = [f"{100 * row.level:g}%" for row in found.rows]
    held = [row.coverage for row in found.rows]
    said = ", ".join(
        f"{level} hold {estimate_text(one, chance=False)}"
        for level, one in zip(levels, held, strict=True)
    )
    return Chart(
        coverage_figure(found, dark=dark),
        finding=f"Of all {held[0].n:,} outcomes, intervals of {said}.",
        alt=coverage_alt("the stated level", levels, held),
        how_to_read=COVERAGE,
        table=found.table,
        name="coverage by level",
    )


def coverage_by_figure(
    names: Sequence[str],
    before: Sequence[CoverageRow],
    *,
    dark: bool,
    column: str,
    after: Sequence[CoverageRow] | None = None,
    after_name: str = "Recalibrated",
    after_by: str = "calibrated",
) -> go.Figure:
    """Coverage in each bin or level of a column, with exact intervals and the stated level.

    Bins of few rows are thin and pale. ``names`` of the bins and ``column`` are untrusted.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=320)
    places = np.arange(len(names), dtype=np.float64)
    shown = [(before, colours.model, "Model", "circle")]
    if after is not None:
        colour, _, symbol = method_style(after_by, colours)
        shown.append((after, colour, escape_html(after_name, limit=40), symbol))
    texts = [escape_html(name, limit=24) for name in names]
    for at, (rows, colour, label, symbol) in enumerate(shown):
        shift = _SHIFT * (2 * at - 1) if len(shown) > 1 else 0.0
        estimates = [row.coverage for row in rows]
        figure.add_traces(_points(places + shift, estimates, texts, colour, label, symbol))
    figure.add_trace(_stated(before[0].level if before else 0.95, len(names), colours))
    step = -(-len(names) // _MAX_NAMES) or 1
    figure.update_layout(
        xaxis={
            "title_text": escape_html(column, limit=60),
            "tickvals": places[::step],
            "ticktext": texts[::step],
            "range": [-0.6, len(names) - 0.4],
            "showgrid": False,
        },
        yaxis={
            "title_text": "Outcomes inside",
            "tickformat": ".0%",
            "range": [_lowest([each for rows, *_ in shown for each in rows]), 1.015],
        },
        margin={"t": 56},
    )
    return figure


def coverage_figure(found: Coverage, *, dark: bool) -> go.Figure:
    """Observed minus stated coverage at each level, in percentage points, with exact intervals."""
    colours = palette(dark)
    figure = new_figure(dark, height=280)
    places = np.arange(len(found.rows), dtype=np.float64)
    texts = [f"{100 * row.level:g}%" for row in found.rows]
    figure.add_traces(
        _points(
            places,
            [row.coverage for row in found.rows],
            [f"{text} intervals" for text in texts],
            colours.model,
            "Model",
            "circle",
            less=np.array([row.level for row in found.rows]),
        )
    )
    figure.add_hline(y=0, line={"color": colours.truth, "width": 1, "dash": "4px,4px"})
    figure.update_layout(
        xaxis={
            "title_text": "Stated coverage",
            "tickvals": places,
            "ticktext": texts,
            "range": [-0.6, len(places) - 0.4],
            "showgrid": False,
        },
        yaxis={"title_text": "Observed minus stated, in points", "tickformat": "+.1%", "nticks": 6},
        margin={"t": 56},
    )
    return figure


def coverage_table(
    names: Sequence[str], before: Sequence[CoverageRow], after: Sequence[CoverageRow] | None = None
) -> pd.DataFrame:
    """One row per bin, for before and after."""
    sides = [("model", before)] + ([("recalibrated", after)] if after is not None else [])
    return pd.DataFrame(
        [
            {
                "bin": name,
                "distribution": side,
                "rows": row.coverage.n,
                "stated": row.level,
                "coverage": row.coverage.value,
                "low": row.coverage.low,
                "high": row.coverage.high,
                "mean_width": row.width.value,
                "interval_score": row.interval_score.value,
            }
            for side, rows in sides
            for name, row in zip(names, rows, strict=True)
        ]
    )


def _points(
    places: np.ndarray[tuple[int], np.dtype[np.float64]],
    estimates: Sequence[Estimate],
    texts: Sequence[str],
    colour: str,
    label: str,
    symbol: str,
    less: np.ndarray[tuple[int], np.dtype[np.float64]] | float = 0.0,
) -> list[go.Scatter]:
    """One trace per tier of row counts; ``less`` is subtracted from the coverages drawn."""
    value, low, high = (
        np.array([getattr(each, part) for each in estimates]) for part in ("value", "low", "high")
    )
    rows = np.array([each.n for each in estimates])
    drawn = value - less
    traces: list[go.Scatter] = []
    for inside, width, opacity in tiers(rows):
        traces.append(
            go.Scatter(
                x=places[inside],
                y=drawn[inside],
                mode="markers",
                opacity=opacity,
                marker={"color": colour, "symbol": symbol, "size": 5.0 + 2.0 * width},
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": (high - value)[inside],
                    "arrayminus": (value - low)[inside],
                    "color": colour,
                    "thickness": width,
                    "width": 0,
                },
                name=label,
                legendgroup=label,
                showlegend=not traces,
                **hovered(
                    "{}<br>{:.1%} inside ({:.1%} to {:.1%})<br>{:,.0f} rows",
                    [text for text, here in zip(texts, inside, strict=True) if here],
                    *(part[inside] for part in (value, low, high, rows)),
                    name="%{fullData.name}",
                ),
            )
        )
    return traces


def _stated(level: float, n: int, colours: Palette) -> go.Scatter:
    return go.Scatter(
        x=[-0.6, n - 0.4],
        y=[level, level],
        mode="lines",
        line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
        name=f"Stated {100 * level:g}%",
        hoverinfo="skip",
    )


def _lowest(rows: Sequence[CoverageRow]) -> float:
    """Start of the axis: below all points and intervals of bins with at least 20 rows."""
    lows = [row.coverage.low for row in rows if row.coverage.n >= 20]
    lows += [row.coverage.value for row in rows if row.coverage.n > 0] + [0.9]
    return max(float(np.nanmin(lows)) - 0.04, -0.02)


def coverage_words(
    names: Sequence[str],
    before: Sequence[Estimate],
    level: float,
    after: Sequence[Estimate] | None = None,
) -> str:
    """The lowest and highest coverage of the bins before and after, in a sentence.

    Parameters
    ----------
    before, after : sequence of Estimate
        Coverage by bin.

    Examples
    --------
    >>> def held(value):
    ...     return Estimate("", "", value, value - 0.02, value + 0.01, 400, percent=True)
    >>> coverage_words(["low", "high"], [held(0.99), held(0.81)], 0.95, [held(0.95), held(0.94)])
    'Stated 95% intervals hold from 81.0% (79.0% to 82.0%; high) to 99.0% (97.0% to 100.0%; low)
     of the outcomes, recalibrated from 94.0% (92.0% to 95.0%) to 95.0% (93.0% to 96.0%). The stated
     level lies outside the error bar in 2 of 2 bins, recalibrated in 0.'
    """
    known = [at for at, each in enumerate(before) if np.isfinite(each.value)]
    if not known:
        return "No bin has rows, so nothing can be said about coverage."
    least = min(known, key=lambda at: before[at].value)
    most = max(known, key=lambda at: before[at].value)
    lowest, highest = (
        f"{value_text(before[at])} ({interval_text(before[at])}; {names[at]})"
        for at in (least, most)
    )
    words = f"Stated {100 * level:g}% intervals hold from {lowest} to {highest} of the outcomes"
    off = (
        f"The stated level lies outside the error bar in {_off(before, level)} of {len(known)} bins"
    )
    if after is None:
        return f"{words}. {off}."
    order = sorted((each for each in after if np.isfinite(each.value)), key=lambda one: one.value)
    first, last = (estimate_text(each, chance=False) for each in (order[0], order[-1]))
    return (
        f"{words}, recalibrated from {first} to {last}. {off}, recalibrated in "
        f"{_off(after, level)}."
    )


def _off(estimates: Sequence[Estimate], level: float) -> int:
    return sum(not each.low <= level <= each.high for each in estimates if np.isfinite(each.value))


def coverage_alt(
    column: str,
    names: Sequence[str],
    before: Sequence[Estimate],
    after: Sequence[Estimate] | None = None,
) -> str:
    """Alternative text of coverage over a column, with at most eight bins."""
    at = np.unique(np.linspace(0, len(names) - 1, min(len(names), 8)).astype(int))
    words = ", ".join(
        f"{names[i]} {estimate_text(before[i], chance=False)}"
        + (f", recalibrated {estimate_text(after[i], chance=False)}" if after is not None else "")
        for i in at
    )
    return f"Share of outcomes inside their intervals over {column}: {words}."


QUANTILES = r"""
**Horizontal axis**: a stated quantile. **Vertical axis**: the share of outcomes at or below it
(Torres et al., Eq. 1). On the dashed diagonal both agree. Bars are exact (Clopper-Pearson)
intervals of each point alone. All points of calibrated distributions stay inside the grey band
together in 95% of all samples.

If the whole curve is above the diagonal, predictions are too high; if below, too low. If it is
first above and then below, the stated spread is too narrow; if first below and then above, too
wide.
"""


def quantile_reliability_chart(
    before: QuantileReliability,
    *,
    dark: bool = False,
    after: QuantileReliability | None = None,
    after_name: str = "Recalibrated",
    after_by: str = "calibrated",
) -> Chart:
    """Stated against observed quantiles, for the model and after recalibration."""
    return Chart(
        quantile_reliability_figure(
            before, dark=dark, after=after, after_name=after_name, after_by=after_by
        ),
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
    after_by: str = "calibrated",
) -> go.Figure:
    """Share of outcomes at or below each stated quantile, a square from 0 to 1.

    Calibrated quantiles lie on the dashed diagonal. The grey band shows how far chance moves them;
    the bars are exact intervals. ``after_name`` is untrusted, ``after_by`` the
    recalibrator's key, which sets colour and symbol.
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
    figure.add_trace(quantile_curve(before, colours.model, "Model", "circle"))
    if after is not None:
        name = escape_html(after_name, limit=40)
        colour, _, symbol = method_style(after_by, colours)
        figure.add_trace(quantile_curve(after, colour, name, symbol))
    unit_axis(figure, "xaxis", "Stated quantile")
    unit_axis(figure, "yaxis", "Share of outcomes at or below it")
    figure.update_layout(margin={"t": 64}, legend={"y": 1.01})
    square(figure)
    return figure


def quantile_reliability_table(
    before: QuantileReliability, after: QuantileReliability | None = None
) -> pd.DataFrame:
    """One row per stated quantile, for before and after."""
    tables = [before.table().assign(distribution="model")]
    if after is not None:
        tables.append(after.table().assign(distribution="recalibrated"))
    return pd.concat(tables, ignore_index=True)


def quantile_curve(curve: QuantileReliability, colour: str, name: str, symbol: str) -> go.Scatter:
    """Observed against stated quantiles with exact intervals; ``name`` is escaped."""
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
    worst = _furthest(before)
    words = (
        f"Furthest off is the {100 * before.levels[worst]:g}% quantile: "
        f"{_observed_text(before, worst)} of {before.n:,} outcomes lie at or below it"
    )
    if after is None:
        return f"{words}."
    worst = _furthest(after)
    return (
        f"{words}. Recalibrated, it is the {100 * after.levels[worst]:g}% quantile: "
        f"{_observed_text(after, worst)} lie at or below it."
    )


def _furthest(curve: QuantileReliability) -> int:
    """The position of the quantile that is furthest from the share it states."""
    return int(np.argmax(np.abs(curve.observed - curve.levels)))


def _observed_text(curve: QuantileReliability, at: int) -> str:
    """The share of outcomes at or below a stated quantile, with its interval."""
    observed, low, high = (float(each[at]) for each in (curve.observed, curve.low, curve.high))
    return (
        f"{number_text(observed, high - low, percent=True)} ({range_text(low, high, percent=True)})"
    )


def quantile_alt(before: QuantileReliability, after: QuantileReliability | None = None) -> str:
    """Alternative text of the reliability of quantiles, with at most nine levels."""
    at = np.unique(np.linspace(0, before.levels.size - 1, 9).astype(int))
    words = ", ".join(f"{100 * before.levels[i]:g}% sees {_observed_text(before, i)}" for i in at)
    return f"Stated against observed quantiles: {words}. {quantile_words(before, after)}"
