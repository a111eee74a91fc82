"""Foreign rows: made from the data or uploaded, answered by the model, placed in the graph."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from small_reviews import Made, csv, made, quiet, rows

from kdcal_core.charts import distance_finding, map_finding, slice_words
from kdcal_core.data import Roles
from kdcal_core.data.foreign_rows import (
    extent,
    impossible,
    in_box,
    on_spheres,
    shifted,
    shuffled,
)
from kdcal_core.diagnostics import confidence_by_distance
from kdcal_core.errors import InputError
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_foreign,
    add_watched,
    remove_foreign,
    start_sample,
)
from kdcal_core.store import load
from kdcal_core.tasks import (
    ForeignRun,
    ForeignSettings,
    GraphRun,
    GraphSetting,
    GridRun,
    GridSettings,
    fit_graph,
    foreign_answers,
    foreign_frame,
    posterior_grid,
    score_foreign,
    unknown_new_rows,
)
from kdcal_core.tasks.decorators import carry_out

SMALL = ForeignSettings(radii=(0.0, 1.0, 10.0), n=50)


def fitted(one, folder):
    folder.mkdir()
    request = fit_graph.request(one.workspace, one.review.id)
    carry_out(**request.kwargs, folder=str(folder), progress=quiet)
    return folder


def ask(one, folder, chosen=SMALL, graph=None):
    folder.mkdir(exist_ok=True)
    request = score_foreign.request(one.workspace, one.review.id, chosen, graph_folder=graph)
    said = carry_out(**json.loads(json.dumps(request.kwargs)), folder=str(folder), progress=quiet)
    json.dumps(said, allow_nan=False)
    return load(folder, ForeignRun)


def test_every_kind_is_answered_and_placed(forest, tmp_path):
    chosen = replace(SMALL, shifted_feature="b", shifts=(3.0, 30.0))
    uploaded = rows(17, 9)[["b", "a"]]
    add_foreign(forest.workspace, forest.review.id, csv(uploaded), "far <b>.csv")
    try:
        run = ask(forest, tmp_path / "run", chosen, fitted(forest, tmp_path / "graph"))
    finally:
        remove_foreign(forest.workspace, forest.review.id, "far <b>.csv")
    found = {(one.kind, one.value): one.stop - one.start for one in run.sets()}
    assert found == {
        ("uploaded", None): 17,
        ("shuffled", None): 50,
        ("uniform", None): 50,
        ("sphere", 0.0): 50,
        ("sphere", 1.0): 50,
        ("sphere", 10.0): 50,
        ("shifted", 3.0): 50,
        ("shifted", 30.0): 50,
    }
    assert [one.start for one in run.sets()[1:]] == [one.stop for one in run.sets()[:-1]]
    assert run.record.notes == ()
    assert len(run.rows) == 367
    own = run.rows_of(run.sets("uploaded")[0])
    expected = forest.model.predict_proba(uploaded[["a", "b"]])
    np.testing.assert_allclose(own.proba, expected, atol=1e-12)
    assert run.sets("uploaded")[0].name == "far <b>.csv"
    graph = load(tmp_path / "graph", GraphRun).graph
    posterior = graph.posterior(run.rows.located)
    by_radius = run.by_radius(posterior)
    assert by_radius.shape == (3, 50, 2)
    np.testing.assert_array_equal(run.radii, [0, 1, 10])
    np.testing.assert_array_equal(by_radius[2], posterior[run.sets("sphere")[2].start :][:50])
    confidence = by_radius.max(axis=2).mean(axis=1)
    assert confidence[2] < confidence[0]


def test_the_features_behind_each_answer_can_be_had_again(forest, tmp_path):
    chosen = replace(SMALL, shifted_feature="b", shifts=(3.0, 30.0))
    add_foreign(forest.workspace, forest.review.id, csv(rows(17, 9)), "far.csv")
    try:
        run = ask(forest, tmp_path / "run", chosen)
        for one in run.sets():
            frame = foreign_frame(
                ReviewReader(forest.workspace, forest.review.id), run.record.settings, one
            )
            expected = forest.model.predict_proba(frame[["a", "b"]])
            np.testing.assert_allclose(run.rows_of(one).proba, expected, atol=1e-12)
    finally:
        remove_foreign(forest.workspace, forest.review.id, "far.csv")
    with pytest.raises(InputError, match="no longer part"):
        foreign_frame(
            ReviewReader(forest.workspace, forest.review.id),
            run.record.settings,
            run.sets("uploaded")[0],
        )


def test_without_a_graph_the_model_alone_answers(linear, tmp_path):
    run = ask(linear, tmp_path / "run")
    assert run.rows.located is None
    assert run.rows_of(run.sets()[0]).located is None
    assert run.by_radius(run.rows.proba)[2].max(axis=1).mean() > 0.5


def test_words_are_kept_as_they_occur(mixed, tmp_path):
    run = ask(mixed, tmp_path / "run", SMALL, fitted(mixed, tmp_path / "graph"))
    assert (run.record.n_numeric, run.record.n_features) == (2, 3)
    assert run.record.notes == ()
    assert len(run.sets("sphere")) == 3


def test_what_cannot_be_made_is_reported_and_the_rest_is_there(forest, tmp_path):
    run = ask(forest, tmp_path / "run", replace(SMALL, shifted_feature="no such"))
    assert {one.kind for one in run.sets()} == {"shuffled", "uniform", "sphere"}
    assert len(run.record.notes) == 4
    assert "no such" in run.record.notes[0]


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 10**9}, {"radii": (-1.0,)}, {"seed": -1}])
def test_settings_out_of_range_are_refused(forest, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        score_foreign.request(forest.workspace, forest.review.id, replace(SMALL, **wrong))


def test_foreign_rows_of_one_cluster_count_together(tmp_path):
    train, table = rows(200, 0), rows(120, 1).assign(patient=np.arange(120) // 4)
    model = RandomForestClassifier(20, random_state=0).fit(train[["a", "b"]], train["kind"])
    roles = Roles(target="kind", features=("a", "b"), cluster="patient")
    clustered = made(tmp_path, model, {"calibration": table}, roles)
    far = rows(60, 9).assign(patient=np.arange(60) // 6)
    for name, frame in (
        ("far.csv", far),
        ("alone.csv", far.drop(columns="patient")),
        ("one.csv", far.assign(patient=1)),
    ):
        add_foreign(clustered.workspace, clustered.review.id, csv(frame), name)
    graph = fitted(clustered, tmp_path / "graph")
    setting = GraphSetting.own(str(graph), load(graph, GraphRun).record.facts)
    chosen = replace(SMALL, shifted_feature="a", shifts=(3.0,))
    run = ask(clustered, tmp_path / "run", chosen, str(graph))
    (note,) = [one for one in run.record.notes if "independent" in one]
    assert "one.csv" in note
    assert "one cluster" in note
    review = add_watched(clustered.workspace, clustered.review.id, csv(far), "new.csv")
    how, kinds = {}, {one.name: one for one in run.sets()}
    for name in ("far.csv", "alone.csv", "one.csv", "a shifted by 3 standard deviations"):
        one = kinds[name]
        request = foreign_answers.request(
            clustered.workspace,
            review,
            which="calibration",
            run=str(tmp_path / "run"),
            start=one.start,
            stop=one.stop,
            name=name,
            graph=asdict(setting),
        )
        found = measured(foreign_answers, request, tmp_path / f"answers-{one.start}")
        assert found.version.estimates[0].interval == found.model[0].interval
        how[name] = found.model[0].interval[:10]
    assert how == {
        "far.csv": "t quantile",
        "alone.csv": "normal, fo",
        "one.csv": "normal, fo",
        "a shifted by 3 standard deviations": "t quantile",
    }
    digest = review.watched["new.csv"].digest
    request = unknown_new_rows.request(
        clustered.workspace, review, table="new.csv", digest=digest, graph=asdict(setting)
    )
    change = measured(unknown_new_rows, request, tmp_path / "unknown")
    assert change.test == "wild bootstrap by clusters"


def measured(task, request, folder):
    folder.mkdir()
    carry_out(**request.kwargs, folder=str(folder), progress=quiet)
    return task.read(folder)


def test_a_bad_uploaded_row_is_named(forest, tmp_path):
    bad = rows(17, 9)
    bad.loc[4, "a"] = np.inf
    add_foreign(forest.workspace, forest.review.id, csv(bad), "far.csv")
    try:
        with pytest.raises(InputError) as caught:
            ask(forest, tmp_path / "run")
    finally:
        remove_foreign(forest.workspace, forest.review.id, "far.csv")
    assert (caught.value.file, caught.value.column, caught.value.row) == ("far.csv", "a", 5)


def test_the_key_follows_tables_settings_and_graph(forest, tmp_path):
    def key(chosen=SMALL, graph=None):
        return score_foreign.request(
            forest.workspace, forest.review.id, chosen, graph_folder=graph
        ).key

    keys = [key(), key(replace(SMALL, n=51)), key(graph=fitted(forest, tmp_path / "graph"))]
    add_foreign(forest.workspace, forest.review.id, csv(rows(5, 3)), "far.csv")
    keys.append(key())
    remove_foreign(forest.workspace, forest.review.id, "far.csv")
    assert len(set(keys)) == 4
    assert key() == keys[0]


def test_the_same_seed_gives_the_same_bytes(forest, tmp_path):
    graph = fitted(forest, tmp_path / "graph")
    for name in ("one", "two"):
        ask(forest, tmp_path / name, replace(SMALL, shifted_feature="a"), graph)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_a_sample_s_network_is_sure_far_away_and_its_kernel_density_version_is_not(tmp_path):
    workspace = Workspace(tmp_path / "home")
    review = start_sample(workspace, "xor_network")
    one = Made(workspace, review, None, {})
    folder = fitted(one, tmp_path / "graph")
    chosen = ForeignSettings(radii=(1.5, 2.0, 10.0), n=200, shifted_feature="x1", shifts=(10.0,))
    run = ask(one, tmp_path / "run", chosen, folder)
    fit = load(folder, GraphRun)
    assert fit.record.fitted_on == "training"
    graph = fit.graph
    model = run.by_radius(run.rows.proba).max(axis=2).mean(axis=1)
    version = run.by_radius(graph.posterior(run.rows.located)).max(axis=2).mean(axis=1)
    assert model.min() > 0.95
    np.testing.assert_allclose(version, graph.prior.max(), atol=0.02)
    for foreign in run.sets("uploaded", "shifted"):
        assert graph.unknown(run.rows_of(foreign).located).mean() > 0.99
    assert graph.unknown(fit.rows.located).mean() < 0.03
    right = graph.predict(fit.rows.located) == fit.rows.y
    assert right.mean() > review.accuracy["evaluation"] - 0.01


TABLES = st.integers(1, 30).flatmap(
    lambda n: st.lists(
        st.lists(st.floats(-1e6, 1e6) | st.just(float("nan")), min_size=n, max_size=n),
        min_size=1,
        max_size=3,
    )
)


@settings(max_examples=40, deadline=None)
@given(TABLES)
@example([[699051.4629336346] * 3])  # whose mean rounds
def test_made_rows_lie_where_they_should(columns):
    n = len(columns[0])
    frame = pd.DataFrame({f"n{j}": values for j, values in enumerate(columns)}, dtype=float)
    frame["word"] = (["x", "y", None] * n)[:n]
    try:
        where = extent(frame)
    except InputError:
        numbers = frame.drop(columns="word")
        assert numbers.nunique().max() <= 1 or numbers.std(ddof=0).max() < 1e-3
        return
    names = list(where.columns)
    away = (frame[names].to_numpy() - where.centre) / where.spread
    norms = np.linalg.norm(np.nan_to_num(away), axis=1)
    assert norms.max() == pytest.approx(where.reach)
    spheres = on_spheres(frame, where, (0.5, 4.0), 10, seed=1)
    distance = np.linalg.norm((spheres[names].to_numpy() - where.centre) / where.spread, axis=1)
    np.testing.assert_allclose(
        distance / where.reach, np.repeat([0.5, 4.0], 10), rtol=1e-5, atol=1e-9
    )
    assert list(spheres["word"][:10].fillna("-")) == list(spheres["word"][10:].fillna("-"))
    box = in_box(frame, where, 20, seed=1)
    assert (box[names] >= where.low - 1e-9).all(axis=None)
    assert (box[names] <= where.high + 1e-9).all(axis=None)
    assert set(box["word"].fillna("-")) <= set(frame["word"].fillna("-"))
    mixed = shuffled(frame, n, seed=1)
    for name in frame:
        assert sorted(map(str, mixed[name])) == sorted(map(str, frame[name]))
    moved = shifted(frame, where, "n0", 2.0, n, seed=1)
    np.testing.assert_allclose(moved["n0"], frame["n0"] + 2 * where.spread[0])
    for each in (spheres, box, mixed, moved):
        assert list(each.columns) == list(frame.columns)


def test_a_column_may_be_called_anything():
    frame = pd.DataFrame({"self": [0.0, 1.0], "frame": [1.0, 5.0]})
    where = extent(frame)
    assert list(on_spheres(frame, where, (1.0,), 3, 0)) == ["self", "frame"]


def test_rows_without_any_number_have_no_distance():
    with pytest.raises(InputError, match="No feature is a number"):
        extent(pd.DataFrame({"a": ["x", "y"], "b": [True, False]}))
    with pytest.raises(InputError, match="in one point"):
        extent(pd.DataFrame({"a": [1.0, 1.0]}))


def people(n, seed):
    """Whole years, hours that are never negative, a balance of either sign, a word."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 91, n),
            "hours": rng.gamma(4.0, 10.0, n),
            "balance": rng.normal(size=n),
            "work": rng.choice(["state", "own"], n),
        }
    )
    return frame


def test_made_rows_keep_within_what_their_columns_can_be():
    data = people(300, 0)
    where = extent(data)
    assert where.bounded.tolist() == [True, True, False]
    made = in_box(data, where, 2000, seed=1)
    assert impossible(made, where) is None
    assert (made["age"] % 1 == 0).all()
    assert (made["age"].min(), made["age"].max()) == (data["age"].min(), data["age"].max())
    assert made["hours"].between(data["hours"].min(), data["hours"].max()).all()
    assert set(made["work"]) == {"state", "own"}
    counts = np.bincount(made["age"].astype(int))[17:91]
    assert counts.min() > 8  # every year about as often, both ends too: 27 on average
    assert impossible(shuffled(data, 300, seed=1), where) is None
    older = shifted(data, where, "age", 3.3, 300, seed=1)
    assert (older["age"] % 1 == 0).all()


def test_rows_that_leave_what_a_column_can_be_are_reported():
    data = people(300, 0)
    where = extent(data)
    column, least, low = impossible(on_spheres(data, where, (5.0,), 500, seed=0), where)
    assert column in ("age", "hours")
    assert least < 0 <= low == data[column].min()
    younger = impossible(shifted(data, where, "age", -10.0, 300, seed=0), where)
    assert younger[0] == "age"
    assert younger[1] < -100
    assert impossible(shifted(data, where, "balance", -10.0, 300, seed=0), where) is None


def test_the_record_shows_which_sets_hold_what_no_row_can(tmp_path):
    data = people(160, 0).drop(columns="work")
    data["kind"] = np.where(data["age"] + data["hours"] > 90, "old", "young")
    model = RandomForestClassifier(10, random_state=0)
    model.fit(data[["age", "hours", "balance"]], data["kind"])
    one = made(tmp_path, model, {"calibration": data})
    run = ask(one, tmp_path / "run", replace(SMALL, shifted_feature="age", shifts=(-20.0, 20.0)))
    assert run.record.n_bounded == 2
    assert set(run.record.impossible) == {
        "Radius 10",
        "age shifted by −20 standard deviations",
        *({"Radius 1"} & set(run.record.impossible)),
    }
    column, least, low = run.record.impossible["Radius 10"]
    assert column in ("age", "hours")
    assert least < 0 <= low


def test_map_and_spheres_of_the_digits_do_not_contradict_each_other(tmp_path, texts):
    """Both go by the density: below the posterior's constant it is not sure, on both pages."""
    workspace = Workspace(tmp_path / "home")
    review = start_sample(workspace, "digits")
    one = Made(workspace, review, None, {})
    folder = fitted(one, tmp_path / "graph")
    graph = load(folder, GraphRun).graph
    spheres = ask(one, tmp_path / "spheres", ForeignSettings(n=100), folder)
    request = posterior_grid.request(
        workspace, review.id, GridSettings(axes="principal", resolution=30), graph_folder=folder
    )
    (tmp_path / "map").mkdir()
    carry_out(
        **json.loads(json.dumps(request.kwargs)), folder=str(tmp_path / "map"), progress=quiet
    )
    grid = load(tmp_path / "map", GridRun)

    prior = float(graph.prior.max())
    unknown = graph.unknown(grid.rows.located)
    beyond = grid.outside.ravel()
    sure = graph.posterior(grid.rows.located).max(axis=1)
    # what the page said: beyond the box of a slice through the middle, and yet like the data
    assert (sure[beyond] > 0.9).mean() > 0.1
    for located in (grid.rows.located, spheres.rows.located):
        below = graph.log_marginal(located) < graph.log_fallback
        said = graph.posterior(located)[below].max(axis=1)
        assert said.max() <= 0.5 + 0.5 * prior + 1e-12
        assert graph.unknown(located)[below].all()
    finding = map_finding(
        grid.as_map(grid.rows.proba.max(axis=1)),
        grid.as_map(sure),
        grid.as_map(unknown),
        prior,
    )
    texts(finding, "finding")
    text = slice_words(grid.as_map(unknown), grid.outside, 62)
    texts(text, "slice")

    radii = spheres.radii
    below = graph.unknown(spheres.rows.located)[
        spheres.sets("sphere")[0].start : spheres.sets("sphere")[-1].stop
    ].reshape(len(radii), -1)
    curves = [
        confidence_by_distance(spheres.by_radius(proba), radii)
        for proba in (spheres.rows.proba, graph.posterior(spheres.rows.located))
    ]
    sentence = distance_finding(*curves, prior, below.mean(axis=1))
    texts(sentence)
