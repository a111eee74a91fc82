"""The door for tables: a file or a frame comes in, a checked Table with its digest goes on."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa

from kdcal_core.data.arrow_tables import (
    check_column_names,
    check_column_types,
    read_parquet,
    to_frame,
)
from kdcal_core.data.csv_format import detect_encoding
from kdcal_core.data.csv_tables import CsvSource, read_csv
from kdcal_core.data.types import Table
from kdcal_core.errors import InputError
from kdcal_core.text import bytes_text

MAX_BYTES = 4 << 30
_HEAD = 256 << 10
_CHUNK = 4 << 20

_ZIP = "a ZIP archive"
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "a gzip archive", "Unpack it first."),
    (b"BZh", "a bzip2 archive", "Unpack it first."),
    (b"\xfd7zXZ\x00", "an xz archive", "Unpack it first."),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive", "Unpack it first."),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "Unpack it first."),
    (b"Rar!", "a RAR archive", "Unpack it first."),
    (b"PK\x03\x04", _ZIP, "Unpack it first."),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "Save the sheet as CSV (UTF-8)."),
    (b"\x89PNG", "a PNG image", ""),
    (b"\xff\xd8\xff", "a JPEG image", ""),
    (b"GIF8", "a GIF image", ""),
    (b"%PDF", "a PDF document", ""),
    (b"\x89HDF", "an HDF5 file", ""),
    (b"\x93NUMPY", "a NumPy array", ""),
    (b"ARROW1", "an Arrow (Feather) file", ""),
    (b"ORC", "an ORC file", ""),
    (b"SQLite format 3", "an SQLite database", ""),
    (b"\x7fELF", "a program", ""),
)
_EXPORT = "Export the table as CSV or Parquet."


def read_table(
    source: str | Path | IO[bytes], *, name: str | None = None, max_bytes: int = MAX_BYTES
) -> Table:
    """Read a CSV or Parquet file; which of the two is told from its content.

    Separator (comma, semicolon, tab, pipe), decimal comma, encoding (UTF-8, UTF-16,
    UTF-32, Windows-1252) and header of a CSV file are detected, and what was decided stands in the
    table's notes. Empty cells, ``NA``, ``N/A``, ``NaN``, ``null`` and ``<NA>`` are missing.

    Parameters
    ----------
    source : path or binary file object
        A file object must be able to seek; it is read from its start and left open.
    name : str, optional
        The file's name for errors and records, where ``source`` does not know it.
    max_bytes : int
        Greatest size in memory, judged before the rows are read.

    Returns
    -------
    Table
        Columns are int64, float64, bool, str, category or datetime.

    Raises
    ------
    InputError
        For a missing or empty file, a file that is no table (the message says what it looks
        like), a table without rows, faulty column names, rows of unequal length, nested
        columns, a damaged file, or one that is too large.

    Examples
    --------
    >>> import io
    >>> table = read_table(io.BytesIO(b"x;y\\n1,5;a\\n2,5;b\\n"), name="small.csv")
    >>> table.frame["x"].tolist(), table.notes[1]
    ([1.5, 2.5], 'Decimal commas were read as decimal points.')
    """
    file = name or _name_of(source)
    with _opened(source, file) as stream:
        size, digest, n_quotes = _scan(stream)
        head = read_head(stream)
        if not head.strip():
            raise InputError("The file is empty", fix="Choose another file.", file=file)
        _check_size_on_disk(size, max_bytes, file)
        stream.seek(0)
        if head.startswith(b"PAR1"):
            frame, notes = read_parquet(stream, file, max_bytes)
        else:
            refuse_foreign(head, file)
            again = (
                partial(_open, source) if isinstance(source, str | Path) else partial(_view, stream)
            )
            csv = CsvSource(stream, again, head, size, n_quotes)
            frame, notes = read_csv(csv, file, max_bytes)
    return Table(frame, digest, file, notes)


def table_from_frame(frame: pd.DataFrame, name: str = "table") -> Table:
    """A table of a frame in memory; its index is dropped, its digest taken of its Arrow form.

    Raises
    ------
    InputError
        For a frame without rows, faulty column names, nested columns, or a column that mixes
        types.

    Examples
    --------
    >>> import pandas as pd
    >>> table_from_frame(pd.DataFrame({"x": [1, 2]}), "mine").n_rows
    2
    """
    named = frame.set_axis([str(column) for column in frame.columns], axis=1)
    check_column_names(list(named.columns), name)
    if named.empty:
        raise InputError("The table has no rows", fix="Give at least one row.", file=name)
    arrow = _to_arrow(named.reset_index(drop=True), name)
    check_column_types(arrow.schema, name)
    plain, notes = to_frame(arrow, name)
    return Table(plain, _digest_arrow(arrow), name, notes)


def _to_arrow(frame: pd.DataFrame, name: str) -> pa.Table:
    columns = {}
    for column in frame.columns:
        try:
            columns[column] = pa.array(frame[column], from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                "The column mixes values of different types",
                fix="Make it all numbers or all text.",
                file=name,
                column=column,
            ) from error
    return pa.table(columns)


def _digest_arrow(table: pa.Table) -> str:
    sink = _Digest()
    with pa.ipc.new_stream(pa.PythonFile(sink, "w"), table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.sha.hexdigest()


class _Digest(io.RawIOBase):
    """A file that keeps nothing of what is written to it but its digest."""

    def __init__(self) -> None:
        self.sha = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.sha.update(content)
        return len(content)


def _name_of(source: Any) -> str:
    path = source if isinstance(source, str | Path) else getattr(source, "name", None)
    return Path(path).name if isinstance(path, str | Path) else "table"


@contextmanager
def _opened(source: str | Path | IO[bytes], file: str) -> Iterator[pa.NativeFile]:
    if isinstance(source, str | Path):
        if not Path(source).is_file():
            raise InputError("There is no such file", fix="Check the path.", file=file)
        try:
            stream = _open(source)
        except OSError as error:
            raise InputError("The file cannot be opened", fix=str(error), file=file) from error
    else:
        # Arrow closes a Python file object it was given, so it gets the bytes instead.
        source.seek(0)
        stream = pa.BufferReader(source.read())
    with stream:
        yield stream


def _open(path: str | Path) -> pa.NativeFile:
    return pa.OSFile(str(path))


def _view(stream: pa.NativeFile) -> pa.NativeFile:
    """The bytes behind a stream in memory, not copied, with a position of their own."""
    stream.seek(0)
    return pa.BufferReader(stream.read_buffer())


def _scan(stream: pa.NativeFile) -> tuple[int, str, int]:
    """Size, SHA-256 and number of quotation marks, in one pass."""
    sha, size, n_quotes = hashlib.sha256(), 0, 0
    while chunk := stream.read(_CHUNK):
        sha.update(chunk)
        size += len(chunk)
        n_quotes += chunk.count(b'"')
    return size, sha.hexdigest(), n_quotes


def read_head(stream: pa.NativeFile) -> bytes:
    """The first bytes of a file: enough to tell what it is and how it is written."""
    stream.seek(0)
    return bytes(stream.read(_HEAD))


def _check_size_on_disk(size: int, max_bytes: int, file: str) -> None:
    if size > max_bytes:
        raise InputError(
            f"The file has {bytes_text(size)}; the limit is {bytes_text(max_bytes)}",
            fix="Keep fewer rows or only the columns the review needs.",
            file=file,
        )


def refuse_foreign(head: bytes, file: str) -> None:
    """Refuse a file that is no table, and say what it looks like."""
    found = _looks_like(head)
    if found is not None:
        what, fix = found
        raise InputError(
            f"The file is not a table: it looks like {what}",
            fix=f"{fix} {_EXPORT}".strip(),
            file=file,
        )


def _looks_like(head: bytes) -> tuple[str, str] | None:
    for magic, what, fix in _FOREIGN:
        if head.startswith(magic):
            if what == _ZIP and b"xl/" in head:
                return "an Excel workbook", "Save the sheet as CSV (UTF-8)."
            return what, fix
    if re.match(rb"\x80[\x02-\x05]", head):
        return "a Python pickle", ""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:200].lower()
    if re.match(rb"<(!doctype|html|\?xml|!--|[a-z]+[ >])", start):
        return "a web page or XML", ""
    if re.match(rb'(\{\s*("|\}))|(\[\s*[\[{"\d\]-])', start):
        return "JSON", ""
    return ("binary data", "") if _is_binary(head) else None


def _is_binary(head: bytes) -> bool:
    """Zeros that are not UTF-16's or UTF-32's, or more control characters than text has."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or detect_encoding(head).startswith("utf-32"):
        return False
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if even + odd:
        few, many = sorted((even, odd))
        return few > 0.05 * many or many < 0.2 * len(head)
    controls = sum(head.count(bytes([code])) for code in range(32) if code not in (9, 10, 12, 13))
    return controls > 0.01 * len(head)
