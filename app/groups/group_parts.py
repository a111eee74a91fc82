"""The parts of the Groups page: the choice of columns, the finding, the forest plot, the table."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from app.shared import in_browser, session, set_results
from app.shared.charts import drawn_once, is_dark, show
from app.shared.follow import follow
from app.shared.group_choice import choose_groups, declared
from app.shared.labels import unique_labels
from app.shared.one_of import one_of
from app.shared.sections import sections
from app.shared.seen_charts import seen
from app.shared.tables import show_table
from app.shared.version_choice import choose_version
from kdcal_core.charts import FAULTS, RepairedBy, groups_chart, pit_groups_chart
from kdcal_core.diagnostics import (
    Estimate,
    GroupMeasures,
    GroupTable,
    Region,
    estimate_text,
    value_text,
)
from kdcal_core.review import (
    Review,
    Which,
    group_columns,
    offered_groups,
    set_question,
    undeclared_groups,
)
from kdcal_core.tasks import repaired_groups, set_groups, set_pit_groups
from kdcal_core.text import escape_label, escape_markdown, listed, p_text

_SUGGESTED = 3
_GROUP_PIXELS = 170  # five intervals fit beside it on a screen of 1,366 pixels


def choose_columns(review: Review) -> tuple[str, ...]:
    """The columns that divide the rows into groups; they belong to the review's question.

    Of rows in order of time that order may be chosen instead, or together with a declared column;
    neither is part of the question.
    """
    time = _time(review)
    if time is not None:
        known, periods = declared(review), f"Periods of {escape_markdown(time, 60)}"
        ways = {"time": periods, "groups": "Declared groups"}
        ways |= {f"by {one}": f"{periods} by {escape_markdown(one, 60)}" for one in known}
        key = f"groups_by_{review.id}"
        if st.session_state.get(key) not in ways:  # of a group that is declared no more
            st.session_state.pop(key, None)
        way = one_of(
            "Rows divided by",
            ways,
            "groups" if known else "time",
            key=key,
            label_visibility="collapsed",
        )
        if way != "groups":
            return (*(one for one in known if way == f"by {one}"), time)
    key = f"groups_columns_{review.id}"
    # what the review holds now: another page, or another tab, may have declared other groups
    follow(key, declared(review))
    return choose_groups(
        review, key, "Columns that divide the rows into groups", _declare, args=(review.id, key)
    )


def _time(review: Review) -> str | None:
    """The column by which rows are ordered; None without one."""
    return None if review.roles is None else review.roles.time


def _in_time(review: Review, columns: tuple[str, ...]) -> bool:
    """Whether periods are shown, alone or of groups."""
    return columns[-1:] == (_time(review),)


def _kept_as(review: Review, columns: tuple[str, ...]) -> tuple[str, str]:
    """The key and the title under which an audit keeps the chart."""
    if _in_time(review, columns):
        *by, _ = columns
        if by:
            return "groups_in_time_by_column", f"Periods of time by {listed(by)}"
        return "groups_in_time", "Periods of time"
    return "groups", "Declared groups"


def _noun(review: Review, columns: tuple[str, ...]) -> str:
    """What a part of the rows is called."""
    return "period" if columns == (_time(review),) else "group"


def _declare(review_id: str, key: str) -> None:
    """Callback: the groups just chosen become those of the review's question."""
    workspace = session.workspace()
    question = replace(workspace.read(review_id).question, groups=tuple(st.session_state[key]))
    with session.reporting_errors():
        set_question(workspace, review_id, question)


def undeclared(review: Review) -> None:
    """What the page needs before it can show anything."""
    with st.container(border=True):
        if group_columns(review):
            st.markdown(
                "Here you will see for which groups of rows the model states too much or too "
                "little, how well it ranks them, and the smallest gap that these rows can show. "
                "Choose the columns whose groups matter: who must not be treated worse, or where "
                "the model will be used. Declare them before you look at results: groups that are "
                "picked because of their results prove nothing."
            )
            _suggested(review)
        else:
            st.markdown(
                "The tables have no columns besides the target and the predictions, so there are "
                "no groups to declare. Load tables that include further columns."
            )


def _suggested(review: Review) -> None:
    """Buttons for columns of few words; those that the model does not read lead."""
    unread, free = undeclared_groups(review), offered_groups(review)
    words = [
        one
        for one in review.tables["calibration"].columns
        if one.name in free and one.kind in ("text", "boolean") and one.n_distinct > 1
    ]
    words.sort(key=lambda one: (one.name not in unread, one.n_distinct))
    key = f"groups_columns_{review.id}"
    labels = unique_labels([f"Groups of {escape_label(o.name, 40)}" for o in words[:_SUGGESTED]])
    with st.container(horizontal=True):
        for at, (one, label) in enumerate(zip(words, labels, strict=False)):
            st.button(
                label,
                key=f"groups_of_{at}",
                on_click=_declare_one,
                args=(review.id, key, one.name),
            )


def _declare_one(review_id: str, key: str, name: str) -> None:
    st.session_state[key] = [name]
    _declare(review_id, key)


def measured(review: Review, which: Which, columns: tuple[str, ...]) -> GroupTable | None:
    """The measures of every group; None while a job computes them."""
    return set_results.of(
        review, set_groups, which=which, event=review.event, columns=list(columns)
    )


def distributions(review: Review, which: Which, columns: tuple[str, ...]) -> None:
    """Of a regression: the finding, the groups' mean PIT values, and the table of both faults."""
    found = set_results.of(review, set_pit_groups, which=which, columns=list(columns))
    if found is None:
        return
    noun, in_time = _noun(review, columns), _in_time(review, columns)
    kept = _kept_as(review, columns)
    ranked = noun != "period"  # of periods of groups not all lines are drawn
    chart = drawn_once(pit_groups_chart, found, columns, dark=is_dark(), ranked=ranked)
    st.header(escape_markdown(chart.finding, 600), anchor=False)
    with st.container(border=True):
        st.caption(f"Mean PIT value of every {noun}, with its 95% interval")
        seen(
            *(review, *kept, "groups", pit_groups_chart, found, columns),
            ranked=ranked,
            settings=f"{noun}s of {listed(columns)}; {which} set",
        )
        show(chart, key="groups_pit", of=f"{review.title} {which}", finding=False)
    show_table(
        pd.DataFrame([_pit_row(one, noun) for one in found.regions if one.n]),
        key="groups_table",
        column_config={
            noun.capitalize(): st.column_config.TextColumn(width="medium"),
            "Rows": st.column_config.NumberColumn(format="localized"),
            "Location": st.column_config.TextColumn(
                help="Mean PIT value minus one half: above 0 predictions are too low."
            ),
            "Spread": st.column_config.TextColumn(
                help="Standard deviation of the PIT values over that of uniform ones, minus 1: "
                "above 0 the stated spread is too narrow."
            ),
        },
        alt=f"Every {noun} with its rows, verdict, place and spread of the PIT values",
    )
    on_overview = (
        "The check of the latest forecasts on Overview compares them with those before."
        if in_time
        else "The check of declared groups on Overview judges the same estimates with intervals "
        "that hold for all checks together."
    )
    st.caption(
        f"Intervals here are of each {noun} alone, and verdicts come from p values corrected for "
        f"all {noun}s. {on_overview}"
    )


def _pit_row(one: Region, noun: str) -> dict[str, object]:
    return {
        noun.capitalize(): one.words,
        "Rows": one.n,
        "Verdict": FAULTS[one.fault].capitalize(),
        "Location": estimate_text(one.gap, chance=False),
        "Spread": "" if one.spread is None else estimate_text(one.spread, chance=False),
        "Corrected p value": p_text(one.adjusted_p),
    }


def forest(
    review: Review, which: Which, columns: tuple[str, ...], found: GroupTable
) -> RepairedBy | None:
    """The finding, and four measures side by side, of the model and of a calibrated version.

    Returns the calibrated version, where one is chosen.
    """
    headline, noun = st.empty(), _noun(review, columns)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            on_overview = (
                "the check on Overview compares the latest rows with those before."
                if _in_time(review, columns)
                else "those of the check on Overview hold for all checks together."
            )
            st.caption(
                f"Of {escape_markdown(found.target, 120)}. Intervals here hold for all {noun}s "
                f"together; {on_overview}"
            )
            method = choose_version(review, "groups")
        repaired = _repaired(review, which, columns, method)
        with_version = "" if repaired is None else f" with {repaired.name}"
        seen(
            *(review, *_kept_as(review, columns), "groups", groups_chart, found),
            repaired=repaired,
            noun=noun,
            settings=f"{noun}s of {listed(columns)}{with_version}; {which} set",
        )
        chart = drawn_once(
            groups_chart,
            found,
            dark=is_dark(),
            repaired=repaired,
            narrow=in_browser.is_narrow(),
            noun=noun,
        )
        show(chart, key="groups_forest", of=f"{review.title} {which}", finding=False)
    headline.header(escape_markdown(chart.finding, 600), anchor=False)
    return repaired


def _repaired(
    review: Review, which: Which, columns: tuple[str, ...], method: str | None
) -> RepairedBy | None:
    if method is None:
        return None
    found = set_results.of(
        review, repaired_groups,
        which=which, event=review.event, columns=list(columns), method=method,
    )  # fmt: skip
    return None if found is None else RepairedBy(found.table, method, found.name)


def table(
    review: Review, columns: tuple[str, ...], found: GroupTable, repaired: RepairedBy | None
) -> None:
    """Every group in numbers, as the model and as the calibrated version state it."""
    groups, noun = (*found.groups, found.overall), _noun(review, columns)
    tables = {
        "Measures": pd.DataFrame([_measures(one) for one in groups]),
        "Evidence": pd.DataFrame([_evidence(one) for one in groups]),
    }
    if repaired is not None:
        after = (*repaired.table.groups, repaired.table.overall)
        name = f"With {escape_label(repaired.name, 40)}"
        tables[name] = pd.DataFrame([_after(one) for one in after])
    called = {"Group": noun.capitalize()}
    shown = {
        name: partial(_shown, name, one.rename(columns=called), noun)
        for name, one in tables.items()
    }
    sections("groups_sections", shown)


def _shown(name: str, rows: pd.DataFrame, noun: str) -> None:
    show_table(
        rows,
        key=f"groups_table_{name.partition(' ')[0].lower()}",
        column_config={
            noun.capitalize(): st.column_config.TextColumn(width=_GROUP_PIXELS),
            "Rows": st.column_config.NumberColumn(format="localized"),
            "Smallest gap found": st.column_config.TextColumn(
                help="The gap that four of five samples of this size would have shown, after the "
                f"correction for all {noun}s."
            ),
            "Jeffreys p value": st.column_config.TextColumn(
                help="The probability that the event happens at most as often as stated, given "
                "these rows. A small one means that the stated probability is too low. Banks "
                f"report it for each rating grade (ECB 2019); it is not corrected for all {noun}s."
            ),
        },
        alt=f"Every {noun} with its {', '.join(rows.columns[1:]).lower()}",
    )


def _verdict(one: GroupMeasures) -> str:
    return "within chance" if one.region.fault == "none" else one.region.fault


def _of_group(one: GroupMeasures) -> dict[str, object]:
    return {"Group": one.name, "Rows": one.region.n}


def _measures(one: GroupMeasures) -> dict[str, object]:
    def said(estimate: Estimate) -> str:
        return estimate_text(estimate, chance=False)

    return {
        **_of_group(one),
        one.rate.label: said(one.rate),
        "Stated": value_text(one.rate, one.region.stated),
        "Observed minus stated": said(one.gap),
        "ECE": said(one.error),
        "AUROC": said(one.area),
    }


def _evidence(one: GroupMeasures) -> dict[str, object]:
    region = one.region
    return {
        **_of_group(one),
        "Verdict": _verdict(one),
        "Smallest gap found": f"{min(region.minimum_detectable, 1.0):.3f}",
        "Corrected p value": p_text(region.adjusted_p),
        **({} if one.jeffreys is None else {"Jeffreys p value": p_text(one.jeffreys)}),
    }


def _after(one: GroupMeasures) -> dict[str, object]:
    return {
        **_of_group(one),
        "Verdict": _verdict(one),
        "Observed minus stated": estimate_text(one.gap, chance=False),
        "ECE": estimate_text(one.error, chance=False),
    }
