"""A job from the button that starts it to its result, and how often the page runs for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from kdcal_core.jobs import jobs

KEY = "counted_on_a_page"


def _page() -> None:
    import streamlit as st

    from app.shared import job_results
    from kdcal_core.tasks import Request

    st.session_state.runs = st.session_state.get("runs", 0) + 1
    asked = Request(
        target="kdcal_core.text:counted",
        kwargs={"n": 3, "noun": "row"},
        key="counted_on_a_page",
        title="Counting",
    )
    with job_results.settings_card("owner", "counting"):
        st.checkbox("A setting")
        place = st.empty()
    job = job_results.asked_for(
        asked, "owner", place, label="Count", name="counting", will_show="A number."
    )
    if job is not None:
        st.write(job.result)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_workers: None) -> Iterator[AppTest]:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    at = AppTest.from_function(_page)
    at.query_params["review"] = "owner"
    yield at.run()
    jobs().forget(KEY)


def _ended() -> None:
    job = jobs().find(KEY)
    assert job is not None
    assert jobs().wait(job.id, 60).state == "done"


def test_a_page_runs_once_for_the_click_and_once_for_the_result(page: AppTest) -> None:
    assert page.session_state.runs == 1
    assert not page.get("popover")
    page.button[0].click().run()
    assert page.session_state.runs == 2
    assert not [one for one in page.button if one.label == "Count"]
    _ended()
    page.run()
    assert page.session_state.runs == 3
    assert [one.value for one in page.markdown] == ["3 rows"]
    (fold,) = page.get("popover")
    assert fold.proto.popover.label == "Settings"
    assert page.run().session_state.runs == 4


def test_settings_fold_too_where_another_tab_began_the_job(page: AppTest) -> None:
    second = AppTest.from_function(_page)
    page.button[0].click().run()
    _ended()
    second.run()
    assert [one.value for one in second.markdown] == ["3 rows"]
    assert second.get("popover")
