"""How a CSV file is written, read off its start, and where one cannot be read.

A fault is looked for only where the reader gave up, or swallowed the end of the file, since it
takes a pass over all characters.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.text import counted

MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>")
_SEPARATORS = ("\t", ";", "|", ",")  # a decimal comma makes the comma the last to be tried
_MAX_SAMPLED = 500
_UTF_32_BYTES = 4096  # enough to tell it from numbers of four bytes
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
    """``utf-8``, UTF-16 or UTF-32 of either byte order or, where it is none of them, ``cp1252``.

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
    """UTF-32, of which each character takes four bytes and the highest of them is zero."""
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
    """Text without its byte order mark; bytes that mean nothing become replacement signs."""
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
    columns.
    """
    first, rest = rows[0], rows[1:]
    starts_numeric = False
    for position, field in enumerate(first):
        below = [row[position].strip() for row in rest if len(row) > position]
        below = [value for value in below if value not in MISSING]
        numeric_below = bool(below) and all(_NUMBER.fullmatch(value) for value in below)
        if _NUMBER.fullmatch(field.strip()):
            starts_numeric = starts_numeric or numeric_below or not below
        elif numeric_below and field.strip() not in MISSING:
            return True
    return not starts_numeric or _counts_up(first)


def _counts_up(fields: Sequence[str]) -> bool:
    stripped = [field.strip() for field in fields]
    n = len(stripped)
    from_zero, from_one = [str(i) for i in range(n)], [str(i + 1) for i in range(n)]
    return (n >= 2 and stripped == from_zero) or (n >= 3 and stripped == from_one)


ROW_BYTES = 4 << 20  # what one row may hold
_PIECE = 1 << 20
_QUOTED = re.compile(r'(?:[^"]++|"")*+')  # to the mark that closes it


class _Scan:
    """Where in the table a pass over its text stands.

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
        """Go on to the end of a piece, which is at most one line. Whether a row ended with it."""
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
    """The first thing in the file that no reader can take; None where there is none.

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
    >>> from kdcal_core.data.csv_format import detect_format
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
