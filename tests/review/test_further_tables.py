"""Training and foreign tables: kept beside the sets, never scored, never in their way."""

import io
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from workerless import working_here

from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_foreign,
    add_table,
    add_training,
    add_watched,
    changes,
    create_review,
    identity,
    move_table,
    read_review,
    remove_foreign,
    remove_watched,
    score,
    set_roles,
    start_sample,
)
from kdcal_core.review.samples import samples_root

ROLES = Roles(target="label", outputs=(("no", "p_no"), ("yes", "p_yes")), features=("a", "b"))
pytestmark = pytest.mark.usefixtures("work_here")


def csv(frame):
    return io.BytesIO(frame.to_csv(index=False).encode())


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n).round(6)
    label = np.where(rng.uniform(size=n) < p, "yes", "no")
    features = {"a": rng.normal(size=n).round(6), "b": rng.normal(size=n).round(6)}
    return pd.DataFrame({**features, "p_no": 1 - p, "p_yes": p, "label": label})


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "home")


@pytest.fixture
def review(workspace):
    """A scored review of predictions with two features."""
    with working_here():  # also where a test then has real workers
        review_id = create_review(workspace).id
        add_table(workspace, review_id, "calibration", csv(rows()), "rows.csv")
        set_roles(workspace, review_id, ROLES)
        return score(workspace, review_id)


def files(workspace, review_id):
    """All but seals, of which there is one for each table."""
    names = {path.name for path in workspace.folder(review_id).iterdir()}
    seals = {name for name in names if name.endswith(".sha256")}
    assert seals == {f"{name}.sha256" for name in names if name.endswith(".arrow")}
    return names - seals


@pytest.mark.usefixtures("real_workers")
def test_both_come_and_go_without_touching_the_scores(workspace, review):
    before = files(workspace, review.id)
    training = rows(30, seed=1)[["label", "b", "a"]]
    foreign = rows(20, seed=2)[["a", "b"]]
    add_training(workspace, review.id, csv(training), "train.csv")
    add_foreign(workspace, review.id, csv(foreign), "far.csv")
    now = add_foreign(workspace, review.id, csv(foreign * 2), "farther.csv")
    assert now.ready
    assert now.sets == review.sets
    assert list(now.foreign) == ["far.csv", "farther.csv"]
    reader = ReviewReader(workspace, review.id)
    pd.testing.assert_frame_equal(reader.frame("training"), training, check_dtype=False)
    pd.testing.assert_frame_equal(reader.foreign("far.csv"), foreign)
    assert read_review(Workspace(workspace.root), review.id) == now
    move_table(workspace, review.id, "training", None)
    remove_foreign(workspace, review.id, "far.csv")
    remove_foreign(workspace, review.id, "no such table")
    assert remove_foreign(workspace, review.id, "farther.csv") == review
    assert files(workspace, review.id) == before


def test_a_table_of_the_same_name_replaces_the_one_before(workspace, review):
    for seed in (1, 2):
        add_training(workspace, review.id, csv(rows(10 * seed, seed)), "train.csv")
        now = add_foreign(workspace, review.id, csv(rows(10 * seed, seed)), "far.csv")
    assert now.training.n_rows == now.foreign["far.csv"].n_rows == 20
    expected = {"review.json", review.sets["calibration"].folder}
    assert files(workspace, review.id) == expected | {table.file for table in now.all_tables}


@pytest.mark.parametrize(
    ("add", "missing"), [(add_training, "label"), (add_training, "b"), (add_foreign, "b")]
)
def test_a_missing_column_is_named_and_nothing_is_kept(workspace, review, add, missing):
    kept = files(workspace, review.id)
    with pytest.raises(InputError, match="lacks") as caught:
        add(workspace, review.id, csv(rows().drop(columns=missing)), "short.csv")
    assert (caught.value.file, caught.value.column) == ("short.csv", missing)
    assert read_review(workspace, review.id) == review
    assert files(workspace, review.id) == kept


@pytest.mark.usefixtures("real_workers")
@pytest.mark.parametrize("add", [add_training, add_foreign])
def test_what_is_no_table_is_reported_with_its_name(workspace, review, add):
    with pytest.raises(InputError) as caught:
        add(workspace, review.id, io.BytesIO(b"\x00\x01" * 50), "bad.csv")
    assert caught.value.file == "bad.csv"


@pytest.mark.parametrize("add", [add_training, add_foreign])
def test_the_calibration_set_comes_first(workspace, add):
    review_id = create_review(workspace).id
    with pytest.raises(InputError, match="no calibration set yet"):
        add(workspace, review_id, csv(rows()), "early.csv")


def test_what_no_longer_fits_new_roles_is_dropped_and_reported(workspace, review):
    add_training(workspace, review.id, csv(rows()), "train.csv")
    add_foreign(workspace, review.id, csv(rows()[["a", "b"]]), "far.csv")
    wide = rows().assign(c=1.5)
    add_table(workspace, review.id, "calibration", csv(wide), "wide.csv")
    now = set_roles(workspace, review.id, replace(ROLES, features=("a", "b", "c")))
    assert now.training is None
    assert now.foreign == {}
    assert [note.split(" was dropped")[0] for note in now.notes] == ["train.csv", "far.csv"]
    assert {table.file for table in now.all_tables} < files(workspace, review.id)
    assert len(files(workspace, review.id)) == 2


def test_a_table_added_while_scoring_stays_and_the_scores_count(workspace, review, monkeypatch):
    set_roles(workspace, review.id, replace(ROLES, features=("a",)))
    run = changes.run_limited

    def run_and_add(target, *args, **kwargs):
        reply = run(target, *args, **kwargs)
        if target.endswith("score_tables"):
            add_foreign(workspace, review.id, csv(rows()), "far.csv")
        return reply

    monkeypatch.setattr(changes, "run_limited", run_and_add)
    now = score(workspace, review.id)
    assert now.ready
    assert list(now.foreign) == ["far.csv"]


def test_a_sample_brings_its_training_and_foreign_tables(workspace, tmp_path):
    root = tmp_path / "samples"
    folder = root / "breast_cancer"
    shutil.copytree(samples_root() / "breast_cancer", folder)
    for name in ("training", "foreign", "foreign_far_away"):
        shutil.copy(folder / "evaluation.parquet", folder / f"{name}.parquet")
    review = start_sample(workspace, "breast_cancer", root=root)
    assert review.ready
    n = review.tables["evaluation"].n_rows
    assert review.training.n_rows == n
    assert {name: table.n_rows for name, table in review.foreign.items()} == {
        "Foreign rows": n,
        "Far away": n,
    }
    assert {table.file for table in review.all_tables} < files(workspace, review.id)


def test_new_tables_to_watch_keep_their_order_and_touch_nothing_else(workspace, review):
    before = files(workspace, review.id)
    known = identity(review)
    add_watched(workspace, review.id, csv(rows(20, seed=1)), "may.csv")
    bare = rows(30, seed=2)[["p_no", "p_yes"]]
    now = add_watched(workspace, review.id, csv(bare), "june.csv")
    assert list(now.watched) == ["may.csv", "june.csv"]
    assert now.sets == review.sets
    assert identity(now) == known  # no stored result is computed again
    reader = ReviewReader(workspace, review.id, ())
    assert len(reader.watched("june.csv", now.watched["june.csv"].digest)) == 30
    with pytest.raises(InputError, match="no longer part of the review"):
        reader.watched("june.csv", now.watched["may.csv"].digest)
    now = add_watched(workspace, review.id, csv(rows(25, seed=3)), "may.csv")
    assert list(now.watched) == ["may.csv", "june.csv"]  # a table given again keeps its place
    assert now.watched["may.csv"].n_rows == 25
    assert len(files(workspace, review.id) - before) == 2
    remove_watched(workspace, review.id, "june.csv")
    remove_watched(workspace, review.id, "may.csv")
    assert files(workspace, review.id) == before


def test_a_new_table_to_watch_has_the_columns_of_the_predictions(workspace, review):
    before = files(workspace, review.id)
    with pytest.raises(InputError, match="lacks a column of the predictions") as error:
        add_watched(workspace, review.id, csv(rows()[["p_no", "label"]]), "half.csv")
    assert (error.value.file, error.value.column) == ("half.csv", "p_yes")
    assert files(workspace, review.id) == before
    add_watched(workspace, review.id, csv(rows()[["p_no", "p_yes"]]), "new.csv")
    other = replace(ROLES, outputs=(("no", "a"), ("yes", "b")), features=())
    now = set_roles(workspace, review.id, other)
    assert not now.watched
    assert any("new.csv was dropped" in note for note in now.notes)
