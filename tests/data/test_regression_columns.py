"""Regression tables at the door: every fault is one sentence with file, column and row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import (
    FAMILY_PARAMETERS,
    Roles,
    Table,
    check_roles,
    outcome_column,
    parameter_columns,
    regression_fitness,
    true_mean_column,
)
from kdcal_core.errors import InputError

NORMAL = Roles(
    target="y", task="regression", family="normal", parameters=(("mean", "m"), ("std", "s"))
)
FRAME = pd.DataFrame({"y": [1.0, 2.0, 3.0], "m": [1.0, 2.0, 2.5], "s": [0.5, 0.5, 1.0]})


def refused(frame: pd.DataFrame, roles: Roles) -> InputError:
    with pytest.raises(InputError) as caught:
        read(Table(frame, "", "rows.csv"), roles)
    return caught.value


def read(table: Table, roles: Roles) -> None:
    check_roles(table, roles, needs_outputs=True)
    outcome_column(table, roles)
    true_mean_column(table, roles)
    parameter_columns(table, roles)


def test_a_good_table_passes() -> None:
    check_roles(FRAME, NORMAL, needs_outputs=True)
    assert outcome_column(FRAME, NORMAL).tolist() == [1.0, 2.0, 3.0]
    assert parameter_columns(FRAME, NORMAL)["std"].tolist() == [0.5, 0.5, 1.0]
    assert true_mean_column(FRAME, NORMAL) is None


@pytest.mark.parametrize(
    ("column", "values", "words", "row"),
    [
        ("y", ["a", "b", "c"], "holds no numbers", None),
        ("y", ["a", "a", "a"], "holds no numbers", None),
        ("y", ["1", "2", "c"], "'c' is text", 3),
        ("y", [1.0, None, 2.0], "An outcome is missing", 2),
        ("y", [1.0, 2.0, np.inf], "An outcome is infinite", 3),
        ("y", [2.0, 2.0, 2.0], "only the value", None),
        ("m", [1.0, np.nan, 1.0], "A prediction is missing", 2),
        ("m", [1.0, 1.0, -np.inf], "A prediction is infinite", 3),
        ("m", ["1", "2", "much"], "'much' is text", 3),
        ("s", [1.0, 0.0, 1.0], "A std is 0, but must be above zero", 2),
        ("s", [1.0, 1.0, -0.5], "A std is −0.5", 3),
        ("y", [1.0, -1e300, 2.0], "An outcome is beyond 1e30", 2),
        ("m", [1.0, 2.0, 1e200], "A prediction is beyond 1e30", 3),
    ],
)
def test_a_fault_names_its_place(
    column: str, values: list[object], words: str, row: int | None
) -> None:
    error = refused(FRAME.assign(**{column: values}), NORMAL)
    assert words in error.what
    assert (error.file, error.column, error.row) == ("rows.csv", column, row)
    assert error.fix


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("m", [1.0, np.nan, None], "At least 1 more row has this fault."),
        ("s", [0.0, -1.0, 0.0], "At least 2 more rows have this fault."),
        ("m", [0.5, "few", "some"], "At least 1 more row has this fault."),
        ("m", [0.5, None, 1.0], "Fill it in"),
    ],
)
def test_further_faulty_rows_are_counted(column: str, values: list[object], words: str) -> None:
    assert refused(FRAME.assign(**{column: values}), NORMAL).fix.startswith(words)


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("gamma", (("mean", "m"), ("shape", "s"))),
        ("lognormal", (("log_mean", "m"), ("log_std", "s"))),
        ("log_point", (("log_mean", "m"),)),
    ],
)
def test_an_outcome_of_zero_suits_no_positive_family(
    family: str, parameters: tuple[tuple[str, str], ...]
) -> None:
    roles = replace(NORMAL, family=family, parameters=parameters)
    error = refused(FRAME.assign(y=[1.0, 0.0, 2.0]), roles)
    assert "lies above zero only" in error.what
    assert (error.column, error.row) == ("y", 2)


def test_shape_and_mean_of_a_gamma_lie_above_zero() -> None:
    roles = replace(NORMAL, family="gamma", parameters=(("mean", "m"), ("shape", "s")))
    assert "A shape is 0" in refused(FRAME.assign(s=[0.0, 1, 1]), roles).what
    assert "A mean is −1" in refused(FRAME.assign(m=[1, 1, -1.0]), roles).what


@pytest.mark.parametrize("level", ["1.5", "0", "1", "-0.1", "median", "nan"])
def test_an_impossible_level_is_refused(level: str) -> None:
    roles = replace(NORMAL, family="quantiles", parameters=((level, "m"), ("0.5", "s")))
    error = refused(FRAME, roles)
    assert f"{level!r} is not between 0 and 1" in error.what
    assert error.column == "m"


@pytest.mark.parametrize(
    ("family", "parameters", "words"),
    [
        ("quantiles", (("0.5", "m"), ("0.50", "s")), "has two columns"),
        ("quantiles", (("0.5", "m"),), "single quantile a row"),
        ("samples", (("1", "m"),), "single sample a row"),
        ("samples", (("mean", "m"), ("std", "s")), "'mean' is no number of a sample"),
        ("student_t", (("mean", "m"), ("scale", "s"), ("df", "one")), "A df is 1, but must be"),
        ("normal", (("mean", "m"),), "No column holds the std"),
        ("normal", (("mean", "m"), ("shape", "s")), "no parameter 'shape'"),
        ("normal", (("mean", "m"), ("mean", "s")), "Two columns hold"),
        ("normal", (("std", "m"), ("variance", "s")), "Both a std and a variance"),
        ("normal", (), "No column holds the model's predictions"),
        (None, (("mean", "m"),), "No column holds the model's predictions"),
    ],
)
def test_parameters_must_make_a_distribution(
    family: str | None, parameters: tuple[tuple[str, str], ...], words: str
) -> None:
    roles = replace(NORMAL, family=family, parameters=parameters)
    error = refused(FRAME.assign(one=1.0), roles)
    assert words in error.what


def test_a_variance_is_the_square_of_a_standard_deviation() -> None:
    roles = replace(NORMAL, parameters=(("mean", "m"), ("variance", "v")))
    frame = FRAME.assign(v=FRAME["s"] ** 2)
    assert parameter_columns(frame, roles)["std"].tolist() == FRAME["s"].tolist()
    assert "A variance is −1" in refused(frame.assign(v=[1, 1, -1.0]), roles).what


def test_a_true_mean_is_finite() -> None:
    roles = replace(NORMAL, true_mean="t")
    assert true_mean_column(FRAME.assign(t=1), roles).tolist() == [1.0, 1.0, 1.0]
    assert "A true mean is missing" in refused(FRAME.assign(t=[1, None, 1.0]), roles).what


def test_no_target_asks_for_the_outcomes() -> None:
    assert "outcomes" in refused(FRAME, replace(NORMAL, target=None)).fix
    assert "two roles" in refused(FRAME, replace(NORMAL, true_mean="m")).what


def test_every_family_names_its_parameters() -> None:
    assert all(
        len(set(names)) == len(names) and "variance" not in names
        for names in FAMILY_PARAMETERS.values()
    )


def test_fitness_shows_errors_with_an_interval_that_holds() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        y = rng.normal(size=200)
        found = regression_fitness(np.zeros(200), y)
        held += found.rmse_low <= 1.0 <= found.rmse_high
    assert 0.90 <= held / 400 <= 0.98


@pytest.mark.parametrize(
    ("mean", "y", "words"),
    [
        (np.zeros(10), np.arange(10.0), "only 10 rows"),
        (np.arange(50.0), np.arange(50.0), "Every prediction equals its outcome"),
        (np.full(50, 1e3), np.arange(50.0), "more than the mean of all outcomes"),
        (np.zeros(50), np.resize([0.0, 1.0], 50), "two values only"),
    ],
)
def test_fitness_flags_what_looks_wrong(mean: np.ndarray, y: np.ndarray, words: str) -> None:
    assert any(words in flag for flag in regression_fitness(mean, y).flags)


def test_fitness_counts_what_lies_outside_and_what_is_missing() -> None:
    y = np.random.default_rng(0).normal(size=100)
    found = regression_fitness(y * 0.5, y, outside=5, missing={"a": 2, "b": 0}, notes=("Sorted.",))
    assert found.flags[0].startswith("5 outcomes are impossible")
    assert found.flags[1:] == ("Sorted.", "Missing values in a (2).")
    assert (found.low, found.high, found.n_distinct) == (y.min(), y.max(), 100)
