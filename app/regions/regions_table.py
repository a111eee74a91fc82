"""Every region of the Regions page in words with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.regions import regions_text as text
from app.regions.regions_rows import Looked
from app.regions.regions_search import Found
from app.shared.charts import csv_button
from app.shared.numbers import interval, number
from kdcal_core.charts import FAULTS, ordered_regions, regions_table
from kdcal_core.diagnostics import Region, RegionSearch
from kdcal_core.text import number_text, p_text

LEAST = "Least found"


def every_region(looked: Looked, found: Found) -> None:
    """The regions in words with their numbers, for reading and to take along."""
    search = found.search
    with st.container(border=True):
        st.markdown("**Every region**")
        table = region_table(search, ranked=found.ranked)
        st.dataframe(
            table,
            hide_index=True,
            height=390 if len(table) > 10 else "content",
            key="regions_table",
            column_config={
                "Rule": st.column_config.TextColumn(width=275),
                "Rows": st.column_config.NumberColumn(format="localized"),
                "Corrected p": st.column_config.TextColumn(
                    help="How often a model that is right here would show as large a gap, "
                    f"{text.corrected(search)}."
                ),
                LEAST: st.column_config.TextColumn(
                    help=f"The {'shift of the mean PIT' if search.regression else 'gap'} that "
                    "would be found in four of five searches with these rows."
                ),
                "Spread": st.column_config.TextColumn(
                    help="Standard deviation of the PIT over uniform's, minus 1: above 0 the "
                    "stated spread is too narrow, below 0 too wide."
                ),
            },
            alt=f"Regions: {', '.join(table.columns).lower()}",
        )
        csv_button(
            lambda: regions_table(search),
            key="regions_table_csv",
            name=f"{looked.review.title} {looked.which} regions table",
        )


def region_table(search: RegionSearch, *, ranked: bool = True) -> pd.DataFrame:
    """A line for each region that has rows, in the order of the picture."""
    regions = ordered_regions(search, ranked=ranked)
    columns: dict[str, list[Any]] = {
        "No.": [one.leaf + 1 for one in regions],
        "Rule": [text.rule_words(search, one) for one in regions],
        "Fault": [FAULTS[one.fault].capitalize() for one in regions],
        "Rows": [one.n for one in regions],
    }
    tested = _tested_pit if search.regression else _tested_stated
    columns |= tested(regions)
    columns["Corrected p"] = [p_text(one.adjusted_p) for one in regions]
    columns[LEAST] = [
        number_text(one.minimum_detectable, one.minimum_detectable) for one in regions
    ]
    return pd.DataFrame(columns)


def _tested_stated(regions: Sequence[Region]) -> dict[str, list[str]]:
    return {
        "Stated": [number(one.observed, one.stated) for one in regions],
        "Observed": [f"{number(one.observed)} ({interval(one.observed)})" for one in regions],
        "Gap": [number(one.gap) for one in regions],
    }


def _tested_pit(regions: Sequence[Region]) -> dict[str, list[str]]:
    """What a fault of PIT values goes by: their place and their spread."""
    spreads = [one.spread for one in regions if one.spread is not None]
    return {
        "Mean PIT": [f"{number(one.observed)} ({interval(one.observed)})" for one in regions],
        "Spread": [f"{number(one)} ({interval(one)})" for one in spreads],
    }
