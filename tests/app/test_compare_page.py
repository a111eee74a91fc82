"""The Compare page: each of its states, and switches that act without a new job."""

from __future__ import annotations

import pandas as pd
import pytest
from app_pages import healthy, launch, plain, settle, specs, words
from made_reviews import review_of, too_sure
from streamlit.testing.v1 import AppTest
from texts.pages import said
from texts.snapshot import Texts

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.evaluation import MEASURES
from kdcal_core.jobs import jobs
from kdcal_core.review import Workspace, read_review

PAGE = "compare"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(scope="module")
def both(workspace: Workspace) -> str:
    rows = too_sure(900, 0)
    again = pd.concat([too_sure(400, 1), rows.head(30)])
    return review_of(workspace, calibration=rows, evaluation=again)


def choose(at: AppTest, **families: list[str]) -> AppTest:
    """Few calibrators, so that the job is short."""
    for label in ("Confidence of the predicted class", "Temperature", "Standard",
                  "Region by region", "Kernel density graph"):  # fmt: skip
        for control in [one for one in at.button_group if one.label == label]:
            control.set_value(families.get(label.split()[0].lower(), []))
    return at.run()


def compared(at: AppTest) -> AppTest:
    choose(at, temperature=["sts"], standard=["platt"], confidence=["histogram"])
    for button in [one for one in at.button if one.label == "Compare"]:
        healthy(settle(button.click().run()))
    return healthy(at)


@pytest.fixture
def page(both: str) -> AppTest:
    return compared(launch(PAGE, both))


def test_the_address_of_a_result_opens_it_in_another_session(both: str, page: AppTest) -> None:
    named = page.query_params["calibrators"]
    again = healthy(launch(PAGE, both, calibrators=named))
    assert finding(again) == finding(page)
    usual = healthy(launch(PAGE, both, calibrators="no_such_one"))
    assert len(control(usual, "Standard").value) > len(control(again, "Standard").value)


def finding(at: AppTest) -> str:
    return plain(at.header[0].value)


def control(at: AppTest, label: str):
    return next(one for one in at.button_group if one.label == label)


def test_without_a_review_the_page_says_what_it_shows_and_opens_a_sample() -> None:
    at = healthy(launch(PAGE))
    assert at.title[0].value == "Compare"
    assert not at.get("plotly_chart")
    assert any("Open a sample" in button.label for button in at.button)


def test_what_cannot_be_had_is_said_with_its_reason(workspace: Workspace, texts: Texts) -> None:
    bare = too_sure(80, 5).drop(columns="feature")
    at = healthy(launch(PAGE, review_of(workspace, calibration=bare)))
    labels = [one.label for one in at.button_group]
    assert "Region by region" not in labels
    assert "Judged by" not in labels
    texts(at)


def test_one_click_suffices_and_the_result_is_there_at_once_the_next_time(
    both: str, texts: Texts
) -> None:
    at = compared(launch(PAGE, both))
    sentence = finding(at)
    texts(at)
    assert "430 rows" in sentence
    assert len(at.warning) == 1  # of the 30 rows that both sets hold
    assert "30 rows" in plain(at.warning[0].value)
    assert len(at.metric) == 4
    assert plain(at.metric[0].label) == "Log loss: the model"
    for chart in at.get("plotly_chart"):
        assert chart.proto.alt
        assert "#00000" not in chart.proto.spec
        assert "<b>*x" not in chart.proto.spec
    again = choose(
        launch(PAGE, both), temperature=["sts"], standard=["platt"], confidence=["histogram"]
    )
    assert not any(one.label == "Compare" for one in again.button)
    assert finding(again) == sentence


def test_what_matters_changes_measures_and_order_without_a_job(page: AppTest) -> None:
    before = specs(page)
    inside = finding(page)
    assert control(page, "What matters").options == ["Inside the data", "Ranking", "Speed"]
    control(page, "What matters").set_value("ranking").run()
    assert not jobs().active()
    assert "AUROC" in finding(healthy(page))
    assert finding(page) != inside
    assert specs(page)[0] != before[0]
    control(page, "What matters").set_value("speed").run()
    assert "Seconds to fit: from" in finding(healthy(page))
    assert not page.metric
    lead, every = (
        [axis["title"]["text"] for key, axis in spec["layout"].items() if key.startswith("xaxis")]
        for spec in specs(page)[:2]
    )
    costs = [MEASURES[key].title for key in ("fit_seconds", "predict_seconds", "size_bytes")]
    assert (lead, every) == (costs[:1], costs)


def test_calibration_errors_follow_the_question(page: AppTest, both: str) -> None:
    review = read_review(Workspace(), both)
    assert "are of the probability of" in words(page)
    table = next(frame.value for frame in page.dataframe if "ECE" in frame.value)
    question = next(one for one in page.selectbox if one.label == "Question")
    assert question.options[0] == f"Probability of {review.classes[review.event]}"[:75]
    question.select_index(1).run()
    assert "The settings have changed" in words(healthy(page))
    compared(page)
    assert "are of the confidence in the prediction" in words(page)
    other = next(frame.value for frame in page.dataframe if "ECE" in frame.value)
    assert (table["Log loss"] == other["Log loss"]).all()
    assert (table["ECE"] != other["ECE"]).all()


def test_another_order_and_another_opponent_change_the_pictures_alone(page: AppTest) -> None:
    before = specs(page)
    control(page, "Compared with").set_value("best").run()
    assert specs(healthy(page))[:2] == before[:2]
    assert specs(page)[2] != before[2]
    assert "leads on these rows" in words(page)
    order = next(one for one in page.selectbox if one.label == "Ordered by")
    order.set_value("ece").run()
    assert "ECE, on these" in finding(healthy(page))
    assert not jobs().active()


def test_the_table_holds_every_method_and_measure(page: AppTest) -> None:
    (table,) = (one.value for one in page.dataframe if "Accuracy" in one.value)
    labels = {CALIBRATORS[key].label for key in ("sts", "platt", "histogram")}
    assert set(table["Method"]) == {"The model as it is", *labels}
    assert [link.proto.label for link in page.get("page_link")] == ["Choose and export"]
    assert {"Log loss", "AUROC", "Accuracy", "Seconds to fit", "Bytes when fitted"} <= set(table)


def test_changed_settings_offer_a_new_job_and_keep_what_is_there(
    page: AppTest, texts: Texts
) -> None:
    control(page, "Judged by").set_value("cross-fitted").run()
    assert "The settings have changed" in words(healthy(page))
    assert "430 rows" in words(page)
    compared(page)
    assert "900 calibration rows" in words(page)
    assert "The settings have changed" not in words(page)
    texts(said(page))


def test_no_calibrator_is_said_in_words(both: str) -> None:
    at = healthy(choose(launch(PAGE, both)))
    assert len(at.info) == 1
    assert not any(one.label == "Compare" for one in at.button)


def test_the_dark_theme_draws_with_its_own_colours(page: AppTest, both: str) -> None:
    dark = compared(launch(PAGE, both, dark=True))
    for one, other in zip(specs(page), specs(dark), strict=True):
        assert one["layout"]["font"] != other["layout"]["font"]
