"""The main finding on the Regions page, and the row of estimates."""

from __future__ import annotations

import streamlit as st

from app.regions import regions_text as text
from app.regions.regions_found import View
from app.regions.regions_repair import Repair
from app.shared import pit_results
from app.shared.tiles import estimate_tile
from kdcal_core.charts import regions_words, standing_out_words
from kdcal_core.diagnostics import Estimate, RegionSearch
from kdcal_core.tasks import ModelEstimates
from kdcal_core.text import escape_markdown, number_text, p_text


def finding(view: View, repair: Repair | None) -> None:
    """The main finding."""
    search, label = view.search, view.asked.label
    event = None if label is None else view.looked.review.classes[label]
    words = regions_words(search, event=event, before_repair=repair is not None)
    if repair is not None and repair.retrain:
        words = f"{words} {repair.second_words}"
    st.header(escape_markdown(words, 900), anchor=False)
    if view.looked.binary and not search.faulty:
        review = view.looked.review
        hint = text.other_target(view.asked.target, review.classes[review.event_class or 0])
        st.caption(escape_markdown(hint, 500))


def estimates(view: View, measured: ModelEstimates | None, repair: Repair | None) -> None:
    """The row of estimates.

    ``measured`` is None for a regression, and while a job is measuring.
    """
    search = view.search
    one, two, *rest = st.columns(4, gap="small")
    with one.container(border=True, height="stretch"):
        _count(search, view.looked.n_rows)
    with two.container(border=True, height="stretch"):
        _share(search)
    for column, (estimate, note) in zip(rest, _estimates(view, measured, repair), strict=False):
        with column:
            estimate_tile(estimate, note)


def _count(search: RegionSearch, n_rows: int) -> None:
    least = min(one.adjusted_p for one in search.regions if one.n > 0)
    st.metric(
        "Regions beyond chance",
        standing_out_words(search)[0],
        delta="all rows are one region" if search.one_part else f"smallest p {p_text(least)}",
        delta_color="off",
        delta_arrow="off",
        help="Regions whose stated and observed rates differ by more than chance explains. The p "
        f"values are {text.corrected(search)}.",
    )
    some = f" of {n_rows:,}" if search.n_judge < n_rows else ""
    st.caption(f"judged on {search.n_judge:,}{some} rows")


def _share(search: RegionSearch) -> None:
    st.metric(
        "Rows in them",
        standing_out_words(search)[1],
        delta="of all judged rows",
        delta_color="off",
        delta_arrow="off",
        help="Share of the judged rows that lie in regions with a fault. Below it is the smallest "
        "fault that four of five searches of these rows would find, in the region where faults are "
        "easiest to find. Other regions need a larger fault (see the table).",
    )
    least = min(one.minimum_detectable for one in search.regions)
    if least < 1:
        what = "shift of the mean PIT" if search.regression else "gap"
        st.caption(
            f"smallest {what} found 4 times in 5: {number_text(least, least)}, in the best region"
        )


def _estimates(
    view: View, measured: ModelEstimates | None, repair: Repair | None
) -> list[tuple[Estimate, str]]:
    """Two more tiles: AUROC and log loss, after the repair if there is one."""
    if view.looked.regression:
        whole = pit_results.overview_of(view.looked.judged)
        if whole is None:
            return []
        crps = whole.scores.rows["crps"]
        return [
            (whole.fault.bias, f"all {whole.fault.bias.n:,} rows together"),
            (crps, f"all {crps.n:,} rows together"),
        ]
    if measured is None:
        return []
    first = (measured.auc or measured.gap, "the model as it is")
    if repair is None or repair.after.difference is None:
        return [first, (measured.log_loss, "the model as it is")]
    after, by = repair.after, f"**after {escape_markdown(repair.after.title, 60)}**; "
    if after.auc is not None:
        first = (after.auc.b, by + text.auc_note(after))
    return [first, (after.log_loss, by + text.loss_note(after, repair.before.log_loss))]
