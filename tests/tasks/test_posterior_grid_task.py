"""Posterior maps: a plane through the features, its points answered, the rows projected."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from small_reviews import quiet

from kdcal_core.errors import InputError
from kdcal_core.review import ReviewReader, Workspace, start_sample
from kdcal_core.store import load
from kdcal_core.tasks import GraphRun, GridRun, GridSettings, fit_graph, posterior_grid
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.map_measures import in_box
from kdcal_core.tasks.posterior_grid import feature_plane, principal_plane, span, stratified_sample


def draw(workspace, review_id, folder, settings, graph=None):
    request = posterior_grid.request(workspace, review_id, settings, graph_folder=graph)
    said = carry_out(**json.loads(json.dumps(request.kwargs)), folder=str(folder), progress=quiet)
    json.dumps(said, allow_nan=False)
    return load(folder, GridRun)


def test_a_map_of_two_features(forest, tmp_path):
    (tmp_path / "graph").mkdir()
    request = fit_graph.request(forest.workspace, forest.review.id)
    carry_out(**request.kwargs, folder=str(tmp_path / "graph"), progress=quiet)
    settings = GridSettings(x="b", y="a", resolution=11)
    run = draw(*(forest.workspace, forest.review.id), tmp_path, settings, tmp_path / "graph")
    data = forest.tables["calibration"]
    for axis, name in ((run.x, "b"), (run.y, "a")):
        middle, half = (data[name].max() + data[name].min()) / 2, np.ptp(data[name]) / 2
        np.testing.assert_allclose(axis, middle + half * np.linspace(-2, 2, 11))
    assert (run.record.x_name, run.record.y_name) == ("b", "a")
    proba = run.as_map(run.rows.proba)
    for j, i in ((0, 0), (2, 9), (10, 4)):
        row = pd.DataFrame({"a": [run.y[j]], "b": [run.x[i]]})
        np.testing.assert_allclose(proba[j, i], forest.model.predict_proba(row)[0], atol=1e-12)
    evaluation = forest.tables["evaluation"]
    np.testing.assert_allclose(run.points, evaluation[["b", "a"]])
    graph = load(tmp_path / "graph", GraphRun)
    assert graph.rows.y is not None
    np.testing.assert_array_equal(run.shown_labels, graph.rows.y[run.shown])
    np.testing.assert_array_equal(run.shown_points, run.points[run.shown])
    np.testing.assert_array_equal(graph.positions, np.arange(len(run.points)))
    assert run.as_map(graph.graph.posterior(run.rows.located)).shape == (11, 11, 2)


def test_the_rows_of_a_region(forest, tmp_path):
    settings = GridSettings(resolution=3)
    run = draw(forest.workspace, forest.review.id, tmp_path, settings)
    evaluation = forest.tables["evaluation"]
    inside = in_box(run.points, (1.0, -0.5), (0.0, 100.0))  # a box drawn from right to left
    expected = evaluation["a"].between(-0.5, 1.0) & evaluation["b"].between(0, 100)
    np.testing.assert_array_equal(inside, expected)
    assert 0 < inside.sum() < len(evaluation)


def test_the_principal_axes_are_those_of_standardised_features(tmp_path):
    workspace = Workspace(tmp_path / "home")
    review = start_sample(workspace, "breast_cancer")
    settings = GridSettings(axes="principal", resolution=5)
    run = draw(workspace, review.id, tmp_path, settings)
    names = list(review.roles.features)
    reader = ReviewReader(workspace, review.id)
    fit = reader.frame(reader.reference)[names]
    scaler = StandardScaler().fit(fit)
    found = PCA(2, svd_solver="full").fit(scaler.transform(fit))
    judged = reader.frame("evaluation")[names]
    expected = found.transform(scaler.transform(judged))
    np.testing.assert_allclose(np.abs(run.points), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(run.record.explained, found.explained_variance_ratio_)
    assert run.record.x_name == "Principal axis 1"
    assert len(run.record.strongest[0]) == 5
    assert {name for name, _ in run.record.strongest[1]} <= set(names)
    y = reader.scored("evaluation").y
    np.testing.assert_array_equal(run.shown_labels, y[run.shown])


def test_a_plane_and_its_projection_are_inverse():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 4)) * [1, 10, 100, 0], columns=list("abcd"))
    points = rng.normal(size=(20, 2))
    for plane in (principal_plane(frame), feature_plane(frame, "c", "a", None)):
        np.testing.assert_allclose(plane.project(plane.rows(points)), points, atol=1e-9)


def test_words_and_other_features_are_held(mixed, tmp_path):
    table = mixed.tables["calibration"]
    most = table["colour"].mode()[0]
    run = draw(mixed.workspace, mixed.review.id, tmp_path, GridSettings(resolution=4))
    row = pd.DataFrame({"a": [run.x[1]], "b": [run.y[2]], "colour": [most]})
    np.testing.assert_allclose(
        run.as_map(run.rows.proba)[2, 1], mixed.model.predict_proba(row)[0], atol=1e-12
    )
    chosen = int(np.flatnonzero(table["colour"] != most)[0])
    (tmp_path / "row").mkdir()
    settings = GridSettings(resolution=4, row=chosen)
    run = draw(mixed.workspace, mixed.review.id, tmp_path / "row", settings)
    row = row.assign(colour=table["colour"][chosen])
    np.testing.assert_allclose(
        run.as_map(run.rows.proba)[2, 1], mixed.model.predict_proba(row)[0], atol=1e-12
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (GridSettings(x="colour"), "are numbers"),
        (GridSettings(x="no such"), "are numbers"),
        (GridSettings(x="a", y="a"), "same feature"),
        (GridSettings(row=150), "There is no row 151"),
        (GridSettings(row=-1), "There is no row"),
        (GridSettings(resolution=1), "resolution"),
        (GridSettings(resolution=10**6), "from 2"),
    ],
)
def test_what_cannot_be_drawn_is_reported(mixed, tmp_path, settings, words):
    with pytest.raises(InputError, match=words):
        draw(mixed.workspace, mixed.review.id, tmp_path, settings)


def test_a_map_needs_two_numbers():
    frame = pd.DataFrame({"a": [1.0, 2.0], "word": ["x", "y"]})
    for make in (principal_plane, lambda f: feature_plane(f, None, None, None)):
        with pytest.raises(InputError, match="needs two"):
            make(frame)


def test_missing_values_are_no_place_on_a_map_of_features():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 4.0]})
    points = feature_plane(frame, None, None, None).project(frame)
    assert np.isnan(points).any(axis=1).tolist() == [False, True, False]
    assert np.isfinite(principal_plane(frame).project(frame)).all()


@pytest.mark.parametrize("n", [1, 1999, 2000, 2001, 30_000])
def test_the_picture_shows_each_class_by_its_share(n):
    y = np.random.default_rng(0).integers(0, 3, n) // 2
    rows = stratified_sample(y, 2000)
    assert len(rows) == min(n, 2000)
    assert (np.diff(rows) > 0).all()
    share = np.bincount(y, minlength=2) * len(rows) / n
    assert np.abs(np.bincount(y[rows], minlength=2) - share).max() <= 1


@pytest.mark.parametrize("constant", [0.0, 1e17, -1e300])
def test_a_constant_of_any_size_has_a_range_with_steps_in_it(constant):
    (ends, _) = span(np.full((3, 2), constant), 2.0)
    steps = np.linspace(*ends, 400)
    assert (np.diff(steps) > 0).all()
