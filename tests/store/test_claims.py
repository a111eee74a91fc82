"""Tables that claim more than they store, or cannot be read: one error that names the place."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdcal_core.data import read_table
from kdcal_core.data.tables import TableBlocks
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited, runner
from kdcal_core.store.claims import FREE_BYTES, check_ratio, read_json

MIB = 1 << 20


def fault(content: bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read_table(io.BytesIO(content), name="table")
    return caught.value


def repeated(text: str, n_rows: int) -> bytes:
    """A table of one column that holds the same text in every row: a few hundred bytes."""
    codes = pa.array(np.zeros(n_rows, dtype=np.int32))
    table = pa.table({"y": pa.DictionaryArray.from_arrays(codes, pa.array([text]))})
    sink = io.BytesIO()
    pq.write_table(
        table, sink, compression="zstd", store_schema=False, write_statistics=False,
        write_batch_size=n_rows, data_page_size=1 << 30, max_rows_per_page=n_rows,
        dictionary_pagesize_limit=1 << 30,
    )  # fmt: skip
    return sink.getvalue()


def empty(n_rows: int, n_columns: int) -> bytes:
    """A table without a value: some kB."""
    sink = io.BytesIO()
    pq.write_table(pa.table({f"x{i}": pa.nulls(n_rows) for i in range(n_columns)}), sink)
    return sink.getvalue()


BOMBS = {
    "many rows": lambda: empty(30_000_000, 5),
    "a long text": lambda: repeated("x" * MIB, 3000),
    "one long text": lambda: repeated("x" * 130 * MIB, 1),
}


@pytest.mark.parametrize("what", BOMBS)
def test_a_dictionary_that_stands_for_gigabytes_is_refused(what: str, tmp_path: Path) -> None:
    content = BOMBS[what]()
    assert len(content) < 300_000
    assert "would unpack to" in fault(content).what
    assert "1,000 times its size" in fault(content).what
    path = tmp_path / "table.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"would unpack to|would take"):
        list(TableBlocks(path).read([pq.read_schema(path).names[0]]))


def test_it_takes_little_time_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # a forked worker has the libraries of every job, which this job does not need
    monkeypatch.setattr(runner, "_fork_server", None)
    monkeypatch.setattr(runner, "prepare_workers", lambda modules: False)
    path = tmp_path / "table.parquet"
    path.write_bytes(BOMBS["a long text"]())
    kwargs = {"path": str(path), "name": "t", "frame_path": str(tmp_path / "f"), "model": None}
    with pytest.raises(InputError, match="would unpack to"):
        run_limited(
            "kdcal_core.review.in_worker:import_table",
            kwargs,
            seconds=60,
            memory_bytes=500 * MIB,
        )


def test_sparse_and_constant_columns_are_no_bombs() -> None:
    rng = np.random.default_rng(0)
    sparse = {f"x{i}": (rng.uniform(size=20_000) < 0.01).astype(float) for i in range(100)}
    sink = io.BytesIO()
    pq.write_table(pa.table({**sparse, "constant": ["same text"] * 20_000}), sink)
    assert read_table(sink).n_rows == 20_000
    assert read_table(io.BytesIO(repeated("x", 1_000_000))).n_rows == 1_000_000
    # a hundred megabytes and more of the same, as millions of rows have them
    assert read_table(io.BytesIO(empty(2_000_000, 10))).n_rows == 2_000_000
    assert read_table(io.BytesIO(repeated("model 7 of June", 10_000_000))).n_rows == 10_000_000
    check_ratio(10, FREE_BYTES, 1)


def test_json_of_too_many_parts_is_not_read() -> None:
    assert read_json(b'{"a": [1, {"b": null}]}', most_values=10) == {"a": [1, {"b": None}]}
    with pytest.raises(InputError, match="2,000,002 lists and objects"):
        read_json(b"[" + b"[]," * 2_000_000 + b"[]]")
    with pytest.raises(InputError, match="12 values; the limit is 10"):
        read_json(b"[" + b'"a",' * 11 + b'"a"]', most_values=10)
    with pytest.raises(RecursionError):
        read_json(b"[" * 100_000)


def test_an_open_quote_is_named_by_row_and_column() -> None:
    rows = "".join(f"{i},y\n" for i in range(100_000))
    for text, row in (
        ('a,b\n1,"x\n2,y\n', 1),  # Arrow takes the rest for one text, in a small file
        ('a,b\n1,"x\n' + rows, 1),  # and in a large one
        ("a,b\n" + rows + '5,"x\n6,y\n', 100_001),
        ('a,b\n1,"a ""quoted"" word"\n2,"two\nlines"\n3,"x\n4,y\n', 3),
    ):
        error = fault(text.encode())
        assert error.what == "The quotation mark is opened and never closed"
        assert (error.row, error.column) == (row, "b")
    error = fault(b'a,"b\n1,x\n2,y\n')
    assert (error.row, error.what) == (0, "The quotation mark is opened and never closed")


def test_an_open_quote_is_named_when_a_table_is_read_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('a,b\n1,"x\n' + "2,y\n" * 10)
    with pytest.raises(InputError, match=r"never closed.*column 'b', row 1"):
        list(TableBlocks(path).read(["a"]))


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_long_field_is_read_or_named_but_never_no_rows(quote: str, tmp_path: Path) -> None:
    long = f"a,b\n1,{quote}{'x' * 300_000}{quote}\n2,y\n"
    assert read_table(io.BytesIO(long.encode())).frame["b"].str.len().tolist() == [300_000, 1]
    rows = "3,y\n" * 1000
    error = fault(f"a,b\n{rows}1,{quote}{'x' * 13 * MIB}{quote}\n2,y\n".encode())
    assert (error.row, error.column) == (1001, "b")
    assert "holds 13,631,4" in error.what
    assert "the limit is 4,194,304" in error.what


def test_a_row_that_never_ends_says_how_many_fields_it_has() -> None:
    error = fault(b"a,b\n" + b"1,2," * 1_200_000)
    assert (error.row, error.what) == (
        1,
        "The row has 2,400,001 fields, but the table has 2 columns",
    )


@pytest.mark.parametrize("rows", [0, 1])
def test_columns_are_counted_to_the_end_of_the_first_line(rows: int, tmp_path: Path) -> None:
    n = 1_000_000
    content = ",".join(f"c{i}" for i in range(n)) + "\n" + ("1," * n)[:-1] * rows
    assert fault(content.encode()).what.startswith("The table has 1,000,000 columns")
    path = tmp_path / "table.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="1,000,000 columns"):
        TableBlocks(path)


@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be"])
def test_utf_32_is_read(encoding: str, bom: str, tmp_path: Path) -> None:
    text = bom + 'a;größe\n1;"é;x"\n2;\U0001f600\n'
    table = read_table(io.BytesIO(text.encode(encoding)), name="t")
    assert table.frame.to_dict("list") == {"a": [1, 2], "größe": ["é;x", "\U0001f600"]}
    assert "The text is UTF-32." in table.notes
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    (block,) = TableBlocks(path).read(["größe"])
    assert block["größe"].tolist() == ["é;x", "\U0001f600"]


def test_zeros_are_no_utf_32() -> None:
    assert "binary data" in fault(bytes(4096)).what
    assert "binary data" in fault(np.arange(3000, dtype="<i4").tobytes()).what


def test_a_text_of_quotation_marks_is_walked_through_in_seconds() -> None:
    """A run of them was read one by one, each with a copy of all before."""
    marks = b'a,b\n1,"' + b'""' * 4_000_000
    start = time.process_time()
    assert "never closed" in fault(marks).what
    assert time.process_time() - start < 5
    error = fault(b"a,b\n" + b"1,2\n" * 3 + b'1,"' + b'""' * 700_000 + b'"\n5,"x\n')
    assert (error.row, error.column) == (5, "b")
