"""The Recalibration page: each of its states, and choices that act without a new job."""

from __future__ import annotations

import json

import pytest
from app_pages import healthy, launch, settle, specs, words
from made_reviews import HOSTILE_COLUMN, line, review_of
from streamlit.testing.v1 import AppTest
from texts.pages import said
from texts.snapshot import Texts

from kdcal_core.jobs import jobs
from kdcal_core.review import Workspace

PAGE = "recalibration"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


def settled(at: AppTest) -> AppTest:
    return healthy(settle(at))


@pytest.fixture(scope="module")
def both(workspace: Workspace) -> str:
    return review_of(workspace, calibration=line(600, 0), evaluation=line(400, 1))


def recalibrated(at: AppTest) -> AppTest:
    """The page with the results of its settings, computed where they are not stored."""
    for button in [one for one in at.button if one.label == "Recalibrate"]:
        settled(button.click().run())
    return healthy(at)


@pytest.fixture
def page(both: str) -> AppTest:
    return recalibrated(launch(PAGE, both))


def control(at: AppTest, label: str):
    return next(one for one in at.button_group if one.label == label)


def test_without_a_review_the_page_says_what_it_shows_and_opens_a_sample() -> None:
    at = healthy(launch(PAGE))
    assert at.title[0].value == "Recalibration"
    assert not at.get("plotly_chart")
    assert any("Open a sample" in button.label for button in at.button)


def test_one_click_suffices_and_the_result_is_there_at_once_the_next_time(
    both: str, texts: Texts
) -> None:
    at = healthy(launch(PAGE, both))
    assert [one.label for one in at.button] == ["Recalibrate"]
    assert not at.get("plotly_chart")
    recalibrated(at)
    texts(at)
    assert "600 calibration rows" in words(at)
    assert "400 rows" in words(at)
    assert [metric.label for metric in at.metric] == [
        "CRPS",
        "Coverage 95%",
        "sMIS 95%",
        "RMSE",
    ]
    assert len(at.get("plotly_chart")) == 11
    for chart in at.get("plotly_chart"):
        assert chart.proto.alt
        assert "#00000" not in chart.proto.spec
        assert "<b>*x" not in chart.proto.spec
    again = healthy(launch(PAGE, both))
    assert not any(one.label == "Recalibrate" for one in again.button)
    assert len(again.get("plotly_chart")) == 11


def test_the_method_that_is_looked_at_changes_without_a_job(page: AppTest) -> None:
    local = specs(page)
    control(page, "Method in the pictures below").set_value("global").run()
    assert not jobs().active()
    assert "Global recalibration" in healthy(page).header[0].value
    drawn = specs(page)
    assert drawn[0] != local[0]
    assert drawn[7] == local[7]  # every method's measures stay as they are


def test_other_intervals_and_places_change_the_pictures_alone(page: AppTest) -> None:
    sentence, before = page.header[0].value, specs(page)
    next(one for one in page.selectbox if one.label == "Intervals").set_value(0.5).run()
    assert "stated 50%" in json.dumps(specs(healthy(page))[0])
    assert "Model: from" in page.dataframe[0].value.columns
    level = specs(page)
    assert level[0] != before[0]
    assert level[1] != before[1]
    across = next(one for one in page.selectbox if one.label == "Across")
    across.set_value("\0axis 1").run()
    assert specs(healthy(page))[0] != level[0]
    column = next(one for one in page.selectbox if one.label == "Column")
    column.set_value(HOSTILE_COLUMN).run()
    assert specs(healthy(page))[1] != level[1]
    assert page.header[0].value == sentence
    assert not jobs().active()


def test_picked_rows_are_drawn_with_their_neighbourhoods(page: AppTest) -> None:
    first = next(one for one in page.number_input if one.label == "First row")
    first.set_value(17).run()
    assert "Row 17" in json.dumps(specs(healthy(page))[2])
    assert "Row 17, recalibrated" in json.dumps(specs(page)[3])


def test_changed_settings_offer_a_new_job_and_keep_what_is_there(
    page: AppTest, texts: Texts
) -> None:
    control(page, "Neighbours").set_value("k").run()
    k = next(one for one in page.number_input if one.label == "Number of neighbours")
    k.set_value(5000).run()
    texts(said(page), "more neighbours than rows")
    assert "The settings have changed" in words(page)
    assert len(page.get("plotly_chart")) == 11
    recalibrated(page)
    texts(said(page), "recalibrated with all rows")
    assert "The settings have changed" not in words(page)
    assert len(page.get("plotly_chart")) == 10  # nothing was chosen


def test_no_method_is_said_in_words(both: str) -> None:
    at = healthy(launch(PAGE, both))
    control(at, "Methods").set_value([]).run()
    assert "No method is chosen" in at.info[0].value
    assert not any(one.label == "Recalibrate" for one in at.button)


def test_a_dozen_rows_without_features_and_without_evaluation(
    workspace: Workspace, texts: Texts
) -> None:
    few = line(12, 3)[["y", "mean", "std"]]
    at = recalibrated(launch(PAGE, review_of(workspace, calibration=few)))
    texts(at)
    assert "12 calibration rows" in words(at)
    assert len(at.get("plotly_chart")) == 10  # the truth is not known


def test_the_dark_theme_draws_with_its_own_colours(page: AppTest, both: str) -> None:
    dark = healthy(launch(PAGE, both, dark=True))
    for one, other in zip(specs(page), specs(dark), strict=True):
        assert one["layout"]["font"] != other["layout"]["font"]


def test_a_finished_job_of_another_kind_is_no_recalibration(workspace: Workspace) -> None:
    """An uploaded table is read by a job without a key, which must not pass for the last run."""
    review = review_of(workspace, calibration=line(60, 6))
    at = launch(PAGE, review)
    job = jobs().start(lambda progress, cancelled: None, title="Reading", owner=review)
    jobs().wait(job, 60)
    at.session_state["recalibration_last"] = {}
    healthy(at.run())
    assert not any("settings have changed" in one.value for one in at.info)
    assert any(button.label == "Recalibrate" for button in at.button)
