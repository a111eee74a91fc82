"""Open questions about a table: kept with the review, settled by an answer, never by chance."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from kdcal_core.checks import CheckedReview, next_step
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Review,
    Workspace,
    accept_rows,
    add_model,
    add_table,
    create_review,
    doubts_of_rows,
    first_look,
    open_doubts,
    open_questions,
    read_review,
    score,
    set_roles,
    set_task,
    settle,
)

pytestmark = pytest.mark.usefixtures("work_here")
N = 400
RNG = np.random.default_rng(0)
P = RNG.beta(0.8, 3.0, N)
LOANS = pd.DataFrame(
    {
        "default": RNG.integers(0, 2, N),
        "defaulted": (RNG.random(N) < P).astype(int),
        "p_default": P,
    }
)


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path / "home")


def loaded(workspace: Workspace, table: pd.DataFrame) -> Review:
    content = io.BytesIO(table.to_csv(index=False).encode())
    return add_table(workspace, create_review(workspace).id, "calibration", content, "table.csv")


def test_a_target_is_asked_for_until_it_is_chosen(workspace: Workspace) -> None:
    review = loaded(workspace, LOANS)
    (sentence,) = open_doubts(review)
    assert "'default'" in sentence
    assert "'defaulted'" in sentence
    scored = score(workspace, review.id)  # it can be scored, and the doubt stays above every page
    assert open_doubts(scored)[0] == sentence
    settled = settle(workspace, review.id, "target", "defaulted")
    assert settled.roles is not None
    assert settled.roles.target == "defaulted"
    assert settled.answers == {"target": "defaulted"}
    assert not settled.scored  # the rows are those of another target
    assert open_doubts(settled) == ()
    assert read_review(Workspace(workspace.root), review.id) == settled
    assert open_doubts(score(workspace, review.id)) == ()


def test_a_table_may_lack_a_target_that_is_still_asked_about(workspace: Workspace) -> None:
    review = loaded(workspace, LOANS)
    assert review.roles is not None
    taken = review.roles.target
    other = next(name for name in ("default", "defaulted") if name != taken)
    fresh = io.BytesIO(LOANS.drop(columns=taken).to_csv(index=False).encode())
    both = add_table(workspace, review.id, "evaluation", fresh, "fresh.csv")
    assert both.doubts == review.doubts
    with pytest.raises(InputError, match=r"lacks a column.*") as refused:
        settle(workspace, review.id, "target", taken)
    assert (refused.value.file, refused.value.column) == ("fresh.csv", taken)
    assert read_review(workspace, review.id) == both
    settled = settle(workspace, review.id, "target", other)
    assert set(settled.tables) == {"calibration", "evaluation"}
    assert set(score(workspace, review.id).sets) == {"calibration", "evaluation"}
    again = io.BytesIO(LOANS.to_csv(index=False).encode())
    asked = add_table(workspace, review.id, "calibration", again, "again.csv")
    assert asked.has_evaluation  # the question is open again, and the table is kept until then
    bare = io.BytesIO(LOANS[["default", "defaulted"]].to_csv(index=False).encode())
    with pytest.raises(InputError, match="lacks a column"):
        add_table(workspace, review.id, "evaluation", bare, "bare.csv")


def test_with_a_model_each_target_is_shown_beside_its_predictions(workspace: Workspace) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=600)
    rows = pd.DataFrame(
        {
            "x": x,
            "default": rng.integers(0, 2, 600),
            "defaulted": (rng.random(600) < 1 / (1 + np.exp(2 - 2 * x))).astype(int),
        }
    )
    model = LogisticRegression().fit(rows[["x"]], rows["defaulted"])
    review = create_review(workspace)
    for step in ("model first", "table first"):
        review = create_review(workspace)
        steps = [
            lambda to: add_model(workspace, to, io.BytesIO(skops.io.dumps(model)), "risk.skops"),
            lambda to: add_table(
                workspace, to, "calibration",
                io.BytesIO(rows.to_csv(index=False).encode()), "rows.csv",
            ),
        ]  # fmt: skip
        for one in steps if step == "model first" else steps[::-1]:
            found = one(review.id)
        (doubt,) = [one for one in found.doubts if one.about == "target"]
        mean = model.predict_proba(rows[["x"]])[:, 1].mean()
        for choice in doubt.choices:
            rate = rows[choice.answer].mean()
            words = f"class 1: {rate:.1%} of the rows, mean prediction {mean:.1%}, AUROC"
            assert choice.shows.startswith(words), step
        assert read_review(workspace, review.id) == found


def test_only_an_answer_that_was_offered_is_taken(workspace: Workspace) -> None:
    review = loaded(workspace, LOANS)
    for about, answer in (("target", "p_default"), ("level", "0.9")):
        with pytest.raises(InputError, match="no answer to an open question"):
            settle(workspace, review.id, about, answer)
    assert read_review(workspace, review.id) == review


def test_whoever_sets_the_roles_has_answered(workspace: Workspace) -> None:
    review = loaded(workspace, LOANS)
    assert review.roles is not None
    assert open_doubts(set_roles(workspace, review.id, review.roles)) == ()


def test_an_interval_is_not_scored_before_its_level_is_known(workspace: Workspace) -> None:
    x = RNG.uniform(2, 20, N)
    table = pd.DataFrame({"price": x + RNG.normal(size=N), "prediction": x})
    table = table.assign(lower=x - 1.64, upper=x + 1.64)
    review = loaded(workspace, table)
    with pytest.raises(InputError, match="no name says its level"):
        score(workspace, review.id)
    settle(workspace, review.id, "level", "0.9")
    scored = score(workspace, review.id)
    assert scored.ready
    assert any("an interval of 90%" in note for note in scored.notes)


def test_two_numbers_are_scored_once_it_is_said_which_is_the_outcome(workspace: Workspace) -> None:
    x = RNG.uniform(2, 20, N)
    review = loaded(workspace, pd.DataFrame({"valuation": x, "house": x + RNG.normal(size=N)}))
    with pytest.raises(InputError, match="no name says which is the outcome"):
        score(workspace, review.id)
    settled = settle(workspace, review.id, "order", "house,valuation")
    assert (settled.task, settled.doubts) == ("regression", ())
    assert score(workspace, review.id).ready
    # the task was a guess, which can be set right; the question is then another one
    assert set_task(workspace, review.id, "classification").task == "classification"


def test_the_answer_holds_for_its_table_alone(workspace: Workspace) -> None:
    review = loaded(workspace, LOANS)
    settle(workspace, review.id, "target", "defaulted")
    content = io.BytesIO(LOANS.to_csv(index=False).encode())
    again = add_table(workspace, review.id, "calibration", content, "other.csv")
    assert again.answers == {}
    assert len(open_doubts(again)) == 1


def test_a_mean_far_from_the_rate_is_a_question_that_may_be_accepted(workspace: Workspace) -> None:
    rare = np.random.default_rng(2).random(N) < P / 8
    review = loaded(workspace, pd.DataFrame({"p_1": P, "y": rare.astype(int)}))
    scored = score(workspace, review.id)
    (sentence,) = open_doubts(scored)
    assert (
        f"has a mean probability of {P.mean():.1%} but makes up {rare.mean():.1%} of the rows"
        in sentence
    )
    assert open_doubts(accept_rows(workspace, review.id)) == ()
    # scored again, the same rows raise no new question
    assert open_doubts(score(workspace, review.id)) == ()


def test_the_confidence_alone_is_a_review_of_being_right(workspace: Workspace) -> None:
    names = np.array(["ant", "bee", "cat"])
    proba = RNG.dirichlet(np.ones(3), N)
    truth = np.array([RNG.choice(3, p=row) for row in proba])
    columns = {"label": names[truth], "prediction": names[proba.argmax(1)]}
    table = pd.DataFrame({**columns, "confidence": proba.max(1)})
    right = (table["label"] == table["prediction"]).to_numpy()
    review = loaded(workspace, table)
    with pytest.raises(InputError, match="nothing of the other classes"):
        score(workspace, review.id)
    settled = settle(workspace, review.id, "outputs", "right")
    assert settled.classes == ("wrong", "right")
    look = first_look(workspace, settled)
    assert look is not None
    assert look.event == "right"
    assert f"{right.mean():.1%} of the rows" in look.of_event["right"]
    scored = score(workspace, review.id)
    assert open_doubts(scored) == ()
    assert scored.event == 1
    assert scored.sets["calibration"].class_rows == ((~right).sum(), right.sum())
    content = io.BytesIO(table[::2].to_csv(index=False).encode())
    both = add_table(workspace, review.id, "evaluation", content, "half.csv")
    assert score(workspace, both.id).sets["evaluation"].class_rows[1] == right[::2].sum()


def test_percentages_with_their_sign_are_scored_as_shares(workspace: Workspace) -> None:
    table = LOANS.drop(columns="default")
    plain = score(workspace, loaded(workspace, table).id)
    signed = table.assign(p_default=[f"{100 * p:.2f}%" for p in table["p_default"]])
    review = loaded(workspace, signed)
    assert open_doubts(review) == ()
    assert "'p_default' holds percentages: read as shares." in review.notes[-1]
    scored = score(workspace, review.id).sets["calibration"]
    assert scored.accuracy == plain.sets["calibration"].accuracy
    assert scored.doubts == plain.sets["calibration"].doubts == ()


def test_what_differs_between_sets_in_numbers_alone_is_said_once(workspace: Workspace) -> None:
    rare = np.random.default_rng(2).random(N) < P / 8
    early, late = (pd.DataFrame({"p_1": P[at::2], "y": rare[at::2].astype(int)}) for at in (0, 1))
    review = loaded(workspace, early)
    content = io.BytesIO(late.to_csv(index=False).encode())
    add_table(workspace, review.id, "evaluation", content, "later.csv")
    scored = score(workspace, review.id)
    assert len(doubts_of_rows(scored)) == 2
    (sentence,) = open_doubts(scored)
    right = [f"{((one['p_1'] > 0.5) == one['y']).mean():.1%}" for one in (early, late)]
    none = [f"{1 - one['y'].mean():.1%}" for one in (early, late)]
    assert right[0] != right[1]
    assert sentence.startswith(
        f"Calibration and evaluation set: {' and '.join(right)} of the rows are predicted right, "
        f"fewer than by always naming the most frequent class ({' and '.join(none)}). "
    )
    first, second = doubts_of_rows(scored)
    assert open_doubts(replace(scored, accepted=(first,))) == (second,)
    assert open_doubts(accept_rows(workspace, review.id)) == ()


def test_an_open_question_is_the_first_next_step(workspace: Workspace) -> None:
    days = pd.date_range("2026-01-01", periods=200).strftime("%Y-%m-%d")
    table = (
        LOANS.drop(columns="default")
        .iloc[np.repeat(np.arange(300), 2)]
        .assign(customer_id=np.tile(np.arange(300), 2), day=np.repeat(days, 3))
    )
    review = loaded(workspace, table)
    questions = open_questions(review)
    assert questions == (
        "do rows of one 'customer_id' belong together?",
        "are the rows in the order of 'day'?",
    )
    step = next_step(CheckedReview((), 0.95, 900), questions=questions)
    assert step.startswith(f"Answer 2 open questions: {questions[0]} Are the rows in")
    assert open_questions(settle(workspace, review.id, "cluster", "customer_id")) == ()


def test_votes_are_judged_by_their_majority_or_as_a_share(workspace: Workspace) -> None:
    votes = RNG.binomial(4, P) / 4  # with ties
    table = pd.DataFrame({"label": votes, "probability": P})
    review = loaded(workspace, table)
    with pytest.raises(InputError, match="shares from 0 to 1, as of annotators' votes"):
        score(workspace, review.id)
    settled = settle(workspace, review.id, "labels", "majority")
    assert (settled.classes, settled.doubts) == (("0", "1"), ())
    scored = score(workspace, review.id)
    yes = int((votes >= 0.5).sum())
    assert scored.sets["calibration"].class_rows == (N - yes, yes)
    content = io.BytesIO(table.assign(label=table["label"] * 2).to_csv(index=False).encode())
    add_table(workspace, review.id, "evaluation", content, "counts.csv")
    with pytest.raises(InputError, match=r"A share is below 0 or above 1 .*column 'label'"):
        score(workspace, review.id)
    other = loaded(workspace, table)
    settled = settle(workspace, other.id, "labels", "share")
    assert (settled.task, settled.doubts) == ("regression", ())
    assert settled.roles is not None
    assert (settled.roles.target, settled.roles.parameters) == (
        "label",
        (("mean", "probability"),),
    )
    assert score(workspace, other.id).ready


def test_thousandths_and_lists_are_scored_once_they_are_confirmed(workspace: Workspace) -> None:
    event = (RNG.random(N) < P).astype(int)
    review = loaded(workspace, pd.DataFrame({"score": 1000 * P, "y": event}))
    with pytest.raises(InputError, match="does not say how likely the event is"):
        score(workspace, review.id)
    settle(workspace, review.id, "scale", "permille")
    plain = score(workspace, loaded(workspace, pd.DataFrame({"p": P, "y": event})).id)
    thousandths = score(workspace, review.id).sets["calibration"]
    assert thousandths.accuracy == plain.sets["calibration"].accuracy
    table = pd.DataFrame({"p": [f"[{p}, {1 - p}]" for p in P], "y": np.where(event, "b", "a")})
    lists = loaded(workspace, table)
    assert [one.about for one in lists.doubts] == ["order"]
    settle(workspace, lists.id, "order", "b,a")
    assert score(workspace, lists.id).sets["calibration"].accuracy == thousandths.accuracy
