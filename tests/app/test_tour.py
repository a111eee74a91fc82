"""The tour: four pages of one sample, one after the other, and a way out at each."""

from __future__ import annotations

import pytest
from app_pages import healthy, launch, visit, words
from streamlit.testing.v1 import AppTest

from app.shared import tour
from kdcal_core.review import Workspace, start_sample

pytestmark = [pytest.mark.usefixtures("work_here", "workspace"), pytest.mark.one_section]
PAGES = list(tour.STEPS)


@pytest.fixture(scope="module")
def review_id(workspace: Workspace) -> str:
    return start_sample(workspace, tour.SAMPLE).id


def begun(review_id: str) -> AppTest:
    at = launch("load", review_id)
    at.session_state["tour"] = 0
    return at


def on(at: AppTest, page: str, review_id: str) -> AppTest:
    at.query_params["review"] = review_id
    return healthy(visit(at, page))


def test_the_tour_is_offered_where_nothing_is_open() -> None:
    at = healthy(launch("load"))
    assert "Take a tour of four steps" in [one.label for one in at.button]


@pytest.mark.parametrize("step", range(len(PAGES)))
def test_each_step_stands_on_its_page_alone(review_id: str, step: int) -> None:
    at = begun(review_id)
    at.session_state["tour"] = step
    at = on(at, PAGES[step], review_id)
    assert f"Tour, step {step + 1} of 4." in words(at)
    assert tour.STEPS[PAGES[step]] in words(at)
    other = on(at, PAGES[step - 1], review_id)
    assert "Tour, step" not in words(other)


def test_it_can_be_skipped_and_ends(review_id: str) -> None:
    at = on(begun(review_id), PAGES[0], review_id)
    at.button(key="tour_skip").click().run()
    assert "Tour, step" not in words(healthy(at))
    at.session_state["tour"] = len(PAGES) - 1
    at = on(at, PAGES[-1], review_id)
    assert "tour_skip" not in [one.key for one in at.button]
    at.button(key="tour_next").click().run()
    assert "Tour, step" not in words(healthy(at))
    assert "tour" not in at.session_state
