"""Data frames and columns of any library become pandas' in one place."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from kdcal_core.data import as_pandas, table_from_frame
from kdcal_core.errors import InputError

DAYS = [dt.date(2026, 3, 1), None, dt.date(2026, 5, 31)]
ROWS = {
    "n": [1, None, 3],
    "share": [0.5, None, 1.0],
    "word": ["a", None, "b"],
    "is_on": [True, None, False],
    "day": DAYS,
    "at": [dt.datetime(2026, 3, 1, 12), None, dt.datetime(2026, 5, 31, 23, 59)],
}
KINDS = {"n": "float64", "share": "float64", "word": "str", "is_on": "boolean"}


def polars() -> pl.DataFrame:
    return pl.DataFrame(ROWS).with_columns(kind=pl.Series(["y", None, "x"], dtype=pl.Categorical))


def arrow() -> pa.Table:
    kinds = pa.array(["y", None, "x"]).dictionary_encode()
    return pa.table(ROWS).append_column("kind", kinds)


@pytest.mark.parametrize("frame", [polars(), arrow(), arrow().to_batches()[0]], ids=type)
def test_a_frame_keeps_its_values_and_gets_the_types_of_a_file(frame: object) -> None:
    found = as_pandas(frame)
    assert {name: str(found[name].dtype) for name in KINDS} == KINDS
    assert found.isna().to_numpy().tolist() == [[False] * 7, [True] * 7, [False] * 7]
    kept = found.iloc[[0, 2]]
    assert kept[["n", "share", "word", "is_on"]].to_numpy().tolist() == [
        [1, 0.5, "a", True],
        [3, 1, "b", False],
    ]
    assert kept["day"].dt.date.tolist() == [DAYS[0], DAYS[2]]
    assert kept["at"].tolist() == [pd.Timestamp(ROWS["at"][0]), pd.Timestamp(ROWS["at"][2])]
    assert isinstance(found["kind"].dtype, pd.CategoricalDtype)
    assert found["kind"].cat.categories.tolist() == ["y", "x"]


@pytest.mark.parametrize("column", [pl.Series("word", ROWS["word"]), arrow()["word"]], ids=type)
def test_a_column_keeps_its_values(column: object) -> None:
    found = as_pandas(column)
    assert found.dropna().tolist() == ["a", "b"]
    assert found.isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    "own",
    [pd.DataFrame({"a": [1]}), pd.Series([1]), pd.Index([1]), np.ones((2, 2)), [[1, 2]], None, "a"],
    ids=type,
)
def test_what_numpy_and_pandas_made_is_the_same_object(own: object) -> None:
    assert as_pandas(own) is own


def test_numbers_are_not_copied() -> None:
    given = pl.DataFrame({"a": np.arange(5.0)})
    assert np.shares_memory(as_pandas(given)["a"].to_numpy(), given["a"].to_numpy())


TWICE = pa.table([[1], [2]], names=["a", "a"])
VIEWS = pa.array(["a", "?"], pa.string_view())


@pytest.mark.parametrize(
    ("hostile", "said"),
    [
        (TWICE, "Column names appear more than once: 'a'"),
        (TWICE.to_batches()[0], "Column names appear more than once: 'a'"),
        (pl.DataFrame({" ": [1]}), "Column 1 has no name"),
        (pl.DataFrame({"a": [[1], [2]]}), r"holds large_list.* \(column 'a'\)"),
        (pa.table({"a": [{"b": 1}]}), r"holds struct.* \(column 'a'\)"),
        (pl.Series("a", [[1], [2]]), r"holds large_list.* \(column 'a'\)"),
        (pl.DataFrame({"a": [object()]}), r"holds Python objects.* \(column 'a'\)"),
        (pl.Series("a", [object()], dtype=pl.Object), r"holds Python objects.* \(column 'a'\)"),
        (pl.DataFrame({"a": [2**100]}), "values that a table cannot hold"),
        (pa.table({"a": pa.RunEndEncodedArray.from_arrays([1], [5])}), "holds run_end_encoded"),
        (pl.LazyFrame({"a": [1]}), "The rows of a LazyFrame have not been computed yet"),
    ],
)
def test_a_hostile_frame_is_one_clear_error(hostile: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        as_pandas(hostile)


def test_text_may_be_stored_as_views() -> None:
    found = as_pandas(pa.table({"a": VIEWS, "b": pa.DictionaryArray.from_arrays([1, 0], VIEWS)}))
    assert found.to_numpy().tolist() == [["a", "?"], ["?", "a"]]
    assert isinstance(found["b"].dtype, pd.CategoricalDtype)


def test_a_table_is_the_same_from_each_library() -> None:
    plain = pd.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    digests = {
        table_from_frame(frame, "mine").digest
        for frame in (plain, pl.from_pandas(plain), pa.Table.from_pandas(plain))
    }
    assert len(digests) == 1
    assert_array_equal(table_from_frame(pl.from_pandas(plain)).frame["a"], [1.5, 2.5])
