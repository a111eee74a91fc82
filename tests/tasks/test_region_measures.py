"""Measures of the Regions page: the same from a worker as in the process, right, and small."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from small_reviews import csv, quiet

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import find_regions
from kdcal_core.evaluation import MODEL
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_table,
    create_review,
    score,
    set_roles,
    start_sample,
)
from kdcal_core.store import encode, load
from kdcal_core.tasks import (
    RegionQuestion,
    RegionSearchSettings,
    RegionsRun,
    RegionsSettings,
    Sets,
    calibrate_regions,
    model_estimates,
    region_columns,
    region_panels,
    region_pit_rows,
    region_rows,
    region_search,
    regions_at_once,
    repair_scores,
    search_regions,
    thorough_checks,
)
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.region_partitions import rows_in
from kdcal_core.tasks.region_search import RegionSearchRun

SET = {"which": "calibration"}


def asked(**settings) -> dict:
    return {**SET, "asked": asdict(RegionQuestion(**settings))}


QUESTIONS = (
    asked(),
    asked(label=1, max_depth=2, min_rows=40),
    asked(purpose="classes"),
    asked(purpose="column", column="age"),
    asked(purpose="column", column="shop", label=0),
)
ASKED = (
    (region_columns, SET),
    (model_estimates, SET),
    *((region_search, one) for one in QUESTIONS),
    *((region_panels, {**one, "leaves": [0]}) for one in QUESTIONS),
    *((regions_at_once, one) for one in QUESTIONS),
    (region_search, asked(min_rows=1000)),
    (regions_at_once, asked(min_rows=1000)),
    (region_rows, {**asked(), "leaf": 0, "most": 7}),
    (region_rows, {**asked(purpose="column", column="shop"), "leaf": 1}),
)
PIT_ASKED = (
    (region_columns, SET),
    (regions_at_once, asked()),
    (regions_at_once, asked(purpose="column", column="age")),
    (region_panels, {**asked(), "leaves": [1]}),
    (region_pit_rows, {**asked(), "leaf": 0, "level": 0.95, "most": 9}),
)


def table(n: int = 900) -> pd.DataFrame:
    """Scores that hold, but in the south, where they say nothing."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, n)
    side, age = rng.choice(["north", "south"], n), rng.integers(18, 80, n).astype(float)
    happens = np.where(side == "north", p, 0.3)
    age[::9] = np.nan
    return pd.DataFrame(
        {
            "side": side,
            "age": age,
            "shop": rng.choice(["a", "b"], n),
            "p_no": 1 - p,
            "p_yes": p,
            "y": np.where(rng.random(n) < happens, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("regions") / "home")
    review_id = create_review(workspace).id
    review = add_table(workspace, review_id, "calibration", csv(table()), "calibration.csv")
    assert review.roles is not None
    outputs = (("no", "p_no"), ("yes", "p_yes"))
    roles = replace(review.roles, target="y", outputs=outputs, features=("side", "age"))
    set_roles(workspace, review_id, roles)
    return workspace, score(workspace, review_id)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """Predictive distributions that are too narrow for the old."""
    rng = np.random.default_rng(1)
    age = rng.integers(18, 80, 900).astype(float)
    frame = pd.DataFrame({"age": age, "mean": age, "std": 1.0, "word": "a"})
    frame["y"] = age + rng.normal(size=900) * np.where(age > 60, 3.0, 1.0)
    workspace = Workspace(tmp_path_factory.mktemp("numbers"))
    review_id = create_review(workspace).id
    review = add_table(workspace, review_id, "calibration", csv(frame), "rows.csv")
    set_roles(workspace, review_id, replace(review.roles, features=("age",)))
    return workspace, score(workspace, review_id)


def sets_of(made) -> Sets:
    return Sets(ReviewReader(made[0], made[1].id), quiet)


def same_from_a_worker(made, folder, measure, settings) -> None:
    wanted = measure.request(*made, **settings)
    sent = json.loads(json.dumps(wanted.kwargs, allow_nan=False))
    carry_out(**sent, folder=str(folder), progress=quiet)
    here = measure(sets_of(made), **settings)
    assert encode(measure.read(folder)) == encode(here)


@pytest.mark.parametrize(("measure", "settings"), ASKED)
def test_a_worker_leaves_what_the_process_computes(opened, tmp_path, measure, settings) -> None:
    same_from_a_worker(opened, tmp_path, measure, settings)


@pytest.mark.parametrize(("measure", "settings"), PIT_ASKED)
def test_a_worker_leaves_what_the_process_computes_of_a_regression(
    numbers, tmp_path, measure, settings
) -> None:
    same_from_a_worker(numbers, tmp_path, measure, settings)


def test_the_classes_differ_on_the_training_rows(tmp_path) -> None:
    workspace = Workspace(tmp_path / "home")
    made = workspace, start_sample(workspace, "adult")
    assert made[1].training is not None
    settings = asked(purpose="classes")
    (tmp_path / "job").mkdir()
    same_from_a_worker(made, tmp_path / "job", regions_at_once, settings)
    found = region_search(sets_of(made), **settings).search
    assert found is not None
    assert (found.n_grow, found.n_judge) == (0, made[1].sets["calibration"].n_rows)


def test_the_search_is_that_of_the_core_without_its_rows(opened, numbers) -> None:
    found = region_search(sets_of(opened), **asked(max_depth=2)).search
    scored = ReviewReader(opened[0], opened[1].id).scored("calibration")
    by_hand = find_regions(scored, table()[["side", "age"]], max_depth=2)
    assert found is not None
    pd.testing.assert_frame_equal(found.table(), by_hand.table())
    assert (found.n_grow, found.n_judge, found.target) == (900, 900, by_hand.target)
    assert len(found.leaf) == len(found.judged) == 0
    assert encode(found) == encode(by_hand.without_rows())
    again = region_search(sets_of(numbers), **asked()).search
    assert again is not None
    assert {one.fault for one in again.regions} == {"none", "too narrow"}


def test_the_check_of_regions_says_what_the_page_says_of_many_rows(
    opened, numbers, monkeypatch
) -> None:
    """Those of one half; the check shows those of the other half too."""
    monkeypatch.setattr("kdcal_core.diagnostics.regions.search.FAST", 0)
    for made, code in ((opened, "KC007"), (numbers, "KC024")):
        search = region_search(sets_of(made), **asked()).search
        found = thorough_checks(sets_of(made), which="calibration", event=None, groups=())
        (check,) = [one for one in found.checks if one.code == code]
        places = {one.name: one for one in check.parts if one.estimate.label != "Spread"}
        assert list(places)[-1] == "any other fifth of the rows"
        for region in search.regions:
            shown, judged = places[region.words].estimate, region.gap
            assert (shown.value, shown.low, shown.high) == (judged.value, judged.low, judged.high)


def test_a_tree_comes_back_as_it_was(opened, tmp_path) -> None:
    wanted = region_search.request(*opened, **asked())
    carry_out(**wanted.kwargs, folder=str(tmp_path), progress=quiet)
    search = region_search.read(tmp_path).search
    by_hand = find_regions(
        ReviewReader(opened[0], opened[1].id).scored("calibration"), table()[["side", "age"]]
    )
    assert search.tree.n_leaves == len(search.regions) > 1
    np.testing.assert_array_equal(
        search.tree.apply(table()[["side", "age"]])[by_hand.judged], by_hand.leaf[by_hand.judged]
    )
    record = json.loads((tmp_path / "record.json").read_text())
    left = record["result"]["search"]["tree"]["left"]
    assert left["dtype"] == "<i4"


def test_rows_and_panels_are_those_of_the_region(opened) -> None:
    sets, frame = sets_of(opened), table()
    scored = ReviewReader(opened[0], opened[1].id).scored("calibration")
    search = find_regions(scored, frame[["side", "age"]])
    south = next(one for one in search.regions if one.words == "side is south")
    mine = rows_in(search, south.leaf)
    assert len(mine) == south.n
    found = region_rows(sets, **asked(), leaf=south.leaf)
    assert found.n == len(found.rows) == len(found.own) == south.n
    assert sorted(found.rows) == mine.tolist()
    given = scored.proba[found.rows, scored.y[found.rows]]
    assert (np.diff(given) >= 0).all()
    assert "y" not in found.own
    assert found.own["side"].tolist() == ["south"] * south.n
    assert found.said["P(yes)"].tolist() == scored.proba[found.rows, 1].tolist()
    few = region_rows(sets, **asked(), leaf=south.leaf, most=3)
    assert (few.n, few.rows.tolist()) == (south.n, found.rows[:3].tolist())
    panels = region_panels(sets, **asked())
    assert len(panels.regions) == len(search.regions)
    here = panels.of(south.leaf).reliability
    assert here is not None
    assert panels.everything.reliability is not None
    assert (here.n, panels.everything.reliability.n) == (south.n, search.n_judge)
    fit = panels.fits[south.leaf]
    assert fit.n == int((frame["side"] == "south").sum())
    assert abs(fit.parameters["slope"][0]) < 0.3
    line = next(one for one in panels.maps if one.leaf == south.leaf)
    assert (line.slope, line.n) == (fit.parameters["slope"][0], fit.n)


def test_pit_panels_are_those_of_the_region(numbers) -> None:
    sets = sets_of(numbers)
    panels = region_panels(sets, **asked())
    search = region_search(sets, **asked()).search
    assert search is not None
    for panel in panels.regions:
        assert panel.pit is not None
        assert panel.pit.n == search.regions[panel.leaf].n
    narrow = search.faulty[0]
    found = panels.of(narrow.leaf).fault
    assert found is not None
    assert found.kind == "too narrow"
    rows = region_pit_rows(sets, **asked(), leaf=narrow.leaf, level=0.95)
    assert rows.n == narrow.n
    assert (rows.own["age"] > 50).all()
    assert (np.diff(np.abs(rows.pit - 0.5)) <= 0).all()


def test_too_few_rows_are_a_result_and_not_an_error(opened) -> None:
    found = region_search(sets_of(opened), **asked(min_rows=1000))
    assert found.search is None
    assert found.refused is not None
    assert "at least 2,000 rows" in found.refused.error().fix
    assert regions_at_once(sets_of(opened), **asked(min_rows=1000)).panels is None


def test_a_finished_search_is_looked_at_closely(opened, tmp_path) -> None:
    settings = RegionSearchSettings(redraws=20)
    run, job = tmp_path / "run", tmp_path / "job"
    run.mkdir()
    job.mkdir()
    wanted = search_regions.request(opened[0], opened[1].id, settings)
    carry_out(**wanted.kwargs, folder=str(run), progress=quiet)
    assert load(run, RegionSearchRun).settings == settings
    thorough = {**asked(), "run": str(run)}
    same_from_a_worker(opened, job, regions_at_once, thorough)
    found = regions_at_once(sets_of(opened), **thorough)
    by_hand = load(run, RegionSearchRun).search
    assert found.found.search is not None
    assert found.panels is not None
    pd.testing.assert_frame_equal(found.found.search.table(), by_hand.table())
    assert found.found.search.redraws == 20
    assert [one.n for one in found.panels.fits] == [one.n for one in by_hand.regions]
    rows = region_rows(sets_of(opened), **thorough, leaf=0)
    assert sorted(rows.rows) == np.flatnonzero(by_hand.leaf == 0).tolist()


def test_the_scores_of_a_repair_are_counted(opened, tmp_path) -> None:
    run, job = tmp_path / "run", tmp_path / "job"
    run.mkdir()
    job.mkdir()
    wanted = calibrate_regions.request(opened[0], opened[1].id, RegionsSettings(("tree",)))
    carry_out(**wanted.kwargs, folder=str(run), progress=quiet)
    opened_run = load(run, RegionsRun)
    for method in (MODEL, "tree"):
        scores = opened_run.scores[method]
        p, yes = scores.score, scores.hit == 1
        top = np.where(p > 0.5, p, 1 - p)
        for label, stated, happened in (
            (1, p, yes), (0, 1 - p, ~yes), (None, top, (p > 0.5) == yes),
        ):  # fmt: skip
            settings = {"run": str(run), "method": method, "label": label}
            same_from_a_worker(opened, job, repair_scores, settings)
            found = repair_scores(sets_of(opened), **settings)
            assert found.reliability.n == found.spread.n == 900
            assert found.spread.certain[1] == np.mean(stated[happened] > 0.99)
            fullest = int(np.argmax(found.reliability.count))
            edges = found.reliability.edges[fullest : fullest + 2]
            inside = (stated > edges[0]) & (stated <= edges[1])
            assert found.reliability.accuracy[fullest] == pytest.approx(happened[inside].mean())
            assert found.training is None


def test_the_map_of_one_class_mirrors_that_of_the_other(opened) -> None:
    along = asked(purpose="column", column="shop")["asked"]
    no, yes = (
        region_panels(sets_of(opened), which="calibration", asked={**along, "label": label}).maps
        for label in (0, 1)
    )
    assert [one.leaf for one in no] == [one.leaf for one in yes]
    at = np.linspace(0.01, 0.99, 9)
    for mine, other in zip(no, yes, strict=True):
        np.testing.assert_allclose(mine.apply(at), 1.0 - other.apply(1.0 - at), atol=1e-12)
        assert mine.mean_after == pytest.approx(1.0 - other.mean_after, abs=1e-12)


def test_results_hold_no_rows(opened) -> None:
    rng, n = np.random.default_rng(0), 40_000
    p = rng.uniform(0.02, 0.98, n)
    frame = pd.DataFrame({"side": rng.choice(["north", "south"], n), "age": rng.normal(size=n)})
    hit = (rng.random(n) < np.where(frame["side"] == "north", p, 0.3)).astype(np.int64)
    scored = ScoredSet(np.c_[1 - p, p], hit, ("no", "yes"), "digest", "calibration")

    known = {"frame": frame, "scored": scored}

    def keep(key, make):
        return known[key[0]] if key[0] in known else make()

    sets = replace(sets_of(opened), keep=keep)
    size = len(json.dumps(encode(regions_at_once(sets, **asked()))))
    assert size < 200_000


def test_every_column_that_is_not_searched_is_named_with_the_reason(tmp_path) -> None:
    n = 300
    frame = table(n).assign(
        **{"loan_id": range(n), "country": "NL", "note": [f"note {i}" for i in range(n)]},
        visit=np.arange(n) // 3,
        gaps=np.where(np.arange(n) % 2, np.nan, 1.0),
    )
    review = add_table(
        workspace := Workspace(tmp_path),
        create_review(workspace).id,
        "calibration",
        csv(frame),
        "rows.csv",
    )
    assert review.roles is not None
    features = ("side", "age", "country", "gaps")
    set_roles(workspace, review.id, replace(review.roles, features=features, cluster="visit"))
    made = workspace, score(workspace, review.id)
    known = region_columns(sets_of(made), which="calibration")
    assert known.inputs == features  # a missing value beside one other divides the rows
    assert known.not_searched == {
        "loan_id": "it numbers the rows",
        "note": "nearly every row has another value",
        "shop": "its role is 'Not used'",
        "country": "the same value in every row",
        "visit": "its role is 'Cluster'",
    }


def test_columns_that_the_model_does_not_read_are_named_too(tmp_path) -> None:
    review = start_sample(workspace := Workspace(tmp_path), "adult")
    assert review.roles is not None
    stored = workspace.read(review.id)
    less = replace(review.roles, features=review.roles.features[1:])
    sets = Sets(ReviewReader(workspace, review.id, review=replace(stored, roles=less)), quiet)
    known = region_columns(sets, which="calibration")
    assert known.not_searched == {review.roles.features[0]: "the model does not read it"}


def test_clusters_count_in_every_number_of_a_region(tmp_path) -> None:
    """Each row stands four times: intervals are those of a quarter of the rows."""
    frame = pd.concat([table(300).assign(patient=range(300))] * 4, ignore_index=True)
    outputs, found = (("no", "p_no"), ("yes", "p_yes")), []
    for cluster in (None, "patient"):
        workspace = Workspace(tmp_path / str(cluster))
        review_id = create_review(workspace).id
        review = add_table(workspace, review_id, "calibration", csv(frame), "rows.csv")
        assert review.roles is not None
        roles = replace(review.roles, target="y", outputs=outputs, features=("side",))
        set_roles(workspace, review_id, replace(roles, cluster=cluster))
        made = workspace, score(workspace, review_id)
        run = tmp_path / f"run of {cluster}"
        run.mkdir()
        wanted = calibrate_regions.request(
            workspace, review_id, RegionsSettings(("column",), column="side")
        )
        carry_out(**wanted.kwargs, folder=str(run), progress=quiet)
        search = asked(purpose="column", column="side", label=1)
        (panel,) = region_panels(sets_of(made), **search, leaves=[0]).regions
        scores = repair_scores(sets_of(made), run=str(run), method=MODEL, label=1)
        curves = [panel.reliability, scores.reliability]
        whole = model_estimates(sets_of(made), which="calibration").log_loss
        gain = load(run, RegionsRun).record.methods[1].difference
        widths = [float(np.nanmean((one.high - one.low)[one.count > 20])) for one in curves]
        found.append([*widths, whole.high - whole.low, gain.high - gain.low])
    assert all(1.6 < many / few < 2.4 for few, many in zip(*found, strict=True)), found
