"""The Decisions page: what a threshold does, whether the model is of use, and what it costs."""

from __future__ import annotations

import re
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, launch, settle, specs, words
from made_reviews import review_of, too_sure
from streamlit.testing.v1 import AppTest

from kdcal_core.diagnostics import Costs
from kdcal_core.errors import InputError
from kdcal_core.review import (
    CASES,
    Decision,
    Question,
    Workspace,
    note_verdict,
    set_decision,
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
    """The same review for all tests, each time without an earlier test's question."""
    set_question(workspace, one_review, Question())
    set_decision(workspace, one_review, "yes", threshold=None, costs={})
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


def test_the_rates_of_every_threshold_are_a_choice(review_id: str) -> None:
    at = shown(review_id)
    before = [str(one) for one in specs(at)]
    choice = next(one for one in at.get("button_group") if one.key == "decisions_shown")
    at = healthy(choice.set_value("At every threshold").run())
    (rates,) = (one for one in map(str, specs(at)) if one not in before)
    for label in ("Sensitivity", "Specificity", "Positive predictive value"):
        assert label in rates


def test_a_calibrated_version_stands_beside_the_model(review_id: str) -> None:
    at = shown(review_id)
    at.slider[0].set_value(50.0).run()
    names = [one["name"] for one in specs(at)[0]["data"] if one.get("name")]
    assert names == ["Model as it is", "Flag every row", "Flag none"]
    at.selectbox[0].set_value("platt").run()
    at = healthy(settle(at))
    names = [one["name"] for one in specs(at)[0]["data"] if one.get("name")]
    assert names == ["Model as it is", "Platt", "Flag every row", "Flag none"]
    assert re.search(r"At thresholds from \d.* With Platt it is at thresholds from \d", words(at))
    assert "At 50% Platt " in words(at)
    assert at.header[0].value.startswith("With Platt: flags ")
    assert "those of Platt, on rows that it was not fitted on" in words(at)
    at.slider[0].set_value(80.0).run()
    calibrated = tiles(healthy(settle(at)))
    at.selectbox[0].set_value("none").run()
    model = tiles(healthy(settle(at)))
    # the model is too sure: fewer rows reach 80% once it is calibrated
    assert float(calibrated["Sensitivity"].rstrip("%")) < float(model["Sensitivity"].rstrip("%"))


def test_costs_that_nobody_gave_are_assumed_and_recommend_nothing(review_id: str) -> None:
    at = shown(review_id)
    assert "With costs assumed equal until they are given, " in words(at)
    assert not any("as the threshold" in one.label for one in at.button)
    next(one for one in at.button if one.label == "These are the costs").click().run()
    healthy(at)
    assert "assumed equal" not in words(at)
    assert any("as the threshold" in one.label for one in at.button)


def test_costs_give_a_threshold_that_can_be_used(review_id: str) -> None:
    at = shown(review_id)
    missed = next(one for one in at.number_input if one.label == "Missed event")
    missed.set_value(9.0).run()
    healthy(at)
    assert "10%, the best one for calibrated probabilities" in words(at)
    use = next(one for one in at.button if "as the threshold" in one.label)
    asked = float(use.label.split()[1].rstrip("%"))
    use.click().run()
    healthy(at)
    assert at.slider[0].value == pytest.approx(asked)


def test_the_first_threshold_is_the_events_rate_or_what_costs_imply(review_id: str) -> None:
    at = shown(review_id)
    rate = 100.0 * float((too_sure(400, 1)["target"] == "yes").mean())
    assert at.slider[0].value == pytest.approx(rate, abs=0.05)
    assert "No threshold is chosen yet. This one is the share of the rows of class yes." in words(
        at
    )
    next(one for one in at.number_input if one.label == "Missed event").set_value(9.0).run()
    assert healthy(at).slider[0].value == pytest.approx(10.0)
    assert "No threshold is chosen yet. This one follows from the costs below." in words(at)
    at.slider[0].set_value(30.0).run()
    next(one for one in at.number_input if one.label == "Missed event").set_value(4.0).run()
    assert healthy(at).slider[0].value == pytest.approx(30.0)
    assert "No threshold is chosen" not in words(at)


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
    assert healthy(at).header[0].value == "Flags none of the rows, so all yes rows are missed."
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
    assert "of the rows of class 3; of the flagged rows" in at.header[0].value


def test_confidence_view_still_has_decisions(workspace: Workspace, review_id: str) -> None:
    set_question(workspace, review_id, Question(view="confidence"))
    at = shown(review_id)
    assert at.slider[0].label.startswith("Flag a row")
    assert at.selectbox[0].value == workspace.read(review_id).event_class


def test_threshold_and_costs_stay_with_the_review(workspace: Workspace, review_id: str) -> None:
    note_verdict(workspace, workspace.read(review_id), "pass", "edition")
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


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ({"threshold": 1.0}, "threshold cannot be 1"),
        ({"threshold": float("nan")}, "threshold cannot be nan"),
        ({"costs": {"free_lunch": 1.0}}, "no cost 1 of 'free_lunch'"),
        ({"costs": {"false_positive": float("inf")}}, "no cost inf"),
    ],
)
def test_what_is_no_decision_is_refused(
    workspace: Workspace, review_id: str, decision: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        set_decision(workspace, review_id, "yes", **decision)


def test_the_cases_of_a_review_are_those_of_the_costs() -> None:
    assert tuple(one.name for one in fields(Costs)) == CASES


def test_a_rarer_event_in_another_set_changes_no_threshold(workspace: Workspace) -> None:
    rows = too_sure(2_000, 0)
    rare = rows[(rows["target"] != "yes") | (rows.index % 60 == 0)]
    made = review_of(workspace, calibration=rare, evaluation=too_sure(400, 1))
    at = shown(made)
    at.slider[0].set_value(90.0).run()
    at = healthy(settle(at))
    at.segmented_control[0].set_value("calibration").run()
    at = healthy(settle(at))
    assert at.slider[0].value == 90.0
    at.segmented_control[0].set_value("evaluation").run()
    assert healthy(settle(at)).slider[0].value == 90.0
    assert workspace.read(made).question.decisions["yes"].threshold == pytest.approx(0.9)


def test_the_cheapest_threshold_is_one_that_the_slider_has(workspace: Workspace) -> None:
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 5_000, 400) / 5_000
    happened = rng.random(400) < votes
    votes[0], happened[0] = 1 / 5_000, True
    rows = pd.DataFrame({"no": 1 - votes, "yes": votes, "target": np.where(happened, "yes", "no")})
    made = review_of(workspace, calibration=rows)
    set_decision(workspace, made, "yes", costs=asdict(Costs(false_negative=1e6)))
    at = shown(made)
    next(one for one in at.button if "as the threshold" in one.label).click().run()
    assert healthy(at).slider[0].value == pytest.approx(0.1)
    assert workspace.read(made).question.decisions["yes"].threshold == pytest.approx(0.001)


def test_another_tab_s_costs_and_an_old_question_do_no_harm(
    workspace: Workspace, review_id: str
) -> None:
    one, other = shown(review_id), shown(review_id)
    next(at for at in other.number_input if at.label == "Missed event").set_value(9.0).run()
    one.slider[0].set_value(30.0).run()
    kept = workspace.read(review_id).question.decisions["yes"]
    assert kept == Decision(0.3, asdict(Costs(false_negative=9.0)))
    workspace.update(
        review_id,
        lambda review: replace(
            review, question=replace(review.question, event="gone", groups=("gone",))
        ),
    )
    at = shown(review_id)
    at.slider[0].set_value(40.0).run()
    assert not healthy(at).error
    assert workspace.read(review_id).question.decisions["yes"].threshold == pytest.approx(0.4)
