"""A set that names its columns otherwise is asked about, and renamed by one answer."""

from __future__ import annotations

import io
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

from kdcal_core.errors import InputError
from kdcal_core.review import (
    Arrival,
    Review,
    Workspace,
    add_files,
    create_review,
    move_table,
    open_doubts,
    read_review,
    score,
)
from kdcal_core.review.samples import samples_root

pytestmark = pytest.mark.usefixtures("work_here")
CANCER = samples_root() / "breast_cancer"


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path / "home")


def arrived(name: str, frame: pd.DataFrame) -> Arrival:
    return Arrival(io.BytesIO(frame.to_csv(index=False).encode()), name)


def classes(seed: int, **names: str) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.random(200)
    rows = {"age": rng.normal(50.0, 9.0, 200), "p_1": p, "y": (rng.random(200) < p).astype(int)}
    return pd.DataFrame(rows).rename(columns=names)


def forecasts(seed: int, **names: str) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=200)
    rows = {"mean": mean, "std": np.ones(200), "y": mean + rng.normal(size=200)}
    return pd.DataFrame(rows).rename(columns=names)


def both(workspace: Workspace, first: pd.DataFrame, second: pd.DataFrame) -> Review:
    review_id = create_review(workspace).id
    return add_files(workspace, review_id, [arrived("b.csv", second), arrived("cal.csv", first)])


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        (classes(0), classes(1, y="label", p_1="proba_1"), [("label", "y"), ("proba_1", "p_1")]),
        (classes(0), classes(1, y="label"), [("label", "y")]),
        (classes(0), classes(1, p_1="proba_1", age="years"), [("proba_1", "p_1")]),
        (
            forecasts(0),
            forecasts(1, y="outcome", mean="mu", std="sigma"),
            [("outcome", "y"), ("mu", "mean"), ("sigma", "std")],
        ),
    ],
)
def test_one_answer_makes_it_the_evaluation_set(
    workspace: Workspace,
    first: pd.DataFrame,
    second: pd.DataFrame,
    pairs: list[tuple[str, str]],
) -> None:
    review = both(workspace, first, second)
    assert list(review.tables) == ["calibration"]
    assert review.unplaced["b.csv"].other_names == tuple(pairs)
    (asked,) = open_doubts(review)
    assert "'b.csv' names its columns otherwise than the calibration table" in asked
    assert all(f"{new!r} for {old!r}" in asked for new, old in pairs)
    assert score(workspace, review.id).ready  # the other rows need no answer
    moved = move_table(workspace, review.id, "unplaced", "evaluation", name="b.csv")
    assert (list(moved.tables), open_doubts(moved)) == (["calibration", "evaluation"], ())
    assert f"{pairs[0][0]!r} as {pairs[0][1]!r}" in moved.tables["evaluation"].notes[-1]
    files = {one.name for one in workspace.folder(review.id).glob("*.arrow")}
    assert files == {one.file for one in moved.tables.values()}
    scored = score(workspace, review.id)
    alike = both(workspace, first, second.rename(columns=dict(pairs)))
    as_usual = score(workspace, alike.id)
    assert scored.sets["evaluation"].answers == as_usual.sets["evaluation"].answers
    assert scored.roles == as_usual.roles


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (classes(0, p_1="p_good").replace({"y": {0: "bad", 1: "good"}}), classes(1, p_1="p_bad")),
        (classes(0), classes(1, y="label").replace({"label": {0: 3, 1: 4}})),
        (classes(0), forecasts(1, y="label")),
        # of the same name as another column of the calibration table
        (classes(0).assign(label=1.0), classes(1, y="label")),
    ],
)
def test_columns_that_may_hold_something_else_are_not_offered(
    workspace: Workspace, first: pd.DataFrame, second: pd.DataFrame
) -> None:
    review_id = create_review(workspace).id
    add_files(workspace, review_id, [arrived("cal.csv", first)])
    with suppress(InputError):
        add_files(workspace, review_id, [arrived("b.csv", second)])
    review = read_review(workspace, review_id)
    assert (list(review.tables), review.unplaced) == (["calibration"], {})


def test_a_target_of_another_name_beside_a_model(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    rows = pd.read_parquet(CANCER / "evaluation.parquet").rename(columns={"diagnosis": "truth"})
    files = [Arrival(CANCER / one, one) for one in ("model.skops", "calibration.parquet")]
    review = add_files(workspace, review_id, [*files, arrived("test.csv", rows)])
    assert review.unplaced["test.csv"].other_names == (("truth", "diagnosis"),)
    moved = move_table(workspace, review_id, "unplaced", "evaluation", name="test.csv")
    assert moved.has_evaluation
    assert score(workspace, review_id).ready


def test_the_question_ends_with_the_columns_that_it_was_about(workspace: Workspace) -> None:
    review = both(workspace, classes(0), classes(1, y="label", p_1="proba_1"))
    again = add_files(workspace, review.id, [arrived("cal.csv", forecasts(0))])
    assert again.unplaced == {}
    assert any(one.startswith("b.csv was dropped") for one in again.notes)


@pytest.mark.parametrize("names", [["train.csv"], ["ood.csv"], ["train.csv", "ood.csv"]])
def test_training_and_foreign_rows_may_come_first(workspace: Workspace, names: list[str]) -> None:
    review_id = create_review(workspace).id
    review = add_files(workspace, review_id, [arrived(name, classes(2)) for name in names])
    assert sorted(one.name for one in review.all_tables) == sorted(names)
    review = add_files(workspace, review_id, [arrived("cal.csv", classes(0))])
    assert sorted(one.name for one in review.all_tables) == sorted([*names, "cal.csv"])
    assert (review.training is not None) == ("train.csv" in names)
    assert score(workspace, review_id).ready


def test_training_rows_that_came_first_and_do_not_fit_are_dropped_with_a_note(
    workspace: Workspace,
) -> None:
    review_id = create_review(workspace).id
    add_files(workspace, review_id, [arrived("train.csv", forecasts(0))])
    review = add_files(workspace, review_id, [arrived("cal.csv", classes(0))])
    assert review.training is None
    assert any(one.startswith("train.csv was dropped: it lacks") for one in review.notes)
