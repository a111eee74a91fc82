"""Tables of any length read block by block, in memory that does not grow with them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from kdcal_core.data.arrow_tables import (
    almost_numbers_note,
    check_claims,
    check_column_names,
    check_column_types,
    check_size,
    decoded_bytes,
    repeating,
    to_frame,
)
from kdcal_core.data.csv_format import CsvFormat
from kdcal_core.data.csv_tables import (
    convert_options,
    csv_error,
    parse_options,
    read_form,
    read_options,
    refuse_fault,
)
from kdcal_core.data.tables import read_head, refuse_foreign
from kdcal_core.errors import InputError

_PARQUET_ROWS = 50_000
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
        By column, what :meth:`read` saw so far of text whose values read as numbers. Untrusted.

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
            with _telling_parquet(self.file):
                metadata = pq.read_metadata(self._path)
                schema = metadata.schema.to_arrow_schema()
            check_column_names(schema.names, self.file)
            check_column_types(schema, self.file)
            check_claims(metadata, self._path.stat().st_size, self.file)
            self.names = tuple(str(name) for name in schema.names)
        else:
            refuse_foreign(head, self.file)
            with self._path.open("rb") as stream:
                form, encoding = read_form(stream, head, self._path.stat().st_size, self.file)
            self._csv = _Csv(self._path, self.file, form, encoding)
            self.names = form.names

    @property
    def n_rows(self) -> int:
        """Rows of the table; 0 while those of a CSV file have not been counted by `read`."""
        if self._csv is not None:
            return self._csv.n_rows
        with _telling_parquet(self.file):
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
        batches = self._parquet(wanted) if self._csv is None else self._csv.batches(wanted)
        before = 0
        for batch in batches:
            if batch.num_rows:
                self._note(batch, before)
                before += batch.num_rows
                frame, _ = to_frame(pa.Table.from_batches([batch]), self.file)
                yield frame[wanted]

    def _note(self, batch: pa.RecordBatch, before: int) -> None:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name not in self.notes and pa.types.is_string(column.type):
                note = almost_numbers_note(pa.chunked_array([column]), name, before)
                self.notes |= {name: note} if note else {}

    def head(self) -> pd.DataFrame:
        """The first rows of all columns, their types as these rows alone have them."""
        if self._csv is None:
            batches = self._parquet(list(self.names))
        else:
            batches = self._csv.first(list(self.names))
        first = next(batches, None)
        if first is None:
            raise InputError("The table has no rows", fix="Give at least one row.", file=self.file)
        frame, _ = to_frame(pa.Table.from_batches([first]), self.file)
        return frame

    def _parquet(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with _telling_parquet(self.file):
            plain = pq.read_schema(self._path)
            text = repeating(plain)  # of which a block may repeat a long one in every row
            with pq.ParquetFile(
                self._path, buffer_size=_BUFFER, pre_buffer=False, read_dictionary=text
            ) as file:
                widened = _with_gaps(file.metadata, plain, columns)
                for batch in file.iter_batches(_PARQUET_ROWS, columns=columns):
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
        with self._told():
            yield from self._reader(columns, types)

    def _n_quotes(self) -> int:
        with self.path.open("rb") as stream:
            return sum(chunk.count(b'"') for chunk in iter(partial(stream.read, _BUFFER), b""))

    def _refuse_fault(self) -> None:
        with self.path.open("rb") as stream:
            refuse_fault(stream, self.encoding, self.form, self.file)

    def first(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows under types that hold for the first of them."""
        with self._told():
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
        """Other types after a value that is not of its column's."""
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
        with self._told():
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
    def _told(self) -> Iterator[None]:
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


@contextmanager
def _telling_parquet(file: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "The Parquet file is damaged or cut short", fix="Export or copy it again.", file=file
        ) from error
