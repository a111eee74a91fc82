"""Columns of lists become a column for each place, by every door, and faulty ones one error."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdcal_core.data import read_table, table_from_frame
from kdcal_core.data.list_columns import MOST_ENTRIES, entries_of
from kdcal_core.data.parquet_folder import PartedTable, parquet_files
from kdcal_core.data.tables import TableBlocks
from kdcal_core.errors import InputError

VECTOR = pa.struct(
    [
        ("type", pa.int8()),
        ("size", pa.int32()),
        ("indices", pa.list_(pa.int32())),
        ("values", pa.list_(pa.float64())),
    ]
)
DENSE = {"type": 1, "size": None, "indices": None, "values": [0.25, 0.75]}
SPARSE = {"type": 0, "size": 2, "indices": [1], "values": [1.0]}
P = np.linspace(0.01, 0.99, 40)
PAIRS = np.column_stack([1.0 - P, P])


def read(column: Any) -> pd.DataFrame:
    stream = io.BytesIO()
    pq.write_table(pa.table({"y": [0, 1] * (len(column) // 2), "p": column}), stream)
    return read_table(stream, name="t.parquet").frame


@pytest.mark.parametrize(
    "column",
    [
        pa.array(PAIRS.tolist()),
        pa.array(PAIRS.tolist(), pa.large_list(pa.float64())),
        pa.array(PAIRS.tolist(), pa.list_(pa.float64(), 2)),
        pa.array([{**DENSE, "values": row} for row in PAIRS.tolist()], VECTOR),
        pa.array([str(row) for row in PAIRS.tolist()]),
        pa.array([f"DenseVector([{1 - p}, {p}])" for p in P]),
        pa.array([f"[np.float64({1 - p}), np.float64({p})]" for p in P]),
        pa.array([str(row) for row in PAIRS]),  # as NumPy prints: rounded, with blanks
    ],
)
def test_lists_are_read_however_they_are_written(column: pa.Array) -> None:
    frame = read(column)
    assert list(frame) == ["y", "p[0]", "p[1]"]
    np.testing.assert_allclose(frame[["p[0]", "p[1]"]], PAIRS, atol=1e-8)


def test_vectors_of_spark_may_be_sparse_and_missing() -> None:
    empty = {**SPARSE, "indices": [], "values": []}
    frame = read(pa.array([DENSE, SPARSE, None, empty], VECTOR))
    wanted = [[0.25, 0.75], [0.0, 1.0], [np.nan, np.nan], [0.0, 0.0]]
    np.testing.assert_array_equal(frame[["p[0]", "p[1]"]], wanted)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([[0.1, 0.9], [1.0]], r"The list holds 1 number, but lists of 2 are.*column 'p', row 2"),
        ([[0.1, 0.9], []], r"The list holds 0 numbers"),
        (pa.array([[], []], pa.list_(pa.float64())), r"The list is empty.*row 1"),
        (pa.array([None, None], pa.list_(pa.float64())), "holds no list"),
        ([[[0.1], [0.9]]] * 2, "not one value a row"),
        ([["a", "b"]] * 2, "not one value a row"),
        ([[0.5] * (MOST_ENTRIES + 1)] * 2, "lists of 1,001 numbers; at most 1,000"),
        (pa.array([{**SPARSE, "size": 10**9}] * 2, VECTOR), "lists of 1,000,000,000 numbers"),
        (pa.array([DENSE, {**SPARSE, "indices": [2]}], VECTOR), "vector is damaged.*row 2"),
        (pa.array([DENSE, {**SPARSE, "indices": [-1]}], VECTOR), "vector is damaged.*row 2"),
        (pa.array([DENSE, {**SPARSE, "indices": [0, 1]}], VECTOR), "vector is damaged.*row 2"),
        (["[0.1, 0.9]"] * 3 + ["none"], "'none' is no list of numbers.*row 4"),
        (["[0.1, 0.9]"] * 3 + ["[0.1, 0.2, 0.7]"], "The list holds 3 numbers.*row 4"),
    ],
)
def test_faulty_lists_are_one_error(column: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(column)


def test_a_missing_list_or_number_is_missing() -> None:
    frame = read(pa.array([[0.1, 0.9], None, [0.2, None], [0.3, 0.7]]))
    assert frame["p[0]"].isna().tolist() == [False, True, False, False]
    assert frame["p[1]"].isna().tolist() == [False, True, True, False]


def test_a_list_of_one_number_is_the_number() -> None:
    frame = read(pa.array([[0.1], [0.9]]))
    assert frame["p"].tolist() == [0.1, 0.9]


def test_text_that_lists_no_probabilities_stays_text() -> None:
    for text in (["[20, 30]", "[30, 40]"], ["[0.1]", "[0.9]"], ["[a, b]", "x"], ["[0.1, 0.9", "x"]):
        assert list(read(text)) == ["y", "p"]


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(InputError, match="appear more than once"):
        table_from_frame(pd.DataFrame({"p": [[0.1, 0.9]], "p[0]": [1.0]}), "t")


def test_blocks_and_folders_read_the_same_columns(tmp_path: Path) -> None:
    text = [str(one) for one in PAIRS.tolist()]
    table = pa.table({"y": [0, 1] * 20, "p": PAIRS.tolist(), "q": text})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=25)
    whole = read_table(tmp_path / "a.parquet").frame
    frame = pd.DataFrame({"y": [0, 1] * 20, "q": text})
    frame.to_csv(tmp_path / "a.csv", index=False)
    for name in ("a.parquet", "a.csv"):
        blocks = TableBlocks(tmp_path / name)
        wanted = ["q[1]", "y", "q[0]"]
        found = pd.concat(list(blocks.read(wanted)), ignore_index=True)
        pd.testing.assert_frame_equal(found, whole[wanted])
        assert list(blocks.head()) == list(blocks.names)
    parted = PartedTable(parquet_files(tmp_path))
    assert parted.names == tuple(whole)
    read_blocks = [
        block for group in parted.groups for _, block in parted.read(group, ["p[1]", "q[0]"])
    ]
    found = pd.concat(read_blocks, ignore_index=True)
    pd.testing.assert_frame_equal(found, whole[["p[1]", "q[0]"]])
    parted.write(tmp_path / "whole")
    pd.testing.assert_frame_equal(read_table(tmp_path / "whole").frame, whole)


def test_a_row_is_counted_from_the_start_of_the_file() -> None:
    with pytest.raises(InputError, match="row 12"):
        entries_of(pa.chunked_array([[[1.0, 2.0], [1.0]]]), "p", 2, before=10)
