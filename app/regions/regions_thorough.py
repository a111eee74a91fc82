"""Quick or thorough: which of the two searches for faulty regions is shown."""

from __future__ import annotations

from typing import Any, Literal

import streamlit as st

from app.regions import regions_runs
from app.regions import regions_text as text
from app.regions.regions_rows import Looked
from app.regions.regions_search import Found, search_of
from app.shared import job_results, session, waiting
from kdcal_core.tasks import RegionQuestion, RegionSearchSettings, Request, search_regions

Kind = Literal["quick", "thorough"]
KINDS: dict[Kind, str] = {"quick": "Quick", "thorough": "Thorough"}
REDRAWS = 200
_KIND = "regions_search"


def shown(looked: Looked, asked: RegionQuestion) -> Found | None:
    """The search that is chosen; the quick one for as long as there is no thorough one.

    None while a job looks for it.

    Raises
    ------
    InputError
        As `search_of`, and where the review has changed since.
    """
    request = search_regions.request(
        session.workspace(), looked.review.id, _settings(looked, asked)
    )
    if _chosen(looked, request) == "quick":
        return _quick(looked, asked, text.QUICK_SHOWN)
    job = job_results.finished(request, looked.review, offer=lambda: False)
    if job is None:
        return _quick(looked, asked, text.QUICK_UNTIL_THEN)
    found = regions_runs.search_run_of(looked, asked, job)
    if found is not None:
        st.caption(text.thorough_shown(found.search))
    return found


def _quick(looked: Looked, asked: RegionQuestion, why: str) -> Found | None:
    found = search_of(looked, asked)  # which may refuse, and then nothing is shown
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
    """Which search is asked for, with the button that begins the thorough one."""
    kept: dict[str, Any] = {"persist_state": "session"}
    st.session_state.setdefault(_KIND, "quick")  # not a default: the button sets it too
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind: Kind = st.segmented_control(
            "Search",
            options=list(KINDS),
            required=True,
            format_func=KINDS.__getitem__,
            key=_KIND,
            help=text.SEARCHES,
            **kept,
        )
        if waiting.find(request.key) is None and st.button(
            "Search harder",
            key="regions_harder",
            icon=":material/manage_search:",
            help=text.HARDER,
            on_click=_choose_thorough,
        ):
            job_results.begin(request, looked.review)
            st.rerun()
    return kind


def _choose_thorough() -> None:
    st.session_state[_KIND] = "thorough"
