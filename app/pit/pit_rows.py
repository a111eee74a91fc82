"""Intervals of chosen rows beside their outcomes, to read and to download as CSV."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.pit.pit_map import LocalView, group_rows
from app.shared import pit_results, set_results
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.one_of import one_of
from app.shared.pit_results import Judged
from app.shared.row_tables import column_format, most_text, pit_answers
from app.shared.tables import show_table
from kdcal_core.charts import RowIntervals, intervals_chart
from kdcal_core.data import IntArray
from kdcal_core.tasks import PitRows, pit_rows

PAGE_ROWS = 100
DRAWN = 10
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
ALL = "All"


@st.fragment
def intervals(judged: Judged, view: LocalView | None) -> None:
    """The rows of a group with their intervals, starting with those furthest out."""
    with st.container(border=True):
        st.subheader("Row by row", anchor=False)
        groups: dict[str, IntArray | None] = {ALL: None, **group_rows(view)}
        with st.container(horizontal=True, vertical_alignment="bottom"):
            chosen = _group(list(groups))
            level = _level()
            missed_only = st.toggle(
                "Missed only",
                key="pit_rows_missed",
                persist_state="session",
                help="Only rows whose outcome lies outside the interval.",
            )
        among = groups[chosen]
        asked: dict[str, Any] = {
            "level": level,
            "missed_only": missed_only,
            "among": None if among is None else among.tolist(),
        }
        found = pit_results.rows_of(judged, **asked, most=PAGE_ROWS)
        if found is None:
            return
        if not found.n:
            st.caption("No outcome lies outside its interval here.")
            return
        _picture(judged, found, level)
        _table(judged, found, asked)


def _group(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return one_of(
        "Rows",
        {name: "All rows" if name == ALL else f"In {name}" for name in names},
        ALL,
        key=f"pit_rows_group_{len(names)}",
        help="All rows of the set, or those of a place picked on the map.",
    )


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


def _picture(judged: Judged, rows: PitRows, level: float) -> None:
    drawn = slice(DRAWN)
    names, outcomes = [f"Row {row + 1:,}" for row in rows.rows[drawn]], rows.y[drawn]
    found = RowIntervals("model", "Model", rows.low[drawn], rows.middle[drawn], rows.high[drawn])
    show(
        drawn_once(
            intervals_chart,
            names,
            outcomes,
            [found],
            dark=is_dark(),
            y_title=judged.outcome,
            level=level,
            furthest_of=rows.n,
        ),
        key="pit_intervals",
        of=f"{judged.review.title} {judged.which}",
    )


def _table(judged: Judged, rows: PitRows, asked: dict[str, Any]) -> None:
    level = asked["level"]
    shown = pit_answers(rows, level)
    ours = ("Outcome", "Mean", "Median", f"{level:.0%} low", f"{level:.0%} high")
    formats = {name: column_format(shown[name]) for name in ours}
    more = f" of {rows.n:,}" if rows.n > len(shown) else ""
    st.caption(f"{len(shown):,}{more} rows with their own values, those furthest out first.")
    show_table(
        shown,
        height=320 if len(shown) > 8 else "content",
        key="pit_rows",
        column_config={
            name: st.column_config.NumberColumn(format=kind)
            for name, kind in {"Row": "localized", "PIT": "%.4f", **formats}.items()
        },
        alt="Rows with their outcome, predicted interval, PIT value and own values",
    )
    every = set_results.on_demand(
        judged.review,
        pit_rows,
        label=f"Prepare {most_text(rows.n)} as CSV",
        which=judged.which,
        **asked,
    )
    if every is not None:
        csv_button(
            lambda: pit_answers(every(), level),
            key="pit_rows_csv",
            of=f"{judged.review.title} {judged.which}",
            what="rows and intervals",
        )
