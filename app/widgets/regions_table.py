"""Every region of the Regions page in words with its numbers."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.widgets import regions_text as text
from app.widgets.charts import csv_button
from app.widgets.numbers import interval, number
from app.widgets.regions_rows import Looked
from kdcal_core.diagnostics import RegionSearch, number_text
from kdcal_core.diagnostics.regions import p_text
from kdcal_core.figures import region_words


def every_region(looked: Looked, search: RegionSearch) -> None:
    """The regions in words with their numbers, for reading and to take along."""
    with st.container(border=True):
        st.markdown("**Every region**")
        table = region_table(search)
        st.dataframe(
            table,
            hide_index=True,
            height=390 if len(table) > 10 else "content",
            key="regions_table",
            column_config={
                "Rule": st.column_config.TextColumn(width=300),
                "Rows": st.column_config.NumberColumn(format="localized"),
                "Corrected p": st.column_config.TextColumn(
                    help="How often a model that is right here would show as large a gap, "
                    f"{text.corrected(search)}."
                ),
                "Would be found": st.column_config.TextColumn(
                    help="The gap that would be found in four of five searches with these rows."
                ),
            },
            alt="Regions with rule, rows, stated and observed rate, gap, corrected p and fault",
        )
        csv_button(
            search.table,
            key="regions_table_csv",
            name=f"{looked.review.title} {looked.which} regions table",
        )


def region_table(search: RegionSearch) -> pd.DataFrame:
    """A line for each region that has rows, the strongest evidence first."""
    regions = sorted(
        (one for one in search.regions if one.n > 0), key=lambda one: (one.p_value, -one.n)
    )
    seen = "Mean PIT" if search.regression else "Observed"
    columns = {
        "Rule": [text.rule_words(search, one) for one in regions],
        "Fault": [region_words.FAULTS[one.fault].capitalize() for one in regions],
        "Rows": [one.n for one in regions],
        "Stated": [number(one.observed, one.stated) for one in regions],
        seen: [f"{number(one.observed)} ({interval(one.observed)})" for one in regions],
        "Gap": [number(one.gap) for one in regions],
        "Corrected p": [p_text(one.adjusted_p) for one in regions],
        "Would be found": [
            number_text(one.minimum_detectable, one.minimum_detectable) for one in regions
        ],
    }
    if search.regression:
        del columns["Stated"]
    return pd.DataFrame(columns)
