"""The settings of the Regions page, for the quick and the thorough search."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from app.regions import regions_search
from app.regions import regions_text as text
from app.regions.regions_search import Found, Looked, search_of
from app.shared import job_results, session, waiting
from app.shared.emphasis import quiet
from app.shared.question_choice import Asked, choose_question, question_words
from kdcal_core.diagnostics import Kind as AskedKind
from kdcal_core.diagnostics import redraws_by_default
from kdcal_core.tasks import Purpose, RegionQuestion, RegionSearchSettings, Request, search_regions
from kdcal_core.text import counted

PURPOSES: dict[Purpose, str] = {
    "wrong": "Where it is wrong",
    "classes": "Where classes differ",
    "column": "Along a column",
}
AUTOMATIC = "Automatic"
LEAST_ROWS = (AUTOMATIC, 10, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
_KEPT: dict[str, Any] = {"persist_state": "session"}


def asked_for(looked: Looked) -> RegionQuestion:
    """The purpose of the regions, and in one fold how they are found."""
    purpose = _purpose(looked)
    if purpose == "column":
        column = _column(looked)
        return RegionQuestion("column", label=_label(looked, width=260), column=column)
    with st.popover("Question and size", icon=":material/tune:", type=quiet()):
        label = _label(looked)
        depth = st.slider(
            "Depth",
            1,
            5,
            3,
            key="regions_depth",
            help="Largest number of conditions that define a region.",
            **_KEPT,
        )
        least: Any = st.select_slider(
            "Fewest rows",
            options=LEAST_ROWS,
            value=AUTOMATIC,
            key="regions_least",
            help="Rows of a region, among those used to find the regions. Automatic: more if there "
            "are more rows, so that a finding stands out from chance.",
            **_KEPT,
        )
    return RegionQuestion(purpose, depth, None if least == AUTOMATIC else int(least), label)


def words(looked: Looked, asked: RegionQuestion) -> str:
    """The question in a few words. Untrusted text."""
    kind: AskedKind = "confidence" if asked.label is None else "class"
    said = [PURPOSES[asked.purpose] + (f" {asked.column}" if asked.column else "")]
    if not looked.regression:
        said.append(question_words(looked.review, Asked(kind, asked.label)))
    if asked.purpose != "column":
        said.append(f"at most {counted(asked.max_depth, 'condition')}")
    if asked.min_rows is not None:
        said.append(f"at least {counted(asked.min_rows, 'row')}")
    return "; ".join(said)


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
        label_visibility="collapsed",
        width="content",
        **_KEPT,
    )
    return purpose


def _column(looked: Looked) -> str:
    column: str = st.selectbox(
        "Column",
        options=looked.columns,
        format_func=lambda name: name[:60],
        key=f"regions_column_{looked.review.id}",
        label_visibility="collapsed",
        width=200,
        **_KEPT,
    )
    return column


def _label(looked: Looked, width: int | None = None) -> int | None:
    """The class whose stated probability is tested; None for the confidence."""
    if looked.regression:
        return None
    review = looked.review
    asked = choose_question(
        review,
        "regions",
        [Asked("confidence", None), *(Asked("class", at) for at in range(len(review.classes)))],
        help="The probability to compare with the outcomes: that of one class, with how often the "
        "row is of that class, or that of the predicted class, with how often it is right.",
        width=width,
    )
    return asked.event


Kind = Literal["quick", "thorough"]
KINDS: dict[Kind, str] = {"quick": "Quick", "thorough": "Thorough"}
REDRAWS = 200
_KIND = "regions_search"


def shown(looked: Looked, asked: RegionQuestion) -> Found | None:
    """The chosen search; the quick one while there is no thorough one.

    None while a job computes it.

    Raises
    ------
    InputError
        As `search_of`, or if the review has changed since.
    """
    if redraws_by_default(looked.n_rows, len(looked.inputs)):
        return search_of(looked, asked)  # as thorough as can be, at once
    request = search_regions.request(
        session.workspace(), looked.review.id, _settings(looked, asked)
    )
    if _chosen(looked, request) == "quick":
        return _quick(looked, asked, text.QUICK_SHOWN)
    job = job_results.finished(request, looked.review.id, offer=lambda: False)
    if job is None:
        return _quick(looked, asked, text.QUICK_UNTIL_THEN)
    found = regions_search.search_run_of(looked, asked, job)
    if found is not None:
        st.caption(text.thorough_shown(found.search))
    return found


def _quick(looked: Looked, asked: RegionQuestion, why: str) -> Found | None:
    found = search_of(looked, asked)  # may raise, and then nothing is shown
    if found is not None:
        st.caption(why)
    return found


def _settings(looked: Looked, asked: RegionQuestion) -> RegionSearchSettings:
    return RegionSearchSettings(
        which=looked.which,
        label=asked.label,
        max_depth=asked.max_depth,
        min_rows=asked.min_rows,
        redraws=REDRAWS,
    )


def _chosen(looked: Looked, request: Request) -> Kind:
    """The choice of the search, with the button that starts the thorough one."""
    kept: dict[str, Any] = {"persist_state": "session"}
    st.session_state.setdefault(_KIND, "quick")  # not as a default, because the button sets it too
    with st.container(horizontal=True, vertical_alignment="center"):
        kind: Kind = st.segmented_control(
            "Search",
            options=list(KINDS),
            required=True,
            format_func=KINDS.__getitem__,
            key=_KIND,
            label_visibility="collapsed",
            width="content",
            **kept,
        )
        with st.popover("Which search?", icon=":material/help:", type=quiet()):
            st.markdown(text.SEARCHES)
        if waiting.find(request.key) is None and st.button(
            "Search harder",
            key="regions_harder",
            icon=":material/manage_search:",
            help=text.HARDER,
            on_click=_choose_thorough,
        ):
            job_results.begin(request, looked.review.id)
            st.rerun()
    return kind


def _choose_thorough() -> None:
    st.session_state[_KIND] = "thorough"
