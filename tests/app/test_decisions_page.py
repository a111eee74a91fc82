"""The Decisions page: what a threshold does, whether the model is of use, and what it costs."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, launch, settle, specs, words
from made_reviews import review_of, too_sure
from streamlit.testing.v1 import AppTest

from kdcal_core.diagnostics import Costs
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Decision,
    Question,
    Workspace,
    note_verdict,
    set_question,
    start_sample,
)

PAGE = "decisions"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(scope="module")
def one_review(workspace: Workspace) -> str:
    return review_of(workspace, calibration=too_sure(500, 0), evaluation=too_sure(400, 1))


@pytest.fixture
def review_id(workspace: Workspace, one_review: str) -> str:
    """The same review for all tests, each time without an earlier test's decisions."""
    set_question(workspace, one_review, Question())
    return one_review


def shown(review_id: str) -> AppTest:
    return healthy(settle(launch(PAGE, review_id)))


def tiles(at: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in at.metric}


def test_the_threshold_moves_every_number(review_id: str) -> None:
    at = shown(review_id)
    assert list(tiles(at)) == [
        "Sensitivity", "Specificity", "Positive predictive value", "Negative predictive value",
    ]  # fmt: skip
    before, headline = tiles(at), at.header[0].value
    assert headline.startswith("Flags ")
    assert "of the yes rows" in headline
    at.slider[0].set_value(90.0).run()
    healthy(at)
    after = tiles(at)
    assert float(after["Sensitivity"].rstrip("%")) < float(before["Sensitivity"].rstrip("%"))
    assert float(after["Specificity"].rstrip("%")) > float(before["Specificity"].rstrip("%"))


def test_a_calibrated_version_stands_beside_the_model(review_id: str) -> None:
    at = shown(review_id)
    names = [one["name"] for one in specs(at)[0]["data"] if one.get("name")]
    assert names == ["Model as it is", "Flag every row", "Flag none"]
    at.selectbox[0].set_value("platt").run()
    at = healthy(settle(at))
    names = [one["name"] for one in specs(at)[0]["data"] if one.get("name")]
    assert names == ["Model as it is", "Platt", "Flag every row", "Flag none"]
    assert "At 50% Platt " in words(at)


def test_costs_give_a_threshold_that_can_be_used(review_id: str) -> None:
    at = shown(review_id)
    missed = next(one for one in at.number_input if one.label == "Missed event")
    missed.set_value(9.0).run()
    healthy(at)
    assert "10% is optimal if the probabilities are calibrated" in words(at)
    use = next(one for one in at.button if "as the threshold" in one.label)
    asked = float(use.label.split()[1].rstrip("%"))
    use.click().run()
    healthy(at)
    assert at.slider[0].value == pytest.approx(asked)


def test_costs_that_make_no_decision_are_named(review_id: str) -> None:
    at = shown(review_id)
    next(one for one in at.number_input if one.label == "Missed event").set_value(0.0).run()
    assert not at.exception
    assert "missed event does not cost more" in at.error[0].value


def test_a_threshold_that_flags_no_row_says_so(workspace: Workspace) -> None:
    timid = too_sure(400, 0)
    timid["yes"] *= 0.9
    timid.iloc[:, 1] = 1.0 - timid["yes"]
    at = shown(review_of(workspace, calibration=timid))
    at.slider[0].set_value(95.0).run()
    assert healthy(at).header[0].value == "Flags none of the rows, so every yes row is missed."
    assert "Positive predictive value" not in tiles(at)
    assert tiles(at)["Sensitivity"].startswith("0")


def test_a_class_that_never_occurs_judges_no_threshold(workspace: Workspace) -> None:
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 300)
    rows = pd.DataFrame(proba, columns=["a", "b", "c"])
    rows["target"] = np.where(rng.random(300) < 0.5, "a", "b")
    other = rows.assign(target=rng.choice(["a", "b", "c"], 300))
    at = shown(review_of(workspace, calibration=other, evaluation=rows))
    at.selectbox[0].set_value(2).run()
    assert "Of these rows none are c" in healthy(at).info[0].value
    assert not specs(at)


def test_of_many_classes_one_is_chosen(workspace: Workspace) -> None:
    at = shown(start_sample(workspace, "digits_predictions").id)
    assert at.selectbox[0].label == "Class to flag"
    at.selectbox[0].set_value(3).run()
    healthy(at)
    assert "of the 3 rows" in at.header[0].value


def test_confidence_view_still_has_decisions(workspace: Workspace, review_id: str) -> None:
    set_question(workspace, review_id, Question(view="confidence"))
    assert shown(review_id).slider[0].label.startswith("Flag a row")


def test_threshold_and_costs_stay_with_the_review(workspace: Workspace, review_id: str) -> None:
    note_verdict(workspace, workspace.read(review_id), "pass")
    at = shown(review_id)
    at.slider[0].set_value(70.0).run()
    next(one for one in at.number_input if one.label == "Missed event").set_value(4.0).run()
    healthy(at)
    stored = workspace.read(review_id)
    assert stored.question.decisions == {"yes": Decision(0.7, asdict(Costs(false_negative=4.0)))}
    assert stored.verdict == "pass"  # no check depends on a threshold
    again = shown(review_id)  # as after a reload
    assert again.slider[0].value == 70.0
    assert next(one for one in again.number_input if one.label == "Missed event").value == 4.0
    next(one for one in again.button if "as the threshold" in one.label).click().run()
    assert workspace.read(review_id).question.decisions["yes"].threshold == pytest.approx(
        again.slider[0].value / 100.0
    )
    with pytest.raises(InputError, match="threshold cannot be 1"):
        Decision(1.0)
