"""From Arrow columns to a pandas frame of few, plain types."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from kdcal_core.data.almost_numbers import almost_numbers_note
from kdcal_core.errors import InputError
from kdcal_core.text import listed

MAX_COLUMNS = 20_000
_INDEX_COLUMN = re.compile(r"__index_level_\d+__")


def check_column_names(names: Sequence[str], file: str | None) -> None:
    """Refuse blank and duplicated names, and more columns than a table may have."""
    if len(names) > MAX_COLUMNS:
        raise too_wide(len(names), file)
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


def too_wide(n_columns: int, file: str | None) -> InputError:
    """The table has more columns than it may have."""
    return InputError(
        f"The table has {n_columns:,} columns; at most {MAX_COLUMNS:,} can be read",
        fix="Keep only the columns the review needs.",
        file=file,
    )


def check_column_types(schema: pa.Schema, file: str | None) -> None:
    """Refuse columns that hold lists or records instead of one value a row."""
    for field in schema:
        if pa.types.is_nested(_plain_type(field.type)):
            raise InputError(
                f"The column holds {field.type}, not one value a row",
                fix="Split it into one column for each value, or leave it out.",
                file=file,
                column=field.name,
            )


def to_frame(table: pa.Table, file: str | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame (int64, float64, bool, str, category or datetime columns) and its notes.

    Integers with missing values become floats with NaN, truth values with missing ones pandas'
    nullable booleans; decimals become floats, dates timestamps, times of day text and durations
    integers in their unit. Stored pandas indices are dropped.
    """
    index = [name for name in table.column_names if _INDEX_COLUMN.fullmatch(name)]
    table = table.drop_columns(index)
    columns = {name: _plain_column(table[name], name, file) for name in table.column_names}
    plain = pa.table(columns) if columns else table
    frame = plain.to_pandas(ignore_metadata=True, date_as_object=False, split_blocks=True)
    for name in plain.column_names:
        if pa.types.is_boolean(plain[name].type) and plain[name].null_count:
            frame[name] = frame[name].astype("boolean")
    notes = [f"A stored row index ({name}) was left out." for name in index]
    notes += [note for name in table.column_names if (note := _text_note(plain[name], name))]
    return frame, tuple(notes)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _plain_column(column: pa.ChunkedArray, name: str, file: str | None) -> pa.ChunkedArray:
    types = pa.types
    kind = _plain_type(column.type)
    if kind != column.type:
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], type=kind)
    if types.is_dictionary(kind) and not _is_text(kind.value_type):
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


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


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


def _text_note(column: pa.ChunkedArray, name: str) -> str | None:
    """Say so where a column was meant to be numeric and is not, and what keeps it from it."""
    if pa.types.is_dictionary(column.type):
        values = pc.unique(column).cast(column.type.value_type)  # decoded once a value
    else:
        values = column
    if not _is_text(values.type):
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
