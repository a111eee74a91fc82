"""A forest plot of declared groups: four measures side by side, a line a group."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, panel
from kdcal_core.charts.marks import dot_panels, mark, strokes
from kdcal_core.charts.palette import palette
from kdcal_core.diagnostics import (
    Estimate,
    GroupMeasures,
    GroupTable,
    groups_finding,
    interval_text,
)
from kdcal_core.text import escape_html, number_text, p_text

FOREST = """
Each line is a group. The first panel shows observed minus stated: left of the dashed line the model
states more than happens (over-confident, red), right of it less (under-confident, blue). A mark is
coloured where the group is off by more than chance after correction for all groups (Holm).

The strokes are intervals that hold for all groups of a panel together at 95% (Bonferroni). The
dashed lines of the other panels are the value of all rows. The expected calibration error is above
zero by chance alone, the more so with few rows: compare it with the value expected by chance, which
hovering shows.
"""
_MEASURES = ("gap", "rate", "error", "area")


def groups_chart(found: GroupTable, *, dark: bool) -> Chart:
    """Every group by observed minus stated, rate, calibration error and AUC."""
    words = groups_finding(found)
    return Chart(
        _figure(found, dark),
        finding=words,
        alt=f"Four panels with a line for each of {len(found.groups)} groups. {words}",
        how_to_read=FOREST,
        table=lambda: groups_table(found),
        name="groups",
    )


def groups_table(found: GroupTable) -> pd.DataFrame:
    """One row a group, all rows last; names as they are in the table."""
    return pd.DataFrame([_row(one) for one in (*found.groups, found.overall)])


def _row(one: GroupMeasures) -> dict[str, object]:
    row: dict[str, object] = {"group": one.name, "rows": one.region.n, "stated": one.region.stated}
    for key in ("rate", "gap", "error", "area"):
        estimate: Estimate = getattr(one, key)
        row |= {key: estimate.value, f"{key}_low": estimate.low, f"{key}_high": estimate.high}
    return row | {
        "error_expected_by_chance": one.error.expected,
        "adjusted_p_value": one.region.adjusted_p,
        "smallest_gap_found": min(one.region.minimum_detectable, 1.0),
        "fault": one.region.fault,
    }


def _figure(found: GroupTable, dark: bool) -> go.Figure:
    colours = palette(dark)
    groups = found.groups
    titles = [getattr(found.overall, key).label for key in _MEASURES]
    figure = dot_panels([one.name for one in groups], titles, dark)
    fault = {"over-confident": colours.diverging[-1][1], "under-confident": colours.diverging[0][1]}
    for at, key in enumerate(_MEASURES):
        estimates: list[Estimate] = [getattr(one, key) for one in groups]
        ink = [
            fault.get(one.region.fault, colours.model) if key == "gap" else colours.model
            for one in groups
        ]
        figure.add_trace(
            go.Scatter(
                x=[one.value for one in estimates],
                y=list(range(len(groups))),
                mode="markers",
                marker={"color": ink, "size": 9},
                error_x=strokes(estimates, colours),
                hovertext=[
                    _hover(one, estimate) for one, estimate in zip(groups, estimates, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
                showlegend=False,
                **panel(at),
            )
        )
        whole = 0.0 if key == "gap" else getattr(found.overall, key).value
        if np.isfinite(whole):
            mark(figure, whole, colours.truth, panel(at))
    return figure


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
