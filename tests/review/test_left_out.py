"""Of bare predictions, every column that describes the rows is looked at, or the reason is
given."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.review import (
    ColumnInfo,
    ReviewReader,
    Workspace,
    add_table,
    create_review,
    input_columns,
    left_out,
    left_out_words,
    review_data,
    score,
    set_roles,
    start_sample,
    undeclared_groups,
)

pytestmark = pytest.mark.usefixtures("work_here")


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n).round(6)
    return pd.DataFrame(
        {
            "loan": [f"L{i:05d}" for i in range(n)],
            "age": rng.integers(18, 80, n),
            "region": np.where(np.arange(n) % 10 == 0, None, rng.choice(["north", "south"], n)),
            "opened": pd.date_range("2026-01-01", periods=n).strftime("%Y-%m-%d"),
            "p_default": p,
            "label": (rng.uniform(size=n) < p).astype(int),
        }
    )


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "home")


def added(workspace, *frames):
    review = create_review(workspace)
    for which, frame in zip(("calibration", "evaluation"), frames, strict=False):
        file = io.BytesIO()
        frame.to_parquet(file)
        review = add_table(workspace, review.id, which, file, f"{which}.parquet")
    return review


def test_text_of_few_values_is_an_input_and_what_is_none_is_reported(workspace, texts):
    review = added(workspace, rows().assign(opened=pd.Timestamp("2026-01-01")))
    assert review.roles.features == ("age", "region")
    assert review.roles.outputs == (("1", "p_default"),)
    texts(left_out_words(left_out(review)))
    score(workspace, review.id)
    data = review_data(ReviewReader(workspace, review.id))
    assert list(data.inputs["calibration"]) == ["age", "region"]
    flags = ReviewReader(workspace, review.id).fitness("calibration").flags
    assert any("region (6)" in flag for flag in flags)


def test_a_column_taken_out_by_hand_is_reported_too(workspace):
    review = added(workspace, rows())
    review = set_roles(workspace, review.id, replace(review.roles, features=("age", "loan")))
    assert input_columns(review) == ["age", "loan"]
    assert left_out(review) == {
        "region": "its role is 'Not used'",
        "opened": "dates or times",
    }


@pytest.mark.parametrize("first", ["calibration", "evaluation"])
def test_an_input_that_not_both_tables_have_is_none(workspace, first):
    whole, part = rows(), rows(50, 1).drop(columns="region")
    review = added(workspace, *((whole, part) if first == "calibration" else (part, whole)))
    assert review.roles.features == ("age",)
    assert set(review.tables) == {"calibration", "evaluation"}
    text = [note for note in review.notes if "'region'" in note]
    assert len(text) == (first == "calibration")
    if text:
        assert left_out(review)["region"] == "not in every table"


def test_a_table_without_the_target_is_still_refused(workspace):
    review = added(workspace, rows())
    with pytest.raises(InputError, match="'label'"):
        added_to(workspace, review, rows().drop(columns="label"))


def added_to(workspace, review, frame):
    file = io.BytesIO(frame.to_csv(index=False).encode())
    return add_table(workspace, review.id, "evaluation", file, "more.csv")


def test_roles_without_features_leave_out_what_names_rows(workspace):
    review = added(workspace, rows())
    outputs = (("1", "p_default"),)
    review = set_roles(workspace, review.id, Roles(target="label", outputs=outputs), ("0", "1"))
    assert input_columns(review) == ["age", "region"]
    assert set(left_out(review)) == {"loan", "opened"}


def test_of_a_model_nothing_is_left_out(workspace):
    assert left_out(start_sample(workspace, "xor_forest")) == {}


def test_words_that_a_model_does_not_read_could_be_groups(workspace):
    review = start_sample(workspace, "xor_forest")
    assert undeclared_groups(review) == []
    table = review.tables["calibration"]
    words = ColumnInfo("branch", "text", 0, 2, ("north", "south"))
    names = ColumnInfo("loan", "text", 0, 900, (), no_input="nearly every row has another value")
    numbers = ColumnInfo("amount", "number", 0, 900, ())
    table = replace(table, columns=(*table.columns, words, names, numbers))
    one = replace(review, tables={"calibration": table})
    assert undeclared_groups(one) == ["branch"]
    assert undeclared_groups(one, ("amount",)) == []
    # an evaluation set without the column cannot be divided by it
    both = {"calibration": table, "evaluation": review.tables["calibration"]}
    assert undeclared_groups(replace(one, tables=both)) == []
    # bare predictions are searched along every such column
    assert undeclared_groups(replace(one, model=None)) == []


def test_a_target_that_is_known_decides_the_rest(workspace):
    review = create_review(workspace)
    frame = rows().rename(columns={"label": "bad"}).assign(label="x")
    file = io.BytesIO(frame.to_csv(index=False).encode())
    review = add_table(workspace, review.id, "calibration", file, "rows.csv", target="bad")
    assert (review.roles.target, review.roles.outputs) == ("bad", (("1", "p_default"),))
    assert review.classes == ("0", "1")


def test_an_evaluation_table_that_came_first_stays(workspace):
    review = create_review(workspace)
    review = added_to(workspace, review, rows(50, 1).drop(columns="region"))
    file = io.BytesIO(rows().to_csv(index=False).encode())
    review = add_table(workspace, review.id, "calibration", file, "rows.csv")
    assert set(review.tables) == {"calibration", "evaluation"}
    assert review.roles.features == ("age",)
