"""Tables come back as they were written, and what is not a table is refused."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import gzip
import hashlib
import io
import pickle
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.data import Table, read_table, table_from_frame
from kdcal_core.errors import InputError


def read(content: bytes, **options: int) -> Table:
    return read_table(io.BytesIO(content), name="f.csv", **options)


def fault(content: bytes, **options: int) -> InputError:
    with pytest.raises(InputError) as caught:
        read(content, **options)
    assert caught.value.file == "f.csv"
    return caught.value


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
WORDS = st.text("abcäöé xyz-'", min_size=1, max_size=8).filter(lambda text: text.strip() == text)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(NUMBERS, st.integers(-99, 99), WORDS), min_size=2, max_size=30),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"]),
    st.sampled_from([".", ","]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_csv_round_trip(
    rows: list[tuple[float, int, str]], separator: str, encoding: str, decimal_sign: str, end: str
) -> None:
    if separator == ",":
        decimal_sign = "."
    frame = pd.DataFrame(rows, columns=["höhe", "count", "word"])
    frame.loc[0, "höhe"] = 1.5  # so that a decimal sign occurs
    text = frame.to_csv(index=False, sep=separator, decimal=decimal_sign, lineterminator=end)
    table = read(text.encode(encoding))
    pd.testing.assert_frame_equal(table.frame, frame.astype({"word": "str"}), check_exact=True)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=20))
def test_without_header(rows: list[list[float]]) -> None:
    rows[0][0] = 2.5
    table = read("".join(",".join(map(repr, row)) + "\n" for row in rows).encode())
    assert list(table.frame) == ["column_1", "column_2", "column_3"]
    assert np.array_equal(table.frame.to_numpy(), np.array(rows))
    assert any("no header" in note for note in table.notes)


def test_counting_header_names_classes() -> None:
    table = read(b"0,1,2\n0.2,0.3,0.5\n")
    assert list(table.frame) == ["0", "1", "2"]


@pytest.mark.parametrize("marker", ["", "NA", "NaN", "null", "N/A"])
def test_missing_markers(marker: str) -> None:
    frame = read(f"a,b\n1,x\n{marker},{marker}\n3,y\n".encode()).frame
    assert frame["a"].dtype == np.float64
    assert frame["a"].isna().tolist() == [False, True, False]
    assert frame["b"].isna().tolist() == [False, True, False]


def test_question_mark_is_kept_and_noted() -> None:
    table = read(b"a,b\n1,?\n2,x\n?,y\n")
    assert table.frame["a"].tolist() == ["1", "2", "?"]
    assert [note for note in table.notes if "'a'" in note and "?" in note]
    assert not [note for note in table.notes if "'b'" in note]


def test_quoted_fields_over_lines() -> None:
    frame = read(b'a,b\n"x, ""y""\nz",1\nw,2\n').frame
    assert frame["a"].tolist() == ['x, "y"\nz', "w"]


def test_types_that_change_late() -> None:
    lines = b"".join(b"%d,1\n" % value for value in range(400_000))
    frame = read(b"a,b\n" + lines + b"0.5,x\n").frame
    assert frame["a"].dtype == np.float64
    assert frame["a"].iloc[-1] == 0.5
    assert frame["b"].iloc[-1] == "x"


def test_late_foreign_letter() -> None:
    table = read(b"a,b\n" + b"1,x\n" * 100_000 + "2,é\n".encode("cp1252"))
    assert table.frame["b"].iloc[-1] == "é"
    assert any("Windows-1252" in note for note in table.notes)


@pytest.mark.parametrize(("bad", "row"), [(b"3\n", 3), (b"3,4,5\n", 3)])
def test_ragged_rows(bad: bytes, row: int) -> None:
    assert fault(b"a,b\n1,2\n1,2\n" + bad + b"5,6\n").row == row
    assert fault(b"\n\na,b\n1,2\n1,2\n" + bad + b"5,6\n").row == row
    assert fault(b"a,b\n" + b"1,2\n" * 300_000 + bad + b"1,2\n" * 300_000).row == 300_001


def archive(name: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as file:
        file.writestr(name, "x" * 100)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "empty"),
        (b" \n\n", "empty"),
        (b"a,b\n", "no rows"),
        (b"a,b", "no rows"),
        (b"a,b,a\n1,2,3\n", "'a'"),
        (b"a,,c\n1,2,3\n", "Column 2 has no name"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "gzip"),
        (archive("data.csv"), "ZIP"),
        (archive("xl/workbook.xml"), "Excel"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "PNG"),
        (b"%PDF-1.7\n%", "PDF"),
        (b"<!DOCTYPE html>\n<html></html>", "web page"),
        (b'{"a": [1, 2]}', "JSON"),
        (b'[{"a": 1}]', "JSON"),
        (pickle.dumps({"a": 1}), "pickle"),
        (bytes(range(256)) * 20, "binary"),
        (b'a,b\n"x,1\n3,2\n', "field"),
        (b"PAR1 nothing here", "damaged"),
    ],
)
def test_what_is_no_table(content: bytes, word: str) -> None:
    assert word in fault(content).what


def test_too_many_columns_and_too_large() -> None:
    header = ",".join(f"c{i}" for i in range(20_001)).encode()
    assert "20,001" in fault(header + b"\n" + header + b"\n").what
    assert "limit" in fault(b"a,b\n" + b"1,2\n" * 1000, max_bytes=5_000).what
    assert "limit" in fault(b"a,b\n" + b"1,2\n" * 1000, max_bytes=100).what


def test_parquet_types() -> None:
    table = pa.table(
        {
            "ints": [1, None],
            "small": pa.array([1, 2], pa.int8()),
            "single": pa.array([0.5, 2], pa.float32()),
            "text": ["a", None],
            "large": pa.array(["a", "b"], pa.large_string()),
            "coded": pa.array(["p", "q"]).dictionary_encode(),
            "codes": pa.array([3, 4]).dictionary_encode(),
            "flag": [True, False],
            "maybe": [True, None],
            "price": [decimal.Decimal("1.25"), None],
            "day": [datetime.date(2020, 1, 2), None],
            "time": [datetime.time(1, 2), None],
            "took": pa.array([5, None], pa.duration("s")),
            "bytes": [b"a", b"b"],
            "none": pa.nulls(2),
        }
    )
    frame = read(parquet(table)).frame
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert kinds["day"].startswith("datetime64")
    del kinds["day"]
    assert kinds == {
        "ints": "float64",
        "small": "int64",
        "single": "float64",
        "text": "str",
        "large": "str",
        "coded": "category",
        "codes": "int64",
        "flag": "bool",
        "maybe": "boolean",
        "price": "float64",
        "time": "str",
        "took": "float64",
        "bytes": "str",
        "none": "float64",
    }
    assert frame["text"].isna().tolist() == [False, True]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(), st.integers(-(2**63), 2**63 - 1), st.text()), min_size=1))
def test_parquet_round_trip(rows: list[tuple[float, int, str]]) -> None:
    rows = [(x, i, s.encode("utf-8", "ignore").decode()) for x, i, s in rows]
    frame = pd.DataFrame(rows, columns=["x", "i", "s"]).astype({"s": "str"})
    content = parquet(pa.Table.from_pandas(frame))
    pd.testing.assert_frame_equal(read(content).frame, frame, check_exact=True)


def good_text() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"s": ["letters"]}), sink, compression="none", write_statistics=False)
    return sink.getvalue()


def test_parquet_faults() -> None:
    good = parquet(pa.table({"x": np.arange(1000.0)}))
    assert "damaged" in fault(good[:-20]).what
    assert "damaged" in fault(good[: len(good) // 2]).what
    assert "no rows" in fault(parquet(pa.table({"x": pa.array([], pa.int64())}))).what
    assert fault(parquet(pa.table({"x": [[[1]], [[2]]]}))).column == "x"
    assert fault(parquet(pa.table({"x": [{"a": 1}]}))).column == "x"
    assert "raw bytes" in fault(parquet(pa.table({"x": [b"\xff\xfe"]}))).what
    assert "damaged" in fault(good_text().replace(b"letters", b"lett\xffrs")).what
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    assert "more than once" in fault(parquet(twice)).what


def test_parquet_that_claims_too_much() -> None:
    rows = parquet(pa.table({"x": np.zeros(2_000_000)}))
    assert len(rows) < 100_000
    assert "limit" in fault(rows, max_bytes=10_000_000).what
    text = pa.array(["y" * 1_000_000]).take(pa.array(np.zeros(50, dtype=np.int64)))
    repeated = parquet(pa.table({"s": text}))
    assert len(repeated) < 200_000
    assert "limit" in fault(repeated, max_bytes=20_000_000).what


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_damaged_bytes_read_or_refuse(kind: str) -> None:
    rng = np.random.default_rng(1)
    frame = pa.table({"x": rng.normal(size=300), "s": ["a", "b", "c"] * 100})
    good = parquet(frame) if kind == "parquet" else 'x;y\n1,5;"é"\n'.encode() * 30
    for _ in range(400):
        damaged = bytearray(good)
        for place in rng.integers(0, len(good), 5):
            damaged[place] = rng.integers(0, 256)
        content = bytes(damaged[: rng.integers(1, 2 * len(good))])
        with contextlib.suppress(InputError):  # any other exception fails the test
            assert read(content).n_rows > 0


def test_stored_index_is_dropped() -> None:
    sink = io.BytesIO()
    pd.DataFrame({"a": [1, 2]}, index=[5, 7]).to_parquet(sink)
    table = read(sink.getvalue())
    assert list(table.frame) == ["a"]
    assert table.frame.index.tolist() == [0, 1]


def test_identity_and_names(tmp_path) -> None:
    path = tmp_path / "wrong.csv"
    path.write_bytes(parquet(pa.table({"x": [1]})))
    table = read_table(path)
    assert table.name == "wrong.csv"
    assert table.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    with path.open("rb") as file:
        file.seek(3)
        assert read_table(file).digest == table.digest
        assert not file.closed
    with pytest.raises(InputError, match=r"no such file.*none\.csv"):
        read_table(tmp_path / "none.csv")


def test_table_from_frame() -> None:
    frame = pd.DataFrame({"a": [1, 2], 3: ["x", None]}, index=[4, 2])
    table = table_from_frame(frame, "mine")
    assert list(table.frame) == ["a", "3"]
    assert table.digest == table_from_frame(frame.copy()).digest
    assert table.digest != table_from_frame(frame.iloc[::-1]).digest
    bad = [
        pd.DataFrame({"a": []}),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame({"a": [1, "x"]}),
        pd.DataFrame({"a": [[[1]], [[2]]]}),
    ]
    for frame in bad:
        with pytest.raises(InputError):
            table_from_frame(frame)
