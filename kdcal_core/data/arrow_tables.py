"""Parquet files and Arrow columns to a pandas frame of a few plain types.

Columns of text whose values read as numbers are named, with the ways they are written in.

A column of equal values takes a few bytes, however many rows it has, and a dictionary holds a long
text of every row once. So no file may unpack to more than a thousand times its size and a gigabyte:
ordinary tables unpack to 1 to 25 times, sparse ones to some hundred times, and sorted or constant
columns of millions of rows to any multiple, but not to gigabytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kdcal_core.data.folder_parts import note_parts
from kdcal_core.data.list_columns import (
    entries_of,
    entry_names,
    is_text_type,
    may_hold_lists,
    note_on_entries,
    widths_of_lists,
    with_entries,
)
from kdcal_core.data.written_numbers import almost_numbers_note, amounts_in
from kdcal_core.errors import InputError
from kdcal_core.quotas import COLUMNS, ROWS, TABLE
from kdcal_core.store import claims
from kdcal_core.store.claims import check_ratio
from kdcal_core.text import bytes_text, listed

_INDEX_COLUMN = re.compile(r"__index_level_\d+__")


@contextmanager
def named_parquet_faults(file: str | None) -> Iterator[None]:
    """Turn what pyarrow raises for a damaged file into one error that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "The Parquet file is damaged or cut short", fix="Export or copy it again.", file=file
        ) from error


def check_column_names(names: Sequence[str], file: str | None) -> None:
    """Refuse blank and duplicated names, and more columns than a table may have."""
    check_width(len(names), file)
    blank = [position for position, name in enumerate(names, start=1) if not name.strip()]
    if blank:
        raise InputError(
            f"Column {blank[0]} has no name",
            fix="Give every column a name (pandas leaves the first blank unless the table is "
            "saved with index=False).",
            file=file,
        )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"Column names appear more than once: {listed(map(repr, twice))}",
            fix="Rename the columns so that every name is used once.",
            file=file,
            column=twice[0],
        )


def check_width(n_columns: int, file: str | None) -> None:
    """Refuse more columns than a table may have."""
    COLUMNS.refuse_beyond(
        n_columns, "The table", fix="Keep only the columns that the review needs.", file=file
    )


def check_length(n_rows: int, file: str | None) -> None:
    """Refuse more rows than a table may have that is read as a whole."""
    ROWS.refuse_beyond(n_rows, "The table", fix="Keep fewer rows.", file=file)


def check_column_types(schema: pa.Schema, file: str | None, *, lists: bool = False) -> None:
    """Refuse columns that hold lists or records instead of one value a row.

    With ``lists`` those of numbers may be there, which `to_frame` reads as several columns.
    """
    for field in schema:
        kind = _plain_type(field.type)
        # pyarrow counts run ends among nested types from version 26 on
        nested = pa.types.is_nested(kind) or pa.types.is_run_end_encoded(kind)
        if nested and not (lists and may_hold_lists(kind)):
            raise InputError(
                f"The column holds {field.type}, not one value a row",
                fix="Split it into one column for each value, or leave it out.",
                file=file,
                column=field.name,
            )


def to_frame(
    table: pa.Table,
    file: str | None,
    widths: Mapping[str, int] | None = None,
    before: int = 0,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame (int64, float64, bool, str, category or datetime columns) and its notes.

    ``widths`` are those of the columns of lists, by default as `widths_of_lists` finds them; each
    becomes a column for each number. ``before`` is the number of rows of the file before these.

    Integers with missing values become floats with NaN, truth values with missing ones pandas'
    nullable booleans; decimals become floats, dates timestamps, times of day text and durations
    integers in their unit. Stored pandas indices are dropped.
    """
    index = [name for name in table.column_names if _INDEX_COLUMN.fullmatch(name)]
    table = table.drop_columns(index)
    widths = widths_of_lists(table, before, file) if widths is None else widths
    listed_in = {name: width for name, width in widths.items() if name in table.column_names}
    if listed_in:
        check_column_names(with_entries(table.column_names, listed_in), file)
        check_size(sum(listed_in.values()) * table.num_rows * 8, file or "The table")
    columns: dict[str, pa.ChunkedArray] = {}
    amounts: dict[str, str] = {}
    for name in table.column_names:
        if (width := listed_in.get(name)) is None:
            columns[name] = _plain_column(table[name], name, file)
            if found := _amounts(columns[name], name):
                columns[name], amounts[name] = found
        else:
            values = entries_of(table[name], name, width, file=file, before=before)
            each = (pa.chunked_array([one]) for one in values.T)
            columns |= dict(zip(entry_names(name, width), each, strict=True))
    plain = pa.table(columns) if columns else table
    frame = plain.to_pandas(ignore_metadata=True, date_as_object=False, split_blocks=True)
    for name in plain.column_names:
        if pa.types.is_boolean(plain[name].type) and plain[name].null_count:
            frame[name] = frame[name].astype("boolean")
    notes = [f"A stored row index ({name}) was left out." for name in index]
    notes += [note_on_entries(name, width) for name, width in listed_in.items()]
    for name in plain.column_names:
        note = amounts.get(name) or _text_note(plain[name], name)
        notes += [note] if note else []
    return frame, tuple(notes)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _plain_column(column: pa.ChunkedArray, name: str, file: str | None) -> pa.ChunkedArray:
    types = pa.types
    kind = _plain_type(column.type)
    if kind != column.type:
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], type=kind)
    if types.is_string_view(kind):
        return column.cast(pa.large_string())
    if types.is_dictionary(kind) and types.is_string_view(kind.value_type):
        return column.cast(pa.dictionary(kind.index_type, pa.large_string()))
    if types.is_dictionary(kind) and not is_text_type(kind.value_type):
        column = column.cast(kind.value_type)
        kind = column.type
    if types.is_integer(kind):
        return _plain_integers(column)
    if types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return column.cast(pa.float64())
    if types.is_time(kind):
        return column.cast(pa.string())
    if types.is_duration(kind):
        return _plain_integers(column.cast(pa.int64()))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _decoded(column, name, file)
    return column


def _plain_integers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.null_count:
        return column.cast(pa.float64(), safe=False)
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:  # unsigned integers above the range
        return column.cast(pa.float64(), safe=False)


def _decoded(column: pa.ChunkedArray, name: str, file: str | None) -> pa.ChunkedArray:
    try:
        return column.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid as error:
        raise InputError(
            "The column holds raw bytes, not text or numbers",
            fix="Leave it out of the table.",
            file=file,
            column=name,
        ) from error


def _amounts(column: pa.ChunkedArray, name: str) -> tuple[pa.ChunkedArray, str] | None:
    """The column and a note as of `amounts_in`; dictionaries are decoded if they hold amounts."""
    if pa.types.is_dictionary(column.type):
        different = pa.chunked_array([pc.unique(column).cast(column.type.value_type)])
        if amounts_in(different, name) is None:
            return None
        column = column.cast(column.type.value_type)
    return amounts_in(column, name) if is_text_type(column.type) else None


def _text_note(column: pa.ChunkedArray, name: str) -> str | None:
    """A note on a column that was meant to be numeric and is not, and on what prevents it."""
    if pa.types.is_dictionary(column.type):
        values = pc.unique(column).cast(column.type.value_type)  # decoded once a value
    else:
        values = column
    if not is_text_type(values.type):
        return None
    if not pa.types.is_dictionary(column.type) and (note := almost_numbers_note(values, name)):
        return note
    marks = pc.equal(values, "?")
    if not pc.any(marks).as_py():
        return None
    others = pc.unique(values.filter(pc.invert(marks)).drop_null())
    try:
        pc.cast(others, pa.float64())
    except pa.ArrowInvalid:
        return None
    return (
        f"Column {name!r} would be numeric but for the value '?', which is kept as text; "
        "save such values as empty cells if they mean missing."
    )


MOST_RATIO = 1000
FREE_BYTES = 1 << 30  # of a table; it takes some four times that while it is read
_CELL_BYTES = 64  # of it on average: numbers and labels, not long texts


def read_parquet(
    source: pa.NativeFile, file: str, max_bytes: int | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame and its notes.

    Raises
    ------
    InputError
        For a damaged file, columns that cannot be a table's, no rows, or a table that would
        take more than ``max_bytes`` in memory.
    """
    try:
        parquet = pq.ParquetFile(source)
        schema = parquet.schema_arrow
        check_column_names(schema.names, file)
        check_column_types(schema, file, lists=True)
        check_length(parquet.metadata.num_rows, file)
        check_size(stated_bytes(parquet.metadata), file, max_bytes)
        check_claims(parquet.metadata, source.size(), file)
        frame, notes = to_frame(_read(source, parquet, max_bytes, file), file)
        note_parts(frame, schema.metadata)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            "The Parquet file is damaged or cut short",
            fix="Export or copy the file again.",
            file=file,
        ) from error
    return frame, ("Read as Parquet.", *notes)


def check_claims(metadata: pq.FileMetaData, stored: int, file: str) -> None:
    """Refuse a file without rows, or one that unpacks to too many times its ``stored`` bytes."""
    n_rows, n_columns = metadata.num_rows, metadata.num_columns
    if n_rows < 1 or n_columns < 1:
        raise InputError("The table has no rows", fix="Give at least one row.", file=file)
    free = _free(n_rows * n_columns)
    check_ratio(stored, stated_bytes(metadata), MOST_RATIO, free=free, file=file)


def stated_bytes(metadata: pq.FileMetaData) -> int:
    """What the table takes in memory at least, as its file states."""
    groups = range(metadata.num_row_groups)
    stated = sum(metadata.row_group(group).total_byte_size for group in groups)
    return int(max(stated, metadata.num_rows * metadata.num_columns * 8))


def _free(n_cells: int) -> int:
    """How much a table of so many cells may unpack to, however small its file is."""
    return max(claims.FREE_BYTES, min(FREE_BYTES, n_cells * _CELL_BYTES))


SMALLER = "Keep fewer rows or only the columns that the review needs."


def check_size(n_bytes: int, file: str, max_bytes: int | None = None) -> None:
    """Refuse a table that would take more memory than it may, by default `TABLE`."""
    if max_bytes is None:
        TABLE.refuse_beyond(
            n_bytes, "The table", verb="would take", where=" in memory", fix=SMALLER, file=file
        )
    elif n_bytes > max_bytes:
        raise InputError(
            f"The table would take {bytes_text(n_bytes)} in memory; "
            f"the limit is {bytes_text(max_bytes)}",
            fix=SMALLER,
            file=file,
        )


def _read(
    source: pa.NativeFile, parquet: pq.ParquetFile, max_bytes: int | None, file: str
) -> pa.Table:
    """Read text as dictionaries first: a few bytes on disk may stand for a huge text per row."""
    text = repeating(parquet.schema_arrow)
    source.seek(0)
    table = pq.ParquetFile(source, read_dictionary=text).read()
    table.validate(full=True)  # a damaged file may hold text that is no UTF-8
    decoded = sum(decoded_bytes(table[name]) for name in text if name in table.column_names)
    check_size(table.nbytes + decoded, file, max_bytes)
    free = _free(table.num_rows * table.num_columns)
    check_ratio(source.size(), table.nbytes + decoded, MOST_RATIO, free=free, file=file)
    return table.cast(parquet.schema_arrow) if text else table


def repeating(schema: pa.Schema) -> list[str]:
    """Columns of text, whose values a file may hold once for many rows."""
    return [field.name for field in schema if _may_repeat(field.type)]


def _may_repeat(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def decoded_bytes(column: pa.ChunkedArray) -> int:
    """What a column of dictionaries takes as plain text."""
    total = 0
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            lengths = pc.binary_length(chunk.dictionary).cast(pa.int64())
            total += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    return total
