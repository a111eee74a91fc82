"""Versions of a model: differences of estimates, curves of both, and an estimate over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import (
    LEGEND_BELOW,
    Chart,
    new_figure,
    panel,
    square,
    unit_axis,
)
from kdcal_core.charts.coverage import quantile_curve, quantile_words
from kdcal_core.charts.marks import dot_panels, identity, in_two_lines, ribbon
from kdcal_core.charts.palette import Palette, faded, method_style, palette
from kdcal_core.charts.reliability import bin_points, reliability_alt, reliability_titles
from kdcal_core.checks import Verdict, limit_text
from kdcal_core.diagnostics import (
    ChangedEstimate,
    Direction,
    Estimate,
    QuantileReliability,
    Reliability,
    estimate_text,
    interval_text,
    reliability_finding,
    value_text,
)
from kdcal_core.diagnostics.reliability import ReliabilityCurve
from kdcal_core.review import Limit
from kdcal_core.text import MINUS, escape_html, listed

_CHANGES = """
Each line is an estimate that both @OF@ have: @MINUS@. Estimates have
different units, so each difference is drawn in units of the longer half of its own 95% interval.
**An interval that leaves the dashed line** is a difference beyond chance: red where @ONE@
is worse, green where it is better, slate grey where neither direction is better. Hollow marks
cannot be told apart. The numbers on the right are in the estimate's own unit. What lies further out
than six half widths is drawn at the edge.

@INTERVALS@
"""
_INDEPENDENT = """
The intervals are those of independent rows (Zou and Donner 2008)@WHY@. On
the same rows they are too wide: a difference may be there that they do not show. Among twenty
estimates that did not change, one leaves the line by chance.
"""
_PAIRED = """
The intervals are paired: each row of one review is compared with the same row of the other, so that
rows which are hard for both models do not count as a difference. Each interval is for its line
alone. The verdicts allow for the number of paired measures (Holm), so an interval may leave the
line where its mark is hollow.
"""
_UNPAIRED = """
Not paired: @NAMES@. Their intervals are those of independent rows (Zou and Donner 2008), which are
too wide on the same rows, and their verdicts are not corrected for the number of measures.
"""
_CORRECTED = """
Here the verdicts allow for the number of all differences of all versions together (Holm), so an
interval may leave the line where its mark is hollow.
"""
CURVES = """
**Horizontal axis**: the stated probability. **Vertical axis**: how often it happened. On the dashed
diagonal the two agree; below it a model is over-confident, above it under-confident. **Lines** are
kernel averages with 95% bands, **points** are bins with exact (Clopper-Pearson) 95% intervals.
Points from fewer than 100 rows are smaller, from fewer than 20 hollow.

Where the bands of the two reviews overlap, the curves may differ by chance.
"""
QUANTILE_CURVES = """
**Horizontal axis**: a stated quantile. **Vertical axis**: the share of outcomes at or below it,
with its exact 95% interval. On the dashed diagonal the two agree. Where the intervals of the two
reviews overlap, the curves may differ by chance.
"""
TREND = """
Each mark is an audit, at the time at which it was drafted, with the interval of the estimate. The
shaded area is where a value fails the limit of the check, and its edge is the limit itself, which
may differ between audits. Without a shaded area no check holds a fixed limit against the estimate.

Marks whose intervals overlap widely may differ by chance alone. Audits of other rows differ by the
rows too, not only by the model.
"""
FIRST_LINES = 8
_ORDER: tuple[Direction, ...] = ("worse", "better", "other", "not told apart")
_WORDS: dict[Direction, str] = {
    "worse": "worse",
    "better": "better",
    "other": "different",
    "not told apart": "cannot be told apart",
}
_SYMBOLS: dict[Direction, str] = {
    "worse": "triangle-down",
    "better": "triangle-up",
    "other": "diamond",
    "not told apart": "circle-open",
}
_TREND_HEIGHT = 330
_SQUARE_HEIGHT = 370
_OPEN, _OTHER = "Open review", "Other review"
_LETTERS = 42  # of a name, in two lines that a phone has room for
_SECOND_LINE = 9  # pixels of a line of the chart that its name's second line needs
_FARTHEST = 6.0  # half widths of an interval; without an end, one estimate would hide all others
_ROOM = 0.08  # of the axis, above and below the outermost interval or limit


ComparedKind = Literal["audits", "reviews"]
"""What two versions are: audits in the order of time, or the open review and another one."""
ONES: dict[ComparedKind, str] = {"audits": "the later audit", "reviews": "the open review"}


@dataclass(frozen=True)
class _Sides:
    """What the two sides of a difference are called."""

    one: str
    minus: str
    axis: str
    before: str
    after: str


_SIDES: dict[ComparedKind, _Sides] = {
    "audits": _Sides(
        ONES["audits"],
        "the later one minus the earlier one",
        "Later minus earlier, in half widths of the interval",
        "earlier",
        "later",
    ),
    "reviews": _Sides(
        ONES["reviews"],
        "the open review minus the other one",
        "Open minus other, in half widths of the interval",
        "other review",
        "open review",
    ),
}
_SEVERAL_AUDITS = _Sides(
    "the chosen audit",
    "the chosen one minus the first one",
    "Chosen minus first audit, in half widths of the interval",
    "first audit",
    "chosen audit",
)
"""Of several audits against one, which need not be the earliest."""


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
    """

    at: str
    title: str
    estimate: Estimate
    limit: Limit | None = None
    verdict: Verdict | None = None


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


def ordered_changes(changes: Sequence[ChangedEstimate]) -> tuple[ChangedEstimate, ...]:
    """Those with an interval: first the worse ones, then the better ones, the clearest first."""
    drawn = [one for one in changes if np.isfinite(one.reach) and one.reach > 0.0]
    return tuple(
        sorted(
            drawn,
            key=lambda one: (
                _ORDER.index(one.direction),
                -abs(one.difference.value / one.reach),
            ),
        )
    )


def changes_chart(
    changes: Sequence[ChangedEstimate],
    *,
    dark: bool,
    most: int | None = FIRST_LINES,
    of: ComparedKind = "audits",
    paired: bool = False,
    unpaired: Sequence[str] = (),
    corrected: bool = False,
) -> Chart:
    """A forest plot of the differences between two audits or reviews.

    Parameters
    ----------
    changes : sequence of ChangedEstimate
        Those without an interval are in the table only.
    most : int or None
        How many lines are drawn at most; None for all.
    of : str
        What is compared.
    paired : bool
        Whether the differences are paired by row.
    unpaired : sequence of str
        Our own names of those that are not, if the others are.
    corrected : bool
        Whether the directions are those of `kdcal_core.diagnostics.corrected_changes`, of several
        versions.
    """
    drawn = ordered_changes(changes)
    shown = drawn[:most]
    counts = [
        f"{n} {_WORDS[direction]}"
        for direction in _ORDER
        if (n := sum(one.direction == direction for one in drawn))
    ]
    rest = f" The first {len(shown)} are drawn." if len(shown) < len(drawn) else ""
    words = f"Of {len(drawn)} estimates with an interval: {listed(counts)}.{rest}"
    return Chart(
        _changes_figure(shown, dark, _sides(of, corrected=corrected)),
        finding=words,
        alt=f"Differences of estimates between two {of} with their intervals. {words}",
        how_to_read=_how_to_read(of, unpaired, paired=paired, corrected=corrected),
        table=lambda: changes_table(changes),
        name="differences",
    )


def _how_to_read(
    of: ComparedKind, unpaired: Sequence[str], *, paired: bool, corrected: bool
) -> str:
    why = ", because audits hold no rows" if of == "audits" else ""
    sides = _sides(of, corrected=corrected)
    said = _CHANGES.replace("@OF@", of).replace("@MINUS@", sides.minus).replace("@ONE@", sides.one)
    intervals = _PAIRED if paired else _INDEPENDENT.replace("@WHY@", why)
    if paired and unpaired:
        intervals += _UNPAIRED.replace("@NAMES@", listed(unpaired))
    if corrected:
        intervals += _CORRECTED
    return said.replace("@INTERVALS@", intervals.strip())


def _sides(of: ComparedKind, *, corrected: bool) -> _Sides:
    return _SEVERAL_AUDITS if corrected and of == "audits" else _SIDES[of]


def changed_words(
    changes: Sequence[ChangedEstimate], of: ComparedKind = "audits", *names: str
) -> str:
    """What changed, in a sentence. Untrusted text.

    Parameters
    ----------
    names : str
        None, or what the baseline and the version are called, where there are several versions.

    Examples
    --------
    >>> changed_words(())
    'The audits have no estimate in common.'
    >>> changed_words((), "audits", "Spring", "Summer")
    'Summer and Spring have no estimate in common.'
    """
    both, one = f"The {of}", ONES[of]
    against = ""
    if names:
        baseline, one = names
        both, against = f"{one} and {baseline}", f" than {baseline}"
    if not changes:
        return f"{both} have no estimate in common."
    n = len(changes)
    found: dict[Direction, list[str]] = {
        direction: [one.label for one in changes if one.direction == direction]
        for direction in _ORDER
    }
    said: tuple[Direction, ...] = ("better", "worse")
    parts = [
        f"{direction}{against} in {listed(list(dict.fromkeys(found[direction])), 3, between=';')}"
        for direction in said
        if found[direction]
    ]
    other, same = len(found["other"]), len(found["not told apart"])
    if not parts and not other:
        return f"{both} cannot be told apart in any of {n:,} estimates."
    parts = parts or [f"neither better nor worse{against}"]
    if other:
        verb = "differs" if other == 1 else "differ"
        parts.append(f"{other:,} {verb} where neither direction is better")
    if same:
        parts.append(f"{same:,} of {n:,} estimates cannot be told apart")
    return f"{one if names else one.capitalize()} is {'; '.join(parts)}."


def several_words(
    versions: Sequence[Sequence[ChangedEstimate]], names: Sequence[str], baseline: str = ""
) -> str:
    """In how many estimates each of several versions is better and worse. Untrusted text.

    Parameters
    ----------
    versions : sequence of sequences of ChangedEstimate
        Of audits, each one's less those of the baseline; of reviews, those of the open one less
        each other one's.
    names : sequence of str
        Of the audits, or of the other reviews.
    baseline : str
        Of audits, what the one is called with which the others are compared.

    Examples
    --------
    >>> several_words([(), ()], ["Summer", "Autumn"], "Spring")
    'Against Spring, Summer is better in 0 and worse in 0 of 0 estimates; Autumn in 0 and 0 of 0.'
    >>> several_words([()], ["Spring"])
    'The open review is better in 0 and worse in 0 of 0 estimates than Spring.'
    """
    said: list[str] = []
    for name, changes in zip(names, versions, strict=True):
        better, worse = (
            sum(one.direction == direction for one in changes) for direction in ("better", "worse")
        )
        of = f"of {len(changes)}"
        long = f"better in {better} and worse in {worse} {of} estimates"
        short = f"in {better} and {worse} {of}"
        if baseline:
            said.append(f"{name} {short}" if said else f"{name} is {long}")
        else:
            said.append(f"{short} than {name}" if said else f"{long} than {name}")
    if baseline:
        return f"Against {baseline}, {'; '.join(said)}."
    return f"The open review is {'; '.join(said)}."


def changes_table(changes: Sequence[ChangedEstimate]) -> pd.DataFrame:
    """One row an estimate, with both values and the difference; names as they are."""
    return pd.DataFrame(
        [
            {
                "estimate": one.name,
                "before": one.before.value,
                "before_low": one.before.low,
                "before_high": one.before.high,
                "after": one.after.value,
                "after_low": one.after.low,
                "after_high": one.after.high,
                "difference": one.difference.value,
                "difference_low": one.difference.low,
                "difference_high": one.difference.high,
                "rows_before": one.before.n,
                "rows_after": one.after.n,
                "direction": one.direction,
            }
            for one in changes
        ]
    )


def direction_text(direction: Direction) -> str:
    """A direction in a table.

    Examples
    --------
    >>> direction_text("other"), direction_text("worse")
    ('different', 'worse')
    """
    return "different" if direction == "other" else direction


def signed_text(estimate: Estimate) -> str:
    """A difference with its sign.

    Examples
    --------
    >>> signed_text(Estimate("Gap", "Gap", 0.031, 0.01, 0.05, 900, percent=True))
    '+3.1%'
    """
    words = value_text(estimate)
    return words if words.startswith(MINUS) or estimate.value <= 0.0 else f"+{words}"


def _changes_figure(shown: Sequence[ChangedEstimate], dark: bool, sides: _Sides) -> go.Figure:
    colours = palette(dark)
    names = [one.label for one in shown]
    figure = dot_panels(names, [sides.axis], dark)
    lines = np.arange(len(shown))
    figure.add_trace(_no_difference(len(shown), colours))
    for direction in _ORDER:
        at = [line for line, one in enumerate(shown) if one.direction == direction]
        if at:
            some = [shown[line] for line in at]
            figure.add_trace(_change_marks(some, lines[at], direction, colours, sides))
    reach = min(
        max((abs(one.difference.value) / one.reach + 1.0 for one in shown), default=2.0),
        _FARTHEST + 1.0,
    )
    figure.update_layout(
        xaxis_range=[-1.04 * reach, 1.04 * reach],
        yaxis_ticktext=[
            in_two_lines(escape_html(name, limit=_LETTERS), _LETTERS // 2) for name in names
        ],
    )
    for line, one in enumerate(shown):
        figure.add_annotation(
            x=1.0,
            xref="paper",
            xanchor="left",
            xshift=6,
            y=line,
            text=signed_text(one.difference),
            showarrow=False,
            font={"size": 12, "color": _ink(one.direction, colours)},
        )
    legend = {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "yref": "paper"}
    figure.update_layout(showlegend=True, legend=legend, margin={"r": 84, "b": 40})
    figure.update_layout(height=figure.layout.height + 30 + _SECOND_LINE * len(shown))
    return figure


def _no_difference(n: int, colours: Palette) -> go.Scatter:
    """The line at 0, over the grid, which has a line there too."""
    return go.Scatter(
        x=[0.0, 0.0],
        y=[-0.5, n - 0.5],
        mode="lines",
        line={"color": colours.truth, "width": 1, "dash": "4px,4px"},
        name="No difference",
        hoverinfo="skip",
        showlegend=False,
        **panel(0),
    )


def _ink(direction: Direction, colours: Palette) -> str:
    inks = {"worse": colours.failed, "better": colours.passed, "other": colours.model}
    return inks.get(direction, colours.muted)


def _change_marks(
    changes: Sequence[ChangedEstimate],
    lines: Any,
    direction: Direction,
    colours: Palette,
    sides: _Sides,
) -> go.Scatter:
    ink = _ink(direction, colours)
    return go.Scatter(
        x=[_place(one) for one in changes],
        y=lines,
        mode="markers",
        marker={"color": ink, "size": 10, "symbol": _SYMBOLS[direction]},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [(one.difference.high - one.difference.value) / one.reach for one in changes],
            "arrayminus": [
                (one.difference.value - one.difference.low) / one.reach for one in changes
            ],
            "color": ink,
            "thickness": 1.6,
            "width": 0,
        },
        hovertext=[_change_hover(one, sides) for one in changes],
        hovertemplate="%{hovertext}<extra></extra>",
        name=_WORDS[direction].capitalize(),
        **panel(0),
    )


def _place(one: ChangedEstimate) -> float:
    """The difference in half widths of its interval."""
    return float(np.clip(one.difference.value / one.reach, -_FARTHEST, _FARTHEST))


def _change_hover(one: ChangedEstimate, sides: _Sides) -> str:
    return "<br>".join(
        [
            f"<b>{escape_html(one.name, limit=100)}</b>",
            f"{sides.before} {estimate_text(one.before, chance=False)}, {one.before.n:,} rows",
            f"{sides.after} {estimate_text(one.after, chance=False)}, {one.after.n:,} rows",
            f"difference {signed_text(one.difference)} ({interval_text(one.difference)}): "
            f"{_WORDS[one.direction]}",
        ]
    )


def version_curves_chart(
    before: Reliability, after: Reliability, class_names: Sequence[str], *, dark: bool
) -> Chart:
    """The reliability diagrams of the other and of the open review, one over the other."""
    colours = palette(dark)
    of_class = after.kind == "class"
    figure = new_figure(dark, height=_SQUARE_HEIGHT)
    figure.add_trace(identity(colours).update(showlegend=False))
    for found, key, name in ((before, "other_version", _OTHER), (after, "model", _OPEN)):
        figure.add_traces(_version_curve(found.curves[0], key, name, colours))
    x_title, y_title = reliability_titles(of_class)
    return Chart(
        _overlaid(figure, x_title, y_title),
        finding=" ".join(
            f"{name}: {reliability_finding(found, class_names=class_names or None)}"
            for found, name in ((after, _OPEN), (before, _OTHER))
        ),
        alt=" ".join(
            f"{name}: {reliability_alt(found.curves[0])}"
            for found, name in ((after, _OPEN), (before, _OTHER))
        ),
        how_to_read=CURVES,
        table=lambda: pd.concat(
            [
                found.curves[0].table().assign(review=name.lower())
                for found, name in ((after, _OPEN), (before, _OTHER))
            ],
            ignore_index=True,
        ),
        name="reliability of both",
    )


def _version_curve(
    curve: ReliabilityCurve, key: str, name: str, colours: Palette
) -> list[go.Scatter]:
    """The bins of one version and its smooth line with its band."""
    colour, dash, symbol = method_style(key, colours)
    traces: list[go.Scatter] = []
    if curve.smooth_x.size:
        edges = curve.smooth_x, curve.smooth_low, curve.smooth_high
        traces.append(ribbon(*edges, faded(colour, 0.15), legendgroup=name, showlegend=False))
        traces.append(
            go.Scatter(
                x=curve.smooth_x,
                y=curve.smooth_y,
                mode="lines",
                line={"color": colour, "width": 2.4, "dash": dash},
                name=name,
                legendgroup=name,
                showlegend=False,
                hoverinfo="skip",
            )
        )
    return [*traces, *bin_points(curve, colour, name, symbol=symbol)]


def version_quantiles_chart(
    before: QuantileReliability, after: QuantileReliability, *, dark: bool
) -> Chart:
    """Stated against observed quantiles of the other and of the open review."""
    colours = palette(dark)
    figure = new_figure(dark, height=_SQUARE_HEIGHT)
    figure.add_trace(identity(colours).update(showlegend=False))
    for curve, key, name in ((before, "other_version", _OTHER), (after, "model", _OPEN)):
        colour, dash, symbol = method_style(key, colours)
        figure.add_trace(quantile_curve(curve, colour, name, symbol).update(line_dash=dash))
    words = " ".join(
        f"{name}: {quantile_words(curve)}" for curve, name in ((after, _OPEN), (before, _OTHER))
    )
    return Chart(
        _overlaid(figure, "Stated quantile", "Share of outcomes at or below it"),
        finding=words,
        alt=f"Stated against observed quantiles of two reviews. {words}",
        how_to_read=QUANTILE_CURVES,
        table=lambda: pd.concat(
            [
                curve.table().assign(review=name.lower())
                for curve, name in ((after, _OPEN), (before, _OTHER))
            ],
            ignore_index=True,
        ),
        name="quantiles of both",
    )


def _overlaid(figure: go.Figure, x_title: str, y_title: str) -> go.Figure:
    unit_axis(figure, "xaxis", x_title)
    unit_axis(figure, "yaxis", y_title)
    figure.update_layout(
        legend={**LEGEND_BELOW, "traceorder": "reversed"}, margin={"t": 8, "b": 70, "l": 48, "r": 8}
    )
    square(figure)
    return figure


def trend_chart(trend: Trend, *, dark: bool) -> Chart:
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
    return (
        f"{now}{limit}. In the first of {len(trend.points)} audits it was "
        f"{estimate_text(first.estimate, chance=False)}."
    )


def trend_table(trend: Trend) -> pd.DataFrame:
    """One row an audit; titles as they are."""
    return pd.DataFrame(
        [
            {
                "drafted": one.at,
                "audit": one.title,
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
            x=times,
            y=[one.value for one in estimates],
            mode="lines+markers",
            line={"color": faded(colour, 0.6), "width": 1.4, "dash": dash},
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
        xaxis={"type": "date", "title_text": "Drafted (UTC)"},
        yaxis={
            "title_text": escape_html(trend.label, limit=48),
            "range": [low, high],
            **({"tickformat": ".0%" if high - low > 0.08 else ".1%"} if percent else {}),
        },
        margin={"t": 30},
    )
    return figure


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
    ]
    if one.limit is not None:
        verdict = f": {one.verdict}" if one.verdict else ""
        lines.append(f"limit: {limit_text(one.limit, one.estimate)}{verdict}")
    return "<br>".join(lines)
