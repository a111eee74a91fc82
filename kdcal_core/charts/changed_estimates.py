"""Differences of estimates between versions of a model, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, panel
from kdcal_core.charts.marks import dot_panels, in_two_lines
from kdcal_core.charts.palette import Palette, palette
from kdcal_core.diagnostics import (
    ChangedEstimate,
    Direction,
    Estimate,
    estimate_text,
    interval_text,
    value_text,
)
from kdcal_core.text import MINUS, escape_html, escape_markdown, listed

_CHANGES = """
Each line is an estimate that both @OF@ have: @MINUS@. Estimates have
different units, so each difference is drawn in units of the longer half of its own 95% interval.
**An interval that leaves the dashed line** is a difference beyond chance: red where @ONE@
is worse, green where it is better, slate grey where neither is better. Hollow marks
cannot be told apart. An estimate with a best value (0 of a gap, 1 of a slope, the stated level of a
coverage) is better where it came nearer to it beyond chance, from whichever side; it is grey where
it crossed to the other side and may be as far away as before. The numbers on the right are in the
estimate's own unit. What lies further out than six half widths is drawn at the edge.

@INTERVALS@
"""
_INDEPENDENT = """
The intervals are those of independent rows (Zou and Donner 2008)@WHY@. On
the same rows they are too wide: a difference may be there that they do not show. Among twenty
estimates that did not change, one leaves the line by chance.
"""
_GROUPED = """
The intervals are paired. An audit holds no rows, but how strongly groups of rows pull at each
estimate: what pulls at both alike does not count as a difference (Zou and Donner 2008, for
dependent estimates). Among twenty estimates that did not change, one leaves the line by chance.
"""
_PAIRED = """
The intervals are paired: each row of one review is compared with the same row of the other, so that
rows which are hard for both models do not count as a difference. Each interval is for its line
alone. The verdicts allow for the number of paired measures (Holm), so an interval may leave the
line where its mark is hollow.
"""
_UNPAIRED = """
Not paired: @NAMES@. Their intervals are those of independent rows (Zou and Donner 2008), which are
too wide on the same rows@MORE@.
"""
_NOT_CORRECTED = ", and their verdicts are not corrected for the number of measures"
_NAMES_SAID = 20
_CORRECTED = """
Here the verdicts allow for the number of all differences of all versions together (Holm), so an
interval may leave the line where its mark is hollow.
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
_LETTERS = 42  # of a name, in two lines that a phone has room for
_SECOND_LINE = 9  # pixels of a line of the chart that its name's second line needs
_FARTHEST = 6.0  # half widths of an interval; without an end, one estimate would hide all others

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
    dark: bool = False,
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
        Whether the differences are paired: by row, or of audits by groups of rows.
    unpaired : sequence of str
        Names of those that are not, if the others are. Untrusted text.
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
    audits = of == "audits"
    why = ", because these audits hold nothing that pairs them" if audits else ""
    sides = _sides(of, corrected=corrected)
    said = _CHANGES.replace("@OF@", of).replace("@MINUS@", sides.minus).replace("@ONE@", sides.one)
    by_pairs = _GROUPED if audits else _PAIRED
    intervals = by_pairs if paired else _INDEPENDENT.replace("@WHY@", why)
    if paired and unpaired:
        names = escape_markdown(listed(unpaired, _NAMES_SAID, between=";" if audits else ","), 2000)
        more = "" if audits else _NOT_CORRECTED
        intervals += _UNPAIRED.replace("@NAMES@", names).replace("@MORE@", more)
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
        parts.append(f"{other:,} {verb} where neither is better")
    if same:
        alike = listed(list(dict.fromkeys(found["not told apart"])), 3, between=";")
        parts.append(f"{same:,} of {n:,} estimates cannot be told apart: {alike}")
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
    figure = dot_panels(names, [in_two_lines(sides.axis, _LETTERS)], dark)
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
