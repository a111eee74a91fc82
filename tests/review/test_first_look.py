"""What is known of the target before the rows are scored."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import at_most
from kdcal_core.review import (
    Arrival,
    Review,
    Workspace,
    add_files,
    create_review,
    first_look,
    score,
    set_question,
    split_table,
)
from kdcal_core.review.samples import samples_root

pytestmark = pytest.mark.usefixtures("work_here")
N = 400
RNG = np.random.default_rng(0)
P = RNG.beta(0.8, 3.0, N)
LOANS = pd.DataFrame({"p_left": P, "side": np.where(RNG.random(N) < P, "left", "right")})


def loaded(workspace: Workspace, frame: pd.DataFrame) -> Review:
    file = Arrival(io.BytesIO(frame.to_csv(index=False).encode()), "rows.csv")
    return add_files(workspace, create_review(workspace).id, [file])


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path / "home")


def test_rate_mean_prediction_and_auroc_of_each_possible_event(workspace: Workspace) -> None:
    review = loaded(workspace, LOANS)
    look = first_look(workspace, review)
    assert look is not None
    rate = (LOANS["side"] == "left").mean()
    assert look.event == "left"  # the rarer
    assert look.of_event["left"].startswith(
        f"{rate:.1%} of the rows, mean prediction {P.mean():.1%}"
    )
    assert look.of_event["right"].startswith(f"{1 - rate:.1%} of the rows, mean prediction ")
    areas = {words.rpartition(" ")[2] for words in look.of_event.values()}
    assert len(areas) == 1  # two classes have one area


def test_the_default_event_is_the_one_after_scoring(workspace: Workspace) -> None:
    for frame in (LOANS, LOANS.assign(side=LOANS["side"].map({"left": "no", "right": "yes"}))):
        review = loaded(workspace, frame.rename(columns={"p_left": f"p_{frame['side'].iloc[0]}"}))
        look = first_look(workspace, review)
        assert look is not None
        scored = score(workspace, review.id)
        assert scored.event is not None
        assert look.event == scored.classes[scored.event]


def test_of_a_large_table_near_a_tie_the_default_event_is_the_one_after_scoring(
    workspace: Workspace,
) -> None:
    most = 150
    drawn = np.zeros(N, dtype=bool)
    drawn[at_most(N, most)] = True
    for more in ("left", "right"):  # of the rows drawn; of all rows it is the rarer by one
        less = {"left": "right", "right": "left"}[more]
        side = np.where(drawn, more, less)
        side[np.flatnonzero(~drawn)[: N // 2 - 1 - most]] = more
        frame = pd.DataFrame({"p_left": P, "side": side})
        assert (side == more).sum() == N // 2 - 1
        for rows in (frame, frame.assign(split="cal")):
            review = loaded(workspace, rows)
            look = first_look(workspace, review, most=most)
            assert look is not None
            if "split" in rows:
                split_table(workspace, review.id)
            scored = score(workspace, review.id)
            assert scored.event is not None
            assert look.event == scored.classes[scored.event] == more


def test_a_label_that_was_not_drawn_leaves_what_the_others_show(workspace: Workspace) -> None:
    rest = np.setdiff1d(np.arange(N), at_most(N, 150))
    side = LOANS["side"].where(LOANS.index != rest[0], "neither")
    review = loaded(workspace, LOANS.assign(side=side))
    look = first_look(workspace, replace(review, classes=("left", "right")), most=150)
    assert look is not None
    assert look.event is None
    assert look.shows.startswith("class ")


def test_only_rows_for_calibration_count_until_the_table_is_divided(workspace: Workspace) -> None:
    # the model knows its training rows by heart and is wrong on every other
    right = np.where(LOANS["side"] == "left", 0.9, 0.1)
    part = np.resize(["train", "train", "cal", "test"], N)
    frame = LOANS.assign(split=part, p_left=np.where(part == "train", right, 1.0 - right))
    frame["side"] = np.where(part == "cal", np.where(LOANS.index % 8 < 6, "left", "right"), "right")
    review = loaded(workspace, frame)
    assert review.roles is not None
    assert review.roles.split == "split"
    look = first_look(workspace, review)
    divided = first_look(workspace, split_table(workspace, review.id))
    assert look is not None
    assert look == divided
    alone = loaded(workspace, frame[part == "cal"].drop(columns="split"))
    assert look == first_look(workspace, alone)
    assert look != first_look(workspace, loaded(workspace, frame.drop(columns="split")))


def test_weighted_rows_count_by_their_weight(workspace: Workspace) -> None:
    weight = 1 + np.arange(N) % 3
    look = first_look(workspace, loaded(workspace, LOANS.assign(sample_weight=weight)))
    repeated = LOANS.loc[np.repeat(LOANS.index, weight)]
    same = first_look(workspace, loaded(workspace, repeated))
    assert look is not None
    assert same is not None
    for name, words in same.of_event.items():
        assert look.of_event[name] == words.replace("the rows", "the rows (weighted)")
    unweighted = first_look(workspace, loaded(workspace, LOANS))
    assert unweighted is not None
    assert look.of_event["left"].replace(" (weighted)", "") != unweighted.of_event["left"]


def test_of_a_large_table_some_rows_are_drawn(workspace: Workspace) -> None:
    review = loaded(workspace, LOANS)
    look = first_look(workspace, review, most=150)
    assert look is not None
    drawn = LOANS.iloc[at_most(N, 150)]
    rate = (drawn["side"] == "left").mean()
    assert look.of_event["left"].startswith(
        f"{rate:.1%} of 150 rows drawn, mean prediction {drawn['p_left'].mean():.1%}, AUROC "
    )


def test_an_event_chosen_before_scoring_is_kept(workspace: Workspace) -> None:
    review = loaded(workspace, LOANS)
    set_question(workspace, review.id, replace(review.question, event="right"))
    scored = score(workspace, review.id)
    assert scored.event is not None
    assert scored.classes[scored.event] == "right"


def test_a_model_that_has_not_scored_leaves_the_rate_alone(workspace: Workspace) -> None:
    folder = samples_root() / "breast_cancer"
    files = [Arrival(folder / name, name) for name in ("model.skops", "calibration.parquet")]
    review = add_files(workspace, create_review(workspace).id, files)
    look = first_look(workspace, review)
    assert look is not None
    assert len(look.of_event) == 2
    assert all(words.endswith("% of the rows") for words in look.of_event.values())


def test_more_classes_have_no_event(workspace: Workspace) -> None:
    proba = RNG.dirichlet([1, 1, 1], N)
    frame = pd.DataFrame(proba, columns=["p_a", "p_b", "p_c"])
    frame["kind"] = np.array(["a", "b", "c"])[proba.argmax(axis=1)]
    look = first_look(workspace, loaded(workspace, frame))
    assert look is not None
    assert (look.event, look.of_event) == (None, {})
    assert look.shows == "3 classes, 100.0% of the rows predicted right"


@pytest.mark.parametrize("broken", ["a class nobody knows", "no number"])
def test_what_scoring_will_refuse_leaves_what_the_labels_show(
    workspace: Workspace, broken: str
) -> None:
    review = loaded(workspace, LOANS)
    if broken == "no number":
        review = loaded(workspace, LOANS.assign(p_left=LOANS["p_left"].where(LOANS.index > 0, 7.0)))
    else:
        review = replace(review, classes=("up", "down"))
    look = first_look(workspace, review)
    assert look is not None
    assert look.event is None
    assert look.shows.startswith("class ")


def test_nothing_is_said_of_a_regression_or_without_a_target(workspace: Workspace) -> None:
    assert first_look(workspace, create_review(workspace)) is None
    frame = pd.DataFrame({"price": RNG.normal(size=N), "mean": 0.0, "std": 1.0})
    review = loaded(workspace, frame)
    assert review.task == "regression"
    assert first_look(workspace, review) is None


def test_predictions_against_their_classes_are_named_before_scoring(workspace: Workspace) -> None:
    assert first_look(workspace, loaded(workspace, LOANS)).odd == ""
    swapped = LOANS.assign(side=LOANS["side"].map({"left": "right", "right": "left"}))
    review = loaded(workspace, swapped)
    odd = first_look(workspace, review).odd
    assert odd.startswith("The probabilities rank the rows the wrong way round: AUROC 0.")
    assert score(workspace, review.id).sets["calibration"].doubts == (odd,)
