"""Measures of the Recalibration page: the same from a worker as in the process, right, small."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_reviews import csv, quiet

from kdcal_core.diagnostics import neighbourhoods
from kdcal_core.errors import InputError
from kdcal_core.evaluation import MODEL, judged_recalibrators
from kdcal_core.review import ReviewReader, Workspace, add_table, create_review, score, set_roles
from kdcal_core.store import encode, load
from kdcal_core.tasks import (
    AXES,
    MEAN,
    OUTCOME,
    RecalibrationRun,
    RecalibrationSettings,
    Sets,
    coverage_along,
    pit_measures,
    recalibrate,
    recalibrated_intervals,
    recalibrated_map,
    recalibrated_pit,
    row_closely,
    shown_rows,
    true_means,
)
from kdcal_core.tasks.decorators import carry_out

SET = {"which": "calibration"}
LOCAL = {**SET, "method": "local"}
ASKED = (
    (recalibrated_map, {**LOCAL, "across": "x", "up": OUTCOME, "level": 0.95}),
    (recalibrated_map, {**LOCAL, "across": AXES[0], "up": AXES[1], "level": 0.5}),
    (recalibrated_map, {**LOCAL, "across": MEAN, "up": OUTCOME, "level": 0.8}),
    (coverage_along, {**LOCAL, "column": "x", "level": 0.9}),
    (coverage_along, {**LOCAL, "column": MEAN, "level": 0.95}),
    (recalibrated_pit, LOCAL),
    (recalibrated_pit, {**SET, "method": MODEL}),
    (shown_rows, {}),
    (row_closely, {**LOCAL, "row": 7, "k": 30}),
    (recalibrated_intervals, {"method": "local", "rows": [5, 2, 90]}),
    (recalibrated_intervals, {"method": "local", "rows": []}),
    (recalibrated_intervals, {"method": "global"}),
    (true_means, {"methods": [MODEL, "global", "local"]}),
)
N = 240


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A line with spreads that are too narrow, its true means, weights, and a finished run."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=N)
    frame = pd.DataFrame(
        {"x": x, "mean": x, "std": 0.5, "y": x + rng.normal(size=N), "true_mean": x + 0.1}
    )
    workspace = Workspace(tmp_path_factory.mktemp("numbers"))
    review_id = create_review(workspace).id
    review = add_table(workspace, review_id, "calibration", csv(frame), "rows.csv")
    set_roles(workspace, review_id, replace(review.roles, features=("x",)))
    review = score(workspace, review_id)
    folder = tmp_path_factory.mktemp("run")
    asked = recalibrate.request(
        workspace, review_id, RecalibrationSettings(("local", "global"), k=60)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judged_recalibrators, "MOST_SHOWN", 100)
        carry_out(**asked.kwargs, folder=str(folder), progress=quiet)
    return workspace, review, load(folder, RecalibrationRun)


def sets_of(made) -> Sets:
    return Sets(ReviewReader(made[0], made[1].id), quiet)


@pytest.mark.parametrize(("measure", "settings"), ASKED)
def test_a_worker_leaves_what_the_process_computes(made, tmp_path, measure, settings) -> None:
    settings = {**settings, "run": str(made[2].folder)}
    asked = measure.request(made[0], made[1], **settings)
    sent = json.loads(json.dumps(asked.kwargs, allow_nan=False))
    carry_out(**sent, folder=str(tmp_path), progress=quiet)
    here = measure(sets_of(made), **settings)
    assert encode(measure.read(tmp_path)) == encode(here)


def test_the_answers_of_a_run_are_read_when_they_are_asked_for(made, tmp_path) -> None:
    folder = shutil.copytree(made[2].folder, tmp_path / "run")
    run, pit = load(folder, RecalibrationRun), made[2].answers["local"].pit
    (path,) = (one for one in folder.glob("*.npy") if np.array_equal(np.load(one), pit))
    path.unlink()
    assert len(run.y) == len(run.answers[MODEL].pit) == run.record.n_judged == N
    with pytest.raises(InputError, match="no longer kept in full"):
        run.answers["local"]


def test_many_rows_are_sampled_and_all_are_counted(made, monkeypatch) -> None:
    settings = {**LOCAL, "run": str(made[2].folder), "across": "x", "up": OUTCOME, "level": 0.8}
    whole = recalibrated_map(sets_of(made), **settings)
    y, before = made[2].y, made[2].answers[MODEL]
    low, high = before.interval(0.8)
    assert whole.rows.tolist() == list(range(N))
    np.testing.assert_array_equal(whole.xy[:, 1], y)
    np.testing.assert_array_equal(whole.before.below, y < low)
    np.testing.assert_array_equal(whole.before.above, y > high)
    monkeypatch.setattr(pit_measures, "MAX_LOCAL", 50)
    some = recalibrated_map(sets_of(made), **settings)
    assert len(some.rows) == len(some.xy) == len(some.after.below) == 50
    np.testing.assert_array_equal(some.xy, whole.xy[some.rows])
    np.testing.assert_array_equal(some.before.above, whole.before.above[some.rows])
    for part in ("n", "n_below", "n_above", "share"):
        assert getattr(some.before, part) == getattr(whole.before, part)
    means = true_means(sets_of(made), run=settings["run"], methods=[MODEL])
    assert len(means.rows) == 50
    assert means.distance[MODEL] == pytest.approx(0.1)


def test_a_row_stands_among_its_neighbours(made) -> None:
    run, local = made[2], made[2].answers["local"]
    row = int(run.shown[10])
    found = row_closely(sets_of(made), **LOCAL, run=str(run.folder), row=row, k=30)
    near = neighbourhoods(run.space.judged, [row], 30)[0]
    counts = np.histogram(local.pit[near], bins=found.around[1].edges)[0]
    np.testing.assert_array_equal(found.around[1].counts, counts)
    assert found.outcome == run.y[row]
    for curve, answers in zip(found.curves, (run.answers[MODEL], local), strict=True):
        low, high = answers.interval(0.95)
        assert (curve.low, curve.high, curve.pit) == (low[row], high[row], answers.pit[row])


def test_medians_are_those_of_the_rows_that_are_kept(made) -> None:
    run = made[2]
    assert len(run.shown) == 100
    found = recalibrated_intervals(sets_of(made), run=str(run.folder), method="local")
    pd.testing.assert_frame_equal(found.table, run.intervals("local"))
    held = np.isin(np.arange(N), run.shown)
    np.testing.assert_array_equal(np.isfinite(found.after), held)
    np.testing.assert_allclose(found.before[held], run.answers[MODEL].mean[held], atol=1e-5)
    shown = shown_rows(sets_of(made), run=str(run.folder))
    assert (np.diff(run.answers[MODEL].mean[shown.by_mean]) >= 0).all()
