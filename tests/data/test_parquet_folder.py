"""A folder of Parquet files is one table, and nothing outside the allowed folders is read."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdcal_core.data import parquet_folder as module
from kdcal_core.data.folder_parts import PartialColumn, note_parts, parts_of
from kdcal_core.data.parquet_folder import ROOTS, PartedTable, allowed_roots, parquet_files
from kdcal_core.errors import InputError


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=2)


def test_files_are_one_table_in_the_order_of_their_names(tmp_path):
    write(tmp_path / "b.parquet", x=[4.0, 5.0], only=[1, 2])
    write(tmp_path / "a" / "z.PARQUET", x=[1.0, 2.0, 3.0])
    write(tmp_path / "empty.parquet", x=pa.array([], pa.float64()))
    write(tmp_path / ".hidden" / "h.parquet", x=[9.0])
    (tmp_path / "_metadata.parquet").write_bytes(b"nothing")
    (tmp_path / "notes.txt").write_text("not a table")
    files = parquet_files(tmp_path)
    assert [name for _, name in files] == ["a/z.PARQUET", "b.parquet", "empty.parquet"]
    table = PartedTable(files)
    assert (table.n_rows, table.names) == (5, ("x",))
    places = [(one.title, one.in_file, one.in_table) for one in table.groups]
    assert places == [
        ("a/z.PARQUET, row group 1", 0, 0),
        ("a/z.PARQUET, row group 2", 2, 2),
        ("b.parquet, row group 1", 0, 3),
    ]
    read = [block["x"].tolist() for one in table.groups for _, block in table.read(one, ["x"])]
    assert [one for block in read for one in block] == [1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(InputError, match="which other files of the table have") as found:
        next(table.read(table.groups[0], ["only"]))
    assert (found.value.file, found.value.column) == ("a/z.PARQUET", "only")
    with pytest.raises(InputError, match="no such column"):
        next(table.read(table.groups[0], ["none"]))


def test_columns_that_only_some_files_have_are_remembered(tmp_path):
    for at in range(4):
        more = {"age": [1, 2]} if at % 2 else {"sex": ["f", "m"]} if at else {}
        write(tmp_path / f"{at}.parquet", x=[1.0, 2.0], **more)
    write(tmp_path / "empty.parquet", x=pa.array([], pa.float64()))
    table = PartedTable(parquet_files(tmp_path))
    assert table.names == ("x",)
    assert table.partial == (
        PartialColumn("age", "0.parquet", 2, 4),
        PartialColumn("sex", "0.parquet", 3, 4),
    )
    table.write(tmp_path / "all")
    for written in (table.sample(8).schema, pq.read_schema(tmp_path / "all")):
        frame = pd.DataFrame()
        note_parts(frame, written.metadata)
        assert parts_of(frame).partial == table.partial
        assert parts_of(frame).place(6)[0].startswith("2.parquet")
        assert parts_of(frame).place(6)[1] == 2


@pytest.mark.parametrize("text", [b"", b"[1]", b'{"parts": 3}', b'{"other": []}', b"\xff"])
def test_foreign_notes_of_a_folder_are_ignored(text):
    frame = pd.DataFrame({"x": [1.0]})
    note_parts(frame, {b"kdcal folder": text})
    assert (frame.attrs, parts_of(frame)) == ({}, None)


def test_a_sample_comes_from_all_over_the_table(tmp_path):
    for at in range(4):
        write(tmp_path / f"{at}.parquet", x=np.full(6, at), t=["a", "b"] * 3)
    sample = PartedTable(parquet_files(tmp_path)).sample(24)
    assert set(sample["x"].to_pylist()) == {0, 1, 2, 3}
    assert sample["t"].type == pa.string()
    write(tmp_path / "9.parquet", x=["text"] * 3, t=["a"] * 3)
    with pytest.raises(InputError, match=r"different types.*string here, int64 in '0") as found:
        PartedTable(parquet_files(tmp_path)).sample(24)
    assert (found.value.file, found.value.column) == ("9.parquet", "x")


def test_links_that_lead_out_are_refused(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    write(inside / "a.parquet", x=[1.0])
    write(outside / "secret.parquet", x=[2.0])
    (inside / "alias.parquet").symlink_to(inside / "a.parquet")
    assert len(parquet_files(inside)) == 2
    (inside / "b.parquet").symlink_to(outside / "secret.parquet")
    with pytest.raises(InputError, match="leads out") as found:
        parquet_files(inside)
    assert found.value.file == "b.parquet"
    assert len(parquet_files(inside, [tmp_path])) == 3
    (inside / "b.parquet").unlink()
    (inside / "sub").symlink_to(outside)
    with pytest.raises(InputError, match="leads out"):
        parquet_files(inside)


def test_only_folders_within_the_roots_are_read(tmp_path, monkeypatch):
    inside, outside = tmp_path / "in", tmp_path / "in-not"
    write(inside / "deep" / "a.parquet", x=[1.0])
    write(outside / "a.parquet", x=[1.0])
    monkeypatch.setenv(ROOTS, os.pathsep.join([str(inside), "", "relative"]))
    roots = allowed_roots()
    assert roots == (inside.resolve(),)
    assert parquet_files(inside / "deep", roots)
    for refused in (outside, inside / ".." / "in-not", tmp_path, "/"):
        with pytest.raises(InputError, match="may not be read"):
            parquet_files(refused, roots)
    with pytest.raises(InputError, match="may not be read"):
        parquet_files(inside, ())
    (inside / "way").symlink_to(outside)
    with pytest.raises(InputError, match="may not be read"):
        parquet_files(inside / "way", roots)


@pytest.mark.parametrize("name", ["nowhere", "a\0b", ""])
def test_a_folder_that_is_none_is_refused(tmp_path, name):
    where = str(tmp_path / name) if name else str(tmp_path / "x.parquet")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="no such folder"):
        parquet_files(where)


def test_damaged_empty_and_too_many_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="no Parquet file"):
        parquet_files(tmp_path)
    (tmp_path / "<b>\n.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(InputError, match="damaged"):
        PartedTable(parquet_files(tmp_path))
    (tmp_path / "pipe.parquet").mkdir()
    assert len(parquet_files(tmp_path)) == 1
    os.mkfifo(tmp_path / "fifo.parquet")
    with pytest.raises(InputError, match="not a file"):
        parquet_files(tmp_path)
    (tmp_path / "fifo.parquet").unlink()
    (tmp_path / "<b>\n.parquet").unlink()
    write(tmp_path / "a.parquet", x=pa.array([], pa.float64()))
    with pytest.raises(InputError, match="no rows"):
        PartedTable(parquet_files(tmp_path))
    write(tmp_path / "b.parquet", x=[1.0])
    write(tmp_path / "c.parquet", y=[1.0])
    with pytest.raises(InputError, match="in common"):
        PartedTable(parquet_files(tmp_path))
    monkeypatch.setattr(module, "MOST_FILES", 2)
    with pytest.raises(InputError, match="at most 2"):
        parquet_files(tmp_path)


def test_a_list_of_files_is_the_table_of_their_folder(tmp_path):
    write(tmp_path / "a.parquet", p=[0.1])
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "b.parquet", p=[0.2])
    (tmp_path / "_left").mkdir()
    write(tmp_path / "_left" / "c.parquet", p=[0.3])
    whole = parquet_files(tmp_path)
    assert [name for _, name in whole] == ["a.parquet", "deep/b.parquet"]
    a, b = tmp_path / "a.parquet", tmp_path / "deep" / "b.parquet"
    for named in ([b, a], [str(a), tmp_path / "deep"], [f"{tmp_path}/*.parquet", b, a],
                  f"{tmp_path}/**/*.parquet", [tmp_path, a]):  # fmt: skip
        assert parquet_files(named) == whole
    (tmp_path / "link.parquet").symlink_to(a)
    assert parquet_files([b, a, tmp_path / "link.parquet"]) == whole  # read once
    assert [name for _, name in parquet_files([b])] == ["b.parquet"]


def test_what_a_list_may_not_hold(tmp_path):
    write(tmp_path / "a.parquet", p=[0.1])
    (tmp_path / "b.csv").write_text("p\n0.1\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    for named, says in (
        ([tmp_path / "b.csv", tmp_path / "a.parquet"], "may hold Parquet files only"),
        ([tmp_path / "c.parquet"], "There is no such file"),
        (f"{tmp_path}/c-*.parquet", "No Parquet file matches the pattern"),
        ([f"{tmp_path}/a**"], "No Parquet file matches the pattern"),
        ([], "names no file"),
    ):
        with pytest.raises(InputError, match=says):
            parquet_files(named)
    with pytest.raises(InputError, match="may not be read"):
        parquet_files([tmp_path / "a.parquet"], [inside])
    (inside / "link.parquet").symlink_to(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="may not be read"):
        parquet_files([inside / "link.parquet"], [inside])
