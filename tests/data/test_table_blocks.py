"""Blocks of a table are its rows as the reader of whole tables sees them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdcal_core.data import csv_tables, read_table
from kdcal_core.data.tables import TableBlocks
from kdcal_core.errors import InputError

KINDS = {
    "whole": st.integers(-1000, 1000).map(str),
    "small": st.sampled_from(["0", "1"]),
    "fraction": st.floats(-10, 10).map(lambda x: f"{x:.3f}"),
    "truth": st.sampled_from(["true", "false"]),
    "day": st.sampled_from(["2020-01-31", "1999-12-01"]),
    "time": st.sampled_from(["2020-01-31 10:20:30", "1999-12-01 00:00:00"]),
    "text": st.sampled_from(["red", "dark blue", '"a, ""b"""', "é"]),
    "missing": st.sampled_from(["", "NA"]),
}


@st.composite
def columns(draw):
    """A column of text cells that changes its kind on the way."""
    parts = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    return [
        cell for kind in parts for cell in draw(st.lists(KINDS[kind], min_size=20, max_size=20))
    ]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(csv_tables, "_BLOCK", 100)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(columns(), min_size=1, max_size=4), st.sampled_from(["utf-8", "cp1252", "utf-16"]))
def test_csv_blocks_are_the_whole_table(small_blocks, tmp_path, cells, encoding):
    n = min(map(len, cells))
    names = [f"column {j}" for j in range(len(cells))] + ["key"]
    lines = [",".join(names)]
    lines += [",".join([column[i] for column in cells] + [str(i)]) for i in range(n)]
    path = tmp_path / "table.csv"
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding, "replace"))
    whole = read_table(path).frame
    table = TableBlocks(path)
    assert table.names == tuple(names)
    blocks = list(table.read(names))
    assert len(blocks) > (sum(map(len, lines)) > 600)
    pd.testing.assert_frame_equal(
        pd.concat(blocks, ignore_index=True).astype(whole.dtypes), whole, check_dtype=True
    )
    for name in names:
        assert {str(block[name].dtype) for block in blocks} <= {str(whole[name].dtype), "bool"}


def test_chosen_columns_come_in_the_order_asked_for(small_blocks, tmp_path):
    frame = pd.DataFrame({"a": np.arange(90), "b": ["x"] * 90, "c": np.arange(90) / 2})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=20)
    for name in ("t.csv", "t.parquet"):
        blocks = list(TableBlocks(tmp_path / name).read(["c", "a"]))
        pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), frame[["c", "a"]])


def test_integers_with_a_gap_anywhere_are_fractions_everywhere(tmp_path):
    table = pa.table({"a": pa.array([1, 2, 3, None]), "b": pa.array([1, 2, 3, 4], pa.int8())})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    blocks = list(TableBlocks(tmp_path / "t.parquet").read(["a", "b"]))
    assert [str(block["a"].dtype) for block in blocks] == ["float64"] * len(blocks)
    whole = read_table(tmp_path / "t.parquet").frame
    pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), whole)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"a,b\n", "no rows"),
        (b"a,a\n1,2\n", "more than once"),
        (b"\x89PNG" + bytes(100), "PNG"),
        (b"PAR1" + bytes(100), "damaged"),
        (b"a,b\n1,2\n3\n", "1 field"),
    ],
)
def test_what_is_no_table_is_reported(tmp_path, content, said):
    (tmp_path / "odd.csv").write_bytes(content)
    with pytest.raises(InputError, match=said) as error:
        list(TableBlocks(tmp_path / "odd.csv").read(["a"]))
    assert error.value.file == "odd.csv"


def test_a_short_row_far_down_is_named(small_blocks, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "1,2\n" * 200 + "3\n" + "1,2\n" * 5)
    with pytest.raises(InputError) as error:
        list(TableBlocks(tmp_path / "t.csv").read(["a"]))
    assert error.value.row == 201


def test_a_missing_column_and_a_missing_file_are_reported(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no such column") as error:
        list(TableBlocks(tmp_path / "t.csv").read(["c"]))
    assert error.value.column == "c"
    with pytest.raises(InputError, match="no such file"):
        TableBlocks(tmp_path / "none.csv")
