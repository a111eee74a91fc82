"""PIT: where outcomes fall in their predicted distributions, over all rows and place by place."""

from __future__ import annotations

import streamlit as st

from app.widgets import pit_columns, pit_map, pit_parts, pit_rows, session
from app.widgets.pit_results import Judged
from app.widgets.set_choice import choose_set

review = session.scored_review("pit")
if review is not None:
    judged = Judged(review, choose_set(review, "pit"))
    finding = st.container()
    pit_parts.all_rows(judged)
    view = pit_map.local_view(judged)
    with finding:
        pit_parts.finding(judged, view.local if view is not None else None)
    pit_columns.over_a_column(judged)
    pit_parts.quantiles_and_levels(judged)
    pit_rows.intervals(judged, view)
    pit_parts.every_measure(judged)
