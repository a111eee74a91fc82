"""Coding a table: edges, categories, missing values, and what cannot be coded."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.errors import InputError, InputWarning
from kdcal_core.partition.tree import BinnedInputs, InputColumn, bin_inputs, unusable_columns
from kdcal_core.partition.tree.binned import find_edges, short_between

finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(st.lists(finite, min_size=2, max_size=60, unique=True))
@settings(deadline=None)
def test_an_edge_lies_between_every_two_neighbours(values):
    distinct = np.unique(np.array(values))
    edges = short_between(distinct[:-1], distinct[1:])
    assert (edges >= distinct[:-1]).all()
    assert (edges < distinct[1:]).all()


@given(
    st.lists(st.one_of(finite, st.integers(-3, 3).map(float)), min_size=1, max_size=300),
    st.integers(2, 20),
)
@settings(deadline=None)
def test_codes_are_what_the_edges_say(values, max_bins):
    x = np.array(values)
    binned = bin_inputs(x[:, None], max_bins=max_bins)
    column = binned.columns[0]
    assert binned.codes[:, 0].tolist() == np.searchsorted(column.edges, x, side="left").tolist()
    assert column.bins <= max_bins
    if len(np.unique(x)) <= max_bins:
        assert len(np.unique(binned.codes)) == column.bins == len(np.unique(x))


def test_quantile_bins_hold_about_as_many_rows_each():
    x = np.random.default_rng(0).exponential(size=100_000)
    counts = np.bincount(bin_inputs(x[:, None]).codes[:, 0])
    assert len(counts) == 254
    assert counts.max() < 2 * 100_000 / 254
    assert counts.min() > 0.4 * 100_000 / 254


def test_a_frequent_value_has_a_bin_alone():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(50_000) < 0.2, 7.0, rng.uniform(0, 20, 50_000))
    codes = bin_inputs(x[:, None], max_bins=50).codes[:, 0]
    assert set(x[codes == codes[x == 7.0][0]]) == {7.0}


def test_edges_of_a_large_table_come_from_some_rows_only_and_always_the_same():
    x = np.random.default_rng(0).normal(size=(60_000, 100))
    one, two = bin_inputs(x), bin_inputs(x)
    assert one.codes.tobytes() == two.codes.tobytes()
    whole = find_edges(x[:, 0], 254)
    assert np.abs(np.searchsorted(np.sort(x[:, 0]), one.columns[0].edges[126])) == pytest.approx(
        np.searchsorted(np.sort(x[:, 0]), whole[126]), abs=1500
    )


def test_edges_are_short_numbers():
    ages = np.arange(17, 91).astype(float)
    assert find_edges(ages, 254).tolist() == ages[:-1].tolist()
    assert find_edges(np.array([0.0, 1000.0, 1003.5]), 254).tolist() == [500.0, 1000.0]
    assert find_edges(np.array([-0.25, 0.5]), 254).tolist() == [0.0]
    assert find_edges(np.arange(-2.0, 3.0), 254).tolist() == [-2.0, -1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([1.5, None, 2.5]),
        pd.Series([1.5, None, 2.5], dtype="Float64"),
        pd.Series([1.5, None, 2.5], dtype="float32"),
        pd.Series([1.5, None, 2.5], dtype="double[pyarrow]"),
        pd.Series([1.5, None, 2.5], dtype=object),
    ],
)
def test_numbers_of_every_dtype(values):
    binned = bin_inputs(pd.DataFrame({"x": values}))
    assert binned.codes[:, 0].tolist() == [0, 2, 1]
    assert binned.columns[0].kind == "number"
    assert binned.columns[0].has_missing


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(["b", None, "a", "b"]),
        pd.Series(["b", None, "a", "b"], dtype=object),
        pd.Series(["b", None, "a", "b"], dtype="category"),
        pd.Series(["b", None, "a", "b"], dtype="string"),
        pd.Series(pd.Categorical(["b", None, "a", "b"], categories=["z", "a", "b"])),
    ],
)
def test_categories_of_every_dtype_the_most_frequent_first(values):
    binned = bin_inputs(pd.DataFrame({"x": values}))
    assert binned.columns[0].categories == ("b", "a")
    assert binned.codes[:, 0].tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize(
    "values", [pd.Series([True, False, True]), pd.Series([True, None, False], dtype=object)]
)
def test_truth_values_are_categories(values):
    column = bin_inputs(pd.DataFrame({"x": values})).columns[0]
    assert column.kind == "category"
    assert set(column.categories) == {"True", "False"}


def test_beyond_254_categories_the_rarest_are_one_and_it_is_reported():
    names = [f"n{i}" for i in range(300) for _ in range(2 if i < 253 else 1)]
    frame = pd.DataFrame({"id": names})
    with pytest.warns(InputWarning, match="300 categories: the rarest 47"):
        binned = bin_inputs(frame)
    column = binned.columns[0]
    assert (column.bins, column.categories[-1], column.pooled) == (254, "other", True)
    assert (binned.codes[:, 0] == 253).sum() == 47
    again = bin_inputs(pd.DataFrame({"id": ["n0", "n299", "strange", None]}), like=(column,))
    assert again.codes[:, 0].tolist()[1:] == [253, 253, 254]
    assert again.unknown.tolist() == [2]


def test_a_category_called_other_is_not_the_pooled_one():
    names = ["other"] * 5 + [f"n{i}" for i in range(300)]
    with pytest.warns(InputWarning, match="301 categories"):
        binned = bin_inputs(pd.DataFrame({"id": names}))
    column = binned.columns[0]
    column.check()
    assert binned.codes[0, 0] == 0
    assert binned.codes[names.index("n99"), 0] == 253  # the last by name


def test_an_unknown_category_counts_as_missing():
    like = bin_inputs(pd.DataFrame({"x": ["a", "b"]})).columns
    binned = bin_inputs(pd.DataFrame({"x": ["c", "a", None]}), like=like)
    assert binned.codes[:, 0].tolist() == [2, 0, 2]
    assert binned.unknown.tolist() == [1]


def test_columns_are_found_by_name():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    like = bin_inputs(frame).columns
    assert (bin_inputs(frame[["b", "a"]], like=like).codes == bin_inputs(frame).codes).all()
    empty = pd.DataFrame({"a": [None, None], "b": [np.nan, np.nan]})
    assert bin_inputs(empty, like=like).codes.tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (pd.DataFrame({"a": [1.0]}), "at fit is missing.*'b'"),
        (pd.DataFrame({"a": [1.0], "b": ["x"], "c": [1]}), "not there at fit.*'c'"),
        (pd.DataFrame({"a": ["1"], "b": ["x"]}), "held numbers at fit and holds categories.*'a'"),
        (pd.DataFrame({"a": [1.0], "b": [3]}), "held categories at fit and holds numbers.*'b'"),
        (np.ones((1, 3)), "3 columns and 2"),
        (pd.DataFrame({"a": [np.inf], "b": ["x"]}), "infinite.*row 1"),
    ],
)
def test_other_columns_than_at_fit_are_reported(frame, text):
    like = bin_inputs(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})).columns
    with pytest.raises(InputError, match=text):
        bin_inputs(frame, like=like)


@pytest.mark.parametrize(
    ("X", "text"),
    [
        (pd.DataFrame({"a": []}), "0 rows and 1 columns"),
        (pd.DataFrame(index=range(3)), "3 rows and 0 columns"),
        (np.empty((0, 2)), "0 rows"),
        (np.ones(3), "two-dimensional"),
        (np.array([["a"]]), "numbers of shape"),
        (pd.DataFrame({"a": [1.0, -np.inf]}), "infinite.*'a', row 2"),
        (pd.DataFrame({"a": pd.to_datetime(["2026-01-01"])}), "dates or times.*'a'"),
        (pd.DataFrame({"a": [datetime.date(2026, 1, 1)]}), "dates or times"),
        (pd.DataFrame({"a": [pd.Timedelta(1)]}), "dates or times"),
        (pd.DataFrame({"a": [[1], [2]]}), "neither numbers nor categories"),
        (pd.DataFrame({"a": [decimal.Decimal(1)]}), "neither numbers nor categories"),
        (pd.DataFrame({"a": [1, "x"]}, dtype=object), "neither numbers nor categories"),
        (pd.DataFrame({"a": [1j]}), "neither numbers nor categories"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "one name.*'a'"),
    ],
)
def test_what_cannot_be_coded_is_reported(X, text):
    with pytest.raises(InputError, match=text):
        bin_inputs(X)


def test_the_file_is_named():
    with pytest.raises(InputError, match=r"file 'new\.csv', column 'a', row 2"):
        bin_inputs(pd.DataFrame({"a": [1.0, np.inf]}), file="new.csv")


@pytest.mark.parametrize("max_bins", [1, 255])
def test_the_number_of_bins_is_bounded(max_bins):
    with pytest.raises(InputError, match="2 to 254"):
        bin_inputs(np.ones((2, 1)), max_bins=max_bins)


def test_columns_that_cannot_be_used_are_listed():
    frame = pd.DataFrame({"a": [1.0], "d": pd.to_datetime(["2026-01-01"]), "o": [[1]]})
    assert list(unusable_columns(frame)) == ["d", "o"]


@pytest.mark.parametrize(
    "codes",
    [
        np.zeros((3, 1), dtype=np.int64),
        np.full((3, 1), 2, dtype=np.uint8),
        np.zeros((3, 2), dtype=np.uint8, order="F"),
        np.zeros(3, dtype=np.uint8),
    ],
)
def test_codes_beyond_their_column_are_refused(codes):
    column = InputColumn("a", "number")  # one bin and the missing code
    with pytest.raises(InputError, match="do not fit"):
        BinnedInputs(codes, (column,), np.zeros(1, dtype=np.int64))


def test_taking_rows_keeps_the_codes():
    binned = bin_inputs(np.arange(12.0).reshape(6, 2))
    half = binned.take(np.array([True, False] * 3))
    assert half.codes.tolist() == binned.codes[::2].tolist()
    assert half.codes.flags.f_contiguous


def test_whole_numbers_beyond_a_double_are_refused_by_name():
    frame = pd.DataFrame({"key": pd.Series([10**400, 1], dtype=object)})
    with pytest.raises(InputError, match="above 1e308") as caught:
        bin_inputs(frame)
    assert caught.value.column == "key"
