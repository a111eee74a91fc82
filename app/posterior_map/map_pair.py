"""Two rows in the model's partition: what they share, and the geodesic kernel that follows."""

from __future__ import annotations

from functools import partial
from typing import Literal

import streamlit as st

from app.shared import set_results
from app.shared.charts import drawn_once, is_dark, show
from app.shared.graph_results import Fit
from app.shared.one_of import one_of
from app.shared.sections import folded
from kdcal_core.charts import row_pair_chart
from kdcal_core.review import Review
from kdcal_core.tasks import RowsCompared, compared_rows

Choice = Literal["near", "far", "own"]
CHOICES: dict[Choice, str] = {"near": "A near pair", "far": "A far pair", "own": "Two of your own"}
WHY = (
    "The kernel density version takes two rows to be similar if they share many of the model's "
    "regions: leaves of its trees, or units that are on or off for both."
)


def two_rows(review: Review, fit: Fit) -> None:
    """The folded part with two rows of the judged set."""
    folded(
        "How similar two rows are to the model",
        "map_pair",
        partial(_draw, review, fit),
    )


def _draw(review: Review, fit: Fit) -> None:
    st.markdown(WHY)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        choice = one_of("Rows", CHOICES, "near", key=f"map_pair_{review.id}", width="content")
        rows = [_row(review, at) for at in (1, 2)] if choice == "own" else None
    found = _compared(review, fit, rows)
    if found is None:
        return
    shown = found.pairs[1 if choice == "far" else 0]
    show(
        drawn_once(row_pair_chart, shown.pair, shown.rows, dark=is_dark()),
        key="map_pair_chart",
        of=review.title,
    )


def _row(review: Review, at: int) -> int:
    n_rows = (review.tables.get("evaluation") or review.tables["calibration"]).n_rows
    row: int = st.number_input(
        ("First row", "Second row")[at - 1],
        min_value=1,
        max_value=n_rows,
        value=min(at, n_rows),
        key=f"map_pair_row_{at}_{review.id}",
        persist_state="session",
        width=130,
        help="Its number in the table of rows above.",
    )
    return row - 1


def _compared(review: Review, fit: Fit, rows: list[int] | None) -> RowsCompared | None:
    """In a worker, whatever the size: the app does not open models."""
    return set_results.in_job(
        review, compared_rows, output_layer=fit.record.output_layer, rows=rows
    )
