"""What a calibrator may be set to: read from text, checked, made, named."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.calibration import CALIBRATORS, calibrated, fit_calibrator
from kdcal_core.calibration.regions import MAPS
from kdcal_core.calibration.settings import (
    INNER_MAPS,
    configured,
    setting_from_text,
    settings_of,
    title_of,
)
from kdcal_core.data import ScoredSet
from kdcal_core.errors import InputError

TREE = "heterogeneous_tree"
ALL = [(key, one) for key in CALIBRATORS for one in settings_of(key)]
QUICK = [(key, one.name) for key, one in ALL if key not in ("heterogeneous_boosted", "cstswa")]


@pytest.mark.parametrize("key", CALIBRATORS)
def test_without_settings_a_calibrator_is_what_its_key_says(key: str) -> None:
    usual = CALIBRATORS[key].factory()
    made = configured(key, {one.name: one.default for one in settings_of(key)})
    assert type(made) is type(usual)
    assert made.get_params() == usual.get_params()
    assert title_of(key, made) == CALIBRATORS[key].name


def test_every_parameter_says_what_it_may_be() -> None:
    for key, entry in CALIBRATORS.items():
        cls = type(entry.factory())
        assert set(cls().get_params()) == set(cls._parameter_constraints), key
    assert all(one.allowed for _, one in ALL)
    shown = {name: one.allowed for key, one in ALL if key == TREE for name in (one.name,)}
    assert shown["max_depth"] == "none or a whole number from 1 to 12"
    assert shown["prune"] == "yes, no or cv"
    assert shown["partition"] == "column, groups or tree"
    assert set(MAPS) == set(INNER_MAPS)


@pytest.mark.parametrize(
    ("key", "name", "text", "value"),
    [
        (TREE, "max_depth", "4", 4),
        (TREE, "max_depth", "None", None),
        (TREE, "pooling", "no", False),
        (TREE, "prune", "cv", "cv"),
        (TREE, "prune", "False", False),
        (TREE, "calibrator", "beta", "beta"),
        (TREE, "column", "shop", "shop"),
        (TREE, "column", "shop, age", ["shop", "age"]),
        (TREE, "column", '"a, b",c', ["a, b", "c"]),
        (TREE, "column", '"a, b"', "a, b"),
        ("kde_mon2", "bandwidth", "0.05", 0.05),
        ("kde_mon2", "bandwidth", "loo", "loo"),
        ("kde_mon2", "lower_limit", "none", None),
        ("cum", "cutoff", "0.5", 0.5),
        ("dirichlet", "strength", "auto", "auto"),
        ("histogram", "n_bins", "20", 20),
    ],
)
def test_text_is_read_as_what_the_setting_may_be(
    key: str, name: str, text: str, value: object
) -> None:
    found = setting_from_text(key, name, text)
    assert found == value
    assert type(found) is type(value)
    assert configured(key, {name: found}).get_params()[name] == value


@pytest.mark.parametrize(
    ("key", "name", "text", "said"),
    [
        (TREE, "max_depth", "13", "cannot be '13'. Choose none or a whole number from 1 to 12."),
        (TREE, "max_depth", "2.5", "cannot be '2.5'"),
        (TREE, "max_depth", "", "cannot be ''"),
        (TREE, "depth", "2", "no setting 'depth'. It has calibrator, column, max_depth"),
        (TREE, "n_trees", "5", "no setting 'n_trees'"),
        (TREE, "partition", "forest", "Choose column, groups or tree."),
        (TREE, "column", ",", "cannot be ','"),
        (TREE, "pooling", "maybe", "Choose yes or no."),
        ("uncalibrated", "slope", "1", "no setting 'slope'. It has none."),
        ("platt", "slope", "1", "no setting 'slope'. It has shrinkage."),
        ("platt", "shrinkage", "-1", "auto, a number from 0.000001 to"),
        ("kde_mon", "bandwidth", "0.1", "no setting 'bandwidth'"),
        (
            "kde_mon2",
            "bandwidth",
            "1e-300",
            "loo, mon, mon2, mon4 or a number from 0.000001 to 1,000,000",
        ),
        ("kde_mon2", "bandwidth", "nan", "cannot be 'nan'"),
        ("histogram", "n_bins", "10" * 20, "cannot be '1010"),
        ("histogram", "strategy", "QUANTILE", "Choose quantile or uniform."),
        ("heterogeneous_forest", "random_state", "1", "no setting 'random_state'"),
        ("heterogeneous_forest", "partition", "tree", "no setting 'partition'"),
    ],
)
def test_what_cannot_be_is_reported_with_what_can(
    key: str, name: str, text: str, said: str
) -> None:
    with pytest.raises(InputError) as error:
        setting_from_text(key, name, text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_depth": 0}, "cannot be 0"),
        ({"column": []}, "several, separated by commas"),
        ({"column": [1]}, "cannot be [1]"),
        ({"min_rows": 10**12}, "cannot be 1000000000000"),
        ({"partition": "column"}, "No column is named"),
        ({"partition": "tree", "column": "a"}, "'column' does nothing"),
        ({"column": "a", "max_depth": 2}, "'max_depth' does nothing where the partition is"),
        ({"column": ["a", "b"], "prune": "cv"}, "'prune' does nothing"),
    ],
)
def test_values_are_checked_like_text(given: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as error:
        configured(TREE, given)
    assert said in str(error.value)


def test_a_column_is_a_partition_and_several_are_groups() -> None:
    one = configured(TREE, {"column": "shop", "calibrator": "isotonic"})
    assert (one.partition, one.column) == ("column", "shop")
    assert title_of(TREE, one) == "Isotonic regression for each value of shop"
    several = configured(TREE, {"column": ["shop", "age"]})
    assert several.partition == "groups"
    assert title_of(TREE, several) == "Platt scaling for each combination of shop, age"
    every = configured(TREE, {"partition": "groups"})
    assert title_of(TREE, every) == "Platt scaling for each combination of all columns"
    forest = configured("heterogeneous_forest", {"n_trees": 7}, seed=3)
    assert forest.random_state == 3
    named = title_of("heterogeneous_forest", forest, "hidden 1 (8)")
    assert named.endswith("the regions of 7 shallow trees, averaged, on the layer hidden 1 (8)")
    assert title_of("kde_mon2", configured("kde_mon2", {"n_grid": 50})) == (
        "KDE (b_mon2) with n_grid = 50"
    )


def few_rows() -> tuple[ScoredSet, pd.DataFrame]:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 80)
    y = (rng.random(80) < p).astype(int)
    X = pd.DataFrame({"a": rng.normal(size=80), "s": rng.choice(["x", "y"], 80)})
    return ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "d", "c"), X


words = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "9",
        "a",
        "-1",
        "a,s",
        "12",
        "1000",
        "0.5",
        "1e-6",
        "1e9",
        "1000000",
        "nan",
        "inf",
        "none",
        "yes",
        "no",
        "cv",
        "loo",
        "class",
        "quantile",
        "median",
        "groups",
        "beta",
        '"',
        "\x00",
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(QUICK), words)
def test_whatever_is_set_ends_in_probabilities_or_in_one_clear_error(
    which: tuple[str, str], text: str
) -> None:
    key, name = which
    rows, X = few_rows()
    if key == "kernel_density" or (name, text) == ("calibrator", "kde"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            calibrator = configured(key, {name: setting_from_text(key, name, text)})
            if hasattr(calibrator, "n_trees") and name != "n_trees":
                calibrator.set_params(n_trees=3)  # a hundred take their time
            found = calibrated(fit_calibrator(calibrator, rows, X), rows.proba, X).proba
        except InputError:
            return
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
