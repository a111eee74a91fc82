"""An estimate over the audits of a project, with the limit of its check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.checks import Verdict, limit_text
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.review import Limit
from kdcal_core.text import escape_html

TREND = """
Each mark is an audit, at the time at which it was drafted, with the interval of the estimate. The
shaded area is where a value fails the limit of the check, and its edge is the limit itself, which
may differ between audits. Without a shaded area no check holds a fixed limit against the estimate.

A line joins audits of one model, with one calibrator or none, and breaks where either changed.
Audits of other rows differ by the rows too: the table names the file that each one judged. Marks
whose intervals overlap widely may differ by chance alone.
"""
_TREND_HEIGHT = 330
_ROOM = 0.08  # of the axis, above and below the outermost interval or limit


@dataclass(frozen=True)
class TrendPoint:
    """An estimate in one audit.

    Attributes
    ----------
    at : str
        When the audit was drafted, in ISO 8601.
    title : str
        Of the audit. Untrusted text.
    estimate : Estimate
    limit : Limit or None
        Of the check that judges it.
    verdict : str or None
    state : str
        Of the audit.
    model, calibrator, judged : str
        Which model, which calibrator's output (empty where the model's own) and which file were
        judged. Untrusted text.
    joined : bool
        Whether model and calibrator are those of the point before.
    """

    at: str
    title: str
    estimate: Estimate
    limit: Limit | None = None
    verdict: Verdict | None = None
    state: str = ""
    model: str = ""
    calibrator: str = ""
    judged: str = ""
    joined: bool = True


@dataclass(frozen=True)
class Trend:
    """An estimate over several audits.

    Attributes
    ----------
    name, label : str
        In full, and in a few words. Untrusted text.
    points : tuple of TrendPoint
        In time order; the last one is the last audit's.
    """

    name: str
    label: str
    points: tuple[TrendPoint, ...]


def trend_chart(trend: Trend, *, dark: bool = False) -> Chart:
    """An estimate over the audits of a project, with the limit of its check."""
    words = trend_words(trend)
    return Chart(
        _trend_figure(trend, dark),
        finding=words,
        alt=f"An estimate over {len(trend.points)} audits with intervals. {words}",
        how_to_read=TREND,
        table=lambda: trend_table(trend),
        name="trend",
    )


def trend_words(trend: Trend) -> str:
    """The last value, the first one, and the limit, in a sentence. Untrusted text."""
    first, last = trend.points[0], trend.points[-1]
    limit = ""
    if last.limit is not None:
        verdict = {"pass": "passes", "fail": "fails"}.get(last.verdict or "", "")
        said = f"{verdict} its limit" if verdict else "has not enough evidence for its limit"
        limit = f", and {said} ({limit_text(last.limit, last.estimate)})"
    now = f"{trend.label} is {estimate_text(last.estimate, chance=False)} in the last audit"
    if len(trend.points) < 2:
        return f"{now}{limit}. No earlier audit has it."
    changes = sum(not one.joined for one in trend.points[1:])
    times = "once" if changes == 1 else f"{changes:,} times"
    other = f" The model or its calibrator changed {times}." if changes else ""
    return (
        f"{now}{limit}. In the first of {len(trend.points)} audits it was "
        f"{estimate_text(first.estimate, chance=False)}.{other}"
    )


def trend_table(trend: Trend) -> pd.DataFrame:
    """One row an audit; titles as they are."""
    return pd.DataFrame(
        [
            {
                "drafted": one.at,
                "audit": one.title,
                "state": one.state,
                "model": one.model,
                "calibrator": one.calibrator,
                "judged": one.judged,
                "estimate": trend.name,
                "value": one.estimate.value,
                "low": one.estimate.low,
                "high": one.estimate.high,
                "rows": one.estimate.n,
                "limit": "" if one.limit is None else limit_text(one.limit, one.estimate),
                "verdict": one.verdict or "",
            }
            for one in trend.points
        ]
    )


def _trend_figure(trend: Trend, dark: bool) -> go.Figure:
    colours = palette(dark)
    figure = new_figure(dark, height=_TREND_HEIGHT)
    points = [one for one in trend.points if np.isfinite(one.estimate.value)]
    times = [_time(one.at) for one in points]
    low, high = _extent(points)
    for end, upper in ((low, False), (high, True)):
        _limit_area(figure, points, times, end, upper=upper, colours=colours)
    for trace in figure.select_traces({"name": "Limit"}):
        trace.showlegend = True
        break
    colour, dash, symbol = method_style("model", colours)
    estimates = [one.estimate for one in points]
    figure.add_trace(
        go.Scatter(
            **_joined(trend.points),
            mode="lines",
            line={"color": faded(colour, 0.6), "width": 1.4, "dash": dash},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    figure.add_trace(
        go.Scatter(
            x=times,
            y=[one.value for one in estimates],
            mode="markers",
            marker={
                "size": 10,
                "symbol": [_verdict_symbol(one, symbol) for one in points],
                "color": [_verdict_ink(one, colours) for one in points],
            },
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [_finite(one.high - one.value) for one in estimates],
                "arrayminus": [_finite(one.value - one.low) for one in estimates],
                "color": colours.muted,
                "thickness": 1.6,
                "width": 0,
            },
            hovertext=[_trend_hover(one) for one in points],
            hovertemplate="%{hovertext}<extra></extra>",
            showlegend=False,
        )
    )
    percent = bool(estimates) and estimates[-1].percent
    figure.update_layout(
        xaxis={"type": "date", "title_text": "Drafted (UTC)", "nticks": 4},
        yaxis={
            "title_text": escape_html(trend.label, limit=48),
            "range": [low, high],
            **({"tickformat": ".0%" if high - low > 0.08 else ".1%"} if percent else {}),
        },
        margin={"t": 30},
    )
    return figure


def _joined(points: Sequence[TrendPoint]) -> dict[str, list[Any]]:
    """The line through the points, with a gap before each that is not joined."""
    x: list[Any] = []
    y: list[Any] = []
    for one in points:
        if x and not one.joined:
            x.append(None)
            y.append(None)
        x.append(_time(one.at))
        y.append(one.estimate.value if np.isfinite(one.estimate.value) else None)
    return {"x": x, "y": y}


def _time(at: str) -> str:
    """Without its zone, which plotly does not draw."""
    return at.removesuffix("Z")


def _finite(length: float) -> float:
    return max(length, 0.0) if np.isfinite(length) else 0.0


def _extent(points: Sequence[TrendPoint]) -> tuple[float, float]:
    """The ends of the axis: every interval and every fixed limit is inside."""
    ends = [
        end
        for one in points
        for end in (one.estimate.value, one.estimate.low, one.estimate.high, *_fixed(one.limit))
        if np.isfinite(end)
    ]
    if not ends:
        return 0.0, 1.0
    room = _ROOM * (max(ends) - min(ends)) or _ROOM * max(abs(max(ends)), 1.0)
    return min(ends) - room, max(ends) + room


def _fixed(limit: Limit | None) -> tuple[float, ...]:
    """The ends of a limit for the estimate itself."""
    if limit is None or limit.against != "value":
        return ()
    return tuple(end for end in (limit.low, limit.high) if np.isfinite(end))


def _limit_area(
    figure: go.Figure,
    points: Sequence[TrendPoint],
    times: Sequence[str],
    end: float,
    *,
    upper: bool,
    colours: Palette,
) -> None:
    """Where values fail: between the limit of each audit and the end of the axis."""
    limits = [_end_of(one.limit, upper=upper) for one in points]
    for run in _runs(limits):
        # a limit holds from its audit to the next one
        x = [times[at] for at in run]
        y = [limits[at] for at in run]
        if len(run) == 1:
            _limit_line(figure, x[0], y[0], colours)
            continue
        for values, more in (
            ([end] * len(x), {"line": {"width": 0}, "showlegend": False}),
            (
                y,
                {
                    "line": {"color": colours.failed, "width": 1.2, "dash": "6px,3px"},
                    "fill": "tonexty",
                    "fillcolor": faded(colours.failed, 0.09),
                    "name": "Limit",
                    "showlegend": False,
                },
            ),
        ):
            figure.add_trace(
                go.Scatter(
                    x=x,
                    y=values,
                    mode="lines",
                    line_shape="hv",
                    hoverinfo="skip",
                    legendgroup="limit",
                    **more,
                )
            )


def _limit_line(figure: go.Figure, x: str, y: float, colours: Palette) -> None:
    """The limit of an audit without neighbours of the same kind: a mark."""
    figure.add_trace(
        go.Scatter(
            x=[x],
            y=[y],
            mode="markers",
            marker={"symbol": "line-ew-open", "size": 26, "color": colours.failed},
            name="Limit",
            legendgroup="limit",
            showlegend=False,
            hoverinfo="skip",
        )
    )


def _end_of(limit: Limit | None, *, upper: bool) -> float:
    """The upper or lower end of a limit for the estimate itself; NaN without one."""
    if limit is None or limit.against != "value":
        return float("nan")
    end = limit.high if upper else limit.low
    return end if np.isfinite(end) else float("nan")


def _runs(limits: Sequence[float]) -> list[list[int]]:
    """Places of neighbours that have a limit.

    Examples
    --------
    >>> _runs([0.1, 0.1, float("nan"), 0.2])
    [[0, 1], [3]]
    """
    known = [at for at, end in enumerate(limits) if np.isfinite(end)]
    runs = [known[:1]] if known else []
    for before, at in pairwise(known):
        if at == before + 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def _verdict_symbol(one: TrendPoint, symbol: str) -> str:
    known = {"pass": "circle", "fail": "x", "not enough evidence": "diamond"}
    return known.get(one.verdict or "", symbol)


def _verdict_ink(one: TrendPoint, colours: Palette) -> str:
    inks = {
        "pass": colours.passed,
        "fail": colours.failed,
        "not enough evidence": colours.undecided,
    }
    return inks.get(one.verdict or "", colours.model)


def _trend_hover(one: TrendPoint) -> str:
    lines = [
        f"<b>{escape_html(one.title, limit=80)}</b>",
        f"{_time(one.at)[:16].replace('T', ' ')} UTC",
        f"{estimate_text(one.estimate, chance=False)}, {one.estimate.n:,} rows",
        *(
            f"{what} {escape_html(said, limit=80)}"
            for what, said in (
                *(("model", one.model), ("calibrator", one.calibrator), ("judged", one.judged)),
            )
            if said
        ),
    ]
    if one.limit is not None:
        verdict = f": {one.verdict}" if one.verdict else ""
        lines.append(f"limit: {limit_text(one.limit, one.estimate)}{verdict}")
    return "<br>".join(lines)
