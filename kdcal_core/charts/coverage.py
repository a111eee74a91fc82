"""How many outcomes fall inside their intervals: over a column, and at every stated level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.palette import Palette, palette
from kdcal_core.charts.parts import tiers
from kdcal_core.charts.template import new_figure
from kdcal_core.diagnostics.regression.results import Coverage, CoverageRow
from kdcal_core.diagnostics.results import Estimate
from kdcal_core.text import escape_html

_SHIFT = 0.11  # of a place, so that before and after do not hide each other
_MAX_NAMES = 25


def coverage_by_figure(
    names: Sequence[str],
    before: Sequence[CoverageRow],
    *,
    dark: bool,
    column: str,
    after: Sequence[CoverageRow] | None = None,
    after_name: str = "Recalibrated",
) -> go.Figure:
    """Coverage in each bin or level of a column, with exact intervals and the stated level.

    Bins of few rows are thin and pale. ``names`` of the bins and ``column`` are untrusted.
    """
    colours = palette(dark)
    figure = new_figure(dark, height=360)
    places = np.arange(len(names), dtype=np.float64)
    shown = [(before, colours.model, "Model", "circle")]
    if after is not None:
        shown.append((after, colours.calibrated, escape_html(after_name, limit=40), "diamond"))
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


def coverage_figure(
    before: Coverage,
    *,
    dark: bool,
    after: Coverage | None = None,
    after_name: str = "Recalibrated",
) -> go.Figure:
    """Observed minus stated coverage at each level, in percentage points, with exact intervals."""
    colours = palette(dark)
    figure = new_figure(dark, height=280)
    shown = [(before, colours.model, "Model", "circle")]
    if after is not None:
        shown.append((after, colours.calibrated, escape_html(after_name, limit=40), "diamond"))
    places = np.arange(len(before.rows), dtype=np.float64)
    texts = [f"{row.level:.0%}" for row in before.rows]
    for at, (result, colour, label, symbol) in enumerate(shown):
        shift = _SHIFT * (2 * at - 1) if len(shown) > 1 else 0.0
        levels = np.array([row.level for row in result.rows])
        figure.add_traces(
            _points(
                places + shift,
                [row.coverage for row in result.rows],
                [f"{text} intervals" for text in texts],
                colour,
                label,
                symbol,
                less=levels,
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
    """A line for each bin and for before and after."""
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
    """A tier of row counts in each trace; ``less`` is taken from the coverages that are drawn."""
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
                text=[text for text, here in zip(texts, inside, strict=True) if here],
                customdata=np.column_stack([value, low, high, rows])[inside],
                hovertemplate=(
                    "%{text}<br>%{customdata[0]:.1%} inside "
                    "(%{customdata[1]:.1%} to %{customdata[2]:.1%})<br>"
                    "%{customdata[3]:,.0f} rows<extra>%{fullData.name}</extra>"
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
        name=f"Stated {level:.0%}",
        hoverinfo="skip",
    )


def _lowest(rows: Sequence[CoverageRow]) -> float:
    """The axis starts below all points and intervals of bins with at least 20 rows."""
    lows = [row.coverage.low for row in rows if row.coverage.n >= 20]
    lows += [row.coverage.value for row in rows if row.coverage.n > 0] + [0.9]
    return max(float(np.nanmin(lows)) - 0.04, -0.02)
