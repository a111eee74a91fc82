"""The upper part of the Regions page: what is asked, the finding, the tree and the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.widgets import pit_results, session
from app.widgets import regions_results as found
from app.widgets import regions_text as text
from app.widgets.charts import chart, csv_button, estimate_tile, is_dark
from app.widgets.numbers import interval, number
from app.widgets.regions_results import Looked, Purpose, Question
from app.widgets.set_choice import choose_set
from kdcal_core.data import escape_markdown
from kdcal_core.diagnostics import Estimate, Region, RegionSearch, number_text
from kdcal_core.diagnostics.regions import p_text
from kdcal_core.errors import InputError
from kdcal_core.figures import region_gaps_figure, region_marks, region_tree_figure, region_words
from kdcal_core.figures.regions import MAX_LINES
from kdcal_core.review import Review, samples
from kdcal_core.runs import RegionsMethod

PURPOSES: dict[Purpose, str] = {
    "wrong": "Where it is wrong",
    "classes": "Where classes differ",
    "column": "Along a column",
}
AUTOMATIC = "Automatic"
LEAST_ROWS = (AUTOMATIC, 10, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_KEPT: dict[str, Any] = {"persist_state": "session"}


@dataclass(frozen=True, eq=False)
class View:
    """A partition that was asked for, judged, and the region that is picked."""

    looked: Looked
    asked: Question
    search: RegionSearch
    picked: int

    @property
    def region(self) -> Region:
        return self.search.regions[self.picked]

    @property
    def label(self) -> int:
        """The class whose probability maps and pictures speak of."""
        target = self.asked.target
        return target if isinstance(target, int) else 1 if self.looked.binary else 0


def looked_at(review: Review) -> Looked | None:
    """The rows to look at; where no column describes them, says so and returns None."""
    if Looked(review, "calibration").columns:
        return Looked(review, choose_set(review, "regions"))
    st.subheader("There is nothing to cut into regions yet", anchor=False)
    with st.container(border=True):
        st.markdown(
            "This table holds the model's answers and the outcome, but no column that describes "
            "the rows. Regions are cut along such columns: the model's inputs, or anything else "
            "that is known of a row, such as a branch, a product or a date range. They need not be "
            "inputs of the model, and need no role."
        )
        st.markdown(
            "Add them to the table and load it again. Until then the rows can be told apart by "
            "what was predicted:"
        )
        with st.container(horizontal=True):
            for name, label in (
                (("pit", "PIT"),)
                if review.task == "regression"
                else (("reliability", "Reliability"), ("confidence", "Confidence by class"))
            ):
                session.page_link(name, label)
            session.page_link("load", "Load")
        first = next(one for one in samples() if one.task == review.task)
        if st.button("See it on a sample", key="regions_sample", icon=":material/play_arrow:"):
            session.open_sample(first.name)
    return None


def asked_for(looked: Looked) -> View | None:
    """The settings, and what they give; None, and why, where they give nothing."""
    with st.container(border=True):
        asked = _settings(looked)
        try:
            search = found.search_of(looked, asked)
        except InputError as error:
            session.error_box(error)
            return None
        view = _drawn(looked, asked, search)
    _table(view)
    return view


def _settings(looked: Looked) -> Question:
    """What is asked, in a row above what it changes."""
    first, *rest = st.columns([2.9, 0.9, 1, 1.2], vertical_alignment="bottom", gap="medium")
    with first:
        purpose = _purpose(looked)
    if purpose == "column":
        with rest[0]:
            column = _column(looked)
        with rest[2]:
            return Question("column", target=_target(looked), column=column)
    with rest[0]:
        depth = st.slider(
            "Depth",
            1,
            5,
            3,
            key="regions_depth",
            help="Questions asked before a region is reached.",
            **_KEPT,
        )
    with rest[1]:
        least: Any = st.select_slider(
            "Fewest rows",
            options=LEAST_ROWS,
            value=AUTOMATIC,
            key="regions_least",
            help="Of a region, among the rows that the regions are found on. Automatic: more where "
            "there are more rows, so that what is found can be told from chance.",
            **_KEPT,
        )
    with rest[2]:
        target = _target(looked)
    return Question(purpose, depth, None if least == AUTOMATIC else int(least), target)


def _purpose(looked: Looked) -> Purpose:
    options = [
        key
        for key in PURPOSES
        if (key == "column" or looked.inputs) and (key != "classes" or not looked.regression)
    ]
    purpose: Purpose = st.segmented_control(
        "Regions",
        options=options,
        default=options[0],
        required=True,
        format_func=PURPOSES.__getitem__,
        key=f"regions_purpose_{looked.review.task}",
        help="What the partition of the inputs is made for.",
        **_KEPT,
    )
    return purpose


def _column(looked: Looked) -> str:
    column: str = st.selectbox(
        "Column",
        options=looked.columns,
        format_func=lambda name: name[:60],
        key=f"regions_column_{looked.review.id}",
        help="Any column that describes the rows; it need not be an input of the model.",
        **_KEPT,
    )
    return column


def _target(looked: Looked) -> str | int:
    if looked.regression:
        return "confidence"
    classes = looked.review.classes
    target: str | int = st.selectbox(
        "Stated probability",
        options=["confidence", *range(len(classes))],
        format_func=lambda at: "Confidence" if at == "confidence" else f"of {classes[at]}"[:60],
        key=f"regions_target_{looked.review.id}",
        help="What is compared with what is seen: the predicted class's probability with how often "
        "it is right, or one class's probability with how often the row is of that class.",
        **_KEPT,
    )
    return target


def _drawn(looked: Looked, asked: Question, search: RegionSearch) -> View:
    """The tree, or the column's regions, with the picked one ringed."""
    picked = _picked(looked, asked, search)
    view = View(looked, asked, search, picked)
    key = f"regions_picture_{_short(looked, asked)}"
    if search.tree is not None:
        figure = region_tree_figure(
            search.tree, region_marks(search), dark=is_dark(), picked=picked
        )
    else:
        figure = region_gaps_figure(search, dark=is_dark(), picked=picked)
    chart(
        figure,
        key=key,
        takeaway=region_words.tree_words(search),
        how_to_read=text.TREE_OF_PIT if looked.regression else text.TREE,
        alt=region_words.tree_alt(search),
        table=search.table,
        name=f"{looked.review.title} {looked.which} regions",
        on_pick=partial(_on_pick, key, select_key(looked, asked), len(search.regions)),
    )
    if search.tree is None:
        st.caption("The regions with the strongest evidence stand first.")
    if search.tree is None and len(search.regions) > MAX_LINES:
        st.caption(
            f"The {MAX_LINES} regions with the strongest evidence of {len(search.regions):,} are "
            "drawn; the table holds all."
        )
    for name, reason in looked.left_out.items():
        st.caption(escape_markdown(f"{name} is left out. {reason}.", 300))
    return view


def _short(looked: Looked, asked: Question) -> str:
    return f"{looked.key[:12]}_{asked.purpose}_{abs(hash(asked)) % 10**8}"


def select_key(looked: Looked, asked: Question) -> str:
    return f"regions_picked_{_short(looked, asked)}"


def _picked(looked: Looked, asked: Question, search: RegionSearch) -> int:
    """The region that is looked at closely: the one picked, else the clearest fault."""
    chosen = st.session_state.get(select_key(looked, asked))
    if isinstance(chosen, int) and 0 <= chosen < len(search.regions):
        return chosen
    judged = [one for one in search.regions if one.n > 0]
    first = search.faulty[0] if search.faulty else min(judged, key=lambda one: one.p_value)
    return first.leaf


def _on_pick(chart_key: str, select_key: str, n_regions: int) -> None:
    """Keep the region whose mark was clicked; anything else is left alone."""
    leaf = picked_leaf(st.session_state.get(chart_key), n_regions)
    if leaf is not None:
        st.session_state[select_key] = leaf


def picked_leaf(event: Any, n_regions: int) -> int | None:
    """The region that a click stands for; ``event`` comes from the browser."""
    selection = event.get("selection") if isinstance(event, Mapping) else None
    points = selection.get("points") if isinstance(selection, Mapping) else None
    if not isinstance(points, list) or not points or not isinstance(points[-1], Mapping):
        return None
    carried = points[-1].get("customdata")
    if isinstance(carried, Mapping):  # arrays may arrive as objects with numbered places
        carried = [carried.get("0")]
    if not isinstance(carried, list | tuple) or not carried:
        return None
    leaf = carried[0]
    if isinstance(leaf, bool) or not isinstance(leaf, int | float) or leaf != leaf:
        return None
    return int(leaf) if 0 <= leaf < n_regions and leaf == int(leaf) else None


def finding(view: View, after: RegionsMethod | None, before: RegionsMethod | None) -> None:
    """What a reviewer should know first, and the row of estimates."""
    search = view.search
    st.subheader(escape_markdown(region_words.page_finding(search), 700), anchor=False)
    one, two, *rest = st.columns(4)
    with one.container(border=True, height="stretch"):
        _count(search)
    with two.container(border=True, height="stretch"):
        _share(search)
    for column, (estimate, note) in zip(rest, _estimates(view, after, before), strict=False):
        with column:
            estimate_tile(estimate, note)


def _count(search: RegionSearch) -> None:
    judged = [one for one in search.regions if one.n > 0]
    st.metric(
        "Regions beyond chance",
        f"{len(search.faulty):,} of {len(judged):,}",
        delta=f"smallest p {p_text(min(one.adjusted_p for one in judged))}",
        delta_color="off",
        delta_arrow="off",
        help="Regions whose stated and observed rates differ by more than chance explains. The p "
        "values are corrected for the number of regions (Holm).",
    )
    st.caption(f"judged on {search.n_judge:,} rows")


def _share(search: RegionSearch) -> None:
    least = min(one.minimum_detectable for one in search.regions)
    st.metric(
        "Rows in them",
        f"{region_words.faulty_share(search):.0%}",
        delta=f"gaps from {number_text(least, least)} are found" if least < 1 else None,
        delta_color="off",
        delta_arrow="off",
        help="Share of the judged rows that lie in regions with a fault. Below it, the smallest "
        "gap between stated and observed that would be found in four of five searches, in the "
        "region with most rows.",
    )
    st.caption("of all judged rows")


def _estimates(
    view: View, after: RegionsMethod | None, before: RegionsMethod | None
) -> list[tuple[Estimate, str]]:
    """Two more tiles: AUC and log loss, after the repair where there is one."""
    if view.looked.regression:
        whole = pit_results.whole_of(view.looked.judged)
        crps = whole.scores.rows["crps"]
        return [
            (whole.fault.bias, f"all {whole.fault.bias.n:,} rows together"),
            (crps, f"all {crps.n:,} rows together"),
        ]
    measured = found.whole_of(view.looked)
    first = (measured.auc or measured.gap, "the model as it is")
    if after is None or before is None or after.difference is None:
        return [first, (measured.log_loss, "the model as it is")]
    if after.auc is not None:
        first = (after.auc.b, text.auc_note(after))
    return [first, (after.log_loss, text.loss_note(after, before.log_loss))]


def _table(view: View) -> None:
    """The regions in words with their numbers, for reading and to take along."""
    search = view.search
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
                    "corrected for the number of regions (Holm)."
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
            name=f"{view.looked.review.title} {view.looked.which} regions table",
        )


def region_table(search: RegionSearch) -> pd.DataFrame:
    """A line for each region that has rows, the strongest evidence first."""
    regions = sorted(
        (one for one in search.regions if one.n > 0), key=lambda one: (one.p_value, -one.n)
    )
    seen = "Mean PIT" if search.regression else "Observed"
    columns = {
        "Rule": [one.words for one in regions],
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
