"""A regression's way from files to a scored review, and every way in which that can go wrong."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from onnx import TensorProto, helper, numpy_helper
from texts.snapshot import Texts

from kdcal_core.data import Family, Roles, Table
from kdcal_core.distributions import Gamma, Normal, Quantiles, randomised_pit
from kdcal_core.errors import InputError
from kdcal_core.models.forecasts import outputs_as_parameters
from kdcal_core.review import (
    Review,
    ReviewReader,
    Workspace,
    add_model,
    add_table,
    create_review,
    read_review,
    score,
    set_roles,
    set_task,
    split_table,
)
from kdcal_core.review.scoring import score_regression

RNG = np.random.default_rng(0)
N = 400
pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home")


@pytest.fixture
def review_id(workspace: Workspace) -> str:
    return create_review(workspace).id


def rows(seed: int = 0, n: int = N) -> pd.DataFrame:
    """Outcomes y ~ N(2 a - b, 1)."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    frame["true_mean"] = 2 * frame["a"] - frame["b"]
    return frame.assign(y=frame["true_mean"] + rng.normal(size=n))


def csv(frame: pd.DataFrame) -> io.BytesIO:
    return io.BytesIO(frame.to_csv(index=False).encode())


def linear(weights: list[list[float]], bias: list[float], **metadata: str) -> io.BytesIO:
    """A linear ONNX model of two inputs that says of itself what ``metadata`` says."""
    matrix, shift = np.array(weights, np.float32).T, np.array(bias, np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["out"])],
        "line",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [None, len(bias)])],
        [numpy_helper.from_array(matrix, "w"), numpy_helper.from_array(shift, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    helper.set_model_props(model, metadata)
    return io.BytesIO(model.SerializeToString())


def predictions(workspace: Workspace, review_id: str, frame: pd.DataFrame) -> Review:
    add_table(workspace, review_id, "calibration", csv(frame), "my table.csv")
    return score(workspace, review_id)


def test_predictions_alone_become_a_scored_set(workspace: Workspace, review_id: str) -> None:
    frame = rows().assign(mu=lambda one: one["a"], sigma=2.0, w=1.0)
    frame = frame.rename(columns={"w": "weights"})
    review = predictions(workspace, review_id, frame)
    assert review.task == "regression"
    assert review.ready
    assert review.classes == ()
    found = ReviewReader(workspace, review_id).distributions("calibration")
    assert isinstance(found.distribution, Normal)
    np.testing.assert_allclose(found.y, frame["y"])
    np.testing.assert_allclose(found.distribution.mean(), frame["a"])
    np.testing.assert_allclose(found.true_mean, frame["true_mean"])
    assert found.weight is not None
    info = review.sets["calibration"]
    assert info.accuracy is None
    assert info.rmse == pytest.approx(np.sqrt(np.mean((frame["y"] - frame["a"]) ** 2)))
    assert review.accuracy == {}
    with pytest.raises(InputError, match="This needs a classification"):
        ReviewReader(workspace, review_id).scored("calibration")


def test_quantiles_that_cross_are_sorted_and_said(
    workspace: Workspace, review_id: str, texts: Texts
) -> None:
    frame = rows().assign(q10=lambda one: one["a"] - 1, q50=0.0, q90=lambda one: one["a"] + 3)
    review = predictions(workspace, review_id, frame)
    found = ReviewReader(workspace, review_id).distributions("calibration")
    assert isinstance(found.distribution, Quantiles)
    assert np.all(np.diff(found.distribution.ppf([[0.1, 0.5, 0.9]]), axis=1) >= 0)
    note, resolved = review.sets["calibration"].notes
    assert "cross" in note
    texts(resolved)
    assert note in ReviewReader(workspace, review_id).fitness("calibration").flags


def test_few_samples_say_what_they_resolve(
    workspace: Workspace, review_id: str, texts: Texts
) -> None:
    frame = rows().drop(columns="true_mean")
    draws = {f"sample_{k}": RNG.normal(size=N) for k in range(1, 11)}
    review = predictions(workspace, review_id, frame.assign(**draws))
    found = ReviewReader(workspace, review_id).distributions("calibration")
    pit = randomised_pit(found.distribution, found.y, 0)
    assert pit.min() > 0
    assert pit.max() < 1
    assert review.sets["calibration"].outside == 0  # tails lie beyond the samples
    (note,) = review.sets["calibration"].notes
    texts(note)
    assert note in ReviewReader(workspace, review_id).fitness("calibration").flags


def test_outcomes_beyond_samples_that_are_all_equal_are_counted(
    workspace: Workspace, review_id: str
) -> None:
    frame = rows().drop(columns="true_mean")
    review = predictions(workspace, review_id, frame.assign(sample_1=0.25, sample_2=0.25))
    assert review.sets["calibration"].outside == N
    fit = ReviewReader(workspace, review_id).fitness("calibration")
    assert any(flag.startswith(f"{N} outcomes are impossible") for flag in fit.flags)


def test_reversed_quantile_columns_are_refused(workspace: Workspace, review_id: str) -> None:
    frame = rows().assign(q10=lambda one: one["a"] + 3, q90=lambda one: one["a"] - 1)
    with pytest.raises(InputError, match=rf"lies below .* in {N} of {N} rows.* reversed"):
        predictions(workspace, review_id, frame)


@pytest.mark.parametrize(("name", "what"), [("q50", "quantile"), ("sample_1", "sample")])
def test_a_single_quantile_or_sample_is_one_clear_error(
    workspace: Workspace, review_id: str, name: str, what: str
) -> None:
    frame = rows().drop(columns="true_mean").assign(**{name: 0.0})
    add_table(workspace, review_id, "calibration", csv(frame), "my table.csv")
    set_task(workspace, review_id, "regression")
    with pytest.raises(InputError, match=f"single {what} a row") as caught:
        score(workspace, review_id)
    assert caught.value.column == name
    assert "'point'" in str(caught.value)


def test_a_spread_for_each_row_is_never_left_out_in_silence(
    workspace: Workspace, review_id: str, texts: Texts
) -> None:
    frame = rows().assign(prediction=lambda one: one["true_mean"], pred_std=2.0)
    add_table(workspace, review_id, "calibration", csv(frame), "my table.csv")
    roles = Roles("y", task="regression", family="point", parameters=(("mean", "prediction"),))
    set_roles(workspace, review_id, roles)
    review = score(workspace, review_id)
    (note,) = review.sets["calibration"].notes
    texts(note)
    assert "--family normal --parameters mean=prediction,std=pred_std" in note


def test_single_numbers_take_the_calibration_sets_spread(
    workspace: Workspace, review_id: str
) -> None:
    first, second = rows(1), rows(2).assign(y=lambda one: one["y"] * 5)
    for which, frame in (("calibration", first), ("evaluation", second)):
        frame = frame.assign(prediction=frame["true_mean"])
        add_table(workspace, review_id, which, csv(frame), f"{which}.csv")
    review = score(workspace, review_id)
    assert review.roles is not None
    assert review.roles.family == "point"
    spread = float(np.sqrt(np.mean((first["y"] - first["true_mean"]) ** 2)))
    for which in ("calibration", "evaluation"):
        assert review.sets[which].spread == pytest.approx(spread)
        found = ReviewReader(workspace, review_id).distributions(which)
        std = found.distribution.std()
        if which == "evaluation":
            np.testing.assert_allclose(std, spread)
            continue
        # each row's own residual has no part in its spread: that of the other folds
        residual = np.asarray(first["y"] - first["true_mean"])
        assert len(np.unique(std)) == 5
        for one in np.unique(std):
            expected = np.sqrt(np.mean(residual[std != one] ** 2))
            np.testing.assert_allclose(one, expected)


@pytest.mark.usefixtures("real_workers")
def test_a_model_that_speaks_for_itself(workspace: Workspace, review_id: str) -> None:
    model = linear([[2, -1]], [0.0], task="regression", family="point")
    review = add_model(workspace, review_id, model, "line.onnx")
    assert review.task == "regression"
    add_table(workspace, review_id, "calibration", csv(rows()), "rows.csv")
    review = score(workspace, review_id)
    assert review.roles == Roles(
        target="y",
        features=("a", "b"),
        task="regression",
        family="point",
        true_mean="true_mean",
    )
    found = ReviewReader(workspace, review_id).distributions("calibration")
    np.testing.assert_allclose(found.distribution.mean(), rows()["true_mean"], atol=1e-5)
    assert review.sets["calibration"].rmse == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("first", ["model", "table"])
def test_a_model_that_says_nothing_follows_the_choice(
    workspace: Workspace, review_id: str, first: str
) -> None:
    set_task(workspace, review_id, "regression")
    steps = [
        lambda: add_model(workspace, review_id, linear([[2, -1]], [0.0]), "line.onnx"),
        lambda: add_table(workspace, review_id, "calibration", csv(rows()), "rows.csv"),
    ]
    for step in steps if first == "model" else reversed(steps):
        step()
    review = score(workspace, review_id)
    assert (review.task, review.model.task, review.chosen_task) == ("regression",) * 3
    assert review.sets["calibration"].rmse == pytest.approx(1.0, abs=0.1)


def test_a_model_that_says_nothing_follows_the_table(workspace: Workspace, review_id: str) -> None:
    add_table(workspace, review_id, "calibration", csv(rows()), "rows.csv")
    review = add_model(workspace, review_id, linear([[2, -1]], [0.0]), "line.onnx")
    assert review.task == "regression"


def test_the_task_can_be_changed_and_changed_back(workspace: Workspace, review_id: str) -> None:
    add_model(workspace, review_id, linear([[2, -1], [0, 1.0]], [0.0, 1.0]), "two outputs.onnx")
    add_table(workspace, review_id, "calibration", csv(rows()), "rows.csv")
    before = read_review(workspace, review_id)
    assert before.task == "classification"
    review = set_task(workspace, review_id, "regression")
    assert (review.task, review.classes) == ("regression", ())
    normal = replace(review.roles, family="normal")
    set_roles(workspace, review_id, normal)
    with pytest.raises(InputError, match="A std is −"):
        score(workspace, review_id)
    back = set_task(workspace, review_id, "classification")
    assert replace(back, chosen_task=None) == replace(before, notes=back.notes)


def test_a_model_of_another_family_than_its_outputs_is_refused(
    workspace: Workspace, review_id: str
) -> None:
    model = linear([[2, -1]], [0.0], task="regression", family="point")
    add_model(workspace, review_id, model, "line.onnx")
    review = add_table(workspace, review_id, "calibration", csv(rows()), "rows.csv")
    set_roles(workspace, review_id, replace(review.roles, family="normal"))
    with pytest.raises(InputError, match="takes mean and std"):
        score(workspace, review_id)


@pytest.mark.parametrize(
    ("family", "words"),
    [("dropout", "no dropout"), ("samples", "single sample a row"), ("gamma", "1 output")],
)
def test_outputs_that_are_no_such_family_are_refused(family: Family, words: str) -> None:
    with pytest.raises(InputError, match=words):
        outputs_as_parameters(("mean",), family, np.ones((3, 1)))


def test_a_mean_beyond_all_squares_is_reported_with_its_row(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [1.0, 2.0], "m": [0.0, 400.0], "s": 1.0})
    roles = Roles(
        task="regression",
        target="y",
        family="lognormal",
        parameters=(("log_mean", "m"), ("log_std", "s")),
    )
    with pytest.raises(InputError, match="too far from the outcome") as caught:
        score_regression(
            Table(frame, "", "t.csv"), None, roles, str(tmp_path), None, lambda share, note: None
        )
    assert (caught.value.file, caught.value.row) == ("t.csv", 2)


def test_outputs_are_taken_by_name_or_else_in_order() -> None:
    values = np.arange(6.0).reshape(3, 2)
    by_name = outputs_as_parameters(("std", "mean"), "normal", values)
    assert by_name["mean"].tolist() == [1.0, 3.0, 5.0]
    by_order = outputs_as_parameters(("output_1", "output_2"), "normal", values)
    assert by_order["mean"].tolist() == [0.0, 2.0, 4.0]
    assert list(outputs_as_parameters(("a", "b"), "samples", values)) == ["1", "2"]
    assert list(outputs_as_parameters(("mean", "std"), "point", values)) == ["mean"]


def test_a_model_that_says_what_it_does_refuses_another_task(
    workspace: Workspace, review_id: str
) -> None:
    model = linear([[2, -1]], [0.0], task="regression", family="point")
    before = add_model(workspace, review_id, model, "line.onnx")
    with pytest.raises(InputError) as caught:
        set_task(workspace, review_id, "classification")
    assert caught.value.file == "line.onnx"
    assert read_review(workspace, review_id) == before
    with pytest.raises(InputError, match="Choose the task first"):
        set_roles(workspace, review_id, Roles(target="y"))


def test_the_columns_are_read_again_under_the_chosen_task(
    workspace: Workspace, review_id: str
) -> None:
    frame = rows().assign(mu=0.0, sigma=1.0)
    add_table(workspace, review_id, "calibration", csv(frame), "rows.csv")
    review = set_task(workspace, review_id, "classification")
    assert review.task == "classification"
    assert review.roles.parameters == ()
    review = set_task(workspace, review_id, "regression")
    assert review.roles.parameters == (("mean", "mu"), ("std", "sigma"))


@pytest.mark.parametrize(
    ("change", "words", "column", "row"),
    [
        ({"y": np.resize(["high", "low"], N)}, "holds no numbers", "y", None),
        ({"sigma": 0.0}, "A std is 0", "sigma", 1),
        ({"y": np.resize([1.0, np.nan, 2.0], N)}, "An outcome is missing", "y", 2),
    ],
)
def test_a_fault_is_reported_with_its_place_and_leaves_the_review(
    workspace: Workspace,
    review_id: str,
    change: dict[str, object],
    words: str,
    column: str,
    row: int | None,
) -> None:
    frame = rows().assign(mu=0.0, sigma=1.0).assign(**change)
    add_table(workspace, review_id, "calibration", csv(frame), "my table.csv")
    roles = Roles(
        target="y",
        task="regression",
        family="normal",
        parameters=(("mean", "mu"), ("std", "sigma")),
    )
    before = set_roles(workspace, review_id, roles)
    with pytest.raises(InputError) as caught:
        score(workspace, review_id)
    error = caught.value
    assert words in error.what
    assert (error.file, error.column, error.row) == ("my table.csv", column, row)
    assert read_review(workspace, review_id) == before


def test_outcomes_at_zero_suit_no_gamma(workspace: Workspace, review_id: str) -> None:
    frame = rows().assign(y=lambda one: one["y"].abs(), mean=1.0, shape=2.0)
    review = predictions(workspace, review_id, frame)
    found = ReviewReader(workspace, review_id).distributions("calibration")
    assert isinstance(found.distribution, Gamma)
    assert review.roles.family == "gamma"
    frame.loc[7, "y"] = 0.0
    with pytest.raises(InputError, match=r"above zero only .*row 8"):
        predictions(workspace, review_id, frame)


def test_rows_are_named_as_they_stand_in_the_file(workspace: Workspace, review_id: str) -> None:
    split = np.resize(["calibration", "evaluation"], N)
    frame = rows().assign(mu=0.0, sigma=1.0, split=split)
    frame.loc[[1, 301], "sigma"] = [1.0, -1.0]
    add_table(workspace, review_id, "calibration", csv(frame), "rows.csv")
    review = split_table(workspace, review_id)
    assert review.roles.task == "regression"
    with pytest.raises(InputError) as caught:
        score(workspace, review_id)
    assert caught.value.row == 302


def test_an_evaluation_table_needs_the_predictions_too(
    workspace: Workspace, review_id: str
) -> None:
    predictions(workspace, review_id, rows().assign(mu=0.0, sigma=1.0))
    with pytest.raises(InputError) as caught:
        add_table(workspace, review_id, "evaluation", csv(rows().assign(mu=0.0)), "more.csv")
    assert caught.value.column == "sigma"


def test_damaged_arrays_are_reported(workspace: Workspace, review_id: str) -> None:
    review = predictions(workspace, review_id, rows().assign(mu=0.0, sigma=1.0))
    folder = workspace.folder(review_id) / review.sets["calibration"].folder
    np.save(folder / "weight.npy", np.zeros(N))
    with pytest.raises(InputError, match="Load the file again"):
        ReviewReader(workspace, review_id).distributions("calibration")
    (folder / "weight.npy").unlink()
    np.save(folder / "y.npy", np.full(N, np.nan))
    with pytest.raises(InputError, match="Load the file again"):
        ReviewReader(workspace, review_id).distributions("calibration")
    np.save(folder / "y.npy", np.zeros(N - 1))
    with pytest.raises(InputError, match="Load the file again"):
        ReviewReader(workspace, review_id).distributions("calibration")
    shutil.rmtree(folder)
    with pytest.raises(InputError, match="Load the file again"):
        ReviewReader(workspace, review_id).distributions("calibration")


def test_a_review_written_before_regression_is_still_read(
    workspace: Workspace, review_id: str
) -> None:
    frame = pd.DataFrame({"p_no": 0.5, "p_yes": 0.5, "label": np.resize(["no", "yes"], 60)})
    add_table(workspace, review_id, "calibration", csv(frame), "old.csv")
    score(workspace, review_id)
    path = workspace.folder(review_id) / "review.json"
    words = json.loads(path.read_text())
    del words["chosen_task"]
    for name in ("task", "family", "parameters", "true_mean"):
        del words["roles"][name]
    for name in ("rmse", "outside", "spread", "notes"):
        del words["sets"]["calibration"][name]
    path.write_text(json.dumps(words))
    review = read_review(workspace, review_id)
    assert review.task == "classification"
    assert review.accuracy == {"calibration": 0.5}
    assert ReviewReader(workspace, review_id).scored("calibration").n_rows == 60
    with pytest.raises(InputError, match="This needs a regression"):
        ReviewReader(workspace, review_id).distributions("calibration")
