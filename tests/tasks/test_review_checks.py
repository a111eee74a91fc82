"""The checks of a review, asked as tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_reviews import review_of, too_sure

from kdcal_core.checks import CHECKS, judge_checks
from kdcal_core.errors import InputError
from kdcal_core.review import Limit, Question, ReviewReader, Workspace, default_event, set_question
from kdcal_core.tasks import Sets, quick_checks, thorough_checks


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
