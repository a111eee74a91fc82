"""The graph of a review: which rows it is fitted, held out and judged on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from small_reviews import csv, made, quiet, rows

from kdcal_core.calibration import KernelDensityForest, KernelDensityNetwork
from kdcal_core.calibration.graph.forest_and_network import KernelDensityCalibrator
from kdcal_core.errors import InputError
from kdcal_core.jobs import JobManager
from kdcal_core.models import wrap_model
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_foreign,
    add_training,
    move_table,
    remove_foreign,
    start_sample,
)
from kdcal_core.store import load
from kdcal_core.tasks import GraphRun, GraphSettings, fit_graph
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.graph import load_estimator


def fit(one, folder, settings=None):
    request = fit_graph.request(one.workspace, one.review.id, settings)
    carry_out(**json.loads(json.dumps(request.kwargs)), folder=str(folder), progress=quiet)
    return load(folder, GraphRun)


def copied(one, folder):
    """The same review in a workspace of its own, where it can be changed."""
    root = Path(shutil.copytree(one.workspace.root, folder / "home"))
    return replace(one, workspace=Workspace(root))


def test_without_training_rows_the_calibration_set_is_divided(forest, tmp_path):
    run = fit(forest, tmp_path)
    record = run.record
    assert (record.kind, record.fitted_on, record.judged_on) == (
        "forest",
        "calibration",
        "evaluation",
    )
    assert (record.n_fit, record.n_holdout, record.n_judged) == (105, 45, 80)
    assert run.graph.n == 105
    assert run.graph.n_holdout == 45
    scored = ReviewReader(forest.workspace, forest.review.id).scored("evaluation")
    np.testing.assert_array_equal(run.rows.proba, scored.proba)
    np.testing.assert_array_equal(run.rows.y, scored.y)
    np.testing.assert_array_equal(run.positions, np.arange(80))
    assert not run.rows.proba.flags.writeable


def test_the_answers_are_those_of_the_estimator_itself(forest, tmp_path):
    run = fit(forest, tmp_path)
    table = forest.tables["calibration"]
    held = run.graph.holdout
    X = table[["a", "b"]].to_numpy()
    coordinates = load_estimator(str(tmp_path), wrap_model(forest.model))._placement.coordinates
    raw = held.x * coordinates.unit + coordinates.centre
    inside = np.isclose(X[:, None], raw, rtol=1e-9).all(axis=2).any(axis=1)
    assert inside.sum() == 45
    labels = table["kind"].to_numpy()
    estimator = KernelDensityForest(forest.model, scale="standard").fit(
        table[["a", "b"]][~inside], labels[~inside], table[["a", "b"]][inside], labels[inside]
    )
    evaluation = forest.tables["evaluation"][["a", "b"]]
    np.testing.assert_allclose(
        run.graph.posterior(run.rows.located), estimator.predict_proba(evaluation), rtol=1e-9
    )


def test_stored_rows_carry_the_models_probabilities(forest, tmp_path):
    run = fit(forest, tmp_path)
    assert run.graph.blend is not None
    np.testing.assert_array_equal(run.rows.located.proba, run.rows.proba)
    part = run.rows.part(10, 30)
    np.testing.assert_array_equal(part.located.proba, run.rows.proba[10:30])
    whole = run.graph.posterior(run.rows.located)
    np.testing.assert_array_equal(run.graph.posterior(part.located), whole[10:30])


def test_training_rows_are_fitted_and_the_calibration_set_is_held_out(forest, tmp_path):
    plain = fit_graph.request(forest.workspace, forest.review.id)
    add_training(forest.workspace, forest.review.id, csv(rows(200, 0)), "train.csv")
    try:
        run = fit(forest, tmp_path)
        assert fit_graph.request(forest.workspace, forest.review.id).key != plain.key
    finally:
        move_table(forest.workspace, forest.review.id, "training", None)
    assert (run.record.fitted_on, run.record.n_fit, run.record.n_holdout) == ("training", 200, 150)
    assert run.record.n_judged == 80
    assert fit_graph.request(forest.workspace, forest.review.id).key == plain.key


def test_the_hold_out_is_judged_where_there_is_nothing_else(mixed, tmp_path):
    run = fit(mixed, tmp_path)
    assert (run.record.judged_on, run.record.n_judged) == ("holdout", 45)
    scored = ReviewReader(mixed.workspace, mixed.review.id).scored("calibration")
    np.testing.assert_array_equal(run.rows.proba, scored.proba[run.positions])
    np.testing.assert_array_equal(run.rows.y, scored.y[run.positions])
    np.testing.assert_array_equal(run.graph.holdout_y, run.rows.y)
    share = np.bincount(scored.y) * 45 / 150
    assert np.abs(np.bincount(run.rows.y) - share).max() < 1


def test_the_key_follows_what_the_result_depends_on_and_nothing_else(forest):
    def key(settings=None):
        return fit_graph.request(forest.workspace, forest.review.id, settings).key

    assert key() == key(GraphSettings())
    keys = {key(GraphSettings(seed=1)), key(GraphSettings(distance="euclidean")), key()}
    assert len(keys) == 3
    before = key()
    add_foreign(forest.workspace, forest.review.id, csv(rows(5, 3)), "far.csv")
    assert key() == before
    remove_foreign(forest.workspace, forest.review.id, "far.csv")


def test_the_same_rows_and_settings_give_the_same_bytes(forest, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        fit(forest, tmp_path / name, GraphSettings(seed=3))
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_the_estimator_comes_back_with_its_model(forest, linear, tmp_path):
    run = fit(forest, tmp_path)
    estimator = load_estimator(str(tmp_path), wrap_model(forest.model))
    X = forest.tables["evaluation"][["a", "b"]]
    np.testing.assert_array_equal(estimator.predict_proba(X), run.graph.posterior(run.rows.located))
    with pytest.raises(InputError):
        load_estimator(str(tmp_path), wrap_model(linear.model))


def test_a_model_without_a_partition_is_reported_what_it_can_still_do(linear):
    with pytest.raises(InputError, match="polytopes") as caught:
        fit_graph.request(linear.workspace, linear.review.id)
    assert "can still be" in caught.value.fix


def test_predictions_without_a_model_are_refused(tmp_path):
    workspace = Workspace(tmp_path)
    review = start_sample(workspace, "digits_predictions")
    with pytest.raises(InputError, match="without their model"):
        fit_graph.request(workspace, review.id)


def test_a_bad_training_row_is_named_as_its_file_has_it(forest, tmp_path):
    bad = rows(30, 4).astype({"kind": object})
    bad.loc[6, "kind"] = "unheard of"
    add_training(forest.workspace, forest.review.id, csv(bad), "train.csv")
    try:
        with pytest.raises(InputError) as caught:
            fit(forest, tmp_path)
    finally:
        move_table(forest.workspace, forest.review.id, "training", None)
    assert (caught.value.file, caught.value.column, caught.value.row) == ("train.csv", "kind", 7)


def test_a_missing_value_in_the_training_rows_is_named(forest, tmp_path):
    bad = rows(30, 4)
    bad.loc[6, "b"] = np.inf
    add_training(forest.workspace, forest.review.id, csv(bad), "train.csv")
    try:
        with pytest.raises(InputError) as caught:
            fit(forest, tmp_path)
    finally:
        move_table(forest.workspace, forest.review.id, "training", None)
    assert (caught.value.file, caught.value.column, caught.value.row) == ("train.csv", "b", 7)


def test_rows_in_both_sets_are_noted(forest, tmp_path, texts):
    both = forest.tables["calibration"]
    add_training(forest.workspace, forest.review.id, csv(both), "train.csv")
    try:
        run = fit(forest, tmp_path)
    finally:
        move_table(forest.workspace, forest.review.id, "training", None)
    texts(run.record.notes)
    assert any("150 rows" in note for note in run.record.notes)


def test_the_weights_of_the_calibration_set_count_in_the_fit(tmp_path):
    train, frame = rows(200, 0), rows(150, 1)
    weight = np.random.default_rng(0).exponential(size=150)
    model = RandomForestClassifier(20, random_state=0).fit(train[["a", "b"]], train["kind"])
    review = made(tmp_path, model, {"calibration": frame.assign(weight=weight)})
    review.workspace.update(
        review.review.id, lambda one: replace(one, roles=replace(one.roles, weight="weight"))
    )
    graph = fit(review, tmp_path).graph
    X, y = frame[["a", "b"]], (frame["kind"] == "same").to_numpy().astype(int)
    calibrator = KernelDensityCalibrator().fit(model.predict_proba(X), y, X, weight, model=model)
    expected = calibrator.estimator_.graph_
    np.testing.assert_allclose(graph.class_masses, expected.class_masses, rtol=1e-12)
    np.testing.assert_allclose(graph.holdout_weight, expected.holdout_weight, rtol=1e-12)
    assert graph.log_floor == pytest.approx(expected.log_floor)


def test_it_can_be_cancelled(forest, tmp_path):
    request = fit_graph.request(forest.workspace, forest.review.id)

    class StopError(Exception):
        pass

    def stop(share, note):
        if share > 0.3:
            raise StopError

    with pytest.raises(StopError):
        carry_out(**request.kwargs, folder=str(tmp_path), progress=stop)


def test_what_is_gone_or_damaged_is_reported(forest, tmp_path):
    fit(forest, tmp_path)
    next(tmp_path.glob("*.npy")).write_bytes(b"not an array")
    with pytest.raises(InputError, match="no longer kept in full"):
        load(tmp_path, GraphRun)
    with pytest.raises(InputError, match="no longer kept in full"):
        load(tmp_path / "nowhere", GraphRun)


@pytest.mark.usefixtures("real_workers")
def test_a_sample_network_as_a_real_job(tmp_path):
    workspace = Workspace(tmp_path)
    review = start_sample(workspace, "digits")
    request = fit_graph.request(workspace, review.id)
    manager = JobManager(folder=tmp_path / "jobs")
    job = manager.wait(
        manager.submit(request.target, request.kwargs, title=request.title, key=request.key), 60
    )
    assert job.state == "done", job.error
    run = load(job.folder, GraphRun)
    assert run.record.kind == "network"
    frame = ReviewReader(workspace, review.id).frame("evaluation")
    assert len(run.rows) == len(frame)
    right = run.graph.predict(run.rows.located) == run.rows.y
    assert right.mean() > 0.85
    assert run.graph.unknown(run.rows.located).mean() < 0.05


def test_a_review_that_renames_the_classes_is_fitted_alike(forest, tmp_path):
    (tmp_path / "before").mkdir()
    before = fit(forest, tmp_path / "before")
    other = copied(forest, tmp_path)
    tables = {}
    for which, table in forest.tables.items():
        path = other.workspace.folder(other.review.id) / f"renamed_{which}.arrow"
        table.assign(kind=table["kind"].str.upper()).to_feather(path, compression="uncompressed")
        tables[which] = replace(forest.review.tables[which], file=path.name, sha256="")
    other.workspace.update(
        other.review.id,
        lambda review: replace(review, classes=("OTHER", "SAME"), tables=tables),
    )
    (tmp_path / "after").mkdir()
    after = fit(other, tmp_path / "after")
    assert after.record.classes == ("OTHER", "SAME")
    np.testing.assert_array_equal(
        after.graph.posterior(after.rows.located), before.graph.posterior(before.rows.located)
    )


def test_network_settings_reach_the_estimator(tmp_path):
    workspace = Workspace(tmp_path / "home")
    review = start_sample(workspace, "digits")
    settings = GraphSettings(output_layer="exclude", distance="euclidean")
    request = fit_graph.request(workspace, review.id, settings)
    carry_out(**request.kwargs, folder=str(tmp_path), progress=quiet)
    from kdcal_core.models import load_model
    from kdcal_core.review.samples import samples_root

    estimator = load_estimator(str(tmp_path), load_model(samples_root() / "digits" / "model.onnx"))
    assert isinstance(estimator, KernelDensityNetwork)
    assert load(tmp_path, GraphRun).record.output_layer == "exclude"
    assert (estimator.output_layer, estimator.distance) == ("exclude", "euclidean")
