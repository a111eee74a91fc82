"""PIT: whether outcomes follow their predicted distributions, in total and place by place."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app.pit import pit_all_rows, pit_columns, pit_map, pit_rows
from app.shared import page_top, pit_results, tiles
from app.shared.pit_results import Judged
from app.shared.sections import sections
from app.shared.set_choice import choose_set

review = page_top.scored_review("pit")
if review is not None:
    with st.container(horizontal=True, vertical_alignment="center"):
        judged = Judged(review, choose_set(review, "pit"))
        settings = pit_map.settings(judged)
    sentence = st.container()
    picture, numbers = tiles.answer()
    with sentence:
        overview = pit_results.overview_of(judged)
    with picture:
        view = pit_map.local_view(judged, settings)
    if overview is not None:
        local = view.local if view is not None else None
        with sentence:
            more = pit_all_rows.finding(judged, overview, local)
        with numbers:
            pit_all_rows.estimates(judged, overview, local)
        pit_all_rows.further_findings(overview, more)
    further = {}
    if overview is not None and view is not None:
        further["Picked places"] = partial(pit_map.picked, judged, overview, view)
    further |= {
        "All rows together": partial(pit_all_rows.all_rows, judged, overview),
        "Along a column": partial(pit_columns.over_a_column, judged),
    }
    if overview is not None:
        further |= {
            "Tests": partial(pit_all_rows.uniformity, judged, overview),
            "Quantiles and intervals": partial(pit_all_rows.quantiles_and_levels, judged, overview),
            "Row by row": partial(pit_rows.intervals, judged, view),
            "Every measure": partial(pit_all_rows.every_measure, judged, overview),
        }
    sections("pit_sections", further)
