"""Calibration by regions as a run: what it leaves agrees with the core called by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from small_reviews import csv, made, quiet, rows

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.data import random_folds
from kdcal_core.errors import InputError
from kdcal_core.evaluation import MODEL
from kdcal_core.jobs import Cancelled
from kdcal_core.partition.tree import bin_inputs
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_table,
    add_training,
    create_review,
    score,
    set_roles,
)
from kdcal_core.store import load
from kdcal_core.tasks import (
    ONE_MAP,
    SECOND_MODEL,
    RegionsRun,
    RegionsSettings,
    calibrate_regions,
    regions,
)
from kdcal_core.tasks.decorators import carry_out
from kdcal_core.tasks.region_search import class_regions


def table(n: int, seed: int) -> pd.DataFrame:
    """Over-confident scores; in the south they say nothing. Columns: two inputs, one other."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    side, age = rng.choice(["north", "south"], n), rng.integers(18, 80, n)
    happens = np.where(side == "north", p, 0.3)
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


def review_of(workspace: Workspace, tables: dict[str, pd.DataFrame]):
    review_id = create_review(workspace).id
    for which, frame in tables.items():
        review = add_table(workspace, review_id, which, csv(frame), f"{which}.csv")
    assert review.roles is not None
    outputs = (("no", "p_no"), ("yes", "p_yes"))
    roles = replace(review.roles, target="y", outputs=outputs, features=("side", "age"))
    set_roles(workspace, review_id, roles)
    return score(workspace, review_id)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """A review with an evaluation set, and one without."""
    workspace = Workspace(tmp_path_factory.mktemp("regions") / "home")
    both = review_of(workspace, {"calibration": table(900, 0), "evaluation": table(700, 1)})
    return workspace, both, review_of(workspace, {"calibration": table(600, 2)})


def ran(workspace, review, folder, settings=None) -> RegionsRun:
    asked = calibrate_regions.request(workspace, review.id, settings)
    carry_out(**json.loads(json.dumps(asked.kwargs)), folder=str(folder), progress=quiet)
    run = load(folder, RegionsRun)
    return run


def test_fitted_on_one_set_and_judged_on_the_other(opened, tmp_path):
    workspace, review, _ = opened
    settings = RegionsSettings(("tree", "column"), max_depth=2, column="shop")
    run = ran(workspace, review, tmp_path, settings)
    assert run.keys == (MODEL, ONE_MAP, "tree", "column", SECOND_MODEL)
    assert run.record.judged_on == "evaluation"
    reader = ReviewReader(workspace, review.id)
    fit, judged = (reader.scored(one) for one in ("calibration", "evaluation"))
    inputs = [table(n, seed)[["side", "age"]] for n, seed in ((900, 0), (700, 1))]
    by_hand = HeterogeneousCalibrator("tree", max_depth=2).fit(fit.proba, fit.y, inputs[0])
    proba = by_hand.predict_proba(judged.proba, inputs[1])
    found = run.method("tree")
    np.testing.assert_allclose(run.scores["tree"].score, proba[:, 1])
    assert found.log_loss.value == pytest.approx(log_loss(judged.y, proba))
    before = log_loss(judged.y, judged.proba)
    assert found.difference.value == pytest.approx(found.log_loss.value - before)
    assert found.difference.high < 0
    areas = [roc_auc_score(judged.y, one[:, 1]) for one in (judged.proba, proba)]
    assert found.auc.lift.value == pytest.approx(areas[1] / areas[0] - 1)
    assert found.auc.lift.low > 0.02


def test_one_map_for_all_rows_leaves_the_order_as_it_was(opened, tmp_path):
    """Durfee et al., section 4.1."""
    workspace, review, _ = opened
    run = ran(workspace, review, tmp_path, RegionsSettings(("tree",)))
    assert run.method(ONE_MAP).auc.difference.value == 0
    assert run.method(ONE_MAP).difference.high < 0


def test_a_better_model_is_asked_for_only_where_columns_hold_more(opened, tmp_path):
    """The probabilities leave out what the age says smoothly; in the first review, only a side."""
    workspace, review, _ = opened
    run = ran(workspace, review, tmp_path, RegionsSettings(("tree",)))
    assert run.record.second is not None
    assert run.record.second.best == "tree"
    assert not run.record.second.retrain

    def blind(n: int, seed: int) -> pd.DataFrame:
        frame, rng = table(n, seed), np.random.default_rng(seed)
        p = 1 / (1 + np.exp(3 * np.sin(frame["age"] / 4)))
        return frame.assign(p_no=0.5, p_yes=0.5, y=np.where(rng.random(n) < p, "yes", "no"))

    made_up = review_of(workspace, {"calibration": blind(900, 3), "evaluation": blind(700, 4)})
    settings = RegionsSettings(("tree",), max_depth=1)
    (folder := tmp_path / "blind").mkdir()
    run = ran(workspace, made_up, folder, settings)
    second = run.record.second
    assert second is not None
    assert second.retrain
    losses = [run.method(key).log_loss.value for key in (SECOND_MODEL, second.best)]
    assert second.difference.value == pytest.approx(losses[0] - losses[1])
    assert SECOND_MODEL not in CALIBRATORS


def test_without_an_evaluation_set_no_row_has_a_part_in_its_own_map(opened, tmp_path):
    workspace, _, review = opened
    settings = RegionsSettings(("boosted",), max_depth=1, n_trees=3, folds=3, seed=4)
    run = ran(workspace, review, tmp_path, settings)
    assert run.record.judged_on == "cross-fitted"
    scored = ReviewReader(workspace, review.id).scored("calibration")
    inputs = table(600, 2)[["side", "age"]]
    fold = random_folds(len(scored.y), 3, 4)
    by_hand = HeterogeneousCalibrator("boosted", max_depth=1, n_trees=3, random_state=4)
    by_hand.fit(scored.proba[fold != 1], scored.y[fold != 1], inputs[fold != 1])
    held = by_hand.predict_proba(scored.proba[fold == 1], inputs[fold == 1])
    np.testing.assert_allclose(run.scores["boosted"].score[fold == 1], held[:, 1])


def test_a_method_that_cannot_be_fitted_is_reported(opened, tmp_path, texts):
    workspace, review, _ = opened
    settings = RegionsSettings(("column", "tree"), column="gone")
    run = ran(workspace, review, tmp_path, settings)
    assert "column" not in run.keys
    texts([one.sentence for one in run.record.notes])


def test_rows_that_are_in_both_sets_are_counted(opened, tmp_path, texts):
    workspace = opened[0]
    ages = np.random.default_rng(0).normal(40, 10, 400)  # no two alike by chance
    frame = table(300, 7).assign(age=ages[:300])
    shared = pd.concat([frame.head(120), table(100, 8).assign(age=ages[300:])], ignore_index=True)
    review = review_of(workspace, {"calibration": frame, "evaluation": shared})
    run = ran(workspace, review, tmp_path, RegionsSettings(("tree",)))
    texts([one.sentence for one in run.record.notes])
    assert run.record.notes[0].sentence.startswith("120 rows")


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (RegionsSettings(()), "No partition"),
        (RegionsSettings(("magic",)), "There is no partition 'magic'"),
        (RegionsSettings(max_depth=0), "'max_depth' is 0"),
        (RegionsSettings(min_rows=0), "at least one row"),
        (RegionsSettings(("column",)), "No column is named"),
    ],
)
def test_settings_that_are_none_are_refused(opened, settings, what):
    with pytest.raises(InputError, match=what):
        calibrate_regions.request(opened[0], opened[1].id, settings)


def test_the_key_follows_contents_and_settings(opened):
    workspace, review, other = opened
    key = calibrate_regions.request(workspace, review.id).key
    assert key == calibrate_regions.request(workspace, review.id, RegionsSettings()).key
    assert key != calibrate_regions.request(workspace, review.id, RegionsSettings(max_depth=2)).key
    assert key != calibrate_regions.request(workspace, other.id).key


def test_it_can_be_stopped(opened, tmp_path):
    def stop(share, note):
        if share > 0.1:
            raise Cancelled

    asked = calibrate_regions.request(opened[0], opened[1].id)
    with pytest.raises(Cancelled):
        carry_out(**asked.kwargs, folder=str(tmp_path), progress=stop)


def test_damaged_scores_are_refused(opened, tmp_path):
    workspace, review, _ = opened
    run = ran(workspace, review, tmp_path, RegionsSettings(("tree",)))
    score = np.array(run.scores["tree"].score)
    (path,) = (one for one in tmp_path.glob("*.npy") if np.array_equal(np.load(one), score))
    path.write_bytes(b"not an array")
    with pytest.raises(InputError, match="no longer kept"):
        run.scores["tree"]
    with pytest.raises(InputError, match="no longer kept"):
        load(tmp_path, RegionsRun)


# --- regions where the classes differ -----------------------------------------------------------


def test_rows_that_grew_the_tree_do_not_judge_it(opened):
    workspace, _, review = opened
    scored = ReviewReader(workspace, review.id).scored("calibration")
    inputs = table(600, 2)[["side", "age"]]
    search = class_regions(scored, bin_inputs(inputs), target=1, max_depth=2, min_rows=20)
    assert (search.n_grow, search.n_judge) == (300, 300)
    assert (search.leaf[search.judged] >= 0).all()
    assert sum(one.n for one in search.regions) == 300


def test_training_rows_grow_the_tree_and_all_others_judge(opened):
    workspace, _, review = opened
    scored = ReviewReader(workspace, review.id).scored("calibration")
    known = table(2000, 9)
    training = bin_inputs(known[["side", "age"]])
    here = bin_inputs(table(600, 2)[["side", "age"]], like=training.columns)
    y = (known["y"] == "yes").to_numpy().astype(np.int64)
    search = class_regions(scored, here, training=(training, y), target=1, max_depth=1)
    assert (search.n_grow, search.n_judge) == (0, 600)
    assert {one.words for one in search.regions} == {"side is north", "side is south"}
    south = next(one for one in search.regions if one.words == "side is south")
    mine = (table(600, 2)["side"] == "south").to_numpy()
    assert south.observed.value == pytest.approx(scored.y[mine].mean())
    assert south.fault == "over-confident"


def test_too_few_rows_are_reported_with_what_would_do(opened):
    workspace, _, review = opened
    scored = ReviewReader(workspace, review.id).scored("calibration")
    inputs = table(600, 2)[["side", "age"]]
    with pytest.raises(InputError, match="at least 800 rows"):
        class_regions(scored, bin_inputs(inputs), min_rows=200)


def test_the_model_answers_for_training_rows_whose_columns_trees_cannot_cut(
    tmp_path, monkeypatch, texts
):
    """Such columns are kept from the trees; the model still needs them."""
    known, fit = rows(200, 3), rows(300, 4)
    inputs = ["a", "b"]
    model = LogisticRegression().fit(known[inputs], known["kind"])
    opened = made(tmp_path, model, {"calibration": fit})
    add_training(opened.workspace, opened.review.id, csv(known), "training.csv")
    monkeypatch.setattr(regions, "unusable_columns", lambda frame: {"b": "It cannot be cut"})
    review = opened.workspace.read(opened.review.id)
    run = ran(opened.workspace, review, tmp_path, RegionsSettings(("tree",), folds=2))
    expected = model.predict_proba(known[inputs])[:, 1]
    np.testing.assert_allclose(run.training.score, expected, atol=1e-6)
    texts([one.sentence for one in run.record.notes])
