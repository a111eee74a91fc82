"""CSV files: detecting the format from the file's start, reading, and writing.

A fault is searched for only where the reader failed or took the end of the file for one field,
because the search takes a pass over all characters. No cell that is written out is one that a
spreadsheet would run as a formula.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from kdcal_core.data.arrow_tables import (
    check_column_names,
    check_length,
    check_size,
    check_width,
    to_frame,
)
from kdcal_core.errors import InputError
from kdcal_core.text import MINUS, counted

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>")
_SEPARATORS = ("\t", ";", "|", ",")  # a decimal comma makes the comma the last to be tried
_MAX_SAMPLED = 500
_UTF_32_BYTES = 4096  # enough to distinguish it from numbers of four bytes
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class CsvFormat:
    """What was detected.

    Attributes
    ----------
    names : tuple of str
        Column names, generated (``column_1``, ...) where the file has no header.
    skipped_lines : int
        Physical lines before the first row of data.
    n_sampled : int
        Rows of data among the sampled lines; zero means that none of them ends there.
    """

    separator: str
    decimal: str
    has_header: bool
    names: tuple[str, ...]
    skipped_lines: int
    n_sampled: int


def detect_encoding(head: bytes) -> str:
    """``utf-8``, UTF-16 or UTF-32 in either byte order, or else ``cp1252``.

    Examples
    --------
    >>> [detect_encoding("a,b".encode(name)) for name in ("utf-8", "utf-16-be", "utf-32-le")]
    ['utf-8', 'utf-16-be', 'utf-32-le']
    """
    if (found := _utf_32(head)) is not None:
        return found
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    zeros_even, zeros_odd = head[0::2].count(0), head[1::2].count(0)
    half = max(len(head) // 2, 1)
    if zeros_odd > 0.4 * half and zeros_even < 0.05 * half:
        return "utf-16-le"
    if zeros_even > 0.4 * half and zeros_odd < 0.05 * half:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a cut last character is no fault
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _utf_32(head: bytes) -> str | None:
    """UTF-32, in which each character takes four bytes and the highest byte is zero."""
    if head.startswith(codecs.BOM_UTF32_LE):  # before that of UTF-16, with which it begins
        return "utf-32-le"
    if head.startswith(codecs.BOM_UTF32_BE):
        return "utf-32-be"
    whole = head[: min(len(head), _UTF_32_BYTES) // 4 * 4]
    for encoding, highest in (("utf-32-le", 3), ("utf-32-be", 0)):
        if whole and not any(whole[highest::4]):
            try:
                text = whole.decode(encoding)
            except UnicodeDecodeError:
                continue
            if not any(character < " " and character not in "\t\r\n" for character in text):
                return encoding
    return None


def decode_text(content: bytes, encoding: str) -> str:
    """Text without its byte order mark; bytes without a meaning become replacement characters."""
    return content.decode(encoding, "replace").removeprefix("\ufeff")


def detect_format(text: str, *, complete: bool) -> CsvFormat:
    """Read the format off the start of a file.

    Parameters
    ----------
    text : str
        The decoded start.
    complete : bool
        Whether ``text`` is the whole file; otherwise its last line is cut and not looked at.
    """
    separator = _detect_separator(text, complete)
    rows, first_line = _sample(text, separator, complete)
    decimal = _detect_decimal(rows) if separator != "," else "."
    has_header = _detect_header(rows)
    first = rows[0]
    names = [field.strip() for field in first]
    if not has_header:
        names = [f"column_{position}" for position in range(1, len(first) + 1)]
    skipped = first_line[1] if has_header else first_line[0]
    return CsvFormat(
        separator, decimal, has_header, tuple(names), skipped, len(rows) - int(has_header)
    )


def _sample(text: str, separator: str, complete: bool) -> tuple[list[list[str]], tuple[int, int]]:
    """Rows that are not blank, and the physical lines before and after the first of them."""
    csv.field_size_limit(sys.maxsize)  # the text is as long as it is; its fields are no longer
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows: list[list[str]] = []
    first_line = (0, 0)
    before = 0
    for row in reader:
        if row:
            if not rows:
                first_line = (before, reader.line_num)
            rows.append(row)
        before = reader.line_num
        if len(rows) > _MAX_SAMPLED:
            return rows, first_line
    if not complete and len(rows) > 1:
        rows.pop()
    return rows, first_line


def _detect_separator(text: str, complete: bool) -> str:
    """The separator that cuts most rows into as many fields as the first."""
    best, best_share = ",", 0.0
    for separator in _SEPARATORS:
        rows, _ = _sample(text, separator, complete)
        width = len(rows[0]) if rows else 0
        if width < 2:
            continue
        share = sum(len(row) == width for row in rows) / len(rows)
        if share > best_share:
            best, best_share = separator, share
    return best


def _detect_decimal(rows: Sequence[Sequence[str]]) -> str:
    fields = [field.strip() for row in rows for field in row]
    commas = sum(bool(_COMMA.fullmatch(field)) for field in fields)
    points = sum(bool(_POINT.fullmatch(field)) for field in fields)
    return "," if commas > points else "."


def _detect_header(rows: Sequence[Sequence[str]]) -> bool:
    """No header only where the first row is numeric in columns that stay numeric.

    A first row that counts 0, 1, ... or 1, 2, 3, ... is a header: it names classes or nameless
    columns. So is one that does among words, as "0,1,y", where fractions follow.
    """
    first, rest = rows[0], rows[1:]
    starts_numeric = False
    counted: list[str] = []
    fractions = True
    for position, field in enumerate(first):
        below = [row[position].strip() for row in rest if len(row) > position]
        below = [value for value in below if value not in MISSING]
        numeric_below = bool(below) and all(_NUMBER.fullmatch(value) for value in below)
        if _NUMBER.fullmatch(field.strip()):
            starts_numeric = starts_numeric or numeric_below or not below
            counted.append(field)
            fractions = fractions and not all(value.isdecimal() for value in below)
        elif numeric_below and field.strip() not in MISSING:
            return True
    return not starts_numeric or _counts_up(first) or (fractions and _counts_up(counted))


def _counts_up(fields: Sequence[str]) -> bool:
    stripped = [field.strip() for field in fields]
    n = len(stripped)
    from_zero, from_one = [str(i) for i in range(n)], [str(i + 1) for i in range(n)]
    return (n >= 2 and stripped == from_zero) or (n >= 3 and stripped == from_one)


ROW_BYTES = 4 << 20  # what one row may hold
_PIECE = 1 << 20
_QUOTED = re.compile(r'(?:[^"]++|"")*+')  # to the mark that closes it


class _Scan:
    """The place in the table that a pass over its text has reached.

    Attributes
    ----------
    row : int
        Row of data, from 1; 0 in the header.
    field : int
        Position of the field in its row, from 0.
    inside : bool
        Whether the field is quoted and not closed yet.
    opened : tuple of int
        Row and field where the last quotation mark was opened.
    length : int
        Characters of the row so far.
    longest : tuple of int
        Characters and position of the longest field of the row.
    """

    def __init__(self, separator: str, row: int) -> None:
        self._separator = separator
        self._token = re.compile(f'["{re.escape(separator)}]')
        self._fresh = True  # whether the next character begins a field
        self.row = row
        self._begin()
        self.inside = False
        self.opened = (row, 0)

    def _begin(self) -> None:
        self.field, self.length, self._field_length = 0, 0, 0
        self.longest = (0, 0)
        self._fresh = True

    def take(self, piece: str) -> bool:
        """Move to the end of a piece of at most one line; return whether a row ended there."""
        self.length += len(piece)
        if self.inside and '"' not in piece:
            self._field_length += len(piece)
            return False
        if '"' not in piece:
            parts = piece.split(self._separator)
            if len(parts) > 1:
                self._end_field(len(parts[0]))
            if len(parts) > 2:  # fields that begin and end here
                lengths = list(map(len, parts[1:-1]))
                most = max(lengths)
                last = len(lengths) - 1 - lengths[::-1].index(most)
                self.longest = max(self.longest, (most, self.field + last))
                self.field += len(lengths)
            self._field_length += len(parts[-1])
            self._fresh = not parts[-1] and (len(parts) > 1 or self._fresh)
        else:
            self._walk(piece)
        return not self.inside and piece.endswith(("\n", "\r"))

    def _walk(self, piece: str) -> None:
        begin = 0 if self._fresh else -1  # where a field begins
        after = at = 0
        while True:
            if self.inside:
                match = _QUOTED.match(piece, at)
                at = match.end() if match else at
                if at == len(piece):
                    break
                self.inside = False
                at += 1
            found = self._token.search(piece, at)
            if found is None:
                break
            at = found.end()
            if found[0] == self._separator:
                self._end_field(at - 1 - after)
                begin = after = at
            elif at - 1 == begin:
                self.inside, self.opened = True, (self.row, self.field)
        self._field_length += len(piece) - after
        self._fresh = begin == len(piece)

    def _end_field(self, more: int) -> None:
        self.longest = max(self.longest, (self._field_length + more, self.field))
        self.field += 1
        self._field_length = 0

    def end_row(self) -> None:
        """The next piece begins a new row."""
        self.row += 1
        self._begin()

    def row_ends(self) -> tuple[int, int]:
        """Fields of the row, and the position of the longest."""
        longest = max(self.longest, (self._field_length, self.field))
        return self.field + 1, longest[1]


def find_fault(stream: Any, encoding: str, form: CsvFormat, file: str) -> InputError | None:
    """The first fault in the file that no reader can handle; None where there is none.

    Parameters
    ----------
    stream : binary file object
        Read from its start; left open.
    form : CsvFormat
        With the column names, and the lines before the data.

    Returns
    -------
    InputError or None
        An open quotation mark, a row longer than `ROW_BYTES`; with row and column.

    Examples
    --------
    >>> from kdcal_core.data.csv_tables import detect_format
    >>> text = 'a,b\\n1,"x\\n2,y\\n'
    >>> form = detect_format(text, complete=True)
    >>> find_fault(io.BytesIO(text.encode()), "utf-8", form, "table.csv").what
    'The quotation mark is opened and never closed'
    """
    scan = _Scan(form.separator, 0 if form.has_header else 1)
    for piece in _pieces(stream, encoding):
        if not scan.length and not piece.strip("\r\n\ufeff"):
            continue  # a blank line is no row
        if not scan.take(piece):
            continue
        if scan.length > ROW_BYTES:
            return _too_long(scan, form, file)
        scan.end_row()
    if scan.inside:
        row, field = scan.opened
        return InputError(
            "The quotation mark is opened and never closed",
            fix="Close it, or take it away. Inside a quoted text, write a quotation mark twice.",
            file=file,
            row=row,
            column=_name(form, field),
        )
    return _too_long(scan, form, file) if scan.length > ROW_BYTES else None


def _too_long(scan: _Scan, form: CsvFormat, file: str) -> InputError:
    n_fields, longest = scan.row_ends()
    if scan.row and n_fields != len(form.names):
        return wrong_width(n_fields, len(form.names), file, scan.row)
    what = "The row" if scan.row else "The header"
    return InputError(
        f"{what} holds {scan.length:,} characters; the limit is {ROW_BYTES:,}",
        fix="Shorten the text or leave its column out. An open quotation mark may join rows.",
        file=file,
        row=scan.row,
        column=_name(form, longest),
    )


def wrong_width(n_fields: int, n_columns: int, file: str, row: int) -> InputError:
    """A row has another number of fields than the table has columns."""
    return InputError(
        f"The row has {counted(n_fields, 'field')}, but the table has {n_columns:,} columns",
        fix="Check the row for a missing or extra separator, or an open quotation mark.",
        file=file,
        row=row,
    )


def header_width(stream: Any, encoding: str, separator: str) -> int:
    """How many fields the first line has, however long it is."""
    scan = _Scan(separator, 0)
    for piece in _pieces(stream, encoding):
        if (scan.length or piece.strip("\r\n\ufeff")) and scan.take(piece):
            break
    return scan.row_ends()[0]


def _name(form: CsvFormat, field: int) -> str:
    name = form.names[field] if field < len(form.names) else ""
    return name if name and len(name) <= 80 and "\n" not in name else f"number {field + 1}"


def _pieces(stream: Any, encoding: str) -> Iterator[str]:
    """The text line by line, a long line in pieces."""
    stream.seek(0)
    text = io.TextIOWrapper(stream, encoding, "replace", newline="")
    try:
        while piece := text.readline(_PIECE):
            while piece.endswith('"'):  # two of them must not come apart
                if not (more := text.readline(_PIECE)):
                    break
                piece += more
            yield piece
    finally:
        text.detach()


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

    ``again`` opens it again: after an error Arrow's threads go on reading the stream they were
    given, so nothing else may read it. ``head`` holds its first bytes, ``size`` the number of all
    of them, and ``n_quotes`` how many quotation marks there are: where there is one, a field may
    hold a line break.
    """

    stream: pa.NativeFile
    again: Callable[[], pa.NativeFile]
    head: bytes
    size: int
    n_quotes: int


def read_csv(
    source: CsvSource, file: str, max_bytes: int | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
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
        check_length(table.num_rows, file)
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
        check_width(width, file)
        stream.seek(0)
        head = bytes(stream.read(2 * ROW_BYTES))
        complete = len(head) >= size
        form = detect_format(decode_text(head, encoding), complete=complete)
    check_width(len(form.names), file)
    if form.n_sampled == 0:
        refuse_fault(stream, encoding, form, file)
    form = replace(form, names=_index_named(form.names))
    check_column_names(form.names, file)
    if form.n_sampled == 0:
        raise _no_rows(file)
    return form, encoding


def _index_named(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, with the one that pandas gives a blank first column: a data frame's index."""
    if len(names) < 2 or names[0].strip():
        return names
    taken = {*names}
    numbered = ("Unnamed: 0", *(f"Unnamed: 0.{number}" for number in range(1, len(names))))
    return (next(name for name in numbered if name not in taken), *names[1:])


def refuse_fault(stream: Any, encoding: str, form: CsvFormat, file: str) -> None:
    """Raise an error that names the row and column where the file cannot be read, if there is one.

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
    """Arrow's error about a CSV file as an :class:`InputError`, with its row if Arrow gives one."""
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


# What spreadsheets take for the start of a formula, in any width and after signs that they skip:
# blanks, and characters that show nothing. Names may be crafted.
_STARTS = frozenset(f"=+-@{MINUS}")
_BREAKS = ("\t", "\r", "\n")
_CELL_NUMBER = r"[+\-−]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d+)?%?"
_NUMBERS = re.compile(
    rf"{_CELL_NUMBER}(?: to {_CELL_NUMBER}| \({_CELL_NUMBER} to {_CELL_NUMBER}\))?"
)

# A formula after what another language's spreadsheet takes for the end of a cell.
_INNER = re.compile(rf"([;\t\r\n][\s\"]*)(?=[=+@＝＋＠−-])(?!{_CELL_NUMBER}\s*(?:[;\t\r\n]|$))")


def safe_cell(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet would run it as a formula.

    Numbers and intervals stay as they are, negative ones too.

    Examples
    --------
    >>> safe_cell("=cmd|' /C calc'!A0"), safe_cell("-2+3+cmd|' /C calc'!A0")
    ("'=cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0")
    >>> safe_cell("-0.5"), safe_cell("-0.5 to 0.1"), safe_cell("<=50K")
    ('-0.5', '-0.5 to 0.1', '<=50K')
    """
    if _NUMBERS.fullmatch(text.strip()):
        return text
    first = next((sign for sign in text if _shows(sign)), "")
    blank = len(text) - len(text.lstrip())
    inner = text[:blank] + _INNER.sub(r"\1'", text[blank:])
    starts = unicodedata.normalize("NFKC", first)[:1] in _STARTS or text.startswith(_BREAKS)
    return f"'{inner}" if starts else inner


def _shows(sign: str) -> bool:
    """Whether a sign is neither blank nor a control or format character."""
    return not sign.isspace() and unicodedata.category(sign) not in ("Cc", "Cf")


def to_csv(table: pd.DataFrame) -> bytes:
    """CSV in UTF-8 whose text cells and headings no spreadsheet takes for formulas.

    Texts stay as they are otherwise. A table of numbers as screens show them passes through
    `kdcal_core.text.typed` first.

    Examples
    --------
    >>> to_csv(pd.DataFrame({"=a": ["@b", "c"], "d": [-1.5, 2.0]}))
    b"'=a,d\\n'@b,-1.5\\nc,2.0\\n"
    """
    safe = table.map(_safe)
    safe.columns = [_safe(column) for column in safe.columns]
    return safe.to_csv(index=False, lineterminator="\n").encode()


def _safe(cell: object) -> object:
    # "\r" alone would end the row: it is written without quotes
    plain = cell.replace("\r\n", "\n").replace("\r", "\n") if isinstance(cell, str) else cell
    return safe_cell(plain) if isinstance(plain, str) else plain
