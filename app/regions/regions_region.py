"""One region in detail: its reliability beside that of all rows, its map, its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.regions import regions_text as text
from app.regions.regions_found import View, select_key
from app.regions.regions_search import LEVEL, every_row_of, panels_of, rows_of
from app.regions.regions_settings import words
from app.shared import in_browser
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.row_tables import beside, most_text, pit_answers
from app.shared.seen_charts import seen
from app.shared.tables import show_table
from kdcal_core.calibration.regions import RegionFit, RegionMap
from kdcal_core.charts import (
    Chart,
    PitPanel,
    pit_panels_chart,
    region_map_words,
    region_maps_chart,
    region_reliability_chart,
)
from kdcal_core.diagnostics import region_finding
from kdcal_core.tasks import PitRows, RegionPanels, RegionRows
from kdcal_core.text import escape_markdown, formatted

PAGE_ROWS = 100


def closely(view: View) -> RegionPanels | None:
    """The picked region, which can be chosen without a mouse; None while a job runs."""
    with st.container(border=True):
        panels = panels_of(view.looked, view.found, view.picked)
        if panels is None:
            return None
        st.subheader("One region in detail", anchor=False)
        _choose(view)
        words = region_finding(view.region, regression=view.looked.regression)
        st.markdown(escape_markdown(words, 800))
        if view.region.n == 0:
            return panels
        if view.looked.regression:
            _pit(view, panels)
        else:
            fit, lines = panels.fits[view.picked], panels.maps
            words = _map_words(view, fit, lines)
            st.markdown(escape_markdown(f"{_map_lead(view)} {words}", 1000))
            left, right = st.columns([5, 3], gap="medium")
            with left:
                _reliability(view, panels)
            with right:
                _map(view, lines, words)
            if not view.looked.binary:
                _every_class(view, fit)
        _rows(view)
    return panels


def _seen(
    view: View, key: str, title: str, make: Callable[..., Chart], *args: Any, **kwargs: Any
) -> None:
    """Note a chart of the picked region for an audit."""
    looked = view.looked
    rule = text.rule_words(view.search, view.region)[:120]
    settings = f"region {view.picked + 1}, {rule}; {words(looked, view.asked)}; {looked.which} set"
    seen(looked.review, key, title, "regions", make, *args, settings=settings, **kwargs)


def _choose(view: View) -> None:
    regions = view.search.regions
    key = select_key(view.found)
    st.session_state.setdefault(key, view.picked)
    st.selectbox(
        "Region",
        options=[one.leaf for one in regions],
        format_func=lambda leaf: f"{leaf + 1}. {text.rule_words(view.search, regions[leaf])}"[:140],
        key=key,
        help="Or click a mark in the picture above.",
    )


def _reliability(view: View, panels: RegionPanels) -> None:
    region, everything = panels.of(view.picked).reliability, panels.everything.reliability
    assert region is not None  # of every classification
    assert everything is not None
    drawn = region if len(view.search.regions) > 1 else None, everything, view.picked + 1
    of_class = view.asked.label is not None
    _seen(
        view,
        "region",
        "Reliability of a region",
        region_reliability_chart,
        *drawn,
        of_class=of_class,
    )
    show(
        drawn_once(region_reliability_chart, *drawn, of_class=of_class, dark=is_dark()),
        key="regions_reliability",
        of=view.looked.review.title,
    )


def _map(view: View, lines: Sequence[RegionMap], words: str) -> None:
    """The effect of a Platt map of the region."""
    titled = "region_maps", "The map of a region"
    _seen(view, *titled, region_maps_chart, lines, view.picked, words)
    show(
        drawn_once(region_maps_chart, lines, view.picked, words, dark=is_dark()),
        key="regions_maps",
        of=view.looked.review.title,
    )


def _map_lead(view: View) -> str:
    if view.region.fault == "none":
        return "Nothing is wrong here beyond chance. The effect of a map fitted here:"
    return "The effect of a repair here:"


def _map_words(view: View, fit: RegionFit, lines: Sequence[RegionMap]) -> str:
    at = 0 if view.looked.binary else view.label
    mine = next(one for one in lines if one.leaf == view.picked)
    name = view.looked.review.classes[view.label]
    words = region_map_words(mine, name, fit.borrowed[at], fit.flags)
    if fit.needed:
        words += (
            f" It is fitted on all {fit.n:,} rows of the region, including those used to find it; "
            f"with about {fit.needed:,} rows it would need no others."
        )
    return words


def _every_class(view: View, fit: RegionFit) -> None:
    with st.expander(
        "The map of every class", key="regions_every_class", on_change="rerun"
    ) as shown:
        if shown.open:
            show_table(
                pd.DataFrame(
                    {
                        "Class": list(view.looked.review.classes),
                        "Rows": list(fit.n_by_class),
                        "Slope": [formatted(one, ".2f") for one in fit.parameters["slope"]],
                        "Offset": [formatted(one, ".2f") for one in fit.parameters["offset"]],
                        "Borrowed": [f"{one:.0%}" for one in fit.borrowed],
                    }
                ),
                key="regions_class_maps",
                column_config={"Rows": st.column_config.NumberColumn(format="localized")},
                alt="Slope and offset of the region's map of every class",
            )


def _pit(view: View, found: RegionPanels) -> None:
    panels, region = [], found.of(view.picked)
    for name, one in (("This region", region), ("All judged rows", found.everything)):
        assert one.pit is not None  # of every regression
        assert one.fault is not None
        panels.append(PitPanel(name, one.pit, one.fault.kind))
    assert region.fault is not None
    st.markdown(escape_markdown(region.fault.words, 400))
    name = f"PIT of region {view.picked + 1}"
    titled = "region_pit", "PIT of a region"
    _seen(view, *titled, pit_panels_chart, panels, name=name, columns=2)
    show(
        drawn_once(
            pit_panels_chart,
            panels,
            name=name,
            columns=2,
            dark=is_dark(),
            narrow=in_browser.is_narrow(),
        ),
        key="regions_pit",
        of=view.looked.review.title,
        finding=False,  # shown above, for this region only
    )


def _rows(view: View) -> None:
    with st.expander(
        "The rows of this region", key="regions_rows_open", on_change="rerun"
    ) as opened:
        if not opened.open:
            return
        looked, found = view.looked, view.found
        page = rows_of(looked, found, view.picked, PAGE_ROWS)
        if page is None:
            return
        said = (
            "starting with those whose outcome lies furthest out"
            if looked.regression
            else "starting with those whose true class has the lowest probability"
        )
        shown = _answers(page)
        more = f" of {page.n:,}" if page.n > len(shown) else ""
        st.caption(f"{len(shown):,}{more} judged rows, {said}.")
        show_table(
            shown,
            height=390 if len(shown) > 10 else "content",
            key="regions_rows",
            column_config={"Row": st.column_config.NumberColumn(format="localized")},
            alt="Rows of the region with the model's predictions and their own values",
        )
        every = every_row_of(looked, found, view.picked, f"Prepare {most_text(page.n)} as CSV")
        if every is not None:
            csv_button(
                lambda: _answers(every()),
                key="regions_rows_csv",
                of=looked.review.title,
                what=f"rows of region {view.picked + 1}",
            )


def _answers(rows: RegionRows | PitRows) -> pd.DataFrame:
    if isinstance(rows, PitRows):
        return pit_answers(rows, LEVEL)
    return beside(rows.said, rows.own, rows.rows)
