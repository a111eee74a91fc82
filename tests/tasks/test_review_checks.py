"""The checks of a review, asked as tasks."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_reviews import HOSTILE_CLASS, line, review_of, too_sure

from kdcal_core.checks import CHECKS, MeasuredChecks, judge_checks
from kdcal_core.diagnostics import Estimate
from kdcal_core.errors import InputError
from kdcal_core.review import (
    RETIRED,
    Limit,
    Question,
    ReviewReader,
    View,
    Workspace,
    add_table,
    alike,
    baseline_of,
    create_review,
    default_event,
    rename_review,
    set_question,
)
from kdcal_core.store import decode
from kdcal_core.tasks import (
    Sets,
    baseline_settings,
    checks_settings,
    quick_checks,
    set_estimates,
    set_pit_groups,
    thorough_checks,
    verdict_edition,
)
from kdcal_core.tasks.decorators import BOTH_SETS


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_quick_checks_of_predictions_only(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(400, 0))
    reader = ReviewReader(workspace, review_id, ("calibration", "evaluation"))
    found = quick_checks(Sets(reader), which="calibration", event=None, groups=())
    codes = [one.code for one in found.checks]
    assert codes == [
        one.code for one in CHECKS.values() if one.quick and "classification" in one.tasks
    ]
    assert judge_checks(found).verdict == "fail"


def test_every_check_is_quick_or_thorough(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(400, 0))
    every = Sets(ReviewReader(workspace, review_id))
    asked = {"which": "calibration", "event": None, "groups": ()}
    codes = {
        one.code for task in (quick_checks, thorough_checks) for one in task(every, **asked).checks
    }
    assert codes == {one.code for one in CHECKS.values() if "classification" in one.tasks}


def test_a_set_that_is_not_there_is_refused(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(400, 0))
    reader = ReviewReader(workspace, review_id, ("calibration", "evaluation"))
    with pytest.raises(InputError, match="There is no evaluation set"):
        quick_checks(Sets(reader), which="evaluation", event=None, groups=())


def test_the_question_travels_with_the_review(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(400, 0))
    limits = {"KC001": Limit(high=0.01), "KC002": Limit(-np.inf, 0.5)}
    set_question(workspace, review_id, Question(view="confidence", limits=limits))
    again = Workspace(workspace.root).read(review_id)
    assert again.question.limits == limits
    assert again.event is None
    assert again.scored  # nothing is scored again


def test_limits_compare_with_another_review_of_the_same_task_and_classes(
    workspace: Workspace,
) -> None:
    ours, other = (
        review_of(workspace, calibration=too_sure(400, seed), evaluation=too_sure(300, seed + 1))
        for seed in (0, 5)
    )
    limits = {"KC001": Limit(high=0.1, against="baseline")}
    review = set_question(workspace, ours, Question(limits=limits, baseline=other))
    assert baseline_of(workspace, review).id == other
    settings = baseline_settings(review, workspace.read(other))
    assert settings == {"which": "evaluation", "event": 1, "groups": []}
    now, then = (
        quick_checks(Sets(ReviewReader(workspace, one, BOTH_SETS)), **settings)
        for one in (ours, other)
    )
    found = judge_checks(now, limits, baseline=then)
    (compared,) = [one for one in found.results if one.code == "KC001"]
    assert compared.worst.estimate.label == "ECE minus the baseline's"
    assert compared.worst.estimate.value == pytest.approx(_error(now).value - _error(then).value)
    # that the other review asks about another event changes nothing: its rows answer this one's
    assert review.classes[1] == "yes"
    asks = set_question(workspace, other, Question(event=HOSTILE_CLASS))
    assert asks.event != review.event
    assert baseline_settings(review, baseline_of(workspace, review)) == settings
    again = quick_checks(Sets(ReviewReader(workspace, other, BOTH_SETS)), **settings)
    assert _error(again) == _error(then)
    workspace.delete(other)
    with pytest.raises(InputError, match="is no longer on this machine"):
        baseline_of(workspace, review)
    # what else the review asks can still be changed
    assert set_question(workspace, ours, replace(review.question, view="confidence"))


def _error(found: MeasuredChecks) -> Estimate:
    (one,) = [each for each in found.checks if each.code == "KC001"]
    return one.parts[0].estimate


def test_what_cannot_be_compared_is_refused_in_a_sentence(workspace: Workspace) -> None:
    ours = review_of(workspace, calibration=too_sure(400, 0))
    regression = review_of(workspace, calibration=line(100, 0))
    unscored = create_review(workspace).id
    renamed = (
        too_sure(400, 1).rename(columns={"yes": "maybe"}).replace({"target": {"yes": "maybe"}})
    )
    other_classes = review_of(workspace, calibration=renamed)
    reasons = {
        regression: "is of a regression, and this one of a classification",
        unscored: "has no scored rows",
        other_classes: "has the classes 'maybe' and .*, and this one .* and 'yes'",
        ours: "cannot be compared with itself",
        "a" * 16: "is no longer on this machine",
        "../../etc": "is no longer on this machine",
    }
    for other, reason in reasons.items():
        with pytest.raises(InputError, match=reason):
            set_question(workspace, ours, Question(baseline=other))
    review = workspace.read(ours)
    assert alike(review, [one for one, _ in workspace.reviews()]) == ()
    same = review_of(workspace, calibration=too_sure(300, 3))
    assert [one.id for one in alike(review, [one for one, _ in workspace.reviews()])] == [same]
    with pytest.raises(InputError, match="No review is chosen"):
        baseline_of(workspace, review)


def test_reviews_of_earlier_versions_have_no_baseline() -> None:
    assert decode(Question, {"event": None, "view": "event", "groups": []}).baseline is None


def test_the_edition_of_a_verdict_follows_the_checks_and_the_baseline(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    then = review_of(workspace, calibration=too_sure(300, 3))
    other = review_of(workspace, calibration=too_sure(300, 4))
    ours = workspace.read(review_of(workspace, calibration=too_sure(400, 0)))
    limits = {"KC001": Limit(high=0.05, against="baseline")}

    def compared(baseline: str) -> str:
        return verdict_edition(
            workspace, replace(ours, question=Question(limits=limits, baseline=baseline))
        )

    alone, known = verdict_edition(workspace, ours), compared(then)
    assert len({alone, known, compared(other), compared("x" * 16)}) == 4
    rename_review(workspace, then, "March")
    assert compared(then) == known
    add_table(workspace, then, "evaluation", io.BytesIO(too_sure(90, 5).to_csv().encode()), "b.csv")
    assert compared(then) != known
    workspace.delete(other)
    assert verdict_edition(workspace, ours) == alone
    check = CHECKS["KC001"]
    with monkeypatch.context() as patch:
        patch.setitem(CHECKS, "KC001", replace(check, limit=Limit(high=0.9)))
        assert verdict_edition(workspace, ours) != alone
    monkeypatch.setattr("kdcal_core.tasks.checks._edition", lambda: "another way to measure")
    assert verdict_edition(workspace, ours) != alone


def test_a_limit_of_a_retired_check_is_left_out_of_a_stored_review(workspace: Workspace) -> None:
    made = review_of(workspace, calibration=too_sure(400, 0))
    kept = Limit(high=0.1, against="baseline")
    set_question(workspace, made, Question(limits={"KC001": kept, "KC002": Limit(low=0.5)}))
    (stored,) = [one for one in workspace.root.rglob("*.json") if '"KC002"' in one.read_text()]
    stored.write_text(stored.read_text().replace('"KC002"', '"KC207"'))
    review = Workspace(workspace.root).read(made)
    assert review.question.limits == {"KC001": kept}
    found = quick_checks(
        Sets(ReviewReader(workspace, made, BOTH_SETS)), **checks_settings(review, "calibration")
    )
    judged = judge_checks(found, review.question.limits)
    (wide,) = [one for one in judged.results if one.code == "KC209"]
    assert (wide.verdict, wide.limit) == ("pass", CHECKS["KC209"].limit)
    assert not RETIRED & set(CHECKS)
    with pytest.raises(ValueError, match="KC207 is retired"):
        replace(CHECKS["KC209"], code="KC207").offer()


@pytest.mark.parametrize("view", ["event", "confidence"])
def test_reliability_shows_every_estimate_of_the_checks_that_link_to_it(
    workspace: Workspace, view: View
) -> None:
    evaluation = too_sure(300, 1)
    stated = [name for name in evaluation if name not in ("feature", "target")]
    evaluation[stated] = evaluation[stated].round(2)  # some rows state exactly 0 and 1
    made = review_of(workspace, calibration=too_sure(400, 0), evaluation=evaluation)
    review = set_question(workspace, made, Question(view=view))
    sets = Sets(ReviewReader(workspace, made, BOTH_SETS))
    shown = set_estimates(sets, which="evaluation", event=review.event).estimates
    assert len({one.name for one in shown}) == len(shown)
    (spiegelhalter,) = [one for one in shown if one.label == "Brier minus expected"]
    assert "p value" in spiegelhalter.interval
    ends = {(one.value, one.low, one.high) for one in shown}
    found = quick_checks(sets, **checks_settings(review, "evaluation"))
    linked = [one for one in found.checks if one.check.page == "reliability" and one.parts]
    assert {"KC003", "KC004", "KC005", "KC011", "KC102", "KC204", "KC206", "KC208", "KC209"} <= {
        one.code for one in linked
    }
    for check in linked:
        for part in check.parts:
            one = part.estimate
            assert (one.value, one.low, one.high) in ends, (check.code, part.name)


def test_groups_shows_the_estimates_of_the_check_of_declared_groups(workspace: Workspace) -> None:
    rows = line(400, 0).assign(site=np.resize(["north", "south"], 400))
    made = review_of(workspace, calibration=rows)
    review = set_question(workspace, made, Question(groups=("site",)))
    sets = Sets(ReviewReader(workspace, made, BOTH_SETS))
    found = quick_checks(sets, **checks_settings(review, "calibration"))
    (check,) = [one for one in found.checks if one.code == "KC025"]
    assert check.check.page == "groups"
    shown = set_pit_groups(sets, which="calibration", columns=["site"]).regions
    ends = {(each.value, each.low, each.high) for one in shown for each in (one.gap, one.spread)}
    assert {(one.estimate.value, one.low[0], one.high[0]) for one in check.parts} == ends


def test_a_question_about_what_is_not_there_is_refused(workspace: Workspace) -> None:
    review_id = review_of(workspace, calibration=too_sure(400, 0))
    with pytest.raises(InputError, match="The event 'maybe' is not a class"):
        set_question(workspace, review_id, Question(event="maybe"))
    with pytest.raises(InputError, match="There is no such column"):
        set_question(workspace, review_id, Question(groups=("nowhere",)))


@pytest.mark.parametrize(
    ("classes", "rows", "event"),
    [
        (("no", "yes"), (10, 90), "yes"),
        (("yes", "no"), (10, 90), "yes"),
        (("0", "1"), (10, 90), "1"),
        (("good", "bad"), (), "bad"),
        (("legit", "fraud"), (), "fraud"),
        (("benign", "malignant"), (), "malignant"),
        (("a", "b"), (90, 10), "b"),
        (("a", "b"), (10, 90), "a"),
        (("a", "b"), (50, 50), "b"),
        (("a", "b", "c"), (1, 2, 3), None),
    ],
)
def test_the_event_by_default(classes: tuple[str, ...], rows: tuple[int, ...], event: str) -> None:
    assert default_event(classes, rows) == event
