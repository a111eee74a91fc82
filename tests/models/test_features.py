"""The door between tables and models: right columns, right order, every fault located."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.errors import InputError
from kdcal_core.models.features import numeric_input


def test_named_columns_are_taken_by_name_and_others_ignored():
    frame = pd.DataFrame({"c": ["x", "y"], "b": [1, 2], "a": [True, False]})
    got = numeric_input(frame, n_features=2, feature_names=("a", "b"))
    assert got.dtype == np.float64
    assert got.tolist() == [[1.0, 1.0], [0.0, 2.0]]


@given(st.permutations(list("abcd")))
def test_order_of_columns_does_not_matter_when_named(order):
    values = {name: [float(i), float(i) + 0.5] for i, name in enumerate("abcd")}
    frame = pd.DataFrame({name: values[name] for name in order})
    got = numeric_input(frame, n_features=4, feature_names=list("abcd"))
    assert got.tolist() == [[0.0, 1.0, 2.0, 3.0], [0.5, 1.5, 2.5, 3.5]]


def test_missing_columns_are_listed():
    with pytest.raises(InputError, match=r"lacks 2 columns.*'a' and 'z'"):
        numeric_input(pd.DataFrame({"b": [1.0]}), n_features=3, feature_names=("a", "b", "z"))


def test_a_long_list_of_missing_columns_is_cut():
    names = [f"f{i}" for i in range(50)]
    with pytest.raises(InputError, match="and 45 more"):
        numeric_input(pd.DataFrame({"b": [1.0]}), n_features=50, feature_names=names)


def test_a_column_there_twice_is_an_error():
    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    with pytest.raises(InputError, match="more than once") as caught:
        numeric_input(frame, n_features=1, feature_names=("a",))
    assert caught.value.column == "a"


@pytest.mark.parametrize("X", [np.zeros((2, 3)), pd.DataFrame(np.zeros((2, 3)))])
def test_width_must_match_without_names(X):
    with pytest.raises(InputError, match="takes 4 features, the table has 3 feature columns"):
        numeric_input(X, n_features=4)


def test_arrays_must_be_two_dimensional():
    with pytest.raises(InputError, match="1 dimension, expected 2"):
        numeric_input(np.zeros(3), n_features=3)


@pytest.mark.parametrize("text", ["abc", "1.5", ""])
def test_text_is_located(text):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series([1.0, text], dtype=object)})
    with pytest.raises(InputError) as caught:
        numeric_input(frame, n_features=2)
    assert (caught.value.column, caught.value.row) == ("b", 2)


def test_text_columns_and_categories_of_text_are_errors():
    for column in (pd.Series(["u", "v"]), pd.Series(["u", "v"], dtype="category")):
        with pytest.raises(InputError, match="takes a number") as caught:
            numeric_input(pd.DataFrame({"a": column}), n_features=1)
        assert caught.value.row == 1


def test_dates_are_not_numbers():
    frame = pd.DataFrame({"when": pd.to_datetime(["2024-01-01", "2024-01-02"])})
    with pytest.raises(InputError, match="holds dates"):
        numeric_input(frame, n_features=1)


def test_text_in_an_object_array_is_located():
    with pytest.raises(InputError) as caught:
        numeric_input(np.array([[1.0, 2.0], [3.0, "x"]], dtype=object), n_features=2)
    assert (caught.value.column, caught.value.row) == ("2", 2)


def test_nullable_and_object_numbers_pass():
    frame = pd.DataFrame(
        {"a": pd.array([1, 2], dtype="Int64"), "b": pd.Series([1, 2.5], dtype=object)}
    )
    assert numeric_input(frame, n_features=2).tolist() == [[1.0, 1.0], [2.0, 2.5]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("as_frame", [True, False])
def test_what_is_not_finite_is_located(value, as_frame):
    array = np.zeros((4, 3))
    array[2, 1] = value
    X = pd.DataFrame(array, columns=list("xyz")) if as_frame else array
    with pytest.raises(InputError) as caught:
        numeric_input(X, n_features=3)
    assert (caught.value.column, caught.value.row) == ("y" if as_frame else "2", 3)


def test_missing_passes_where_allowed_but_infinity_never():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [np.nan, 2.0]})
    got = numeric_input(frame, n_features=2, allow_missing=True)
    np.testing.assert_array_equal(got, [[1.0, np.nan], [np.nan, 2.0]])
    frame["b"] = [np.inf, 1.0]
    with pytest.raises(InputError, match="infinite"):
        numeric_input(frame, n_features=2, allow_missing=True)


def test_the_input_array_is_not_aliased():
    X = np.ones((2, 2))
    numeric_input(X, n_features=2)[0, 0] = 5
    assert X[0, 0] == 1
