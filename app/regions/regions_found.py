"""The upper part of the Regions page: the tree or the column's regions, and the picked one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.regions import regions_search, regions_settings
from app.regions import regions_text as text
from app.regions.regions_search import Found, Looked, search_of
from app.shared import in_browser, navigation, session
from app.shared.box_selection import carried
from app.shared.charts import csv_button, drawn_once, is_dark, show
from app.shared.seen_charts import seen
from app.shared.set_choice import choose_set
from app.shared.tables import show_table
from kdcal_core.charts import FAULTS, ordered_regions, regions_chart, regions_table
from kdcal_core.diagnostics import Region, RegionSearch, estimate_text, value_text
from kdcal_core.errors import InputError
from kdcal_core.review import Review, left_out_words, samples
from kdcal_core.tasks import RegionQuestion
from kdcal_core.text import escape_markdown, number_text, p_text


@dataclass(frozen=True, eq=False)
class View:
    """A judged partition and the picked region."""

    looked: Looked
    asked: RegionQuestion
    found: Found
    picked: int

    @property
    def search(self) -> RegionSearch:
        return self.found.search

    @property
    def region(self) -> Region:
        return self.search.regions[self.picked]

    @property
    def event(self) -> str | None:
        """The class of two whose probability is asked about. Untrusted text."""
        asked = self.asked.label
        return (
            self.looked.review.classes[asked] if self.looked.binary and asked is not None else None
        )

    @property
    def label(self) -> int:
        """The class whose probability the maps and pictures show."""
        asked = self.asked.label
        return asked if asked is not None else 1 if self.looked.binary else 0


def looked_at(review: Review) -> Looked | None:
    """The rows to show; if no column describes them, the page says so and the result is None.

    Also None while a job reads the columns.
    """
    looked = regions_search.looked_at(review, "calibration")
    if looked is None:
        return None
    if looked.columns:
        which = choose_set(review, "regions")
        return looked if which == "calibration" else regions_search.looked_at(review, which)
    _without_columns(review)
    return None


def _without_columns(review: Review) -> None:
    st.header("There are no columns to divide into regions yet", anchor=False)
    with st.container(border=True):
        st.markdown(
            "This table has the model's predictions and the outcome, but no column that describes "
            "the rows. Regions are cut along such columns: the model's inputs, or anything else "
            "known about a row, such as a branch, a product or a date range. They need not be "
            "inputs of the model, and need no role."
        )
        st.markdown(
            "Add them to the table and load it again. Until then you can look at the rows by "
            "prediction:"
        )
        with st.container(horizontal=True):
            classes = ("reliability", "confidence_by_class")
            for name in (*(("pit",) if review.task == "regression" else classes), "load"):
                navigation.page_link(name, navigation.places()[name].title)
        first = next(one for one in samples() if one.task == review.task)
        if st.button("See it on a sample", key="regions_sample", icon=":material/play_arrow:"):
            session.open_sample(first.name)


def searched(looked: Looked, asked: RegionQuestion) -> View | None:
    """The picture of the regions; without regions, None and an explanation on the page."""
    with st.container(border=True):
        picture = st.container()
        try:
            found = _found(looked, asked)  # below the picture: which search it is
        except InputError as error:
            _no_regions(error)
            return None
        if found is None:
            return None
        with picture:
            return _drawn(looked, asked, found)


def pays(looked: Looked) -> list[str]:
    """The title of the section that asks whether a repair by regions pays; of classes only."""
    return [] if looked.regression else ["Does it pay?"]


def _no_regions(error: InputError) -> None:
    """What to do if the rows give no regions with these settings."""
    st.header("No regions with these rows and settings", anchor=False)
    st.markdown(escape_markdown(f"{error.what}. {error.fix}", 600))
    st.caption("Along a column there is no such limit, so small tables can be examined too.")


def _found(looked: Looked, asked: RegionQuestion) -> Found | None:
    if asked.purpose == "wrong" and not looked.regression:
        return regions_settings.shown(looked, asked)
    return search_of(looked, asked)


def _drawn(looked: Looked, asked: RegionQuestion, found: Found) -> View:
    """The tree, or the column's regions, with a ring around the picked one."""
    search, picked = found.search, _picked(found)
    view = View(looked, asked, found, picked)
    key = f"regions_picture_{found.short}"
    seen(
        *(looked.review, "regions", "Regions", "regions", regions_chart, search),
        ranked=found.ranked,
        settings=f"{regions_settings.words(looked, asked)}; {looked.which} set",
    )
    show(
        drawn_once(
            regions_chart,
            search,
            dark=is_dark(),
            picked=picked,
            ranked=found.ranked,
            narrow=in_browser.is_narrow(),
        ),
        key=key,
        of=f"{looked.review.title} {looked.which}",
        on_pick=partial(_on_pick, key, select_key(found), len(search.regions)),
    )
    if search.tree is None:
        st.caption(text.standing(found.ranked))
    if asked.purpose != "column":
        unsearched = left_out_words(looked.known.not_searched, "Not searched")
        st.caption(escape_markdown(unsearched, 900))
    return view


def select_key(found: Found) -> str:
    return f"regions_picked_{found.short}"


def _picked(found: Found) -> int:
    """The region to show in detail: the picked one, or the clearest fault."""
    search = found.search
    chosen = st.session_state.get(select_key(found))
    if isinstance(chosen, int) and 0 <= chosen < len(search.regions):
        return chosen
    judged = [one for one in search.regions if one.n > 0]
    first = search.faulty[0] if search.faulty else min(judged, key=lambda one: one.p_value)
    return first.leaf


def _on_pick(chart_key: str, select_key: str, n_regions: int) -> None:
    """Keep the region whose mark was clicked; ignore everything else."""
    leaf = picked_leaf(st.session_state.get(chart_key), n_regions)
    if leaf is not None:
        st.session_state[select_key] = leaf


def picked_leaf(event: Any, n_regions: int) -> int | None:
    """The region of a click; ``event`` comes from the browser."""
    selection = event.get("selection") if isinstance(event, Mapping) else None
    points = selection.get("points") if isinstance(selection, Mapping) else None
    leaf = carried(points[-1]) if isinstance(points, list) and points else None
    if isinstance(leaf, bool) or not isinstance(leaf, int | float) or leaf != leaf:
        return None
    return int(leaf) if 0 <= leaf < n_regions and leaf == int(leaf) else None


LEAST = "Smallest found"


def every_region(looked: Looked, found: Found) -> None:
    """The regions in words with their numbers, for reading and for download."""
    search = found.search
    with st.container(border=True):
        st.subheader("Every region", anchor=False)
        table = region_table(search, ranked=found.ranked)
        show_table(
            table,
            height=390 if len(table) > 10 else "content",
            key="regions_table",
            column_config={
                "Rule": st.column_config.TextColumn(width=275),
                "Rows": st.column_config.NumberColumn(format="localized"),
                "Corrected p": st.column_config.TextColumn(
                    help="How often a model that is right here would show a gap this large, "
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
            of=f"{looked.review.title} {looked.which}",
            what="regions table",
        )


def region_table(search: RegionSearch, *, ranked: bool = True) -> pd.DataFrame:
    """One row per region with rows, in the order of the picture."""
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
        "Stated": [value_text(one.observed, one.stated) for one in regions],
        "Observed": [estimate_text(one.observed, chance=False) for one in regions],
        "Gap": [value_text(one.gap) for one in regions],
    }


def _tested_pit(regions: Sequence[Region]) -> dict[str, list[str]]:
    """The tested quantities of a fault of PIT values: their location and their spread."""
    spreads = [one.spread for one in regions if one.spread is not None]
    return {
        "Mean PIT": [estimate_text(one.observed, chance=False) for one in regions],
        "Spread": [estimate_text(one, chance=False) for one in spreads],
    }
