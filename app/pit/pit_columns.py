"""Coverage and faults along any column of the table, with p values corrected for all regions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from app.pit.pit_map import column_title
from app.shared import in_browser, pit_results
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.emphasis import quiet
from app.shared.pit_results import Judged
from app.shared.seen_charts import seen
from app.shared.tables import show_table
from kdcal_core.charts import FAULT_TITLES, PitPanel, coverage_by_chart, pit_panels_chart
from kdcal_core.diagnostics import (
    RegionPit,
    estimate_text,
    regions_finding,
)
from kdcal_core.review import drawn_words
from kdcal_core.tasks import MEAN, SPREAD
from kdcal_core.text import counted, escape_markdown, p_text

MAX_PANELS = 12
CORRECTION = """
**p value**: how often a calibrated model with the same number of rows would show PIT values in this
region that are as far from uniform as these. **Corrected (Holm)**: the same, increased for the
number of regions in this table, because among many regions some look wrong by chance. A fault is
named if the corrected p value is below 0.05. If the model is right everywhere, any fault is named
in at most 5% of all samples.

Numbers are cut into regions with equal numbers of rows. Each category is a region; the rarest ones
are merged. The outcome cannot be chosen, because rows picked by their outcome make every prediction
look wrong.
"""


@st.fragment
def over_a_column(judged: Judged) -> None:
    """Coverage bin by bin of one column, and the table of its regions."""
    with st.container(border=True):
        st.subheader("Along a column", anchor=False)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            column = _column(judged)
            bins = st.slider(
                "Regions",
                2,
                20,
                8,
                key="pit_regions",
                persist_state="session",
                width=230,
                help="For a column of numbers: the largest number of regions.",
            )
        regions = pit_results.by_column(judged, column, bins)
        if regions is None:
            return
        st.markdown(escape_markdown(regions_finding(regions), 800))
        if drawn := drawn_words(judged.review, judged.which):
            st.caption(drawn)
        _coverage(judged, column, regions)
        _table(judged, regions)
        _histograms(judged, column, regions)


def columns_of(judged: Judged) -> list[str]:
    """Features first, then the predictions, then the other columns of the table."""
    roles = judged.review.roles
    assert roles is not None
    named = [column.name for column in judged.review.tables[judged.which].columns]
    taken = {roles.target, roles.true_mean, roles.weight, *(name for _, name in roles.parameters)}
    others = [name for name in named if name not in {*roles.features, *taken}]
    return [*roles.features, MEAN, SPREAD, *others]


def _column(judged: Judged) -> str:
    column: str = st.selectbox(
        "Column",
        options=columns_of(judged),
        format_func=partial(column_title, judged),
        key=f"pit_column_{judged.review.id}",
        persist_state="session",
        width=260,
        help="Any column of the table, or the predictions. It need not be a feature: calibration "
        "along a column that the model never saw can be informative.",
    )
    return column


def _coverage(judged: Judged, column: str, regions: Sequence[RegionPit]) -> None:
    kept = [(one.name, one.coverage) for one in regions if one.coverage is not None]
    names, rows = [name for name, _ in kept], [row for _, row in kept]
    title = column_title(judged, column)
    seen(
        *(judged.review, "pit_column", "Coverage along a column", "pit"),
        *(coverage_by_chart, names, rows),
        column=title,
        settings=f"{counted(len(names), 'region')} of {title[:60]}; {judged.which} set",
    )
    show(
        drawn_once(coverage_by_chart, names, rows, column=title, dark=is_dark()),
        key="pit_by_column",
        of=f"{judged.review.title} {judged.which}",
    )


def _table(judged: Judged, regions: Sequence[RegionPit]) -> None:
    table = region_table(regions)
    show_table(
        table,
        height=390 if len(table) > 10 else "content",
        key="pit_region_table",
        column_config={
            "Rows": st.column_config.NumberColumn(format="localized"),
            "Location": st.column_config.TextColumn(
                help="Mean PIT minus 0.5: above 0 predictions are too low."
            ),
            "Spread": st.column_config.TextColumn(
                help="Standard deviation of the PIT over uniform's, minus 1: above 0 the stated "
                "spread is too narrow.",
            ),
        },
        alt="Regions of the column with rows, fault, coverage and corrected p value",
    )
    with st.container(horizontal=True, gap="small"):
        with st.popover("How p values are corrected", type=quiet(), icon=":material/help:"):
            st.markdown(CORRECTION)
        csv_button(
            lambda: full_table(regions),
            key="pit_region_csv",
            of=f"{judged.review.title} {judged.which}",
            what="regions",
        )


def region_table(regions: Sequence[RegionPit]) -> pd.DataFrame:
    """One row per region, for reading."""
    return pd.DataFrame(
        {
            "Region": [one.name for one in regions],
            "Rows": [one.n for one in regions],
            "Fault": [FAULT_TITLES[one.fault.kind].capitalize() for one in regions],
            f"{_level(regions)} intervals hold": [
                estimate_text(one.coverage.coverage, chance=False) if one.coverage else ""
                for one in regions
            ],
            "Location": [estimate_text(one.fault.bias, chance=False) for one in regions],
            "Spread": [estimate_text(one.fault.spread, chance=False) for one in regions],
            "Corrected p": [p_text(one.adjusted_p) for one in regions],
        }
    )


def _level(regions: Sequence[RegionPit]) -> str:
    """The stated level of the regions' intervals."""
    levels = [one.coverage.level for one in regions if one.coverage]
    return f"{100 * levels[0]:g}%" if levels else "95%"


def full_table(regions: Sequence[RegionPit]) -> pd.DataFrame:
    """One row per region with its sentence and every number, for download."""
    return pd.DataFrame(
        [
            {
                "region": one.name,
                "rows": one.n,
                "share": one.share,
                "fault": one.fault.kind,
                "words": one.fault.words,
                "interval": one.coverage.level if one.coverage else None,
                "coverage": one.coverage.coverage.value if one.coverage else None,
                "coverage_low": one.coverage.coverage.low if one.coverage else None,
                "coverage_high": one.coverage.coverage.high if one.coverage else None,
                "bias": one.fault.bias.value,
                "bias_low": one.fault.bias.low,
                "bias_high": one.fault.bias.high,
                "spread": one.fault.spread.value,
                "spread_low": one.fault.spread.low,
                "spread_high": one.fault.spread.high,
                "p_value": one.p_value,
                "p_value_holm": one.adjusted_p,
                "kolmogorov_smirnov_p": one.tests[0].p_value,
            }
            for one in regions
        ]
    )


def _histograms(judged: Judged, column: str, regions: Sequence[RegionPit]) -> None:
    with st.expander(
        "PIT histogram of each region", key="pit_region_histograms", on_change="rerun"
    ) as shown:
        if not shown.open:
            return
        if len(regions) > MAX_PANELS:
            st.caption(
                f"The {MAX_PANELS} regions with most rows of {len(regions):,} are drawn; the CSV "
                "contains all."
            )
        panels = [PitPanel(one.name, one.pit, one.fault.kind) for one in regions]
        seen(
            *(judged.review, "pit_by_column", "PIT along a column", "pit"),
            *(pit_panels_chart, panels),
            name="PIT by region",
            columns=4,
            most=MAX_PANELS,
            settings=f"regions of {column_title(judged, column)[:60]}; {judged.which} set",
        )
        show(
            drawn_once(
                pit_panels_chart,
                panels,
                name="PIT by region",
                columns=4,
                dark=is_dark(),
                most=MAX_PANELS,
                narrow=in_browser.is_narrow(),
            ),
            key="pit_region_panels",
            of=f"{judged.review.title} {judged.which}",
            finding=False,
        )
