"""Intervals of chosen rows beside their outcomes: to be read, and taken along as CSV."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app.widgets.charts import chart, csv_button, drawn_once, is_dark
from app.widgets.map_region import beside
from app.widgets.numbers import column_format
from app.widgets.pit_map import LocalView, group_rows
from app.widgets.pit_results import Judged
from kdcal_core.data import IntArray
from kdcal_core.figures import RowIntervals, intervals_figure, intervals_table, regression_reading

PAGE_ROWS = 100
DRAWN = 12
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
ALL = "All"


@st.fragment
def intervals(judged: Judged, view: LocalView | None) -> None:
    """The rows of a group with their intervals, the ones that lie furthest out first."""
    with st.container(border=True):
        st.markdown("**Row by row**")
        groups = {ALL: np.arange(judged.scored.n_rows), **group_rows(view)}
        with st.container(horizontal=True, vertical_alignment="bottom"):
            chosen = _group(list(groups))
            level = _level()
            missed_only = st.toggle(
                "Missed only",
                key="pit_rows_missed",
                persist_state="session",
                help="Only rows whose outcome lies outside the interval.",
            )
        rows = furthest_first(judged, groups[chosen])
        if missed_only:
            rows = rows[np.abs(judged.pit[rows] - 0.5) > level / 2]
        if not len(rows):
            st.caption("No outcome lies outside its interval here.")
            return
        _picture(judged, rows, level)
        _table(judged, rows, level)


def _group(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    chosen: str = st.segmented_control(
        "Rows",
        options=names,
        default=ALL,
        required=True,
        format_func=lambda name: "All rows" if name == ALL else f"In {name}",
        key=f"pit_rows_group_{len(names)}",
        persist_state="session",
        help="All rows of the set, or those of a place picked on the map.",
    )
    return chosen


def _level() -> float:
    level: float = st.selectbox(
        "Interval",
        options=LEVELS,
        index=3,
        format_func=lambda level: f"{level:.0%}",
        key="pit_rows_level",
        persist_state="session",
        width=110,
    )
    return level


def furthest_first(judged: Judged, rows: IntArray) -> IntArray:
    """Rows whose outcome lies furthest out in its distribution come first."""
    away = np.abs(judged.pit[rows] - 0.5)
    return np.asarray(rows[np.argsort(-away, kind="stable")])


def _intervals_of(judged: Judged, rows: IntArray, level: float) -> RowIntervals:
    some = judged.scored.distribution[rows]
    low, high = some.interval(level)
    return RowIntervals("parent", "Model", low, some.ppf(0.5), high)


def _picture(judged: Judged, rows: IntArray, level: float) -> None:
    drawn = rows[:DRAWN]
    found = _intervals_of(judged, drawn, level)
    names, outcomes = [f"Row {row + 1:,}" for row in drawn], judged.scored.y[drawn]
    missed = int(((outcomes < found.low) | (outcomes > found.high)).sum())
    said = (
        f"The {len(drawn):,} rows of {len(rows):,} whose outcome lies furthest out: {missed:,} "
        f"outside the stated {level:.0%} interval."
    )
    chart(
        drawn_once(
            intervals_figure,
            names,
            outcomes,
            [found],
            dark=is_dark(),
            y_title=judged.outcome,
            level=level,
        ),
        key="pit_intervals",
        takeaway=said,
        how_to_read=regression_reading.INTERVALS,
        alt=said,
        table=lambda: intervals_table(names, outcomes, [found]),
        name=f"{judged.review.title} {judged.which} intervals drawn",
    )


def _table(judged: Judged, rows: IntArray, level: float) -> None:
    page = rows[:PAGE_ROWS]
    shown = answers(judged, page, level)
    ours = ("Outcome", "Mean", "Median", f"{level:.0%} low", f"{level:.0%} high")
    formats = {name: column_format(shown[name]) for name in ours}
    more = f" of {len(rows):,}" if len(rows) > len(page) else ""
    st.caption(f"{len(page):,}{more} rows with their own values, the furthest out first.")
    st.dataframe(
        shown,
        hide_index=True,
        height=390 if len(page) > 10 else "content",
        key="pit_rows",
        column_config={
            name: st.column_config.NumberColumn(format=kind)
            for name, kind in {"Row": "localized", "PIT": "%.4f", **formats}.items()
        },
        alt="Rows with their outcome, predicted interval, PIT value and own values",
    )
    csv_button(
        lambda: answers(judged, rows, level),
        key="pit_rows_csv",
        name=f"{judged.review.title} {judged.which} rows and intervals",
    )


def answers(judged: Judged, rows: IntArray, level: float) -> pd.DataFrame:
    """One row a row: outcome, what was predicted, PIT value, and the table's own columns."""
    found, y = _intervals_of(judged, rows, level), judged.scored.y[rows]
    ours = pd.DataFrame(
        {
            "Outcome": y,
            "Mean": judged.moments[rows, 0],
            "Median": found.middle,
            f"{level:.0%} low": found.low,
            f"{level:.0%} high": found.high,
            "Inside": (found.low <= y) & (y <= found.high),
            "PIT": judged.pit[rows],
        }
    )
    frame = judged.frame.iloc[rows]
    roles = judged.review.roles
    own = frame.drop(columns=[name for name in (roles and roles.target,) if name in frame])
    return beside(ours, own, rows)
