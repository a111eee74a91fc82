"""Rows that lie in two tables of a review: one rule for any two, and one sentence everywhere."""

from __future__ import annotations

import dataclasses
import re

import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from small_reviews import Made, csv, made, quiet, rows
from texts.snapshot import Texts
from workerless import working_here

from kdcal_core.errors import InputError
from kdcal_core.evaluation.overlap import overlap, overlap_note
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_foreign,
    add_table,
    add_training,
    create_review,
    move_table,
    review_data,
    score,
    set_roles,
)
from kdcal_core.tasks import (
    EqualSets,
    Sets,
    equal_sets,
    fit_graph,
    is_large,
    set_overview,
)
from kdcal_core.tasks.decorators import carry_out


def found_in(workspace: Workspace, review_id: str) -> EqualSets:
    sets = Sets(ReviewReader(workspace, review_id), quiet)
    return equal_sets(sets)


@pytest.fixture
def forest(tmp_path) -> Made:
    """40 evaluation rows lie in the calibration set, none elsewhere."""
    calibration, evaluation, training = (rows(n, seed) for seed, n in enumerate((150, 90, 120)))
    evaluation = pd.concat([calibration.iloc[:40], evaluation], ignore_index=True)
    model = RandomForestClassifier(20, random_state=0)
    model.fit(training[["a", "b"]].to_numpy(), training["kind"])
    tables = {"calibration": calibration, "evaluation": evaluation}
    return dataclasses.replace(made(tmp_path, model, tables), tables={**tables, "own": training})


def added(add, review: Made, frame: pd.DataFrame, name: str) -> None:
    with working_here():
        add(review.workspace, review.review.id, csv(frame), name)


def sentences(review: Made) -> list[str]:
    return [note.sentence for note in found_in(review.workspace, review.review.id).notes]


def test_what_load_says_of_the_evaluation_set_is_what_compare_says(
    forest: Made, texts: Texts
) -> None:
    shared = overlap(review_data(ReviewReader(forest.workspace, forest.review.id)))
    assert sentences(forest) == [overlap_note(shared).sentence]
    texts(sentences(forest)[0])


def test_training_rows_are_held_against_both_sets(forest: Made, texts: Texts) -> None:
    own, sets = forest.tables["own"], forest.tables
    copies = [sets["calibration"].iloc[100:130], sets["evaluation"].iloc[-7:]]
    other_class = (
        sets["calibration"]
        .iloc[130:140]
        .assign(kind=lambda frame: frame["kind"].map({"same": "other", "other": "same"}))
    )
    added(add_training, forest, pd.concat([own, *copies, other_class]), "train.csv")
    notes = found_in(forest.workspace, forest.review.id).notes
    assert all(note.about == "copies" for note in notes)
    text = [note.sentence for note in notes]
    texts(text)
    with working_here():
        move_table(forest.workspace, forest.review.id, "training", None)
    assert sentences(forest) == text[2:]


def test_the_kernel_density_fit_counts_the_same_rows(forest: Made, tmp_path) -> None:
    copies = forest.tables["calibration"].iloc[100:130]
    added(add_training, forest, pd.concat([forest.tables["own"], copies]), "train.csv")
    asked = fit_graph.request(forest.workspace, forest.review.id)
    (tmp_path / "graph").mkdir()
    carry_out(**asked.kwargs, folder=str(tmp_path / "graph"), progress=quiet)
    record = fit_graph.read(tmp_path / "graph").record
    counts = r"30 rows of the (\w|-| )+ are in the (\w| )+ too \(30 pairs, chance gives 0\)"
    assert re.match(counts, sentences(forest)[0])
    assert sum(re.match(counts, note) is not None for note in record.notes) == 1


def test_foreign_rows_are_held_against_the_data_whatever_their_class(
    forest: Made, texts: Texts
) -> None:
    far = rows(50, 9)[["a", "b"]] * 3
    copies = forest.tables["calibration"][["a", "b"]].iloc[50:70]
    added(add_foreign, forest, far, "far.csv")
    added(add_foreign, forest, pd.concat([far, copies]), "mixed.csv")
    foreign = [one for one in found_in(forest.workspace, forest.review.id).notes if one.foreign]
    assert [(note.foreign, note.about == "copies") for note in foreign] == [("mixed.csv", True)]
    texts(foreign[0].sentence)


def test_rows_of_few_values_are_no_copies(tmp_path) -> None:
    tables = {"calibration": rows(200, 0).round(0), "evaluation": rows(150, 1).round(0)}
    for frame in tables.values():
        frame["b"] = (frame["b"] / 100).round(0)
    model = RandomForestClassifier(5, random_state=0)
    model.fit(tables["calibration"][["a", "b"]].to_numpy(), tables["calibration"]["kind"])
    review = made(tmp_path, model, tables)
    training = rows(180, 2).round(0).assign(b=lambda frame: (frame["b"] / 100).round(0))
    added(add_training, review, training, "train.csv")
    notes = found_in(review.workspace, review.review.id).notes
    assert len(notes) == 3
    assert not any(note.about == "copies" for note in notes)


def test_a_regression_is_held_to_the_same_rule(tmp_path, texts: Texts) -> None:
    workspace = Workspace(tmp_path)
    review = create_review(workspace)
    frame = rows(60, 0).rename(columns={"a": "x", "b": "mean"}).drop(columns="kind")
    frame = frame.assign(y=frame["mean"] + frame["x"], std=100.0)
    with working_here():
        review = add_table(workspace, review.id, "calibration", csv(frame), "rows.csv")
        add_table(workspace, review.id, "evaluation", csv(frame.iloc[:9]), "more.csv")
        set_roles(workspace, review.id, dataclasses.replace(review.roles, features=("x",)))
        other_outcome = frame.iloc[20:25].assign(y=0.0)
        add_training(
            workspace, review.id, csv(pd.concat([frame.iloc[9:20], other_outcome])), "train.csv"
        )
        score(workspace, review.id)
    notes = found_in(workspace, review.id).notes
    texts([note.sentence for note in notes])


def test_training_rows_of_an_unknown_class_are_an_error(forest: Made) -> None:
    added(add_training, forest, forest.tables["own"].assign(kind="neither"), "train.csv")
    with pytest.raises(InputError, match="neither") as caught:
        found_in(forest.workspace, forest.review.id)
    assert caught.value.file == "train.csv"


def test_a_job_finds_the_same_and_knows_every_table(forest: Made, tmp_path) -> None:
    asked = equal_sets.request(forest.workspace, forest.review)
    carry_out(**asked.kwargs, folder=str(tmp_path), progress=quiet)
    assert equal_sets.read(tmp_path) == found_in(forest.workspace, forest.review.id)
    added(add_foreign, forest, rows(5, 4)[["a", "b"]], "far.csv")
    now = forest.workspace.read(forest.review.id)
    assert equal_sets.request(forest.workspace, now).key != asked.key
    settings = {"which": "calibration"}
    keys = {
        set_overview.request(forest.workspace, one, **settings).key for one in (forest.review, now)
    }
    assert len(keys) == 1


def test_many_training_rows_are_compared_in_a_worker(forest: Made) -> None:
    table = dataclasses.replace(forest.review.tables["calibration"], n_rows=10_000_000)
    many = dataclasses.replace(forest.review, training=table)
    assert is_large(many, equal_sets.reads_at())
    assert not is_large(many)
