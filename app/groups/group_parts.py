"""The parts of the Groups page: the choice of columns, the finding, the forest plot, the table."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from app.shared import session, set_results
from app.shared.charts import drawn_once, is_dark, show
from kdcal_core.charts import groups_chart
from kdcal_core.diagnostics import (
    Estimate,
    GroupMeasures,
    GroupTable,
    estimate_text,
    groups_finding,
    value_text,
)
from kdcal_core.errors import InputError
from kdcal_core.review import Review, Which, group_columns, set_question
from kdcal_core.tasks import set_groups
from kdcal_core.text import escape_markdown, p_text

MOST_COLUMNS = 3
"""Columns that can be crossed."""


def choose_columns(review: Review) -> tuple[str, ...]:
    """The columns that divide the rows into groups; they belong to the review's question."""
    columns = group_columns(review)
    key = f"groups_columns_{review.id}"
    chosen: list[str] = st.multiselect(
        "Columns that divide the rows into groups",
        options=columns,
        default=[name for name in review.question.groups if name in columns],
        format_func=lambda name: name[:80],
        max_selections=MOST_COLUMNS,
        key=key,
        placeholder="Choose up to three columns" if columns else "There are no further columns",
        help="Several columns are crossed, numbers are divided into five parts, and groups of "
        "fewer than 30 rows are merged. The checks on the Overview use the same groups.",
    )
    if tuple(chosen) != review.question.groups:
        try:
            question = replace(review.question, groups=tuple(chosen))
            set_question(session.workspace(), review.id, question)
        except InputError as error:
            session.error_box(error)
            return ()
        st.rerun()
    return tuple(chosen)


def undeclared(review: Review) -> None:
    """What the page needs before it can show anything."""
    with st.container(border=True):
        if group_columns(review):
            st.markdown(
                "Choose the columns whose groups matter: who must not be treated worse, or where "
                "the model will be used. Declare them before you look at results: groups that are "
                "picked because of their results prove nothing."
            )
        else:
            st.markdown(
                "The tables have no columns besides the target and the predictions, so there are "
                "no groups to declare. Load tables that include further columns."
            )


def measured(review: Review, which: Which, columns: tuple[str, ...]) -> GroupTable | None:
    """The measures of every group; None while a job computes them."""
    return set_results.of(
        review, set_groups, which=which, event=review.event, columns=list(columns)
    )


def forest(review: Review, which: Which, found: GroupTable) -> None:
    """The finding, and four measures side by side."""
    st.header(escape_markdown(groups_finding(found), 400), anchor=False)
    with st.container(border=True):
        st.caption(f"Of {escape_markdown(found.target, 120)}; intervals hold for all groups.")
        show(
            drawn_once(groups_chart, found, dark=is_dark()),
            key="groups_forest",
            of=f"{review.title} {which}",
            finding=False,
        )


def table(found: GroupTable) -> None:
    """Every group in numbers."""
    rows = [_row(one) for one in (*found.groups, found.overall)]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="groups_table",
        column_config={
            "Rows": st.column_config.NumberColumn(format="localized"),
            "Smallest gap found": st.column_config.TextColumn(
                help="The gap that four of five samples of this size would have shown, after the "
                "correction for all groups."
            ),
        },
        alt="Every group with its rows, rate, gap, calibration error and AUC",
    )


def _row(one: GroupMeasures) -> dict[str, object]:
    def said(estimate: Estimate) -> str:
        return estimate_text(estimate, chance=False)

    region = one.region
    return {
        "Group": one.name,
        "Rows": region.n,
        "Verdict": "within chance" if region.fault == "none" else region.fault,
        one.rate.label: said(one.rate),
        "Stated": value_text(one.rate, region.stated),
        "Observed minus stated": said(one.gap),
        "ECE": said(one.error),
        "AUROC": said(one.area),
        "Smallest gap found": f"{min(region.minimum_detectable, 1.0):.3f}",
        "Corrected p value": p_text(region.adjusted_p),
    }
