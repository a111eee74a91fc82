"""Single rows before and after: densities, neighbourhoods, and intervals to read and download."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.recalibration import recalibration_results as found
from app.recalibration.recalibration_answer import MAP, Places, level_of
from app.recalibration.recalibration_results import View
from app.shared import in_browser, sign_in
from app.shared.box_selection import dragged_box
from app.shared.charts import drawn_once, file_stem, is_dark, show
from app.shared.row_tables import column_format
from app.shared.seen_charts import seen
from app.shared.tables import show_table
from kdcal_core.charts import (
    DensityPanel,
    PitPanel,
    RowIntervals,
    intervals_chart,
    pit_around_rows_chart,
    predictive_density_chart,
)
from kdcal_core.data import IntArray, to_csv
from kdcal_core.evaluation import MODEL
from kdcal_core.tasks import MAX_ROWS, IntervalRows, RowClosely, ShownRows, in_box
from kdcal_core.text import escape_markdown

NEAR = (50, 100, 250, 500, 1000)
DEFAULT_NEAR = 250
DRAWN = 12
PAGE_ROWS = 200
_TABLE_HEIGHT = 148  # pixels: the page keeps to three screens, and more rows scroll


def densities(view: View, shown: ShownRows) -> None:
    """Predictive densities of two rows, and the PIT values of the rows around them (Fig. 5)."""
    with st.container(border=True):
        rows, k = _picked(view, shown)
        closely = found.closely(view, rows, k)
        if closely is None:
            return
        panels = [
            DensityPanel(f"Row {row + 1:,}", one.outcome, one.curves)
            for row, one in zip(rows, closely, strict=True)
        ]
        show(
            drawn_once(
                predictive_density_chart,
                panels,
                dark=is_dark(),
                y_title=view.judged.outcome,
                after_by=view.chosen,
            ),
            key="recalibration_densities",
            of=view.review.title,
        )
        _neighbourhoods(view, rows, closely)


def _picked(view: View, shown: ShownRows) -> tuple[list[int], int]:
    n = view.run.record.n_judged
    with st.container(horizontal=True, vertical_alignment="bottom"):
        asked = [
            st.number_input(
                label,
                min_value=1,
                max_value=n,
                value=row + 1,
                key=f"recalibration_{label}_{view.key[:16]}",
                persist_state="session",
                width=150,
                help="Its number in the table, from 1.",
            )
            - 1
            for label, row in zip(("First row", "Second row"), found.two_rows(shown), strict=True)
        ]
        k = _near(view, n)
    rows = [found.nearest_shown(shown, row) for row in asked]
    if rows != asked:
        st.caption(
            f"Whole distributions are stored for {len(shown.rows):,} of {n:,} rows; the nearest of "
            "these in the table are shown."
        )
    return list(dict.fromkeys(rows)), k


def _near(view: View, n: int) -> int:
    """Number of rows around each picked row; all rows if there are few."""
    options = [k for k in NEAR if k <= n]
    if len(options) < 2:
        return n
    k: int = st.select_slider(
        "Rows around each",
        options=options,
        value=min(DEFAULT_NEAR, options[-1]),
        format_func="{:,}".format,
        key=f"recalibration_near_{view.key[:16]}",
        persist_state="session",
        width=260,
    )
    return k


def _neighbourhoods(view: View, rows: list[int], closely: Sequence[RowClosely]) -> None:
    def named(names: Sequence[str]) -> list[PitPanel]:
        found = []
        for name, one in zip(names, closely, strict=True):
            (before, after), (fault, left) = one.around, one.faults
            found.append(PitPanel(f"{name}, model", before, fault.kind))
            found.append(PitPanel(f"{name}, recalibrated", after, left.kind, view.chosen))
        return found

    panels = named([f"Row {row + 1:,}" for row in rows])
    seen(
        *(view.review, "recalibration_places", "PIT around two rows", "recalibration"),
        *(pit_around_rows_chart, named([f"Place {at + 1}" for at in range(len(rows))])),
        settings=f"{view.method.title}; without saying around which rows",
    )
    show(
        drawn_once(pit_around_rows_chart, panels, dark=is_dark(), narrow=in_browser.is_narrow()),
        key="recalibration_near_pit",
        of=view.review.title,
    )


def intervals(view: View, shown: ShownRows, places: Places) -> None:
    """Intervals of the rows in the dragged box, or of rows spread evenly; download of all."""
    rows, words = _chosen(shown, places)
    with st.container(border=True):
        st.subheader("Intervals of single rows", anchor=False)
        st.markdown(escape_markdown(words, 400))
        page = found.intervals_of(view, found.kept(shown, rows)[:DRAWN], rows[:PAGE_ROWS])
        if page is None:
            return
        _drawn(view, page[0])
        readable = _readable(view, page[1].table)
        show_table(
            readable,
            key="recalibration_interval_table",
            column_config={
                str(name): st.column_config.NumberColumn(format=column_format(readable[name]))
                for name in readable
            },
            alt="Outcome, mean and intervals of the chosen rows before and after",
            height=_TABLE_HEIGHT,
        )
        with st.container(horizontal=True, gap="small"):
            _download(view, "these rows", len(rows), rows)
            _download(view, "all rows", view.run.record.n_judged, None)


def _readable(view: View, table: pd.DataFrame) -> pd.DataFrame:
    """The chosen intervals of some rows, with readable column names."""
    level = f"{level_of():.0%}"
    names = {"row": "Row", "outcome": "Outcome"}
    for who, title in (("model", "Model"), (view.chosen, "Repaired")):
        names |= {
            f"{who}_mean": f"{title}: mean",
            f"{who}_low_{level}": f"{title}: from",
            f"{who}_high_{level}": f"{title}: to",
        }
    return table[list(names)].rename(columns=names)


def _drawn(view: View, some: IntervalRows) -> None:
    """Intervals of some stored rows by the model and by the method, with their outcomes."""
    if not len(some.rows):
        return
    level, table = level_of(), some.table
    names, outcomes = [f"Row {row + 1:,}" for row in some.rows], table["outcome"].to_numpy()
    shown = []
    for key, label, median in (
        (MODEL, "Model", some.before),
        (view.chosen, view.method.title, some.after),
    ):
        low, high = (table[f"{key}_{end}_{level:.0%}"].to_numpy() for end in ("low", "high"))
        shown.append(RowIntervals(key, label, low, median, high))
    show(
        drawn_once(
            intervals_chart,
            names,
            outcomes,
            shown,
            dark=is_dark(),
            y_title=view.judged.outcome,
            level=level,
        ),
        key="recalibration_intervals",
        of=view.review.title,
    )


def _download(view: View, what: str, n: int, rows: IntArray | None) -> None:
    every = found.every_interval_of(view, rows, f"Prepare intervals of {what} as CSV")
    if every is None:
        return
    held = f"{n:,}" if n <= MAX_ROWS else f"the first {MAX_ROWS:,} of {n:,}"
    st.download_button(
        f"Intervals of {what} as CSV ({held})",
        data=sign_in.while_it_lasts(lambda: to_csv(every().table)),
        file_name=f"{file_stem(f'{view.review.title} {view.chosen} intervals {what}')}.csv",
        mime="text/csv",
        key=f"recalibration_csv_{file_stem(what)}",
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def _chosen(shown: ShownRows, places: Places) -> tuple[IntArray, str]:
    """The rows in the box on the map, or rows spread evenly if there is no box."""
    state = getattr(st.session_state.get(MAP), "selection", None)
    box = dragged_box(state, places.whole)
    if box != places.whole:
        rows = places.rows[in_box(places.xy, box.x, box.y)]
        if len(rows):
            return rows, f"{len(rows):,} rows lie in the box on the map; the first are drawn."
        return found.spread_rows(shown, DRAWN), (
            "No row lies in the box on the map; below are rows spread evenly over the predicted."
        )
    return found.spread_rows(shown, DRAWN), (
        "Rows spread evenly over what was predicted. Drag a box on the map to choose others."
    )
