"""A forest plot of declared groups: four measures side by side, a line a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, panel
from kdcal_core.charts.marks import dot_panels, mark, strokes
from kdcal_core.charts.palette import Palette, method_style, palette
from kdcal_core.charts.regions import lines_alt, regions_chart, regions_table
from kdcal_core.charts.stacked import stacked
from kdcal_core.diagnostics import (
    Estimate,
    GroupMeasures,
    GroupTable,
    RegionSearch,
    clearest,
    groups_finding,
    interval_text,
    pit_groups_finding,
    value_text,
)
from kdcal_core.text import escape_html, number_text, p_text

FOREST = """
Each line is a group; periods of dates stand in their order. The first panel shows observed minus
stated: left of the dashed line the model states more than happens (over-confident, red), right of
it less (under-confident, blue). A mark is coloured where the group is off by more than chance after
correction for all groups (Holm).

The strokes are intervals that hold for all groups of a panel together at 95% (Bonferroni). The
dashed lines of the other panels are the value of all rows. The expected calibration error is above
zero by chance alone, the more so with few rows: compare it with the value expected by chance, which
hovering shows.

A calibrated version, where one is chosen, stands below the model on the line of each group. It was
fitted on the calibration set and judged on other rows. Most calibrators treat all rows alike, so
that a group may stay wrong, or become so, while the rows as a whole are right.
"""
_OF_PIT = """
Each line is a group, with the mean of its PIT values and its interval. At one half, the tick,
predictions are neither too high nor too low. The colours show the fault, from the location and the
spread of the PIT values (Torres et al., section 2); a hollow mark differs by no more than chance
explains. All rows (500,000 drawn ones if there are a million or more) judge, because no outcome was
used to define the groups; p values are corrected for the number of groups (Holm).
"""
_MEASURES = ("gap", "rate", "error", "area")
_APART = 0.16  # of a line's height, so that model and calibrated version do not hide each other


@dataclass(frozen=True, eq=False)
class RepairedBy:
    """The same groups with calibrated probabilities.

    ``key`` is that of the calibrator, ``name`` its name.
    """

    table: GroupTable
    key: str
    name: str


def groups_chart(
    found: GroupTable,
    *,
    dark: bool = False,
    repaired: RepairedBy | None = None,
    narrow: bool = False,
    noun: str = "group",
) -> Chart:
    """Every group by observed minus stated, rate, calibration error and AUC.

    With ``repaired``, a calibrated version stands below the model on every line. There is no panel
    for an AUC that no group has. On a ``narrow`` page panels stand one below the other. ``noun`` is
    what one group is called: "group" or "period".
    """
    words = groups_finding(found, noun)
    panels = "Four panels" if len(_shown(found)) == len(_MEASURES) else "Three panels"
    if repaired is not None:
        words += f" {_repaired_words(found, repaired, noun)}"
    figure = _figure(found, dark, repaired)
    if narrow:
        figure.update_layout(stacked(figure.to_dict()["layout"]), overwrite=True)
    return Chart(
        figure,
        finding=words,
        alt=f"{panels} with a line for each of {len(found.groups)} {noun}s. {words}",
        how_to_read=FOREST.replace("group", noun),
        table=lambda: groups_table(found, repaired).rename(columns={"group": noun}),
        name=f"{noun}s",
    )


def pit_groups_chart(
    found: RegionSearch, columns: Sequence[str], *, dark: bool = False, ranked: bool = True
) -> Chart:
    """Every declared group of a regression by the mean of its PIT values.

    ``columns`` are those that divide the rows. A single one stands before names of its values.
    Lines are ordered as by :func:`kdcal_core.charts.regions.ordered_regions`; without ``ranked``
    they are periods in their order, and are called so.
    """
    noun = "group" if ranked else "period"
    if len(columns) == 1:
        each = (replace(one, words=f"{columns[0]}: {one.words}") for one in found.regions)
        found = replace(found, regions=tuple(each))
    chart = regions_chart(found, dark=dark, ranked=ranked)
    return replace(
        chart,
        finding=pit_groups_finding(found, noun),
        alt=lines_alt(found, noun),
        how_to_read=_OF_PIT.replace("group", noun),
        table=lambda: regions_table(found).rename(columns={"region": noun}),
        name=f"{noun}s",
    )


def _repaired_words(found: GroupTable, repaired: RepairedBy, noun: str) -> str:
    wrong = [one for one in repaired.table.groups if one.region.fault != "none"]
    if not wrong:
        return f"With {repaired.name}, no {noun} is off by more than chance."
    worst = clearest(wrong)
    before = {one.name for one in found.groups if one.region.fault != "none"}
    lead = ": " if len(wrong) == 1 else ", most clearly "
    now = "" if worst.name in before else ", which was not off before"
    says, sees = value_text(worst.rate, worst.region.stated), value_text(worst.rate)
    counts = (
        f"{len(wrong)} of {len(repaired.table.groups)} {'is' if len(wrong) == 1 else 'are'} off"
    )
    return f"With {repaired.name}, {counts}{lead}{worst.name} (says {says}, sees {sees}){now}."


def groups_table(found: GroupTable, repaired: RepairedBy | None = None) -> pd.DataFrame:
    """One row a group, all rows last; names as they are in the table."""
    rows = [_row(one) for one in (*found.groups, found.overall)]
    if repaired is None:
        return pd.DataFrame(rows)
    after = [_row(one) for one in (*repaired.table.groups, repaired.table.overall)]
    return pd.DataFrame(
        [
            {"version": name, **row}
            for name, version in (("Model as it is", rows), (repaired.name, after))
            for row in version
        ]
    )


def _row(one: GroupMeasures) -> dict[str, object]:
    row: dict[str, object] = {"group": one.name, "rows": one.region.n, "stated": one.region.stated}
    for key in ("rate", "gap", "error", "area"):
        estimate: Estimate = getattr(one, key)
        row |= {key: estimate.value, f"{key}_low": estimate.low, f"{key}_high": estimate.high}
    return row | {
        "error_expected_by_chance": one.error.expected,
        "adjusted_p_value": one.region.adjusted_p,
        **({} if one.jeffreys is None else {"jeffreys_p_value": one.jeffreys}),
        "smallest_gap_found": min(one.region.minimum_detectable, 1.0),
        "fault": one.region.fault,
    }


def _shown(found: GroupTable) -> list[str]:
    """The measures that a group or all rows have."""
    every = (*found.groups, found.overall)
    return [
        key
        for key in _MEASURES
        if key != "area" or any(np.isfinite(one.area.value) for one in every)
    ]


def _figure(found: GroupTable, dark: bool, repaired: RepairedBy | None) -> go.Figure:
    colours = palette(dark)
    shown = _shown(found)
    titles = [getattr(found.overall, key).label for key in shown]
    figure = dot_panels([one.name for one in found.groups], titles, dark)
    apart = 0.0 if repaired is None else _APART
    for at, key in enumerate(shown):
        ink = [_ink(one, colours) if key == "gap" else colours.model for one in found.groups]
        look = {"color": ink, "size": 9, "symbol": "circle"}
        figure.add_trace(_marks(found, key, at, look, -apart, "Model as it is", colours))
        if repaired is not None:
            colour, _, symbol = method_style(repaired.key, colours)
            look = {"color": colour, "size": 9, "symbol": symbol}
            name = escape_html(repaired.name, limit=60)
            figure.add_trace(_marks(repaired.table, key, at, look, apart, name, colours))
        whole = 0.0 if key == "gap" else getattr(found.overall, key).value
        if np.isfinite(whole):
            mark(figure, whole, colours.truth, panel(at))
    if repaired is not None:
        legend = {"orientation": "h", "x": 0, "y": 0, "yanchor": "top", "yref": "paper"}
        figure.update_layout(showlegend=True, legend=legend, margin_b=40)
        figure.update_layout(height=figure.layout.height + 30)
    return figure


def _ink(one: GroupMeasures, colours: Palette) -> str:
    """Red or blue where a group is off by more than chance."""
    fault = {"over-confident": colours.diverging[-1][1], "under-confident": colours.diverging[0][1]}
    return fault.get(one.region.fault, colours.model)


def _marks(
    found: GroupTable,
    key: str,
    at: int,
    look: dict[str, Any],
    apart: float,
    name: str,
    colours: Palette,
) -> go.Scatter:
    """One measure of every group, as marks with their intervals."""
    estimates: list[Estimate] = [getattr(one, key) for one in found.groups]
    return go.Scatter(
        x=[one.value for one in estimates],
        y=[line + apart for line in range(len(estimates))],
        mode="markers",
        marker=look,
        error_x=strokes(estimates, colours),
        hovertext=[
            f"{_hover(one, estimate)}<br>{name}"
            for one, estimate in zip(found.groups, estimates, strict=True)
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        name=name,
        legendgroup=name,
        showlegend=at == 1,  # the first panel's marks may be red or blue
        **panel(at),
    )


def _hover(one: GroupMeasures, estimate: Estimate) -> str:
    lines = [
        f"<b>{escape_html(one.name, limit=60)}</b>, {one.region.n:,} rows",
        f"{estimate.label} {number_text(estimate.value, estimate.high - estimate.low)} "
        f"({interval_text(estimate)})",
    ]
    if estimate is one.gap:
        lines.append(f"corrected p value {p_text(one.region.adjusted_p)}")
        lines.append(f"smallest gap found 4 times in 5: {one.region.minimum_detectable:.2f}")
    if estimate.expected is not None:
        lines.append(f"expected by chance {estimate.expected:.3f}")
    return "<br>".join(lines)
