"""Reading a CSV file with a detected format."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from kdcal_core.data.arrow_tables import (
    MAX_COLUMNS,
    check_column_names,
    check_size,
    to_frame,
    too_wide,
)
from kdcal_core.data.csv_format import (
    MISSING,
    ROW_BYTES,
    CsvFormat,
    decode_text,
    detect_encoding,
    detect_format,
    find_fault,
    header_width,
    wrong_width,
)
from kdcal_core.errors import InputError

_BLOCK = ROW_BYTES  # Arrow takes no row that is longer
_WORDS = {"\t": "tab", ";": "semicolon", "|": "pipe", ",": "comma"}
_ENCODINGS = {
    "utf-16-le": "The text is UTF-16.",
    "utf-16-be": "The text is UTF-16.",
    "utf-32-le": "The text is UTF-32.",
    "utf-32-be": "The text is UTF-32.",
    "cp1252": "The text is not UTF-8; it was read as Windows-1252. Check accented letters.",
}


@dataclass(frozen=True)
class CsvSource:
    """An open file and what a first pass over it found.

    ``again`` opens it again: after an error Arrow's threads go on reading what they were given, so
    that nobody else may read that. ``head`` holds its first bytes, ``size`` the number of all of
    them, and ``n_quotes`` how many quotation marks there are: where there is one, a field may hold
    a line break.
    """

    stream: pa.NativeFile
    again: Callable[[], pa.NativeFile]
    head: bytes
    size: int
    n_quotes: int


def read_csv(source: CsvSource, file: str, max_bytes: int) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The frame and its notes.

    Raises
    ------
    InputError
        For a table without rows, faulty column names, rows of unequal length (the row is
        named), an open quotation mark, or a table beyond ``max_bytes``.
    """
    form, encoding = read_form(source.stream, source.head, source.size, file)
    text = decode_text(source.head, encoding)
    cells = source.size * max(text.count(form.separator) + text.count("\n"), 1) / len(source.head)
    check_size(max(source.size, int(cells) * 8), file, max_bytes)
    try:
        table = _parse(source, encoding, form)
        if encoding == "utf-8" and any(pa.types.is_binary(kind) for kind in table.schema.types):
            # The first bytes were UTF-8, later ones are not.
            encoding = "cp1252"
            table = _parse(source, encoding, form)
        if source.n_quotes % 2:
            refuse_fault(source.stream, encoding, form, file)
        frame, notes = to_frame(table, file)
    except pa.ArrowException as error:
        if "Expected" not in str(error):
            refuse_fault(source.stream, encoding, form, file)
        raise csv_error(error, form, file) from error
    if table.num_rows == 0:
        raise _no_rows(file)
    return frame, (*_notes(form, encoding), *notes)


def read_form(stream: Any, head: bytes, size: int, file: str) -> tuple[CsvFormat, str]:
    """How a CSV file is written, and its encoding.

    Parameters
    ----------
    stream : binary file object
        The file, which is looked into where its first rows do not end within ``head``.
    head : bytes
        Its first bytes.
    size : int
        How many bytes it has.

    Raises
    ------
    InputError
        Faulty column names, no rows, or a first row that is too long.
    """
    encoding = detect_encoding(head)
    complete = len(head) >= size
    form = detect_format(decode_text(head, encoding), complete=complete)
    if form.n_sampled == 0 and not complete:
        # the names may be cut off with the line that holds them
        width = header_width(stream, encoding, form.separator)
        if width > MAX_COLUMNS:
            raise too_wide(width, file)
        stream.seek(0)
        head = bytes(stream.read(2 * ROW_BYTES))
        complete = len(head) >= size
        form = detect_format(decode_text(head, encoding), complete=complete)
    if form.n_sampled == 0 and len(form.names) <= MAX_COLUMNS:
        refuse_fault(stream, encoding, form, file)
    check_column_names(form.names, file)
    if form.n_sampled == 0:
        raise _no_rows(file)
    return form, encoding


def refuse_fault(stream: Any, encoding: str, form: CsvFormat, file: str) -> None:
    """Name the row and the column where the file cannot be read, where there is such a place.

    Arrow takes a quotation mark that is never closed for a field that holds the rest of the file,
    so this is asked wherever the number of quotation marks is odd.
    """
    fault = find_fault(stream, encoding, form, file)
    if fault is not None:
        raise fault


def _no_rows(file: str) -> InputError:
    return InputError(
        "The file has a header but no rows", fix="Give at least one row of data.", file=file
    )


def _parse(source: CsvSource, encoding: str, form: CsvFormat) -> pa.Table:
    arguments = {
        "parse_options": parse_options(form, source.n_quotes > 0),
        "convert_options": convert_options(form),
    }
    try:
        return pa_csv.read_csv(
            _stream(source, encoding), read_options=read_options(form, threads=True), **arguments
        )
    except pa.ArrowInvalid as error:
        if "Expected" not in str(error):
            raise
    # Only the reader with one thread counts rows.
    return pa_csv.read_csv(
        _stream(source, encoding), read_options=read_options(form, threads=False), **arguments
    )


def parse_options(form: CsvFormat, has_quotes: bool) -> pa_csv.ParseOptions:
    """How Arrow cuts the file into fields."""
    return pa_csv.ParseOptions(delimiter=form.separator, newlines_in_values=has_quotes)


def convert_options(form: CsvFormat, **more: Any) -> pa_csv.ConvertOptions:
    """How Arrow turns fields into values."""
    return pa_csv.ConvertOptions(
        null_values=list(MISSING), strings_can_be_null=True, decimal_point=form.decimal, **more
    )


def read_options(form: CsvFormat, *, threads: bool) -> pa_csv.ReadOptions:
    """Where Arrow begins, what the columns are called, and how much it takes at once."""
    return pa_csv.ReadOptions(
        column_names=list(form.names),
        skip_rows=form.skipped_lines,
        use_threads=threads,
        block_size=_BLOCK,
    )


def _stream(source: CsvSource, encoding: str) -> pa.NativeFile:
    if encoding == "utf-8":
        return source.again()
    source.stream.seek(0)
    content = decode_text(source.stream.read(), encoding)
    return pa.BufferReader(content.encode("utf-8", "replace"))


def csv_error(error: pa.ArrowException, form: CsvFormat, file: str) -> InputError:
    """Arrow's complaint about a CSV file in the user's words, with the row where it tells it."""
    message = str(error)
    row = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    if row:
        number, expected, got = map(int, row.groups())
        # Arrow counts the lines before the first row as well
        return wrong_width(got, expected, file, number - form.skipped_lines)
    return InputError(
        "The file cannot be read as a CSV table; a quotation mark may be left open",
        fix="Open it in a spreadsheet and save it again as CSV (UTF-8).",
        file=file,
    )


def _notes(form: CsvFormat, encoding: str) -> tuple[str, ...]:
    notes = [f"Read as CSV with {_WORDS[form.separator]} separators."]
    if form.decimal == ",":
        notes.append("Decimal commas were read as decimal points.")
    if encoding in _ENCODINGS:
        notes.append(_ENCODINGS[encoding])
    if not form.has_header:
        notes.append("The file has no header; its columns are named column_1, column_2, ...")
    return tuple(notes)
