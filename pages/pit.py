"""PIT: whether outcomes follow their predicted distributions, in total and place by place."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app.pit import pit_columns, pit_map, pit_parts, pit_rows
from app.shared import page_top, pit_results
from app.shared.pit_results import Judged
from app.shared.sections import sections
from app.shared.set_choice import choose_set

review = page_top.scored_review("pit")
if review is not None:
    judged = Judged(review, choose_set(review, "pit"))
    finding = st.container()
    with finding:
        overview = pit_results.overview_of(judged)
    view = pit_map.local_view(judged, overview)
    if overview is not None:
        with finding:
            pit_parts.finding(judged, overview, view.local if view is not None else None)
    further = {
        "All rows together": partial(pit_parts.all_rows, judged, overview),
        "Along a column": partial(pit_columns.over_a_column, judged),
    }
    if overview is not None:
        further |= {
            "Tests": partial(pit_parts.uniformity, judged, overview),
            "Quantiles and intervals": partial(pit_parts.quantiles_and_levels, judged, overview),
            "Row by row": partial(pit_rows.intervals, judged, view),
            "Every measure": partial(pit_parts.every_measure, judged, overview),
        }
    sections("pit_sections", further)
