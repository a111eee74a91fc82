"""Several files at once: each finds its place, and one that is refused does not stop the others."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled
from kdcal_core.review import (
    Arrival,
    Review,
    TableInfo,
    Workspace,
    add_files,
    add_foreign,
    add_table,
    add_training,
    create_review,
    move_table,
    open_doubts,
    places_of,
    read_review,
    remove_foreign,
    score,
    set_roles,
    settle,
)
from kdcal_core.review.review import WHICH
from kdcal_core.review.samples import samples_root

pytestmark = pytest.mark.usefixtures("work_here")
CANCER = samples_root() / "breast_cancer"
N = 200
RNG = np.random.default_rng(0)


@pytest.fixture
def workspace(tmp_path) -> Workspace:
    return Workspace(tmp_path / "home")


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.random(N)
    return pd.DataFrame({"p_1": p, "y": (rng.random(N) < p).astype(int)})


def arrived(name: str, frame: pd.DataFrame | None = None, content: bytes = b"a,b\n") -> Arrival:
    return Arrival(
        io.BytesIO(content if frame is None else frame.to_csv(index=False).encode()), name
    )


def info(name: str) -> TableInfo:
    return TableInfo(name, "", 1, (), (), 1, "f")


def with_tables(**names: str) -> Review:
    tables = {which: info(name) for which, name in names.items()}
    return Review("some-id", tables=tables)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "places"),
    [
        (["rows.csv"], ["calibration"]),
        (["a.csv", "b.csv"], ["calibration", "evaluation"]),
        (["test.csv", "calib.csv"], ["evaluation", "calibration"]),
        (["X_test.parquet", "X_val.parquet"], ["evaluation", "calibration"]),
        (["val.csv", "cal.csv"], ["evaluation", "calibration"]),
        (["train.csv", "test.csv"], ["training", "calibration"]),
        (["train.csv"], ["training"]),
        (["credit-holdout.csv", "rows.csv"], ["evaluation", "calibration"]),
        (
            ["m.onnx", "eval.csv", "cal.csv", "train.csv"],
            ["model", *("evaluation", "calibration", "training")],
        ),
        (["forest.skops", "shifted_rows.csv", "rows.csv"], ["model", "foreign", "calibration"]),
        (["net.pkl", "latest.csv"], ["model", "calibration"]),  # "test" is no word of "latest"
        (["a.csv", "b.csv", "c.csv"], ["calibration", "evaluation", "training"]),
        (["a.csv", "b.csv", "train.csv", "c.csv"], [*WHICH, "training", "foreign"]),
    ],
)
def test_places_by_name(names: list[str], places: list[str]) -> None:
    files = [arrived(name) for name in names]
    assert list(places_of(files, Review("some-id"))) == places


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["train_a.csv", "train_b.csv", "cal.csv"], "training"),
        (["cal.csv", "test1.csv", "test2.csv"], "evaluation"),
        (["cal1.csv", "cal2.csv", "cal3.csv"], "calibration"),
        (["val.csv", "cal.csv", "test.csv"], "calibration"),
    ],
)
def test_a_second_table_of_a_taken_place_is_refused(
    workspace: Workspace, names: list[str], hint: str
) -> None:
    files = [arrived(name, table(at)) for at, name in enumerate(names)]
    places = places_of(files, Review("some-id"))
    (refused,) = (name for name, place in zip(names, places, strict=True) if place is None)
    taken = names[places.index(hint)]  # type: ignore[arg-type]
    review_id = create_review(workspace).id
    with pytest.raises(InputError) as error:
        add_files(workspace, review_id, files)
    assert f"the {hint} set, but '{taken}' was taken for that" in str(error.value)
    assert error.value.file == refused
    review = read_review(workspace, review_id)
    assert sorted(one.name for one in review.all_tables) == sorted({*names} - {refused})
    assert review.notes == ()


def test_a_text_file_is_a_model_where_it_begins_as_one() -> None:
    files = [arrived("model.txt", content=b"tree\nversion=v4\n"), arrived("rows.txt")]
    assert places_of(files, Review("some-id")) == ("model", "calibration")


def test_places_beside_what_is_there() -> None:
    one = with_tables(calibration="mine.csv")
    assert places_of([arrived("more.csv")], one) == ("evaluation",)
    assert places_of([arrived("mine.csv")], one) == ("calibration",)
    assert places_of([arrived("test.csv")], one) == ("evaluation",)
    both = with_tables(calibration="mine.csv", evaluation="yours.csv")
    assert places_of([arrived("more.csv")], both) == ("training",)
    full = replace(both, training=info("t.csv"), foreign={"f (2)": info("f.csv")})
    assert places_of([arrived("more.csv")], full) == ("foreign",)
    assert places_of([arrived("t.csv"), arrived("f.csv")], full) == ("training", "foreign")
    assert places_of([arrived("yours.csv")], both) == ("evaluation",)
    assert places_of([arrived("new cal.csv")], both) == ("calibration",)


@pytest.mark.usefixtures("real_workers")
def test_model_and_tables_in_any_order_make_a_review(workspace: Workspace) -> None:
    names = ("training.parquet", "evaluation.parquet", "model.skops", "calibration.parquet")
    files = [Arrival(CANCER / name, name) for name in names]
    shares: list[float] = []
    review = add_files(
        workspace, create_review(workspace).id, files, progress=lambda s, _: shares.append(s)
    )
    assert review.model is not None
    assert {which: one.name for which, one in review.tables.items()} == {
        "calibration": "calibration.parquet",
        "evaluation": "evaluation.parquet",
    }
    assert review.training is not None
    assert review.training.name == "training.parquet"
    assert review.title == "model.skops"
    assert shares == sorted(shares)
    assert score(workspace, review.id).ready
    # step by step the same is found
    one = create_review(workspace).id
    for name in ("model.skops", "calibration.parquet", "evaluation.parquet", "training.parquet"):
        stepwise = add_files(workspace, one, [Arrival(CANCER / name, name)])
    assert stepwise.roles == review.roles
    assert stepwise.classes == review.classes


def test_a_file_that_is_refused_does_not_stop_the_others(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    files = [arrived("eval.csv", content=b"p,p\n1,2\n"), arrived("cal.csv", table())]
    with pytest.raises(InputError, match=r"more than once.*eval\.csv"):
        add_files(workspace, review_id, files)
    review = read_review(workspace, review_id)
    assert list(review.tables) == ["calibration"]
    assert score(workspace, review_id).ready
    with pytest.raises(InputError, match=r"lacks a column.*test\.csv"):
        add_files(workspace, review_id, [arrived("test.csv", table().drop(columns="y"))])
    kept = {one.name for one in workspace.folder(review_id).glob("*.arrow")}
    assert kept == {review.tables["calibration"].file}


def features(seed: int = 0) -> pd.DataFrame:
    """Predictions with two columns that describe the rows."""
    return table(seed).assign(x=RNG.normal(size=N), z=RNG.normal(size=N))


def test_a_third_table_is_placed_for_the_time_being_and_can_be_moved(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    files = [arrived(f"{name}.csv", table(at)) for at, name in enumerate("abc")]
    review = add_files(workspace, review_id, files)
    assert review.training is not None
    assert review.training.name == "c.csv"
    assert [note for note in review.notes if note.startswith("c.csv was taken for the training")]
    moved = move_table(workspace, review_id, "training", "calibration")
    assert {which: one.name for which, one in moved.tables.items()} == {
        "calibration": "c.csv",
        "evaluation": "b.csv",
    }
    assert not [note for note in moved.notes if note.startswith("c.csv was taken for")]
    fourth = add_files(workspace, review_id, [arrived("d.csv", table(9))])
    assert list(fourth.foreign) == ["d.csv"]


@pytest.mark.parametrize("first", ["eval.csv", "march.csv"])
def test_a_table_gives_way_to_one_that_is_named_as_the_calibration_set(
    workspace: Workspace, first: str
) -> None:
    """It was the calibration set for want of another, and is not lost."""
    review_id = create_review(workspace).id
    assert [*add_files(workspace, review_id, [arrived(first, table())]).tables] == ["calibration"]
    review = add_files(workspace, review_id, [arrived("cal.csv", table(1))])
    placed = {which: one.name for which, one in review.tables.items()}
    assert placed == {"calibration": "cal.csv", "evaluation": first}
    assert {*score(workspace, review_id).sets} == {"calibration", "evaluation"}


def test_a_table_whose_place_another_takes_is_not_dropped_in_silence(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    add_files(workspace, review_id, [arrived("cal_may.csv", table())])
    review = add_files(workspace, review_id, [arrived("cal_june.csv", table(1))])
    said = "cal_may.csv was taken out: cal_june.csv took its place as the calibration set."
    assert (review.tables["calibration"].name, review.notes) == ("cal_june.csv", (said,))
    again = add_files(workspace, review_id, [arrived("cal_june.csv", table(2))])
    assert again.notes == (said,)  # a new file of the same name is what was meant


def test_no_note_on_a_guessed_place_outlives_that_place(workspace: Workspace) -> None:
    def notes(review: Review) -> list[str]:
        return [note.partition(" was taken for ")[0] for note in review.notes if "taken" in note]

    review_id = create_review(workspace).id
    files = [arrived(f"{name}.csv", features(at)) for at, name in enumerate("abcde")]
    assert notes(add_files(workspace, review_id, files)) == ["c.csv", "d.csv", "e.csv"]
    # the table that it changes places with
    assert notes(move_table(workspace, review_id, "evaluation", "training")) == ["d.csv", "e.csv"]
    assert notes(remove_foreign(workspace, review_id, "d.csv")) == ["e.csv"]
    chosen = arrived("e.csv", features(9)).source
    assert notes(add_foreign(workspace, review_id, chosen, "e.csv")) == []
    assert move_table(workspace, review_id, "training", None).training is None
    assert notes(add_files(workspace, review_id, [arrived("f.csv", features(6))])) == ["f.csv"]
    again = add_files(workspace, review_id, [arrived("f.csv", features(7))])
    assert notes(again) == []  # it replaces the table of its name
    add_files(workspace, review_id, [arrived("g.csv", features(8))])
    assert notes(read_review(workspace, review_id)) == ["g.csv"]
    move_table(workspace, review_id, "training", None)
    add_files(workspace, review_id, [arrived("h.csv", features(10))])
    other = arrived("other.csv", features(11)).source
    assert notes(add_training(workspace, review_id, other, "other.csv")) == ["g.csv"]


@pytest.mark.parametrize("together", [True, False])
def test_a_table_without_the_target_is_taken_for_foreign_rows(
    workspace: Workspace, together: bool
) -> None:
    review_id = create_review(workspace).id
    without = arrived("a.csv", features(1).drop(columns="y"))
    files = [without, arrived("b.csv", features())] if together else [arrived("b.csv", features())]
    review = add_files(workspace, review_id, files)
    if not together:
        review = add_files(workspace, review_id, [without])
    assert {which: one.name for which, one in review.tables.items()} == {"calibration": "b.csv"}
    assert list(review.foreign) == ["a.csv"]
    assert "a.csv was taken for foreign rows: it has no column 'y'." in review.notes
    assert score(workspace, review_id).ready


def test_what_a_name_says_is_not_changed_by_the_columns(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    files = [arrived("cal.csv", features()), arrived("train.csv", features().drop(columns="y"))]
    with pytest.raises(InputError, match=r"lacks a column.*train\.csv"):
        add_files(workspace, review_id, files)
    assert read_review(workspace, review_id).foreign == {}
    files = [arrived("test.csv", features().drop(columns="y"))]
    review = add_files(workspace, review_id, files)
    assert (list(review.tables), review.foreign, list(review.unplaced)) == (
        ["calibration"],
        {},
        ["test.csv"],
    )


CANCER_TARGET = "diagnosis"


def cancer(name: str, *, target: bool) -> Arrival:
    rows = pd.read_parquet(CANCER / "evaluation.parquet")
    return arrived(name, rows if target else rows.drop(columns=CANCER_TARGET))


def test_a_set_without_the_target_beside_a_model_is_asked_about(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    model, calibration = (
        Arrival(CANCER / name, name) for name in ("model.skops", "calibration.parquet")
    )
    files = [model, calibration, cancer("test.csv", target=False)]
    review = add_files(workspace, review_id, files)
    (asked,) = open_doubts(review)
    assert "'test.csv' has the inputs but no column 'diagnosis', the true class" in asked
    assert "rename it to 'diagnosis'" in asked
    assert "foreign rows" in asked
    scored = score(workspace, review_id)  # the other rows need no answer
    assert scored.ready
    assert list(scored.unplaced) == ["test.csv"]
    with pytest.raises(InputError, match="It holds the true class") as refused:
        move_table(workspace, review_id, "unplaced", "evaluation", name="test.csv")
    assert (refused.value.file, refused.value.column) == ("test.csv", CANCER_TARGET)
    foreign = move_table(workspace, review_id, "unplaced", "foreign", name="test.csv")
    assert (list(foreign.foreign), foreign.unplaced, open_doubts(foreign)) == (["test.csv"], {}, ())
    assert foreign.scored
    # with its target it is the set that its name says
    again = add_files(workspace, review_id, [cancer("eval.csv", target=False)])
    whole = add_files(workspace, review_id, [cancer("eval.csv", target=True)])
    assert list(again.unplaced) == ["eval.csv"]
    assert (list(whole.tables), whole.unplaced) == (list(WHICH), {})


def test_a_table_without_a_place_can_be_left_out_with_its_file(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    files = [arrived("cal.csv", features()), arrived("test.csv", features().drop(columns="y"))]
    add_files(workspace, review_id, files)
    left = move_table(workspace, review_id, "unplaced", None, name="test.csv")
    assert (left.unplaced, open_doubts(left)) == ({}, ())
    kept = {one.name for one in workspace.folder(review_id).glob("*.arrow")}
    assert kept == {left.tables["calibration"].file}


@pytest.mark.parametrize("name", ["rows.parquet", "cal.parquet", "test.parquet"])
def test_a_table_with_the_target_calibrates_instead_of_one_without(
    workspace: Workspace, name: str
) -> None:
    review_id = create_review(workspace).id
    files = [Arrival(CANCER / "model.skops", "model.skops"), cancer("test.csv", target=False)]
    first = add_files(workspace, review_id, files)
    assert first.roles is not None
    assert first.roles.target is None
    review = add_files(workspace, review_id, [Arrival(CANCER / "calibration.parquet", name)])
    assert {which: one.name for which, one in review.tables.items()} == {"calibration": name}
    assert review.roles is not None
    assert review.roles.target == CANCER_TARGET
    assert list(review.unplaced) == ["test.csv"]
    assert score(workspace, review_id).ready


def test_once_another_column_is_the_target_a_table_that_has_it_can_be_a_set(
    workspace: Workspace,
) -> None:
    review_id = create_review(workspace).id
    both = features().assign(label=RNG.integers(0, 2, N))
    review = add_files(workspace, review_id, [arrived("cal.csv", both)])
    if review.doubts:
        settle(workspace, review_id, "target", "y")
    review = add_files(workspace, review_id, [arrived("test.csv", both.drop(columns="y"))])
    assert review.roles is not None
    inputs = tuple(name for name in review.roles.features if name != "label")
    roles = replace(review.roles, target="label", features=inputs)
    changed = set_roles(workspace, review_id, roles)
    placed = move_table(workspace, review_id, "unplaced", "evaluation", name="test.csv")
    assert (list(changed.unplaced), list(placed.tables)) == (["test.csv"], list(WHICH))
    assert "it is not used" in open_doubts(changed)[0]


def test_foreign_rows_change_places_with_a_set(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    names = ("cal.csv", "eval.csv", "ood.csv")
    add_files(workspace, review_id, [arrived(one, features(at)) for at, one in enumerate(names)])
    scored = score(workspace, review_id)
    moved = move_table(workspace, review_id, "foreign", "evaluation", name="ood.csv")
    assert moved.tables["evaluation"].name == "ood.csv"
    assert list(moved.foreign) == ["eval.csv"]
    assert not moved.scored
    back = move_table(workspace, review_id, "evaluation", "foreign")
    assert list(back.tables) == ["calibration"]
    assert [*back.foreign] == ["eval.csv", "ood.csv"]
    assert (
        score(workspace, review_id).sets["calibration"].accuracy == scored.accuracy["calibration"]
    )
    left = move_table(workspace, review_id, "foreign", None, name="eval.csv")
    assert list(left.foreign) == ["ood.csv"]
    assert left.scored  # foreign rows are never scored
    kept = {one.name for one in workspace.folder(review_id).glob("*.arrow")}
    assert kept == {one.file for one in left.all_tables}
    with pytest.raises(InputError, match="no table in this place"):
        move_table(workspace, review_id, "foreign", None, name="eval.csv")


def test_a_move_that_would_lack_a_column_changes_nothing(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    files = [arrived("cal.csv", features()), arrived("ood.csv", features(1).drop(columns="y"))]
    before = add_files(workspace, review_id, files)
    for to in ("evaluation", "training"):
        with pytest.raises(InputError, match="lacks a column"):
            move_table(workspace, review_id, "foreign", to, name="ood.csv")
    assert read_review(workspace, review_id) == before


@pytest.mark.usefixtures("real_workers")
def test_nothing_is_left_of_files_whose_reading_was_stopped(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    files = [arrived("cal.csv", table()), arrived("eval.csv", table(1))]
    with pytest.raises(Cancelled):
        add_files(workspace, review_id, files, cancelled=lambda: True)
    assert read_review(workspace, review_id).tables == {}
    assert [one.name for one in workspace.folder(review_id).iterdir()] == ["review.json"]


def test_tables_exchange_their_places(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    add_files(workspace, review_id, [arrived("a.csv", table()), arrived("b.csv", table(1))])
    scored = score(workspace, review_id)
    moved = move_table(workspace, review_id, "evaluation", "calibration")
    assert {which: one.name for which, one in moved.tables.items()} == {
        "calibration": "b.csv",
        "evaluation": "a.csv",
    }
    assert not moved.scored
    assert moved.title == "b.csv"
    again = score(workspace, review_id)
    assert again.sets["calibration"].accuracy == scored.sets["evaluation"].accuracy
    aside = move_table(workspace, review_id, "evaluation", "training")
    assert aside.training is not None
    assert aside.training.name == "a.csv"
    assert list(aside.tables) == ["calibration"]
    score(workspace, review_id)
    gone = move_table(workspace, review_id, "training", None)
    assert gone.training is None
    assert gone.scored  # training rows are never scored
    empty = move_table(workspace, review_id, "calibration", None)
    assert (empty.tables, empty.roles) == ({}, None)
    with pytest.raises(InputError, match="no table in this place"):
        move_table(workspace, review_id, "training", "calibration")


def test_another_calibration_table_asks_its_own_questions(workspace: Workspace) -> None:
    review_id = create_review(workspace).id
    loans = table().rename(columns={"y": "defaulted", "p_1": "p_default"})
    loans = loans.assign(default=RNG.integers(0, 2, N))
    files = [arrived("cal.csv", loans), arrived("eval.csv", loans.sample(frac=1.0))]
    assert [one.about for one in add_files(workspace, review_id, files).doubts] == ["target"]
    assert settle(workspace, review_id, "target", "defaulted").doubts == ()
    moved = move_table(workspace, review_id, "evaluation", "calibration")
    assert [one.about for one in moved.doubts] == ["target"]
    assert moved.answers == {}


def test_a_review_of_one_table_after_another_is_as_before(workspace: Workspace) -> None:
    one, two = create_review(workspace).id, create_review(workspace).id
    for which in ("calibration", "evaluation"):
        add_table(workspace, one, which, arrived("", table()).source, f"{which}.csv")
    files = [arrived(f"{which}.csv", table()) for which in ("evaluation", "calibration")]
    together = add_files(workspace, two, files)
    assert together.roles == read_review(workspace, one).roles
    assert together.classes == read_review(workspace, one).classes
