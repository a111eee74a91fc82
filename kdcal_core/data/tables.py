"""The door for tables: a file or a frame becomes a checked Table with its digest.

Tables of any length are read block by block, in memory that does not grow with them.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from kdcal_core.data.arrow_tables import (
    SMALLER,
    check_claims,
    check_column_names,
    check_column_types,
    check_size,
    decoded_bytes,
    named_parquet_faults,
    read_parquet,
    repeating,
    to_frame,
)
from kdcal_core.data.csv_tables import (
    CsvFormat,
    CsvSource,
    convert_options,
    csv_error,
    detect_encoding,
    parse_options,
    read_csv,
    read_form,
    read_options,
    refuse_fault,
)
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.list_columns import (
    columns_to_look_into,
    stored_columns,
    widths_of_lists,
    with_entries,
)
from kdcal_core.data.schema import Table
from kdcal_core.data.written_numbers import almost_numbers_note, amounts_in
from kdcal_core.errors import InputError
from kdcal_core.quotas import TABLE
from kdcal_core.text import bytes_text

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
    source: str | Path | IO[bytes], *, name: str | None = None, max_bytes: int | None = None
) -> Table:
    """Read a CSV or Parquet file; which of the two follows from its content.

    Separator (comma, semicolon, tab, pipe), decimal comma, encoding (UTF-8, UTF-16,
    UTF-32, Windows-1252) and header of a CSV file are detected, and what was decided stands in the
    table's notes. Empty cells, ``NA``, ``N/A``, ``NaN``, ``null`` and ``<NA>`` are missing.

    Parameters
    ----------
    source : path or binary file object
        A file object must be able to seek; it is read from its start and left open.
    name : str, optional
        The file's name for errors and records, where ``source`` does not know it.
    max_bytes : int, optional
        Greatest size in memory, judged before the rows are read; by default
        `kdcal_core.quotas.TABLE`.

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
        head = read_head(stream)
        stream.seek(0)
        is_parquet = head.startswith(b"PAR1")
        size, digest, n_quotes = _scan(stream, quotes=not is_parquet)
        if not head.strip():
            raise InputError("The file is empty", fix="Choose another file.", file=file)
        _check_size_on_disk(size, max_bytes, file)
        stream.seek(0)
        if is_parquet:
            frame, notes = read_parquet(stream, file, max_bytes)
        else:
            refuse_foreign(head, file)
            again = (
                partial(_open, source) if isinstance(source, str | Path) else partial(_view, stream)
            )
            csv = CsvSource(stream, again, head, size, n_quotes)
            frame, notes = read_csv(csv, file, max_bytes)
    return Table(frame, digest, file, notes)


def table_from_frame(frame: Any, name: str = "table") -> Table:
    """A table of a frame in memory, without its index; the digest is that of its Arrow form.

    The frame may be of pandas, polars, pyarrow or any other library that narwhals knows.

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
    frame = as_pandas(frame)
    named = frame.set_axis([str(column) for column in frame.columns], axis=1)
    check_column_names(list(named.columns), name)
    if named.empty:
        raise InputError("The table has no rows", fix="Give at least one row.", file=name)
    arrow = _to_arrow(named.reset_index(drop=True), name)
    check_column_types(arrow.schema, name, lists=True)
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
    """A file that keeps only the digest of what is written to it."""

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


def _scan(stream: pa.NativeFile, *, quotes: bool) -> tuple[int, str, int]:
    """Size, SHA-256 and, if asked, number of quotation marks, in one pass."""
    sha, size, n_quotes = hashlib.sha256(), 0, 0
    while chunk := stream.read(_CHUNK):
        sha.update(chunk)
        size += len(chunk)
        n_quotes += chunk.count(b'"') if quotes else 0
    return size, sha.hexdigest(), n_quotes


def read_head(stream: pa.NativeFile) -> bytes:
    """The first bytes of a file: enough to recognise what it is and how it is written."""
    stream.seek(0)
    return bytes(stream.read(_HEAD))


def _check_size_on_disk(size: int, max_bytes: int | None, file: str) -> None:
    if max_bytes is None:
        TABLE.refuse_beyond(size, "The file", fix=SMALLER, file=file)
    elif size > max_bytes:
        raise InputError(
            f"The file has {bytes_text(size)}; the limit is {bytes_text(max_bytes)}",
            fix=SMALLER,
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


_PARQUET_ROWS = 50_000
_FIRST_ROWS = 1_000
_BLOCK_BYTES = 1 << 30  # of text in one block
_BUFFER = 1 << 20
_CONVERSION = re.compile(r"In CSV column #(\d+):.*?conversion error to ([a-z0-9]+)")
# Arrow's own order: what a column is read as next where a value further down is not of its kind.
_KINDS = (
    pa.null(),
    pa.int64(),
    pa.bool_(),
    pa.date32(),
    pa.time32("s"),
    pa.timestamp("s"),
    pa.timestamp("ns"),
    pa.float64(),
    pa.string(),
)


class TableBlocks:
    """A CSV or Parquet table that is read block by block.

    Values are those of :func:`kdcal_core.data.read_table`: the type of a CSV file's column is
    that of all its rows, so the file is read twice.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        The file's name, for errors.

    Attributes
    ----------
    names : tuple of str
        The columns. Untrusted text.
    notes : dict of str to str
        By column, what :meth:`read` has noted so far about text whose values read as numbers.
        Untrusted.

    Raises
    ------
    InputError
        The file is missing, empty, no table, or has faulty column names.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.csv"
    ...     _ = path.write_text("a,b,c\\n1,x,2\\n3,y,4\\n")
    ...     table = TableBlocks(path)
    ...     print(table.names, [block["c"].tolist() for block in table.read(["c", "a"])])
    ('a', 'b', 'c') [[2, 4]]
    """

    def __init__(self, path: str | Path, *, name: str | None = None) -> None:
        self._path = Path(path)
        self.notes: dict[str, str] = {}
        self.file = name or self._path.name
        if not self._path.is_file():
            raise InputError("There is no such file", fix="Check its path.", file=self.file)
        with pa.OSFile(str(self._path)) as stream:
            head = read_head(stream)
        if not head.strip():
            raise InputError("The file is empty", fix="Choose another file.", file=self.file)
        self._csv: _Csv | None = None
        if head.startswith(b"PAR1"):
            with named_parquet_faults(self.file):
                metadata = pq.read_metadata(self._path)
                schema = metadata.schema.to_arrow_schema()
            check_column_names(schema.names, self.file)
            check_column_types(schema, self.file, lists=True)
            check_claims(metadata, self._path.stat().st_size, self.file)
            self._stored = tuple(str(name) for name in schema.names)
            looked = columns_to_look_into(schema)
        else:
            refuse_foreign(head, self.file)
            with self._path.open("rb") as stream:
                form, encoding = read_form(stream, head, self._path.stat().st_size, self.file)
            self._csv = _Csv(self._path, self.file, form, encoding)
            self._stored = form.names
            looked = list(form.names) if b"[" in head else []
        self._widths = self._widths_in(looked)
        self.names = with_entries(self._stored, self._widths)

    @property
    def n_rows(self) -> int:
        """Rows of the table; 0 while those of a CSV file have not been counted by `read`."""
        if self._csv is not None:
            return self._csv.n_rows
        with named_parquet_faults(self.file):
            return int(pq.read_metadata(self._path).num_rows)

    def read(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The rows of these columns in their order, block by block.

        Raises
        ------
        InputError
            A column is missing, a row has another number of fields, or the file is damaged.
        """
        for column in columns:
            if column not in self.names:
                raise InputError(
                    "The table has no such column",
                    fix="Name its columns as they were when the calibrator was fitted.",
                    file=self.file,
                    column=column,
                )
        wanted = list(columns)
        stored = stored_columns(wanted, self._widths)
        batches = self._parquet(stored) if self._csv is None else self._csv.batches(stored)
        before = 0
        for batch in batches:
            if batch.num_rows:
                self._note(batch, before)
                table = pa.Table.from_batches([batch])
                frame, _ = to_frame(table, self.file, self._widths, before)
                before += batch.num_rows
                yield frame[wanted]

    def _widths_in(self, looked: list[str]) -> dict[str, int]:
        """The columns of lists among these, by the first rows."""
        batches = iter(()) if not looked else self._first(looked)
        first = next(batches, None)
        return {} if first is None else widths_of_lists(pa.Table.from_batches([first]))

    def _first(self, stored: list[str]) -> Iterator[pa.RecordBatch]:
        """The first rows, their types as these rows alone have them."""
        if self._csv is not None:
            return self._csv.first(stored)
        return self._parquet(stored, _FIRST_ROWS)

    def _note(self, batch: pa.RecordBatch, before: int) -> None:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name not in (*self.notes, *self._widths) and pa.types.is_string(column.type):
                text = pa.chunked_array([column])
                read = amounts_in(text, name)
                note = read[1] if read else almost_numbers_note(text, name, before)
                self.notes |= {name: note} if note else {}

    def head(self) -> pd.DataFrame:
        """The first rows of all columns, their types as these rows alone have them."""
        first = next(self._first(list(self._stored)), None)
        if first is None:
            raise InputError("The table has no rows", fix="Give at least one row.", file=self.file)
        frame, _ = to_frame(pa.Table.from_batches([first]), self.file, self._widths)
        return frame

    def _parquet(self, columns: list[str], rows: int = _PARQUET_ROWS) -> Iterator[pa.RecordBatch]:
        with named_parquet_faults(self.file):
            plain = pq.read_schema(self._path)
            text = repeating(plain)  # of which a block may repeat a long one in every row
            with pq.ParquetFile(
                self._path, buffer_size=_BUFFER, pre_buffer=False, read_dictionary=text
            ) as file:
                widened = _with_gaps(file.metadata, plain, columns)
                for batch in file.iter_batches(rows, columns=columns):
                    self._check_block(batch)
                    fields = [plain.field(f.name) for f in batch.schema]
                    yield batch.cast(
                        pa.schema(
                            [
                                pa.field(f.name, pa.float64()) if f.name in widened else f
                                for f in fields
                            ]
                        ),
                        safe=False,
                    )

    def _check_block(self, batch: pa.RecordBatch) -> None:
        decoded = sum(decoded_bytes(pa.chunked_array([column])) for column in batch.columns)
        check_size(decoded, self.file, _BLOCK_BYTES)


@dataclass
class _Csv:
    path: Path
    file: str
    form: CsvFormat
    encoding: str
    n_rows: int = 0

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows under types that hold for all of them."""
        types = self._types(columns)
        if self._n_quotes() % 2:
            self._refuse_fault()
        with self._named_faults():
            yield from self._reader(columns, types)

    def _n_quotes(self) -> int:
        with self.path.open("rb") as stream:
            return sum(chunk.count(b'"') for chunk in iter(partial(stream.read, _BUFFER), b""))

    def _refuse_fault(self) -> None:
        with self.path.open("rb") as stream:
            refuse_fault(stream, self.encoding, self.form, self.file)

    def first(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows under types that hold for the first of them."""
        with self._named_faults():
            yield from self._reader(columns, {})

    def _types(self, columns: list[str]) -> dict[str, pa.DataType]:
        """The type of each column over the whole file; integers with gaps are fractions."""
        types: dict[str, pa.DataType] = {}
        while True:
            try:
                reader = self._reader(columns, types)
                types = {f.name: f.type for f in reader.schema}
                if self.encoding == "utf-8" and any(map(pa.types.is_binary, types.values())):
                    raise pa.ArrowInvalid("invalid UTF8 data")
                gaps = {f.name for f in reader.schema if pa.types.is_null(f.type)}
                n_rows = 0
                for batch in reader:
                    n_rows += batch.num_rows
                    gaps |= {
                        name
                        for name, column in zip(types, batch.columns, strict=True)
                        if column.null_count
                    }
            except pa.ArrowInvalid as error:
                types = self._loosened(error, types)
                continue
            self.n_rows = n_rows
            whole = {name for name in gaps if types[name] == pa.int64()}
            return {**types, **dict.fromkeys(whole, pa.float64())}

    def _loosened(
        self, error: pa.ArrowInvalid, types: dict[str, pa.DataType]
    ) -> dict[str, pa.DataType]:
        """Wider types, after a value that does not fit its column's type."""
        if "UTF8" in str(error) and self.encoding == "utf-8":
            # the first bytes were UTF-8, later ones are not
            self.encoding = "cp1252"
            return {}
        found = _CONVERSION.search(str(error))
        name = self.form.names[int(found[1])] if found else ""
        kind = types.get(name)
        if kind not in _KINDS[:-1]:
            raise csv_error(error, self.form, self.file) from error
        return {**types, name: _KINDS[_KINDS.index(kind) + 1]}

    def _reader(self, columns: list[str], types: dict[str, pa.DataType]) -> Any:
        with self._named_faults():
            return pa_csv.open_csv(
                self._stream(),
                read_options=read_options(self.form, threads=False),
                parse_options=parse_options(self.form, has_quotes=True),
                convert_options=convert_options(
                    self.form, include_columns=columns, column_types=types
                ),
            )

    def _stream(self) -> pa.NativeFile:
        if self.encoding == "utf-8":
            return pa.OSFile(str(self.path))
        recoded = codecs.EncodedFile(self.path.open("rb"), "utf-8", self.encoding, "replace")
        return pa.PythonFile(recoded, "r")

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            if _CONVERSION.search(str(error)) or "UTF8" in str(error):
                raise
            if "Expected" not in str(error):
                self._refuse_fault()
            raise csv_error(error, self.form, self.file) from error


def _with_gaps(metadata: Any, schema: pa.Schema, columns: Sequence[str]) -> set[str]:
    """Columns of integers in which a value is missing somewhere: all blocks become fractions."""
    numbers = {name for name in columns if pa.types.is_integer(schema.field(name).type)}
    gaps = set()
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema in numbers:
                known = column.statistics
                if known is None or not known.has_null_count or known.null_count:
                    gaps.add(column.path_in_schema)
    return gaps
