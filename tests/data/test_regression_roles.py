"""The roles of regression tables: guessed on tables as people make them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.data import Roles, Table, guess_roles, read_columns
from kdcal_core.data.regression_guesses import predictions_in, spread_column

RNG = np.random.default_rng(0)
N = 200
Y = RNG.normal(size=N)


def table(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"x": RNG.normal(size=N), **columns, "y": Y})


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        *(("mean", "std"), ("mu", "sigma"), ("pred_mean", "pred_std"), ("y_pred", "sd")),
        *(("prediction", "stdev"), ("Mean", "Std"), ("mean_pred", "std_pred"), ("yhat", "y_std")),
    ],
)
def test_a_mean_and_a_standard_deviation_are_a_normal(mean: str, std: str) -> None:
    roles = guess_roles(table(**{mean: Y, std: 1.0}))
    assert (roles.task, roles.target, roles.family) == ("regression", "y", "normal")
    assert roles.parameters == (("mean", mean), ("std", std))
    assert roles.features == ("x",)


@pytest.mark.parametrize("stem", ["log_price", "price", "demand_kwh", "Log Price", "mean"])
@pytest.mark.parametrize(
    ("names", "parameters"),
    [
        (("{}_mean", "{}_std"), ("mean", "std")),
        (("{}_pred", "{}_sigma"), ("mean", "std")),
        (("mean_{}", "sd_{}"), ("mean", "std")),
        (("{}_q10", "{}_q90"), ("0.1", "0.9")),
    ],
)
def test_names_that_continue_the_outcomes_are_its_distribution(
    stem: str, names: tuple[str, str], parameters: tuple[str, str]
) -> None:
    low, high = (name.format(stem) for name in names)
    frame = pd.DataFrame({"area": RNG.normal(size=N), low: Y - 1, high: 2.0 + 0 * Y, stem: Y})
    for order in (list(frame), list(frame)[::-1]):
        reading = read_columns(Table(frame[order], "0" * 64, "log.csv"))
        assert (reading.roles.task, reading.roles.target) == ("regression", stem)
        assert reading.roles.parameters == ((parameters[0], low), (parameters[1], high))
        assert (reading.roles.features, reading.doubts) == (("area",), ())


@pytest.mark.parametrize("classes", [["a", "b"], [0, 1], [0, 1, 2, 3], [True, False]])
def test_inputs_that_continue_another_beside_classes_make_no_regression(classes: list) -> None:
    inputs = {"temp": Y, "temp_mean": Y + 0.1 * RNG.normal(size=N), "temp_std": 1.0 + np.abs(Y)}
    frame = pd.DataFrame({**inputs, "fault": np.resize(classes, N)})
    reading = read_columns(Table(frame, "0" * 64, "sensors.csv"))
    assert (reading.roles.task, reading.roles.target) == ("classification", "fault")


def test_inputs_that_continue_another_input_are_no_distribution_of_a_known_outcome() -> None:
    inputs = {"temp": Y[::-1], "temp_mean": Y[::-1], "temp_std": 1.0 + np.abs(Y)}
    reading = read_columns(Table(table(y_pred=Y, **inputs), "0" * 64, "weather.csv"))
    assert (reading.roles.target, reading.roles.family) == ("y", "point")
    assert reading.roles.features == ("x", *inputs)


@pytest.mark.parametrize(
    ("predicted", "lower", "upper", "seen"),
    [
        ("lgd_predicted", "lower_90", "upper_90", "lgd_actual"),
        ("lgd_pred", "lower_90", "upper_90", "lgd_true"),
        ("predicted_lgd", "lower_90", "upper_90", "actual_lgd"),
        ("lgd_forecast", "lgd_lower_90", "lgd_upper_90", "lgd_realised"),
        ("LGD_Prognose", "untere_Grenze_90", "obere_Grenze_90", "LGD_Ist"),
    ],
)
def test_a_word_in_its_name_tells_an_outcome_from_a_prediction(
    predicted: str, lower: str, upper: str, seen: str
) -> None:
    near = Y + RNG.normal(size=N)  # the prediction is always in the middle of its bounds
    columns = {predicted: near, lower: near - 0.5, upper: near + 0.5, seen: Y}
    frame = pd.DataFrame({**columns, "collateral": np.resize(["none", "house"], N)})
    for order in (list(frame), list(frame)[::-1]):
        reading = read_columns(Table(frame[order], "0" * 64, "lgd.csv"))
        assert reading.roles.task == "regression"
        assert reading.roles.target == seen
        parameters = (("0.05", lower), ("0.5", predicted), ("0.95", upper))
        assert reading.roles.parameters == parameters
        assert not reading.doubts


def test_where_no_name_says_so_columns_between_the_bounds_are_asked_about() -> None:
    near = Y + RNG.normal(size=N)
    frame = pd.DataFrame({"a": near, "lower_90": near - 2.0, "upper_90": near + 2.0, "b": Y})
    reading = read_columns(Table(frame, "0" * 64, "lgd.csv"))
    (doubt,) = reading.doubts
    assert doubt.about == "target"
    assert {one.answer for one in doubt.choices} == {"a", "b"}


@pytest.mark.parametrize(
    ("columns", "family", "names"),
    [
        (("mean", "shape"), "gamma", ("mean", "shape")),
        (("mu", "alpha"), "gamma", ("mean", "shape")),
        (("log_mean", "log_std"), "lognormal", ("log_mean", "log_std")),
        (("loc", "scale", "nu"), "student_t", ("mean", "scale", "df")),
        (("mean", "variance"), "normal", ("mean", "variance")),
        (("prediction",), "point", ("mean",)),
        (("log_mean",), "log_point", ("log_mean",)),
    ],
)
def test_the_family_follows_from_its_parameters(
    columns: tuple[str, ...], family: str, names: tuple[str, ...]
) -> None:
    roles = guess_roles(table(**dict.fromkeys(columns, 1.0)))
    assert roles.family == family
    assert roles.parameters == tuple(zip(names, columns, strict=True))


@pytest.mark.parametrize(
    ("column", "level"),
    [
        *(("quantile_0.05", "0.05"), ("q_0.05", "0.05"), ("q05", "0.05"), ("q5", "0.05")),
        *(("p05", "0.05"), ("pred_quantile_0.95", "0.95"), ("p97.5", "0.975"), ("Q025", "0.025")),
        *(("percentile_2.5", "0.025"), ("quantile_0_5", "0.5"), ("q975", "0.975")),
        *(("quantile_1.5", "1.5"), ("quantile_0", "0"), ("q.1", "0.1")),
    ],
)
def test_the_level_of_a_quantile_is_read_from_its_name(column: str, level: str) -> None:
    family, parameters = predictions_in(pd.DataFrame({column: [1.0], "q70": [2.0]}), set())
    assert family == "quantiles"
    assert (level, column) in parameters


@given(st.integers(1, 99))
def test_every_percentage_is_a_level(percent: int) -> None:
    frame = pd.DataFrame({f"q{percent:02d}": [0.0], f"quantile_{(percent + 0.5) / 100}": [1.0]})
    _, parameters = predictions_in(frame, set())
    assert [float(level) for level, _ in parameters] == pytest.approx(
        [percent / 100, (percent + 0.5) / 100]
    )


def test_quantiles_come_in_order_of_their_levels() -> None:
    roles = guess_roles(table(q95=1.0, q05=-1.0, q50=0.0))
    assert roles.parameters == (("0.05", "q05"), ("0.5", "q50"), ("0.95", "q95"))


@pytest.mark.parametrize("stem", ["sample_", "draw_", "member", "pred_sample_"])
def test_samples_come_in_order_of_their_numbers(stem: str) -> None:
    roles = guess_roles(table(**{f"{stem}{k}": Y for k in (10, 2, 1)}))
    assert roles.family == "samples"
    assert [name for name, _ in roles.parameters] == ["1", "2", "10"]


def test_a_simulation_knows_its_true_mean() -> None:
    roles = guess_roles(table(true_mean=Y, pred=Y))
    assert roles.true_mean == "true_mean"
    assert roles.features == ("x",)


def test_weight_and_split_are_found_in_a_regression_too() -> None:
    split = np.resize(["calibration", "evaluation"], N)
    roles = guess_roles(table(pred=Y, sample_weight=1.0, split=split))
    assert (roles.weight, roles.split) == ("sample_weight", "split")


@pytest.mark.parametrize("n", [1, 2, 40])
def test_ever_so_few_outcomes_beside_their_distribution_are_a_regression(n: int) -> None:
    frame = pd.DataFrame({"x": [1.0] * n, "y": 1.5, "mean": 1.0, "std": 0.5})
    assert guess_roles(frame).task == "regression"


def test_an_outcome_of_many_numbers_alone_is_a_regression() -> None:
    assert guess_roles(table()).task == "regression"
    counts = pd.DataFrame({"x": np.arange(N), "y": np.arange(N) * 3})
    assert guess_roles(counts).task == "regression"


@pytest.mark.parametrize(
    "frame",
    [
        table(p_0=0.5, p_1=0.5).assign(y=np.resize([0, 1], N)),
        table(predicted=1).assign(y=np.resize([0, 1, 2], N)),
        table().assign(y=np.resize(["a", "b"], N)),
        table().drop(columns="y"),
        table(mean=1.0, std=1.0).assign(y=np.resize([0, 1], N)),
        table(score=0.5).assign(y=np.resize([0.0, 1.0], N)),
    ],
)
def test_classes_stay_a_classification(frame: pd.DataFrame) -> None:
    assert guess_roles(frame).task == "classification"


def test_a_model_decides_the_task_and_the_family() -> None:
    frame = table(mean=Y, std=1.0)
    assert guess_roles(frame, n_features=1).task == "classification"
    roles = guess_roles(frame, n_features=1, task="regression", family="gamma")
    assert (roles.family, roles.parameters, roles.features) == ("gamma", (), ("x",))
    assert guess_roles(frame, n_features=1, task="regression").family == "point"


def test_columns_like_predictions_are_features_where_the_model_takes_so_many() -> None:
    roles = guess_roles(table(mean=Y, std=1.0), n_features=3, task="regression")
    assert roles.features == ("x", "mean", "std")


def test_features_by_name_keep_the_models_order() -> None:
    roles = guess_roles(table(mean=Y), feature_names=("mean", "x"), n_features=2, task="regression")
    assert roles.features == ("mean", "x")


def test_the_last_measured_column_is_the_outcome_where_none_is_named() -> None:
    frame = pd.DataFrame({"a": Y, "b": Y, "kind": np.resize([1, 2], N)})
    roles = guess_roles(frame, n_features=2, task="regression")
    assert roles.target == "b"


def test_a_wanted_task_wins_over_the_columns() -> None:
    assert guess_roles(table(mean=Y, std=1.0), task="classification").task == "classification"
    labels = pd.DataFrame({"y": np.resize([0, 1], N), "pred": 0.5})
    assert guess_roles(labels, task="regression") == Roles(
        target="y", task="regression", family="point", parameters=(("mean", "pred"),)
    )


@pytest.mark.parametrize(
    ("column", "values", "found"),
    [
        ("uncertainty_sd", [0.5, 2.0], ("std", "uncertainty_sd")),
        ("Uncertainty of the model", [0.5, 2.0], ("std", "Uncertainty of the model")),
        ("sigma_hat", [0.5, 2.0], ("std", "sigma_hat")),
        ("total variance", [0.5, 2.0], ("variance", "total variance")),
        ("sigma_hat", [-0.5, 2.0], ("std", None)),  # no spread is negative
        ("sdk_version", [1.0, 2.0], ("std", None)),
        ("var_1", [1.0, 2.0], ("std", None)),  # a variable
    ],
)
def test_a_spread_is_seen_by_a_word_of_its_name(
    column: str, values: list[float], found: tuple[str, str | None]
) -> None:
    frame = pd.DataFrame({"y": [1.0, 2.0], "prediction": [1.0, 2.0], column: values})
    assert spread_column(frame, taken={"y", "prediction"}) == found
    log = spread_column(frame, taken={"y", "prediction"}, log=True)
    assert log == ("log_std", found[1] if found[0] == "std" else None)
