"""The thorough search as a run: what it leaves agrees with the core called by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_reviews import csv, quiet

from kdcal_core.diagnostics import find_regions
from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled
from kdcal_core.partition.tree import bin_inputs
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_table,
    create_review,
    score,
    set_roles,
    start_sample,
)
from kdcal_core.store import load, save
from kdcal_core.tasks import RegionSearchRun, RegionSearchSettings, search_regions
from kdcal_core.tasks.decorators import carry_out

FEW = 20  # redraws


def table(n: int, seed: int) -> pd.DataFrame:
    """Scores that hold, but in the south above 50, where they say nothing."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    side, age = rng.choice(["north", "south"], n), rng.integers(18, 80, n)
    happens = np.where((side == "south") & (age > 50), 0.2, p)
    return pd.DataFrame(
        {
            "side": side,
            "age": age,
            "day": "2026-01-01",
            "p_no": 1 - p,
            "p_yes": p,
            "y": np.where(rng.random(n) < happens, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    workspace = Workspace(tmp_path_factory.mktemp("search") / "home")
    review_id = create_review(workspace).id
    for which, seed in (("calibration", 0), ("evaluation", 1)):
        review = add_table(workspace, review_id, which, csv(table(800, seed)), f"{which}.csv")
    assert review.roles is not None
    outputs = (("no", "p_no"), ("yes", "p_yes"))
    roles = replace(review.roles, target="y", outputs=outputs, features=("side", "age"))
    set_roles(workspace, review_id, roles)
    return workspace, score(workspace, review_id)


def ran(opened, folder, settings) -> RegionSearchRun:
    asked = search_regions.request(opened[0], opened[1].id, settings)
    carry_out(**json.loads(json.dumps(asked.kwargs)), folder=str(folder), progress=quiet)
    return load(folder, RegionSearchRun)


@pytest.mark.parametrize("label", [None, 1])
def test_what_is_read_back_is_what_the_core_finds(opened, tmp_path, label):
    settings = RegionSearchSettings(
        "evaluation", label, max_depth=2, min_rows=40, redraws=FEW, seed=3
    )
    run = ran(opened, tmp_path, settings)
    by_hand = find_regions(
        ReviewReader(opened[0], opened[1].id).scored("evaluation"),
        bin_inputs(table(800, 1)[["side", "age"]]),
        target="confidence" if label is None else label,
        max_depth=2,
        min_rows=40,
        redraws=FEW,
        seed=3,
    )
    found = run.search
    pd.testing.assert_frame_equal(found.table(), by_hand.table())
    assert [one.observed for one in found.regions] == [one.observed for one in by_hand.regions]
    assert (found.overall, found.overall_p) == (by_hand.overall, by_hand.overall_p)
    assert (found.target, found.redraws, found.level) == (by_hand.target, FEW, by_hand.level)
    assert (found.n_grow, found.n_judge) == (by_hand.n_grow, by_hand.n_judge) == (800, 800)
    np.testing.assert_array_equal(found.leaf, by_hand.leaf)
    np.testing.assert_array_equal(found.judged, by_hand.judged)
    assert run.settings == settings


def test_a_fault_that_takes_two_columns_is_found(opened, tmp_path):
    run = ran(opened, tmp_path, RegionSearchSettings(label=1, redraws=FEW))
    worst = run.search.faulty[0]
    assert worst.fault == "over-confident"
    assert {one.column.name for one in worst.conditions} == {"side", "age"}
    assert worst.p_value == 1 / (FEW + 1)


def test_a_region_where_no_gap_would_be_found_is_kept(opened, tmp_path):
    settings = RegionSearchSettings(label=1, redraws=FEW)
    first, *others = (found := ran(opened, tmp_path, settings).search).regions
    never = replace(found, regions=(replace(first, minimum_detectable=np.inf), *others))
    (again := tmp_path / "again").mkdir()
    save(again, RegionSearchRun(settings, never))
    pd.testing.assert_frame_equal(load(again, RegionSearchRun).search.table(), never.table())


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (RegionSearchSettings(max_depth=0), "'max_depth' is 0"),
        (RegionSearchSettings(redraws=5), "'redraws' is 5"),
        (RegionSearchSettings(min_rows=0), "at least one row"),
        (RegionSearchSettings(label=2), "no class number 2"),
        (RegionSearchSettings(label=-1), "no class number -1"),
    ],
)
def test_settings_that_are_none_are_refused(opened, settings, what):
    with pytest.raises(InputError, match=what):
        search_regions.request(opened[0], opened[1].id, settings)


def test_a_regression_and_rows_without_inputs_are_refused(opened, tmp_path):
    workspace = Workspace(tmp_path / "home")
    with pytest.raises(InputError, match="of a regression"):
        search_regions.request(workspace, start_sample(workspace, "diamonds").id)
    review_id = create_review(opened[0]).id
    frame = table(300, 2)[["p_no", "p_yes", "y"]]
    review = add_table(opened[0], review_id, "calibration", csv(frame), "bare.csv")
    roles = replace(review.roles, target="y", outputs=(("no", "p_no"), ("yes", "p_yes")))
    set_roles(opened[0], review_id, replace(roles, features=()))
    bare = score(opened[0], review_id)
    with pytest.raises(InputError, match="no inputs to divide"):
        ran((opened[0], bare), tmp_path, RegionSearchSettings(redraws=FEW))


def test_too_few_rows_are_reported_with_what_would_do(opened, tmp_path):
    settings = RegionSearchSettings(min_rows=500, redraws=FEW)
    with pytest.raises(InputError, match="at least 1,000 rows"):
        ran(opened, tmp_path, settings)


def test_the_key_follows_rows_and_settings(opened):
    workspace, review = opened
    key = search_regions.request(workspace, review.id).key
    assert key == search_regions.request(workspace, review.id, RegionSearchSettings()).key
    others = [
        RegionSearchSettings(which="evaluation"),
        RegionSearchSettings(label=0),
        RegionSearchSettings(max_depth=2),
        RegionSearchSettings(min_rows=50),
    ]
    keys = {search_regions.request(workspace, review.id, one).key for one in others}
    assert len(keys | {key}) == 5


def test_it_says_how_far_it_is_and_can_be_stopped(opened, tmp_path):
    seen = []

    def stop(share, note):
        seen.append((share, note))
        if share > 0.5:
            raise Cancelled

    asked = search_regions.request(opened[0], opened[1].id, RegionSearchSettings(redraws=FEW))
    with pytest.raises(Cancelled):
        carry_out(**asked.kwargs, folder=str(tmp_path), progress=stop)
    assert seen[0] == (0.0, "Reading the rows")
    assert seen[1] == (pytest.approx(0.05), "Outcomes drawn again, 1 of 20")
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_refused(opened, tmp_path):
    ran(opened, tmp_path, RegionSearchSettings(redraws=FEW))
    for path in tmp_path.glob("*.npy"):
        np.save(path, np.array([10_000], dtype=np.int32))
    with pytest.raises(InputError, match="no longer kept"):
        load(tmp_path, RegionSearchRun)
    with pytest.raises(InputError, match="no longer kept"):
        load(tmp_path / "nowhere", RegionSearchRun)


def test_a_set_that_is_not_there_is_named(tmp_path):
    workspace = Workspace(tmp_path)
    review_id = create_review(workspace).id
    frame = pd.DataFrame({"prob_no": [0.4, 0.1], "prob_yes": [0.6, 0.9], "y": ["no", "yes"]})
    add_table(workspace, review_id, "calibration", csv(frame), "rows.csv")
    score(workspace, review_id)
    with pytest.raises(InputError, match="There is no evaluation set"):
        search_regions.request(workspace, review_id, RegionSearchSettings("evaluation"))
