"""Recalibration as a run: what it leaves agrees with the core called by hand."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from small_reviews import csv, quiet

from kdcal_core.distributions import randomised_pit
from kdcal_core.errors import InputError
from kdcal_core.evaluation import MODEL, regression_scores
from kdcal_core.jobs import Cancelled
from kdcal_core.regression import RECALIBRATORS, cross_fitted
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_model,
    add_table,
    create_review,
    score,
)
from kdcal_core.store import load
from kdcal_core.tasks import (
    RecalibrationRun,
    RecalibrationSettings,
    keep_space,
    principal_axes,
    recalibrate,
    regression_space,
    space_names,
)
from kdcal_core.tasks.decorators import carry_out


def table(n: int, seed: int) -> pd.DataFrame:
    """The misspecified line of Torres et al., section 4.1, with its predictions."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(2, 20, n)
    y = 10 + 5 * x**2 + rng.normal(size=n) * 30 * x
    return pd.DataFrame(
        {"x": x, "y": y, "mean": 110 * x - 460, "std": 384.4, "true_mean": 10 + 5 * x**2}
    )


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Reviews of predictions only: with an evaluation set, and without."""
    workspace = Workspace(tmp_path_factory.mktemp("recalibration") / "home")
    made = []
    for tables in ({"calibration": 600, "evaluation": 400}, {"calibration": 500}):
        review_id = create_review(workspace).id
        for at, (which, n) in enumerate(tables.items()):
            add_table(workspace, review_id, which, csv(table(n, at)), f"{which}.csv")
        made.append(score(workspace, review_id))
    return workspace, *made


def ran(workspace, review, folder, **settings):
    folder.mkdir()
    request = recalibrate.request(workspace, review.id, RecalibrationSettings(**settings))
    kwargs = json.loads(json.dumps(request.kwargs))
    carry_out(**kwargs, folder=str(folder), progress=quiet)
    return load(folder, RecalibrationRun)


@pytest.fixture(scope="module")
def run(opened, tmp_path_factory):
    workspace, review, _ = opened
    folder = tmp_path_factory.mktemp("run") / "one"
    return ran(workspace, review, folder, methods=("local", "isotonic"), k=100)


def test_methods_agree_with_the_core_called_by_hand(opened, run):
    workspace, review, _ = opened
    fit = ReviewReader(workspace, review.id).distributions("calibration")
    judged = ReviewReader(workspace, review.id).distributions("evaluation")
    spaces = regression_space(ReviewReader(workspace, review.id), "inputs")
    scale = np.abs(fit.y).mean()
    assert run.keys == (MODEL, "local", "isotonic")
    for key in run.keys:
        distribution = judged.distribution
        if key != MODEL:
            settings = {"k": 100} if key == "local" else {}
            fitted = RECALIBRATORS[key].make(**settings)
            fitted.fit(fit.distribution, fit.y, spaces.calibration)
            distribution = fitted.predict(distribution, spaces.judged)
        expected = regression_scores(
            distribution, judged.y, scale=scale, true_mean=judged.true_mean
        )
        for name, one in run.result(key).scores.rows.items():
            if name not in ("qce", "wasserstein"):  # of PIT values that may be randomised
                assert one.value == pytest.approx(expected.rows[name].value, rel=1e-6), (key, name)
        answers = run.answers[key]
        np.testing.assert_allclose(answers.mean, distribution.mean(), rtol=1e-9)
        np.testing.assert_allclose(
            np.column_stack(answers.interval(0.9)), np.column_stack(distribution.interval(0.9))
        )
        np.testing.assert_allclose(
            answers.quantiles[:, 99], distribution[run.shown].ppf(0.5), rtol=1e-5
        )


def test_local_recalibration_repairs_the_line_and_says_by_how_much(run):
    model, local = run.result(MODEL), run.result("local")
    assert local.differences["crps"].high < 0
    assert local.scores.rows["mse_truth"].value < 0.2 * model.scores.rows["mse_truth"].value
    assert local.needed < model.needed
    difference = run.answers["local"].crps.mean() - run.answers[MODEL].crps.mean()
    assert local.differences["crps"].value == pytest.approx(difference)
    assert model.differences == {}


def test_without_an_evaluation_set_every_row_is_repaired_by_the_others(opened, tmp_path):
    workspace, _, review = opened
    run = ran(workspace, review, tmp_path / "run", methods=("local",), k=80)
    assert run.record.judged_on == "cross-fitted"
    rows = ReviewReader(workspace, review.id).distributions("calibration")
    space = regression_space(ReviewReader(workspace, review.id), "inputs").calibration
    expected = cross_fitted(
        lambda: RECALIBRATORS["local"].make(k=80), rows.distribution, rows.y, space
    )
    np.testing.assert_allclose(run.answers["local"].mean, expected.mean(), rtol=1e-9)


def test_k_and_space_are_chosen_where_asked(opened, tmp_path):
    workspace, review, _ = opened
    run = ran(workspace, review, tmp_path / "run", methods=("local",), choose=True)
    chosen = run.record.selection
    assert chosen is not None
    assert (run.record.space, run.record.k) == (chosen.best_space, chosen.best_k)
    assert set(chosen.spaces) == {"inputs", "inputs and prediction", "prediction"}
    assert chosen.best_k < 1000


def test_the_same_request_leaves_the_same_arrays(opened, run, tmp_path):
    workspace, review, _ = opened
    again = ran(workspace, review, tmp_path / "run", methods=("local", "isotonic"), k=100)
    for key in run.keys:
        for name in ("pit", "mean", "low", "quantiles"):
            np.testing.assert_array_equal(
                getattr(run.answers[key], name), getattr(again.answers[key], name)
            )


def test_an_altered_result_is_refused(opened, tmp_path):
    workspace, review, _ = opened
    folder = tmp_path / "run"
    pit = ran(workspace, review, folder, methods=("isotonic",)).answers["isotonic"].pit
    (path,) = (one for one in folder.glob("*.npy") if np.array_equal(np.load(one), pit))
    np.save(path, pit[::-1])
    with pytest.raises(InputError, match="no longer kept in full"):
        load(folder, RecalibrationRun)


@pytest.mark.parametrize(
    "wrong",
    [
        {"methods": ("magic",)},
        {"methods": ()},
        {"space": "layer:no"},
        {"k": 0},
        {"radius": -1.0},
        {"radius": float("nan")},
        {"folds": 1},
    ],
)
def test_settings_that_are_none_are_refused_at_once(opened, wrong):
    workspace, review, _ = opened
    with pytest.raises(InputError):
        recalibrate.request(workspace, review.id, RecalibrationSettings(**wrong))


def test_more_neighbours_than_rows_are_capped_and_said(opened, tmp_path):
    workspace, review, _ = opened
    run = ran(workspace, review, tmp_path / "run", methods=("local",), k=100_000)
    assert run.record.k == 600
    assert any("600" in note for note in run.result("local").notes)


def test_it_can_be_stopped(opened, tmp_path):
    workspace, review, _ = opened
    kwargs = recalibrate.request(workspace, review.id).kwargs

    def stop(share: float, note: str) -> None:
        if share > 0.4:
            raise Cancelled(note)

    with pytest.raises(Cancelled):
        carry_out(**kwargs, folder=str(tmp_path), progress=stop)


def test_downloaded_intervals_hold_both(run):
    frame = run.intervals("local", np.array([3, 5]))
    assert frame["row"].tolist() == [4, 6]
    assert frame["outcome"].tolist() == run.y[[3, 5]].tolist()
    low, _ = run.answers["local"].interval(0.95)
    assert frame["local_low_95%"].tolist() == low[[3, 5]].tolist()
    assert len(run.intervals("local")) == 400


def test_a_space_is_kept_and_read_again(opened, tmp_path):
    workspace, review, _ = opened
    assert space_names(review) == ("inputs", "inputs and prediction", "prediction")
    both = regression_space(ReviewReader(workspace, review.id), "inputs and prediction").calibration
    apart = [
        regression_space(ReviewReader(workspace, review.id), name).calibration
        for name in ("inputs", "prediction")
    ]
    np.testing.assert_array_equal(both, np.column_stack(apart))
    kwargs = keep_space.request(workspace, review.id, name="prediction").kwargs
    carry_out(**kwargs, folder=str(tmp_path), progress=quiet)
    kept = keep_space.read(tmp_path)
    now = regression_space(ReviewReader(workspace, review.id), "prediction")
    np.testing.assert_allclose(kept.calibration, now.calibration, rtol=1e-6)
    np.testing.assert_allclose(kept.judged, now.judged, rtol=1e-6)
    with pytest.raises(InputError, match="without their model"):
        carry_out(
            **keep_space.request(workspace, review.id, name="layer:x").kwargs,
            folder=str(tmp_path),
            progress=quiet,
        )


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A small network of skops with named layers, words and missing values among its tables."""
    import skops.io
    from sklearn.neural_network import MLPRegressor

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    frame["y"] = frame["a"] ** 2 + 0.1 * rng.normal(size=300)
    model = MLPRegressor(hidden_layer_sizes=(6, 3), max_iter=300, random_state=0).fit(
        frame[["a", "b"]], frame["y"]
    )
    folder = tmp_path_factory.mktemp("network")
    skops.io.dump(model, folder / "model.skops")
    workspace = Workspace(folder / "home")
    review_id = create_review(workspace).id
    add_model(workspace, review_id, folder / "model.skops", "model.skops")
    add_table(workspace, review_id, "calibration", csv(frame), "calibration.csv")
    return workspace, score(workspace, review_id), model, frame


def test_neighbours_are_sought_in_a_hidden_layer(network, tmp_path):
    workspace, review, model, frame = network
    names = space_names(review)
    assert names[0] == "inputs"
    assert names[-1] == "prediction"
    last = names[-2]
    run = ran(workspace, review, tmp_path / "run", methods=("local",), space=last, k=40)
    x = frame[["a", "b"]].to_numpy()
    for weights, bias in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        x = np.maximum(x @ weights + bias, 0)
    np.testing.assert_allclose(run.space.calibration, x, rtol=1e-5, atol=1e-6)
    assert run.axes.shape == (300, 2)
    with pytest.raises(InputError, match="separate process"):
        regression_space(ReviewReader(workspace, review.id), last)


def test_progress_never_runs_backwards_when_the_space_is_chosen(network, tmp_path):
    workspace, review, _, _ = network
    settings = RecalibrationSettings(methods=("local",), choose=True)
    kwargs = recalibrate.request(workspace, review.id, settings).kwargs
    shares: list[float] = []
    carry_out(**kwargs, folder=str(tmp_path), progress=lambda share, note: shares.append(share))
    assert len({share for share in shares if share < 0.1}) >= 4  # two hidden layers were read
    assert shares == sorted(shares)
    assert 0.0 <= shares[0] <= shares[-1] <= 1.0


def test_principal_axes_order_directions_by_their_spread():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=500)
    rows = np.column_stack([hidden, hidden + 0.1 * rng.normal(size=500), rng.normal(size=500)])
    placed = principal_axes(rows, rows)
    assert np.var(placed[:, 0]) > np.var(placed[:, 1])
    assert abs(np.corrcoef(placed[:, 0], hidden)[0, 1]) > 0.99


def test_one_outcome_without_density_does_not_decide_the_log_score(tmp_path):
    frame = table(200, 0)
    frame.loc[17, "y"] = 1e6
    workspace = Workspace(tmp_path / "home")
    review_id = create_review(workspace).id
    add_table(workspace, review_id, "calibration", csv(frame), "calibration.csv")
    run = ran(workspace, score(workspace, review_id), tmp_path / "run", methods=("isotonic",))
    model = run.result(MODEL)
    assert "log_score" not in model.scores.rows
    assert any("1 outcome lies" in note for note in model.notes)
    assert "log_score" not in run.result("isotonic").differences


def test_pit_values_of_samples_are_the_same_on_both_pages(opened, tmp_path):
    workspace, _, _ = opened
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120), "y": rng.normal(size=120)})
    draws = {f"sample_{at}": rng.normal(size=120) for at in range(1, 11)}
    review_id = create_review(workspace).id
    add_table(workspace, review_id, "calibration", csv(frame.assign(**draws)), "samples.csv")
    review = score(workspace, review_id)
    run = ran(workspace, review, tmp_path / "run", methods=("local", "isotonic"), k=50)
    found = ReviewReader(workspace, review_id).distributions("calibration")
    expected = randomised_pit(found.distribution, found.y, 0)
    np.testing.assert_allclose(run.answers[MODEL].pit, expected)
    assert all(run.answers[key].pit.min() > 0 for key in run.keys)
    assert all(run.answers[key].pit.max() < 1 for key in run.keys)
    assert not any("outside" in note for one in run.record.methods for note in one.notes)
