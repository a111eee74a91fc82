"""The Overview page: a verdict in one sentence, every check with its limit, and the question."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, launch, plain, settle, specs, words
from made_reviews import HOSTILE_CLASS, line, review_of, too_sure
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextInput

from kdcal_core.checks import CHECKS, MeasuredChecks
from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled, jobs
from kdcal_core.review import (
    Limit,
    Question,
    Workspace,
    add_table,
    note_verdict,
    read_review,
    rename_review,
    score,
    set_question,
    set_roles,
)
from kdcal_core.tasks import Sets, baseline_settings, thorough_checks, verdict_edition

PAGE = "overview"
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(scope="module")
def faulty(workspace: Workspace) -> str:
    return review_of(workspace, calibration=too_sure(500, 0), evaluation=too_sure(400, 1))


def shown(review_id: str) -> AppTest:
    return healthy(settle(launch(PAGE, review_id)))


def headline(at: AppTest) -> str:
    return plain(at.header[0].value)


def with_limits(at: AppTest) -> AppTest:
    """The page with its limits open."""
    at.button(key="limits").click()
    return at.run()


def pressed(at: AppTest, label: str) -> AppTest:
    """The page after a button beside the limits was pressed, which are open."""
    next(one for one in at.button if one.label == label).click()
    return at.run()


def test_without_a_review_the_page_says_what_it_shows() -> None:
    at = healthy(launch(PAGE))
    assert at.title[0].value == "Overview"
    assert "whether the model can be trusted" in words(at)


def test_a_faulty_model_fails_by_name(faulty: str) -> None:
    at = shown(faulty)
    assert "The model fails" in headline(at)
    assert "its probabilities do not match what happens" in headline(at)
    assert "ECE" in words(at)
    assert "at most 0.05" in words(at)
    assert len(specs(at)) == 1
    assert CHECKS["KC001"].remedy in words(at)


def test_details_of_a_check_stay_open_while_the_page_runs_again(faulty: str) -> None:
    at = shown(faulty)
    method = CHECKS["KC001"].method
    assert method not in words(at)
    at.button(key="check_KC001").click().run()
    assert method in words(healthy(at))
    assert method in words(healthy(at.run()))  # as when a job has ended
    at.button(key="limits").click().run()  # one window at a time
    assert method not in words(healthy(at))


def test_the_verdict_is_kept_until_rows_or_question_change(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(500, 0), evaluation=too_sure(500, 1))
    assert read_review(workspace, review_id).verdict == ""
    at = shown(review_id)
    assert "The model fails" in headline(at)
    kept = read_review(workspace, review_id)
    assert kept.verdict == "fail"
    assert kept.verdict_edition == verdict_edition(workspace, kept)
    assert rename_review(workspace, review_id, "March").verdict == "fail"
    wide = Question(limits={code: Limit() for code in CHECKS})
    assert set_question(workspace, review_id, wide).verdict == ""
    note_verdict(workspace, kept, "fail", kept.verdict_edition)  # of the question before
    assert read_review(workspace, review_id).verdict == ""
    shown(review_id)
    assert read_review(workspace, review_id).verdict == "pass"
    assert score(workspace, review_id).verdict == ""


def test_an_evaluation_set_of_later_days_is_said_once(workspace: Workspace) -> None:
    days = pd.date_range("2026-01-01", periods=150)
    for made in (too_sure, line):
        for first, said in (("2026-06-03", 1), ("2026-05-30", 0)):
            later = pd.date_range(first, periods=150)
            review_id = review_of(
                workspace,
                calibration=made(300, 0).assign(day=np.repeat(days.strftime("%Y-%m-%d"), 2)),
                evaluation=made(300, 1).assign(day=np.repeat(later.strftime("%Y-%m-%d"), 2)),
            )
            roles = read_review(workspace, review_id).roles
            assert roles is not None
            set_roles(workspace, review_id, replace(roles, time="day"))
            score(workspace, review_id)
            shown_words = words(shown(review_id))
            sentence = (
                "The evaluation set is later (from 3 June 2026) than the calibration set (until "
                "30 May 2026)."
            )
            assert shown_words.count(sentence) == said
            assert ("is later" in shown_words) == bool(said)


def test_limits_travel_with_the_review_and_decide(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(500, 0))
    wide = {code: Limit() for code in CHECKS}
    set_question(workspace, review_id, Question(limits=wide))
    at = shown(review_id)
    assert "The model passes all" in headline(at)
    assert "Keep the model as it is" in words(at)


@pytest.mark.parametrize("rows", [too_sure, line])
def test_a_limit_is_offered_only_what_its_check_can_be_compared_with(
    workspace: Workspace, rows: Callable[[int, int], pd.DataFrame]
) -> None:
    from app.overview.limits_form import AGAINST, _by_ways

    review = read_review(workspace, review_of(workspace, calibration=rows(300, 3)))
    offered = {one.code: ways for ways, checks in _by_ways(review).items() for one in checks}
    assert set(offered) == {one.code for one in CHECKS.values() if review.task in one.tasks}
    for code, ways in offered.items():
        for against in AGAINST:
            taken = contextlib.nullcontext() if against in ways else pytest.raises(InputError)
            with taken:
                CHECKS[code].limited(Limit(-0.5, 0.5, against))
    searched = "KC007" if review.task == "classification" else "KC024"
    assert offered[searched] == ("value",)


@pytest.mark.parametrize("code", sorted(CHECKS))
def test_limits_are_edited_in_the_unit_of_the_list(code: str) -> None:
    from app.overview.limits_form import _end, _number

    check = CHECKS[code]
    for end, missing in ((check.limit.low, -math.inf), (check.limit.high, math.inf)):
        shown = _end(end, check)
        assert _number(shown, missing, check) == end
        if shown is not None and check.percent:
            assert shown == pytest.approx(100.0 * end)


def test_limits_can_compare_with_another_review(
    workspace: Workspace, unfolded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.shared import reviews_here

    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: True)
    then = review_of(workspace, calibration=too_sure(500, 6))
    rename_review(workspace, then, "March *audit*")
    review_of(workspace, calibration=line(300, 1))  # not offered: it has another task
    review_id = review_of(workspace, calibration=too_sure(500, 7))
    limits = {
        "KC001": Limit(high=0.05, against="baseline"),  # quick
        "KC103": Limit(high=0.05, against="baseline"),  # thorough
    }
    set_question(workspace, review_id, Question(limits=limits))
    at = shown(review_id)
    assert "No review is chosen" in words(at)
    with_limits(at)
    (choice,) = [one for one in at.selectbox if one.label == "Review to compare with"]
    assert any(one.startswith("March *audit*, ") for one in choice.options)
    pressed(at, "Save the limits")
    assert "none is chosen" in at.error[0].value
    choice = next(one for one in at.selectbox if one.label == "Review to compare with")
    choice.set_value(then)
    pressed(at, "Save the limits")
    healthy(settle(at))
    kept = read_review(workspace, review_id).question
    assert (kept.baseline, kept.limits) == (then, limits)
    assert "The baseline is the review March *audit*: 500 rows of its calibration set." in words(at)
    assert "ECE minus the baseline's" in words(at)
    assert "above the baseline" in words(at)
    assert "Log loss gained minus the baseline's" in words(at)
    regions = {"KC007": Limit(-0.1, 0.1, against="baseline")}  # found anew in each review
    set_question(workspace, review_id, replace(kept, limits=limits | regions))
    at = with_limits(shown(review_id))
    assert "cannot be compared with another review" in words(at)
    pressed(at, "Save the limits")
    assert "cannot be compared with another review" in at.error[0].value
    assert "It is measured for" not in words(at)
    set_question(workspace, then, Question(event=HOSTILE_CLASS))
    said = words(shown(review_id))
    assert "It is measured for the event 'yes', as this one, though it asks about another." in said
    workspace.delete(then)
    at = shown(review_id)
    assert "is no longer on this machine" in words(at)
    assert "There is no baseline that answered this check" in words(at)


def test_two_reviews_of_one_title_are_told_apart(
    workspace: Workspace, unfolded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.shared import reviews_here

    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: True)
    twins = [review_of(workspace, calibration=too_sure(300, seed)) for seed in (10, 11)]
    for one in twins:
        rename_review(workspace, one, "Twin")
    review_id = review_of(workspace, calibration=too_sure(300, 12))
    for one in twins:
        at = with_limits(shown(review_id))
        choice = next(one for one in at.selectbox if one.label == "Review to compare with")
        assert len(set(choice.options)) == len(choice.options)
        choice.set_value(one)
        pressed(at, "Save the limits")
        assert read_review(workspace, review_id).question.baseline == one


@pytest.fixture
def on_a_shared_server(workspace: Workspace, unfolded: None) -> tuple[str, str]:
    """A review and one to compare it with, where limits are open and no review may be listed."""
    then = review_of(workspace, calibration=too_sure(471, 8))
    rename_review(workspace, then, "Secret audit")
    return review_of(workspace, calibration=too_sure(500, 9)), then


def saved(at: AppTest) -> AppTest:
    """The page after the limits were saved."""
    return settle(pressed(at, "Save the limits"))


def address_field(at: AppTest) -> TextInput:
    assert not [one for one in at.selectbox if one.label == "Review to compare with"]
    return next(one for one in at.text_input if one.label == "Review to compare with")


def test_on_a_shared_server_another_review_is_chosen_by_its_address(
    workspace: Workspace, on_a_shared_server: tuple[str, str]
) -> None:
    review_id, then = on_a_shared_server
    at = with_limits(shown(review_id))
    address_field(at).set_value(f"https://example.org/overview?review={then}&x=1#limits")
    healthy(saved(at))
    assert read_review(workspace, review_id).question.baseline == then
    with_limits(at)
    assert address_field(at).value == ""
    healthy(saved(at))  # an empty field keeps it
    assert read_review(workspace, review_id).question.baseline == then
    next(one for one in with_limits(at).checkbox if one.label == "Remove it").check()
    healthy(saved(at))
    assert read_review(workspace, review_id).question.baseline is None


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("nonsense", "This address names no review"),
        ("https://example.org/overview", "This address names no review"),
        ("https://example.org/overview?review=short", "This address names no review"),
        ("http://[?review=", "This address names no review"),
        (f"?review={'x' * 16}", "That review is no longer here"),
        ("x" * 16, "That review is no longer here"),
    ],
)
def test_an_address_without_a_review_is_told_from_one_of_a_deleted_review(
    workspace: Workspace, on_a_shared_server: tuple[str, str], address: str, said: str
) -> None:
    review_id, _ = on_a_shared_server
    at = with_limits(shown(review_id))
    address_field(at).set_value(address)
    pressed(at, "Save the limits")
    assert at.error[0].value.startswith(said)
    assert read_review(workspace, review_id).question.baseline is None


@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/overview?review={}&x=1",
        "https://example.org/overview?x=1&review={}#limits",
        "localhost:8501/overview?review={}",
        " ?review={} ",
        "{}",
    ],
)
def test_the_review_is_read_out_of_its_address(address: str) -> None:
    from app.overview.limits_form import review_in

    assert review_in(address.format("AbCdEfGhIjKl_-12")) == "AbCdEfGhIjKl_-12"


def test_on_a_shared_server_the_other_review_stays_unknown(
    workspace: Workspace, on_a_shared_server: tuple[str, str]
) -> None:
    review_id, then = on_a_shared_server
    limits = {
        "KC001": Limit(high=0.05, against="baseline"),
        "KC103": Limit(high=0.05, against="baseline"),  # thorough
    }
    set_question(workspace, review_id, Question(limits=limits, baseline=then))
    at = with_limits(shown(review_id))
    assert "Another review is chosen" in words(at)
    assert "above the baseline" in words(at)
    assert "Save the limits" in str(at)
    assert then not in str(at)
    assert "Secret audit" not in str(at)
    assert "471" not in words(at)
    review, other = read_review(workspace, review_id), read_review(workspace, then)
    asked = thorough_checks.request(workspace, other, **baseline_settings(review, other))
    job = jobs().find(asked.key)
    assert job is not None
    assert job.belongs_to(review_id)
    assert not job.belongs_to(then)
    add_table(
        workspace, then, "evaluation", io.BytesIO(too_sure(90, 5).to_csv().encode()), "more.csv"
    )
    at = shown(review_id)
    assert "can no longer be compared" in words(at)
    assert "Secret audit" not in str(at.main) + str(at.sidebar)


@pytest.mark.parametrize("rows", ["small", "large"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_damaged_file_of_the_other_review_names_it_only_at_this_machine(
    workspace: Workspace,
    on_a_shared_server: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    large: Callable[[], None],
    shared: bool,
    rows: str,
) -> None:
    from app.shared import reviews_here

    review_id, _ = on_a_shared_server
    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: not shared)
    # rows of its own, for which no result is stored
    then = review_of(workspace, calibration=too_sure(471, 40 + 2 * shared + (rows == "large")))
    folder = workspace.folder(then) / read_review(workspace, then).sets["calibration"].folder
    (folder / "y.npy").write_bytes(b"damaged")
    limits = {"KC001": Limit(high=0.05, against="baseline")}
    set_question(workspace, review_id, Question(limits=limits, baseline=then))
    if rows == "large":
        large()
    at = settle(launch(PAGE, review_id))
    assert not at.exception
    said = words(at) + plain(" ".join(one.value for one in at.sidebar.caption))
    assert [name in said for name in ("y.npy", then)] == [not shared, not shared]
    assert ("A file of another review cannot be used" in said) == shared
    assert "There is no baseline that answered this check" in said


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("The disk is full"), "could not be made"),
        (Cancelled("Checking"), "The checks of the baseline were stopped."),
    ],
)
def test_a_baseline_whose_job_ended_without_a_result_is_like_a_missing_one(
    workspace: Workspace,
    unfolded: None,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    said: str,
    shared: bool,
) -> None:
    from app.shared import reviews_here
    from kdcal_core.tasks import checks

    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: not shared)
    seed = 20 + 2 * shared + isinstance(error, Cancelled)
    then = review_of(workspace, calibration=too_sure(400, seed))
    review_id = review_of(workspace, calibration=too_sure(500, 19))
    limits = {
        "KC001": Limit(high=0.05, against="baseline"),
        "KC103": Limit(high=0.05, against="baseline"),  # thorough
    }
    set_question(workspace, review_id, Question(limits=limits, baseline=then))
    measured = checks._measured

    def ends(sets: Sets, *args: Any, quick: bool) -> MeasuredChecks:
        if sets.reader.review.id == then and not quick:
            raise error
        return measured(sets, *args, quick=quick)

    monkeypatch.setattr(checks, "_measured", ends)
    at = settle(launch(PAGE, review_id))
    assert not at.exception
    (warning,) = at.warning
    assert said in plain(warning.value)
    assert ("disk is full" in warning.value) == (not shared and "could" in said)
    assert "So far" not in words(at)
    assert "There is no baseline that answered this check" in words(at)
    assert "ECE minus the baseline's" in words(at)  # of the quick checks, which ended well
    assert any(one.label == "Start again" for one in at.button)
    assert read_review(workspace, review_id).verdict == "fail"


def test_further_checks_that_were_stopped_do_not_run_for_ever(
    workspace: Workspace, unfolded: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kdcal_core.tasks import checks

    measured = checks._measured

    def stops(sets: Sets, *args: Any, quick: bool) -> MeasuredChecks:
        if not quick:
            raise Cancelled("Checking")
        return measured(sets, *args, quick=quick)

    monkeypatch.setattr(checks, "_measured", stops)
    review_id = review_of(workspace, calibration=too_sure(500, 31))
    at = settle(launch(PAGE, review_id))
    assert not at.exception
    assert "So far" not in words(at)
    assert "Further checks have ended without a result: start them again below." in words(at)
    assert any(one.label == "Start again" for one in at.button)
    assert read_review(workspace, review_id).verdict == ""  # of all checks, which it has not had


def test_what_to_do_takes_no_more_room_while_further_checks_run(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of one screen would else be a line longer for as long as they do."""
    from app.shared import checked

    monkeypatch.setattr(checked, "thorough", lambda *args: checked.Answer(None))
    at = launch(PAGE, review_of(workspace, calibration=too_sure(500, 0)))
    assert "So far" in words(at)
    (said,) = [one.value for one in at.markdown if one.value.startswith("**What to do next.**")]
    assert "running" not in said


def test_the_event_can_be_chosen(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(500, 0))
    assert read_review(workspace, review_id).event == 1  # "yes"
    at = shown(review_id)
    assert "Stated probability" in str(specs(at)[0])
    view = next(one for one in at.radio if one.label == "What is looked at")
    view.set_value("confidence").run()
    next(one for one in at.button if one.label == "Use this question").click().run()
    healthy(settle(at))
    assert read_review(workspace, review_id).event is None
    assert "Stated confidence" in str(specs(at)[0])


def test_names_of_classes_are_shown_as_text(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(500, 0))
    set_question(workspace, review_id, Question(event=HOSTILE_CLASS))
    at = shown(review_id)
    (question,) = [one for one in at.get("popover") if "Event" in one.proto.popover.label]
    assert "<b>" not in question.proto.popover.label


def test_a_regression_has_its_own_checks(workspace: Workspace) -> None:
    at = shown(review_of(workspace, calibration=line(400, 0)))
    assert "check" in headline(at)
    assert len(specs(at)) == 1
    assert "PIT" in str(specs(at)[0])


def test_few_rows_are_not_enough_evidence(workspace: Workspace) -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 90)
    rows = pd.DataFrame({"no": 1 - p, "yes": p, "y": np.where(rng.random(90) < p, "yes", "no")})
    at = shown(review_of(workspace, calibration=rows))
    assert "more evidence" in headline(at)
    assert "Not enough evidence" in " ".join(one.proto.badge.label for one in at.get("badge")) or (
        "Not enough evidence" in words(at)
    )


def test_a_sample_opens_here(app: AppTest) -> None:
    app.button(key="open_digits_predictions").click().run()
    assert healthy(app).title[0].value == "Overview"


def test_declared_groups_are_judged(workspace: Workspace) -> None:
    rows = too_sure(600, 0).assign(site=np.resize(["north", "south"], 600))
    review_id = review_of(workspace, calibration=rows)
    at = shown(review_id)
    (groups,) = at.pills
    assert groups.options == ["feature", "site"]
    groups.set_value(["site"]).run()
    next(one for one in at.button if one.label == "Use this question").click().run()
    healthy(settle(at))
    assert read_review(workspace, review_id).question.groups == ("site",)
    popovers = [one.proto.popover.label for one in at.get("popover")]
    assert "Declared groups" in popovers or "further checks" in str(at.get("expander"))
